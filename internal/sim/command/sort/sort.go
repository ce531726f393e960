package sort

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var sortSpec = command.Spec{
	Name: "sort", Synopsis: "[OPTION]... [FILE]...", Exit: 2,
	About: "Write sorted concatenation of all FILE(s) to standard output.",
	Options: []command.Option{
		{Short: 'b', Long: "ignore-leading-blanks", Help: "ignore leading blanks"},
		{Short: 'd', Long: "dictionary-order", Help: "consider only blanks and alphanumeric characters"},
		{Short: 'f', Long: "ignore-case", Help: "fold lower case to upper case characters"},
		{Short: 'g', Long: "general-numeric-sort", Help: "compare according to general numerical value"},
		{Short: 'i', Long: "ignore-nonprinting", Help: "consider only printable characters"},
		{Short: 'M', Long: "month-sort", Help: "compare (unknown) < 'JAN' < ... < 'DEC'"},
		{Short: 'h', Long: "human-numeric-sort", Help: "compare human readable numbers (e.g., 2K 1G)"},
		{Short: 'n', Long: "numeric-sort", Help: "compare according to string numerical value"},
		{Short: 'R', Long: "random-sort", Help: "shuffle, but group identical keys"},
		{Long: "random-source", Arg: command.Required, Name: "FILE", Help: "get random bytes from FILE"},
		{Short: 'r', Long: "reverse", Help: "reverse the result of comparisons"},
		{Long: "sort", Arg: command.Required, Name: "WORD", Help: "sort according to WORD: general-numeric -g, human-numeric -h, month -M, numeric -n, random -R, version -V"},
		{Short: 'V', Long: "version-sort", Help: "natural sort of (version) numbers within text"},
		{Long: "batch-size", Arg: command.Required, Name: "NMERGE", Help: "(ignored)"},
		{Short: 'c', Help: "check for sorted input; do not sort"},
		{Short: 'C', Help: "like -c, but do not report first bad line"},
		{Long: "check", Arg: command.Optional, Name: "quiet|silent|diagnose-first", Help: "like -c or -C"},
		{Long: "compress-program", Arg: command.Required, Name: "PROG", Help: "(ignored)"},
		{Long: "files0-from", Arg: command.Required, Name: "F", Help: "read input from the files specified by NUL-terminated names in file F"},
		{Short: 'k', Long: "key", Arg: command.Required, Name: "KEYDEF", Help: "sort via a key; KEYDEF gives location and type"},
		{Short: 'm', Long: "merge", Help: "merge already sorted files; do not sort"},
		{Short: 'o', Long: "output", Arg: command.Required, Name: "FILE", Help: "write result to FILE instead of standard output"},
		{Short: 's', Long: "stable", Help: "stabilize sort by disabling last-resort comparison"},
		{Short: 'S', Long: "buffer-size", Arg: command.Required, Name: "SIZE", Help: "(ignored)"},
		{Short: 't', Long: "field-separator", Arg: command.Required, Name: "SEP", Help: "use SEP instead of non-blank to blank transition"},
		{Short: 'T', Long: "temporary-directory", Arg: command.Required, Name: "DIR", Help: "(ignored)"},
		{Long: "parallel", Arg: command.Required, Name: "N", Help: "(ignored)"},
		{Short: 'u', Long: "unique", Help: "with -c, check for strict ordering; without -c, output only the first of an equal run"},
		{Short: 'y', Arg: command.Required},
		{Short: 'z', Long: "zero-terminated", Help: "line delimiter is NUL, not newline"},
	},
}

// sortWords has the status for words that are not known.
var sortWords = &command.Spec{Name: "sort"}

// A sorter is what was asked for.
type sorter struct {
	t      *kernel.Task
	global ordering
	keys   []*key
	tab    int
	end    byte
	unique bool
	stable bool
	salt   [16]byte // of -R

	// What compare uses to change keys into.
	one, two []byte
}

