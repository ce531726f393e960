package sort

import (
	"bytes"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var lookSpec = command.Spec{
	Name: "look", Synopsis: "[options] <string> [<file>...]",
	About: "Display lines beginning with a specified string.",
	Options: []command.Option{
		{Short: 'a', Long: "alternative", Help: "use the alternative dictionary"},
		{Short: 'd', Long: "alphanum", Help: "compare only blanks and alphanumeric characters"},
		{Short: 'f', Long: "ignore-case", Help: "ignore case differences when comparing"},
		{Short: 't', Long: "terminate", Arg: command.Required, Name: "char", Help: "define the string-termination character"},
		{Short: 'V', Long: "version"}, {Short: 'h', Long: "help"},
	},
	NoHelp: true,
}

func runLook(t *kernel.Task) int {
	a, status, ok := lookSpec.Parse(t)
	if !ok {
		return status
	}
	w := command.Stdout(t)
	if a.Has("h") || a.Has("V") {
		w.String("Usage:\n look [options] <string> [<file>...]\n\nDisplay lines beginning with a specified string.\n")
		return 0
	}
	if len(a.Operands) == 0 || len(a.Operands) > 2 {
		t.Errorf("bad usage")
		_, _ = t.Write(2, []byte("Try 'look --help' for more information.\n"))
		return 1
	}
	file := "/usr/share/dict/words"
	if a.Has("a") {
		file = "/usr/share/dict/web2"
	}
	alnum, fold := a.Has("d"), a.Has("f")
	if len(a.Operands) > 1 {
		file = a.Operands[1]
	} else {
		alnum, fold = true, true
	}
	want := a.Operands[0]
	if end, ok := a.Value("t"); ok && end != "" {
		for i := range len(want) {
			if want[i] == end[0] {
				want = want[:i+1]
				break
			}
		}
	}
	change := func(b []byte) []byte {
		var out []byte
		for _, c := range b {
			if alnum && !isDigit(c) && !isLetter(c) && c != ' ' && c != '\t' || alnum && c >= 128 {
				continue
			}
			if fold && c >= 'a' && c <= 'z' {
				c -= 'a' - 'A'
			}
			out = append(out, c)
		}
		return out
	}
	key := change([]byte(want))
	r, err := command.OpenReader(t, file)
	if err != nil {
		t.Errorf("%s: %s", file, message(err))
		return 1
	}
	defer r.Close()
	b, err := r.All()
	if err != nil {
		t.Errorf("%s: %s", file, message(err))
		return 1
	}
	// Halve until the first line that is not before the key.
	from, to := 0, len(b)
	line := func(at int) []byte {
		if n := bytes.IndexByte(b[at:], '\n'); n >= 0 {
			return b[at : at+n]
		}
		return b[at:]
	}
	for from < to {
		t.Step(1)
		at := from + (to-from)/2
		at = bytes.LastIndexByte(b[:at], '\n') + 1
		l := line(at)
		if bytes.Compare(change(l), key) < 0 {
			from = min(len(b), at+len(l)+1)
		} else {
			to = at
		}
	}
	found := false
	for from < len(b) {
		l := line(from)
		if !bytes.HasPrefix(change(l), key) {
			break
		}
		found = true
		w.Line(l, '\n')
		from += len(l) + 1
	}
	if !found {
		return 1
	}
	return 0
}
