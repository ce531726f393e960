package git

import (
	"path"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

func (w *work) grep(args []string) error {
	o, err := w.options(args, "-n --line-number -i --ignore-case -l --files-with-matches --name-only -L -c --count -w --word-regexp -v --invert-match -E --extended-regexp -F --fixed-strings -G --basic-regexp -P --perl-regexp -h -H -q --quiet -o --only-matching --cached -I -a --text --no-color --color --break --heading --untracked", "-e -f -m --max-depth -A -B -C")
	if err != nil {
		return err
	}
	text, rest := o.flags["-e"], o.rest
	if !o.has("-e") {
		if len(rest) == 0 {
			return fail("no pattern given")
		}
		text, rest = rest[0], rest[1:]
	}
	opt := regex.Options{Flavour: regex.GrepBRE, IgnoreCase: o.has("-i", "--ignore-case"), Word: o.has("-w", "--word-regexp"), Meter: meter{w}}
	switch {
	case o.has("-E", "--extended-regexp"):
		opt.Flavour = regex.GrepERE
	case o.has("-P", "--perl-regexp"):
		opt.Flavour = regex.Perl
	case o.has("-F", "--fixed-strings"):
		opt.Flavour = regex.Literal
	}
	re, err := regex.Compile(text, opt)
	if err != nil {
		return fail("command line, '%s': %s", text, err)
	}
	s, err := w.workSide()
	if o.has("--cached") || w.bare {
		s, err = w.indexSide()
	}
	if err != nil {
		return err
	}
	prefix := ""
	if len(rest) > 0 {
		if c, e := w.commitOf(rest[0]); e == nil {
			prefix = rest[0] + ":"
			if s, err = w.commitSide(c); err != nil {
				return err
			}
			rest = rest[1:]
		}
	}
	paths, err := w.relatives(append(rest, o.paths...))
	if err != nil {
		return err
	}
	hit := false
	for _, n := range names(s) {
		if !within(n, paths) {
			continue
		}
		b, err := s.load(n, s.files[n])
		if err != nil {
			return err
		}
		found, err := w.grepFile(re, b, prefix+n, o)
		if err != nil {
			return err
		}
		hit = hit || found
	}
	if !hit {
		return status(1)
	}
	return nil
}

// meter charges a search to the task.
type meter struct{ w *work }

func (m meter) Step(n int) error {
	m.w.t.Step(n)
	return nil
}

func (m meter) Grow(n int) error {
	m.w.t.Grow(n)
	return nil
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (w *work) grepFile(re *regex.Regexp, b []byte, name string, o *options) (bool, error) {
	count, first := 0, true
	for i, l := range splitLines(string(b)) {
		l = strings.TrimSuffix(l, "\n")
		loc, err := re.Find([]byte(l), 0, nil)
		if err != nil {
			return false, err
		}
		found := loc != nil
		if found == o.has("-v", "--invert-match") {
			continue
		}
		count++
		if o.has("-q", "--quiet", "-l", "--files-with-matches", "--name-only") {
			break
		}
		if o.has("-c", "--count", "-L") {
			continue
		}
		if isBinary(b) && !o.has("-a", "--text") {
			if first {
				w.printf("Binary file %s matches\n", name)
			}
			return true, nil
		}
		first = false
		if !o.has("-h") {
			w.printf("%s:", name)
		}
		if o.has("-n", "--line-number") {
			w.printf("%d:", i+1)
		}
		if o.has("-o", "--only-matching") && found {
			l = l[loc[0]:loc[1]]
		}
		w.printf("%s\n", l)
	}
	switch {
	case o.has("-q", "--quiet"):
	case o.has("-L") && count == 0, count > 0 && o.has("-l", "--files-with-matches", "--name-only"):
		w.printf("%s\n", name)
		return true, nil
	case o.has("-c", "--count") && count > 0:
		w.printf("%s:%d\n", name, count)
	}
	return count > 0 && !o.has("-L"), nil
}

// ignores reports whether a file is there, is not tracked, and a .gitignore
// leaves it out with everything in it.
func (w *work) ignores(p string) (bool, error) {
	loose, err := w.untracked(nil)
	if err != nil {
		return false, err
	}
	idx, err := w.indexSide()
	if err != nil {
		return false, err
	}
	_, tracked := idx.files[p]
	below := slices.ContainsFunc(loose, func(l string) bool { return within(l, []string{p}) }) || slices.ContainsFunc(sortedKeys(idx.files), func(l string) bool { return within(l, []string{p}) })
	_, err = w.t.View.Lstat(path.Join(w.dir, p))
	return err == nil && !tracked && !below && p != ".", nil
}

func (w *work) checkIgnore(args []string) error {
	o, err := w.options(args, "-q --quiet --stdin --no-index -n", "")
	if err != nil {
		return err
	}
	names := append(slices.Clone(o.rest), o.paths...)
	if o.has("--stdin") {
		b, err := command.ReadAll(w.t, "-")
		if err != nil {
			return err
		}
		names = append(names, strings.Fields(string(b))...)
	}
	hit := false
	for _, n := range names {
		p, err := w.relative(n)
		if err != nil {
			return err
		}
		if ok, err := w.ignores(p); err != nil {
			return err
		} else if !ok {
			continue
		}
		hit = true
		if !o.has("-q", "--quiet") {
			w.printf("%s\n", n)
		}
	}
	if !hit {
		return status(1)
	}
	return nil
}