func runSort(t *kernel.Task) int {
	s := &sorter{t: t, tab: -1, end: '\n'}
	a, status, ok := sortSpec.ParseArgs(t, s.old(t.Args[1:]))
	if !ok {
		return status
	}
	s.end = command.Delimiter(a)
	j := job{sorter: s}
	if status := j.options(a); status != 0 {
		return status
	}
	if status := s.settle(); status != 0 {
		return status
	}
	names := a.Operands
	if from, ok := a.Value("files0-from"); ok {
		if len(names) > 0 {
			t.Errorf("extra operand %s", command.QuoteAlways(names[0]))
			_, _ = t.Write(2, []byte("file operands cannot be combined with --files0-from\nTry 'sort --help' for more information.\n"))
			return 2
		}
		if names, ok = j.listed(from); !ok {
			return 2
		}
	}
	names = command.InputNames(names)
	switch {
	case j.check != 0 && len(names) > 1:
		t.Errorf("extra operand %s not allowed with -%c", command.QuoteAlways(names[1]), j.check)
		return 2
	case j.check != 0 && j.output != "":
		t.Errorf("options '-%co' are incompatible", j.check)
		return 2
	case j.check != 0:
		return j.checkOrder(names[0])
	}
	return j.run(names)
}

// A job is what is to be done besides comparing.
type job struct {
	*sorter

	check  byte // c or C, or 0
	merge  bool
	output string
	random string
}

// old turns the keys of old, +1 -2, into something that can be parsed.
func (s *sorter) old(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if len(arg) > 1 && arg[0] == '+' {
			minus := ""
			if i+1 < len(args) && len(args[i+1]) > 1 && args[i+1][0] == '-' && isDigit(args[i+1][1]) {
				minus = args[i+1][1:]
			}
			if k, ok := traditional(arg[1:], minus); ok {
				s.keys = append(s.keys, k)
				if minus != "" {
					i++
				}
				continue
			}
		}
		out = append(out, arg)
		if (arg == "-k" || arg == "-t" || arg == "-o" || arg == "-T" || arg == "-S") && i+1 < len(args) {
			i++
			out = append(out, args[i])
		}
	}
	return out
}

func (j *job) options(a *command.Args) int {
	t := j.t
	for _, f := range a.Flags {
		switch f.Key {
		case "b", "d", "f", "g", "h", "i", "M", "n", "R", "r", "V":
			j.global.letter(f.Key[0], true, true)
		case "sort":
			words := []string{"general-numeric", "human-numeric", "month", "numeric", "random", "version"}
			w, err := command.Choice(f.Value, words)
			if err != nil {
				return command.BadChoice(t, sortWords, "--sort", f.Value, err, words)
			}
			j.global.letter(map[string]byte{"general-numeric": 'g', "human-numeric": 'h', "month": 'M', "numeric": 'n', "random": 'R', "version": 'V'}[w], true, true)
		case "c", "C", "check":
			check := f.Key[0]
			if f.Key == "check" && f.Given {
				w, err := command.Choice(f.Value, []string{"quiet", "silent", "diagnose-first"})
				if err != nil {
					return command.BadChoice(t, sortWords, "--check", f.Value, err, []string{"quiet’, ‘silent", "diagnose-first"})
				}
				if w != "diagnose-first" {
					check = 'C'
				}
			}
			if j.check != 0 && j.check != check {
				t.Errorf("options '-cC' are incompatible")
				return 2
			}
			j.check = check
		case "k":
			k, err := parseKey(f.Value)
			if err != nil {
				t.Errorf("%s", err)
				return 2
			}
			j.keys = append(j.keys, k)
		case "m":
			j.merge = true
		case "o":
			if j.output != "" && j.output != f.Value {
				t.Errorf("multiple output files specified")
				return 2
			}
			j.output = f.Value
		case "s":
			j.stable = true
		case "u":
			j.unique = true
		case "t":
			if status := j.separator(f.Value); status != 0 {
				return status
			}
		case "random-source":
			j.random = f.Value
		case "S":
			if _, err := command.ParseUint(strings.TrimSuffix(f.Value, "%"), "EgGkKmMPtTYZb"); err != nil && !errors.Is(err, command.ErrLarge) {
				t.Errorf("invalid %s argument %s", f.Spelt, command.QuoteAlways(f.Value))
				return 2
			}
		case "parallel", "batch-size":
			if n, err := command.ParseUint(f.Value, ""); err != nil && !errors.Is(err, command.ErrLarge) || n == 0 && f.Key == "parallel" {
				if n == 0 && err == nil {
					t.Errorf("number in parallel must be nonzero")
				} else {
					t.Errorf("invalid --%s argument %s", f.Key, command.QuoteAlways(f.Value))
				}
				return 2
			}
		}
	}
	return 0
}

