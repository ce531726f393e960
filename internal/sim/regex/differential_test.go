package regex

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// A writer makes random patterns of what people write.
type writer struct {
	r      *rand.Rand
	ext    bool
	refs   bool
	groups int
	closed []int
}

func (w *writer) pick(s ...string) string { return s[w.r.IntN(len(s))] }

func (w *writer) op(s string) string {
	if w.ext {
		return s
	}
	return `\` + s
}

func (w *writer) pattern(depth int) string {
	var b strings.Builder
	branches := 1
	if w.r.IntN(3) == 0 {
		branches += w.r.IntN(2) + 1
	}
	before := len(w.closed)
	for i := range branches {
		if i > 0 {
			b.WriteString(w.op("|"))
			w.closed = w.closed[:before]
		}
		for range 1 + w.r.IntN(3) {
			b.WriteString(w.item(depth))
		}
	}
	return b.String()
}

func (w *writer) item(depth int) string {
	if w.r.IntN(12) == 0 && w.ext {
		return w.pick("^", "$", `\<`, `\>`, `\b`, `\B`)
	}
	var s string
	switch n := w.r.IntN(10); {
	case n < 3 && depth > 0:
		w.groups++
		g := w.groups
		s = w.op("(") + w.pattern(depth-1) + w.op(")")
		w.closed = append(w.closed, g)
		if w.refs || w.hollow(s) {
			return s
		}
	case n < 4 && w.refs && len(w.closed) > 0:
		if g := w.closed[w.r.IntN(len(w.closed))]; g <= 9 {
			s = fmt.Sprintf(`\%d`, g)
		} else {
			s = "a"
		}
	case n < 5:
		s = w.pick(".", "[ab]", "[^a]", "[[:alpha:]]", `\w`, `\W`, "[b-d]", "é")
	default:
		s = w.pick("a", "b", "c", "ab")
	}
	switch w.r.IntN(8) {
	case 0, 1:
		s += "*"
	case 2:
		s += w.op("?")
	case 3:
		s += w.op("+")
	case 4:
		s += w.op("{") + w.pick("2", "1,2", "0,1", ",2", "2,", "0", "1,") + w.op("}")
	}
	return s
}

// hollow says whether s can match nothing. glibc loops for ever on some
// repetitions of such a group, and crashes on some with back-references.
func (w *writer) hollow(s string) bool {
	f := BRE
	if w.ext {
		f = ERE
	}
	r, err := Compile(s, Options{Flavour: f})
	return err != nil || r.root.nullable()
}

func (w *writer) text() string {
	var b strings.Builder
	for range w.r.IntN(9) {
		b.WriteString(w.pick("a", "b", "c", "a", "b", "d", "é", "-", "_"))
	}
	return b.String()
}

// realTool finds a program of the machine that speaks UTF-8, or skips.
func realTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s to compare with: %v", name, err)
	}
	return path
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// runEach asks a program that answers line by line, and gives no answer to a
// question that kills it: glibc crashes on some back-references.
func runEach(t *testing.T, path string, questions []string, args ...string) []string {
	t.Helper()
	var answers []string
	for range 100 {
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Stdin = strings.NewReader(strings.Join(questions[len(answers):], ""))
		cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"}
		out, err := cmd.Output()
		if lines := strings.SplitAfter(string(out), "\n"); len(lines) > 1 {
			answers = append(answers, lines[:len(lines)-1]...)
		}
		if err == nil {
			return answers
		}
		answers = append(answers, "")
	}
	t.Fatalf("%s crashed a hundred times", path)
	return nil
}

func runReal(t *testing.T, path, input string, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", path, err, stderr.Bytes())
	}
	return strings.SplitAfter(strings.TrimSuffix(string(out), "\n"), "\n")
}

type trial struct{ pattern, text string }

func compare(t *testing.T, trials []trial, got func(trial) string, want []string, tolerated int) {
	t.Helper()
	if len(want) != len(trials) {
		t.Fatalf("%d answers to %d questions", len(want), len(trials))
	}
	bad := 0
	for i, c := range trials {
		if g, w := got(c), strings.TrimSuffix(want[i], "\n"); want[i] != "" && g != w {
			bad++
			if bad <= 25 {
				t.Logf("%q on %q: got %s, want %s", c.pattern, c.text, g, w)
			}
		}
	}
	if bad > tolerated {
		t.Errorf("%d of %d differ, %d may", bad, len(trials), tolerated)
	}
}

const askBash = `while IFS=$'\t' read -r p t; do
  if [[ $t =~ $p ]]; then printf y; for m in "${BASH_REMATCH[@]}"; do printf '[%s]' "$m"; done; echo
  else echo "n$?"; fi
done`

func answer(f Flavour) func(trial) string {
	return func(c trial) string {
		r, err := Compile(c.pattern, Options{Flavour: f})
		if err != nil {
			return "n2"
		}
		m, err := r.Find([]byte(c.text), 0, nil)
		if err != nil {
			return err.Error()
		}
		if m == nil {
			return "n1"
		}
		var b strings.Builder
		b.WriteString("y")
		for i := 0; i < len(m); i += 2 {
			b.WriteString("[")
			if m[i] >= 0 {
				b.WriteString(c.text[m[i]:m[i+1]])
			}
			b.WriteString("]")
		}
		return b.String()
	}
}

// Among the patterns with anchors inside repeated or optional groups there are
// a few whose groups glibc sets in a way of its own; see the package comment.
func TestMatchesAreThoseOfBash(t *testing.T) {
	t.Parallel()
	bash := realTool(t, "bash")
	for _, refs := range []bool{false, true} {
		w := &writer{r: rand.New(rand.NewPCG(1, 2)), ext: true, refs: refs}
		var trials []trial
		var questions []string
		for range 2000 {
			w.groups, w.closed = 0, nil
			c := trial{w.pattern(2), w.text()}
			trials = append(trials, c)
			questions = append(questions, c.pattern+"\t"+c.text+"\n")
		}
		compare(t, trials, answer(Shell), runEach(t, bash, questions, "-c", askBash), 30)
	}
}

func TestSubstitutionsAreThoseOfSed(t *testing.T) {
	t.Parallel()
	sed := realTool(t, "sed")
	for _, f := range []Flavour{BRE, ERE} {
		w := &writer{r: rand.New(rand.NewPCG(3, 4)), ext: f == ERE}
		var trials []trial
		var in, script strings.Builder
		for len(trials) < 1500 {
			w.groups, w.closed = 0, nil
			c := trial{w.pattern(2), w.text()}
			if w.hollow(c.pattern) {
				// sed 4.9 takes single bytes between the empty matches of some
				// of these, and splits characters.
				c.text = strings.ReplaceAll(c.text, "é", "e")
			}
			if _, err := Compile(c.pattern, Options{Flavour: f}); err != nil {
				continue
			}
			trials = append(trials, c)
			fmt.Fprintf(&script, "%ds/%s/<&>/g\n", len(trials), c.pattern)
			fmt.Fprintf(&in, "%s\n", c.text)
		}
		file := t.TempDir() + "/in"
		write(t, file, in.String())
		args := []string{"-f", "/dev/stdin", file}
		if f == ERE {
			args = append([]string{"-E"}, args...)
		}
		want := runReal(t, sed, script.String(), args...)
		compare(t, trials, func(c trial) string { return substitute(t, c, f) }, want, 3)
	}
}

// substitute puts every match into angle brackets as sed's g does.
func substitute(t *testing.T, c trial, f Flavour) string {
	t.Helper()
	r, err := Compile(c.pattern, Options{Flavour: f})
	if err != nil {
		t.Fatal(err)
	}
	return substituteAll(t, r, c.text)
}

func substituteAll(t *testing.T, r *Regexp, text string) string {
	t.Helper()
	b := []byte(text)
	var out []byte
	at, previous := 0, -1
	for at <= len(b) {
		from, to, err := r.Span(b, at)
		if err != nil {
			t.Fatal(err)
		}
		if from < 0 {
			break
		}
		out = append(out, b[at:from]...)
		if to > from || from != previous { // an empty match right after a match does not count
			out = append(append(append(out, '<'), b[from:to]...), '>')
		}
		at, previous = to, to
		if from == to {
			at = next(b, to)
			out = append(out, b[to:min(at, len(b))]...)
		}
	}
	return string(append(out, b[min(at, len(b)):]...))
}

// next returns where the character after that at i starts.
func next(b []byte, i int) int {
	_, n := utf8.DecodeRune(b[min(i, len(b)):])
	return i + max(n, 1)
}
