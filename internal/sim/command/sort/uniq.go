package sort

import (
	"bytes"
	"math"
	"strconv"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var uniqSpec = &command.Spec{
	Name: "uniq", Synopsis: "[OPTION]... [INPUT [OUTPUT]]",
	About: "Filter adjacent matching lines from INPUT (or standard input), writing to OUTPUT (or standard output).",
	Options: []command.Option{
		{Short: 'c', Long: "count", Help: "prefix lines by the number of occurrences"},
		{Short: 'd', Long: "repeated", Help: "only print duplicate lines, one for each group"},
		{Short: 'D', Help: "print all duplicate lines"},
		{Long: "all-repeated", Arg: command.Optional, Name: "METHOD", Help: "like -D, but allow separating groups: none (default), prepend, separate"},
		{Short: 'f', Long: "skip-fields", Arg: command.Required, Name: "N", Help: "avoid comparing the first N fields"},
		{Long: "group", Arg: command.Optional, Name: "METHOD", Help: "show all items, separating groups with an empty line: separate (default), prepend, append, both"},
		{Short: 'i', Long: "ignore-case", Help: "ignore differences in case when comparing"},
		{Short: 's', Long: "skip-chars", Arg: command.Required, Name: "N", Help: "avoid comparing the first N characters"},
		{Short: 'u', Long: "unique", Help: "only print unique lines"},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
		{Short: 'w', Long: "check-chars", Arg: command.Required, Name: "N", Help: "compare no more than N characters in lines"},
		{Short: '0'}, {Short: '1'}, {Short: '2'}, {Short: '3'}, {Short: '4'},
		{Short: '5'}, {Short: '6'}, {Short: '7'}, {Short: '8'}, {Short: '9'},
	},
}

type uniq struct {
	t                  *kernel.Task
	fields, skip, most int
	fold               bool
	counts             bool
	single, repeated   bool // what is shown of groups of one line, and of more
	all                string
	group              string
	end                byte
	w                  *command.Writer
}

func runUniq(t *kernel.Task) int {
	u := &uniq{t: t, most: math.MaxInt, single: true, repeated: true}
	args, plus := u.old(t.Args[1:])
	a, status, ok := uniqSpec.ParseArgs(t, args)
	if !ok {
		return status
	}
	if plus >= 0 {
		u.skip = plus
	}
	u.end = command.Delimiter(a)
	if status := u.options(a); status != 0 {
		return status
	}
	if len(a.Operands) > 2 {
		return uniqSpec.Usage(t, "extra operand %s", command.Quote(a.Operands[2]))
	}
	shows := u.counts || a.Has("d") || a.Has("u") || a.Has("D") || a.Has("all-repeated")
	switch {
	case u.group != "" && shows:
		return uniqSpec.Usage(t, "--group is mutually exclusive with -c/-d/-D/-u")
	case u.counts && u.all != "":
		return uniqSpec.Usage(t, "printing all duplicated lines and repeat counts is meaningless")
	}
	name := command.InputNames(a.Operands)[0]
	if len(a.Operands) < 2 || a.Operands[1] == "-" {
		u.w = command.Stdout(t)
		return command.EachFile(t, []string{name}, func(_ string, r *command.Reader) {
			u.run(r)
			u.failed(r, name)
		})
	}
	r, err := command.OpenReader(t, name)
	if err != nil {
		command.FailFile(t, name, err)
		return 1
	}
	defer r.Close()
	out := a.Operands[1]
	o, err := command.Create(t, out, linux.O_TRUNC)
	if err != nil {
		command.FailFile(t, out, err)
		return 1
	}
	defer func() { _ = o.Close() }()
	u.w = command.NewWriter(o, func(err error) {
		command.FailFile(t, "write error", err)
		t.Exit(1)
	})
	u.run(r)
	u.w.Flush()
	u.failed(r, name)
	return 0
}

// failed ends the task if the input could not be read.
func (u *uniq) failed(r *command.Reader, name string) {
	if r.Err() != nil {
		u.t.Errorf("error reading %s", command.QuoteAlways(name))
		u.t.Exit(1)
	}
}

// old takes out +N of old.
func (u *uniq) old(args []string) (rest []string, plus int) {
	plus = -1
	for i, arg := range args {
		if arg == "--" {
			return append(rest, args[i:]...), plus
		}
		if len(arg) > 1 && arg[0] == '+' {
			if n, err := command.ParseUint(arg[1:], ""); err == nil && isDigit(arg[1]) {
				plus = int(min(n, never))
				continue
			}
		}
		rest = append(rest, arg)
	}
	return rest, plus
}

func (u *uniq) options(a *command.Args) int {
	digits := ""
	number := func(s, what string, to *int) bool {
		n, err := command.ParseUint(s, "")
		if err == command.ErrLarge {
			n, err = never, nil
		}
		if err != nil {
			u.t.Errorf("%s: %s", s, what)
			return false
		}
		*to = int(min(n, never))
		return true
	}
	for _, f := range a.Flags {
		ok := true
		switch f.Key {
		case "c":
			u.counts = true
		case "d":
			u.single = false
		case "u":
			u.repeated = false
		case "D", "all-repeated":
			u.single = false
			u.all = "none"
			if f.Given {
				list := []string{"none", "prepend", "separate"}
				w, err := command.Choice(f.Value, list)
				if err != nil {
					return command.BadChoice(u.t, uniqSpec, "--all-repeated", f.Value, err, list)
				}
				u.all = w
			}
		case "group":
			u.group = "separate"
			if f.Given {
				list := []string{"prepend", "append", "separate", "both"}
				w, err := command.Choice(f.Value, list)
				if err != nil {
					return command.BadChoice(u.t, uniqSpec, "--group", f.Value, err, list)
				}
				u.group = w
			}
		case "f":
			ok = number(f.Value, "invalid number of fields to skip", &u.fields)
			digits = ""
		case "s":
			ok = number(f.Value, "invalid number of bytes to skip", &u.skip)
		case "w":
			ok = number(f.Value, "invalid number of bytes to compare", &u.most)
		case "i":
			u.fold = true
		case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9":
			digits += f.Key
			n, _ := strconv.Atoi(digits) // too many digits are as many as can be
			u.fields = n
		}
		if !ok {
			return 1
		}
	}
	return 0
}

// key gives what is compared of a line.
func (u *uniq) key(line []byte) []byte {
	for n := u.fields; n > 0 && len(line) > 0; n-- {
		i := 0
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		for i < len(line) && !isBlank(line[i]) {
			i++
		}
		line = line[i:]
	}
	line = line[min(u.skip, len(line)):]
	return line[:min(u.most, len(line))]
}

func (u *uniq) same(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	if !u.fold {
		return bytes.Equal(a, b)
	}
	for i, c := range a {
		if c != b[i] && (c|0x20 != b[i]|0x20 || !isLetter(c)) {
			return false
		}
	}
	return true
}

func (u *uniq) run(r *command.Reader) {
	var first []byte // of the group; a copy
	count, groups := 0, 0
	for {
		line, _, ok := r.Line(u.end)
		if !ok {
			break
		}
		if count > 0 && u.same(u.key(first), u.key(line)) {
			count++
			u.another(first, line, count, &groups)
			continue
		}
		if count > 0 {
			u.finish(first, count)
		}
		first = append(first[:0], line...)
		count = 1
		if u.group != "" {
			if groups > 0 || u.group == "prepend" || u.group == "both" {
				u.w.Byte(u.end)
			}
			groups++
			u.w.Line(line, u.end)
		}
	}
	if count > 0 {
		u.finish(first, count)
		if u.group == "both" || u.group == "append" {
			u.w.Byte(u.end)
		}
	}
}

// another is a further line of a group.
func (u *uniq) another(first, line []byte, count int, groups *int) {
	switch {
	case u.group != "":
		u.w.Line(line, u.end)
	case u.all != "":
		if count == 2 {
			if u.all == "prepend" || u.all == "separate" && *groups > 0 {
				u.w.Byte(u.end)
			}
			*groups++
			if u.repeated {
				u.w.Line(first, u.end)
			}
		}
		u.w.Line(line, u.end)
	}
}

// finish shows a group that has ended.
func (u *uniq) finish(first []byte, count int) {
	if u.group != "" || u.all != "" || count == 1 && !u.single || count > 1 && !u.repeated {
		return
	}
	if u.counts {
		b := u.w.Space()
		for n := count; n < 1000000; n *= 10 {
			b = append(b, ' ')
		}
		u.w.Bytes(append(strconv.AppendInt(b, int64(count), 10), ' '))
	}
	u.w.Line(first, u.end)
}