func (s *sorter) separator(sep string) int {
	if sep == "" {
		s.t.Errorf("empty tab")
		return 2
	}
	c := int(sep[0])
	if len(sep) > 1 {
		if sep != `\0` {
			s.t.Errorf("multi-character tab %s", command.Quote(sep))
			return 2
		}
		c = 0
	}
	if s.tab >= 0 && s.tab != c {
		s.t.Errorf("incompatible tabs")
		return 2
	}
	s.tab = c
	return 0
}

// settle gives keys without letters the global ones, and looks for letters
// that clash.
func (s *sorter) settle() int {
	for _, k := range s.keys {
		if k.isDefault() && !k.reverse {
			k.ordering = s.global
		}
		if clash := k.clash(); clash != "" {
			s.t.Errorf("%s", clash)
			return 2
		}
	}
	if len(s.keys) == 0 && !s.global.isDefault() {
		k := &key{ordering: s.global, whole: true, open: true}
		if clash := k.clash(); clash != "" {
			s.t.Errorf("%s", clash)
			return 2
		}
		s.keys = []*key{k}
	}
	return 0
}

// seed fills the salt of -R.
func (j *job) seed() bool {
	name := j.random
	if name == "" {
		for _, k := range j.keys {
			if k.kind == byHash {
				name = "/dev/urandom"
			}
		}
	}
	if name == "" {
		return true
	}
	if name == "/dev/urandom" {
		fill(j.salt[:])
		return true
	}
	r, err := command.OpenReader(j.t, name)
	if err != nil {
		j.t.Errorf("open failed: %s: %s", command.QuoteFile(name), vfs.Message(err))
		return false
	}
	defer r.Close()
	b := r.Next(len(j.salt))
	copy(j.salt[:], b)
	if len(b) < len(j.salt) {
		j.t.Errorf("%s: end of file", command.Quote(name))
		return false
	}
	return true
}

func (j *job) listed(from string) ([]string, bool) {
	r, err := command.OpenReader(j.t, from)
	if err != nil {
		j.t.Errorf("open failed: %s: %s", command.QuoteFile(from), vfs.Message(err))
		return nil, false
	}
	defer r.Close()
	var names []string
	for {
		name, _, ok := r.Line(0)
		if !ok {
			break
		}
		if len(name) == 0 {
			j.t.Errorf("%s:%d: invalid zero-length file name", command.QuoteFile(from), len(names)+1)
			return nil, false
		}
		j.t.Grow(len(name) + 16)
		names = append(names, string(name))
	}
	if len(names) == 0 {
		j.t.Errorf("no input from %s", command.QuoteAlways(from))
		return nil, false
	}
	return names, true
}

// compare compares two lines; 0 is that either may stand first.
func (s *sorter) compare(a, b []byte) int {
	if len(s.keys) > 0 {
		if c := s.byKeys(a, b); c != 0 || s.unique || s.stable {
			return c
		}
	}
	c := bytes.Compare(a, b)
	if s.global.reverse {
		return -c
	}
	return c
}

func (s *sorter) byKeys(a, b []byte) int {
	for _, k := range s.keys {
		if c := s.byKey(k, k.of(a, s.tab), k.of(b, s.tab)); c != 0 {
			return c
		}
	}
	return 0
}

func (s *sorter) byKey(k *key, x, y []byte) int {
	c := 0
	switch k.kind {
	case byText:
		if k.ignore != nothing || k.fold {
			s.one, s.two = k.change(s.one[:0], x), k.change(s.two[:0], y)
			x, y = s.one, s.two
		}
		c = bytes.Compare(x, y)
	case byNumber:
		d, _ := parse(x)
		e, _ := parse(y)
		c = d.compare(&e)
	case byHuman:
		c = compareHuman(x, y)
	case byFloat, byMonth, byHash:
		c = cmp.Compare(s.prefix(k, x), s.prefix(k, y))
		switch {
		case c != 0:
		case k.kind == byHash:
			c = bytes.Compare(x, y)
		case k.kind == byFloat:
			c = compareFloat(x, y)
		}
	case byVersion:
		if k.ignore != nothing || k.fold {
			s.one, s.two = k.change(s.one[:0], x), k.change(s.two[:0], y)
			x, y = s.one, s.two
		}
		c = Version(x, y)
	}
	if k.reverse {
		return -c
	}
	return c
}

// change appends the key without what is ignored, and folded.
func (k *key) change(dst, b []byte) []byte { return k.changeSome(dst, b, len(b)) }

// changeSome stops at n bytes.
func (k *key) changeSome(dst, b []byte, n int) []byte {
	for _, c := range b {
		if len(dst) >= n {
			break
		}
		switch k.ignore {
		case nonprint:
			if c < ' ' || c >= 127 {
				continue
			}
		case dictionary:
			if !isBlank(c) && !isLetter(c) && !isDigit(c) || c >= 128 {
				continue
			}
		case nothing:
		}
		if k.fold && c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// prefix gives a number for a key: where two differ, so do the keys, and in
// the same way.
func (s *sorter) prefix(k *key, b []byte) uint64 {
	switch k.kind {
	case byText:
		if k.ignore != nothing || k.fold {
			s.one = k.changeSome(s.one[:0], b, 8)
			b = s.one
		}
		return first(b)
	case byNumber:
		d, _ := parse(b)
		return d.prefix()
	case byHuman:
		return prefixHuman(b)
	case byFloat:
		return prefixFloat(b)
	case byMonth:
		return uint64(month(b))
	case byHash:
		return s.hash(b)
	case byVersion:
	}
	return 0
}

// first gives the first 8 bytes as a number.
func first(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var u uint64
	for i, c := range b {
		u |= uint64(c) << (56 - 8*i)
	}
	return u
}

// run sorts or merges.
func (j *job) run(names []string) int {
	for _, name := range names {
		if name == "-" {
			continue
		}
		if _, err := j.t.View.Stat(name); err == nil {
			err = j.t.View.Access(name, 4)
			if err != nil {
				j.t.Errorf("cannot read: %s: %s", command.QuoteFile(name), vfs.Message(err))
				return 2
			}
		} else if !strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/proc/") {
			j.t.Errorf("cannot read: %s: %s", command.QuoteFile(name), vfs.Message(err))
			return 2
		}
	}
	if j.output != "" {
		if _, err := j.t.View.Stat(j.output); err != nil || j.t.View.Access(j.output, 2) != nil {
			o, err := command.Create(j.t, j.output, 0)
			if err != nil {
				j.t.Errorf("open failed: %s: %s", command.QuoteFile(j.output), vfs.Message(err))
				return 2
			}
			_ = o.Close()
		} else if i, err := j.t.View.Stat(j.output); err == nil && i.IsDir() {
			j.t.Errorf("open failed: %s: %s", command.QuoteFile(j.output), vfs.Message(linux.EISDIR))
			return 2
		}
	}
	if !j.seed() {
		return 2
	}
	if j.merge {
		return j.merging(names)
	}
	lines, ok := j.read(names)
	if !ok {
		return 2
	}
	lines.sort()
	return j.writing(lines.write)
}

// writing gives a writer to do, and writes out what it wrote.
func (j *job) writing(do func(w *command.Writer)) int {
	if j.output == "" {
		do(command.StdoutStatus(j.t, 2))
		return 0
	}
	o, err := command.Create(j.t, j.output, linux.O_TRUNC)
	if err != nil {
		j.t.Errorf("open failed: %s: %s", command.QuoteFile(j.output), vfs.Message(err))
		return 2
	}
	defer func() { _ = o.Close() }()
	w := command.NewWriter(o, func(err error) {
		j.t.Errorf("write failed: %s: %s", command.QuoteFile(j.output), vfs.Message(err))
		j.t.Exit(2)
	})
	do(w)
	w.Flush()
	return 0
}
