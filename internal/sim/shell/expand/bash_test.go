package expand_test

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/expand"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A mini is as much of a shell as words need.
type mini struct {
	t      *kernel.Task
	vars   *variable.Store
	flags  expand.Flags
	params []string
	x      *expand.Expander
	out    strings.Builder
	status int
}

func (m *mini) Task() *kernel.Task         { return m.t }
func (m *mini) Variables() *variable.Store { return m.vars }
func (m *mini) Flags() *expand.Flags       { return &m.flags }
func (m *mini) Params() []string           { return m.params }
func (m *mini) Name() string               { return "bash" }
func (m *mini) Prompt(s string) string     { return s }

func (m *mini) Special(name byte) (string, bool) {
	switch name {
	case '?':
		return strconv.Itoa(m.status), true
	case '-':
		return "hB", true
	}
	return "", false
}

func (m *mini) Word(s string) *syntax.Word {
	l, err := parse.New([]byte(s), parse.Options{}).Next()
	if err != nil || len(l.Items) != 1 {
		return nil
	}
	c, ok := l.Items[0].(*parse.Simple)
	if !ok || len(c.Words) != 1 {
		return nil
	}
	return c.Words[0].W
}

func (m *mini) Substitute(c *syntax.CmdSubst) (string, error) {
	body := parse.SubstBody(c)
	list := body.List
	if list == nil {
		var err error
		if list, err = parse.New([]byte(body.Text), parse.Options{}).Next(); err != nil {
			return "", err
		}
	}
	sub := *m
	sub.vars = m.vars.Borrow(m.t, m)
	sub.out = strings.Builder{}
	sub.x = expand.New(&sub)
	err := sub.list(list)
	return strings.TrimRight(sub.out.String(), "\n"), err
}

func (m *mini) Process(*syntax.ProcSubst) (string, error) { return "", errors.New("none here") }
func (m *mini) Warn(string, ...any)                       {}
func (m *mini) Evaluate(expr string) (int64, error)       { return m.x.Evaluate(expr) }

// run runs a script of one command a line.
func (m *mini) run(script string) string {
	m.flags.ExtGlob = true
	p := parse.New([]byte(script), parse.Options{ExtGlob: func() bool { return true }})
	for {
		l, err := p.Next()
		if err != nil {
			return m.out.String()
		}
		if l == nil {
			continue
		}
		if err := m.list(l); err != nil {
			m.out.WriteString("ERROR " + err.Error() + "\n")
			return m.out.String()
		}
	}
}

func (m *mini) list(l *parse.List) error {
	if l == nil {
		return nil
	}
	for _, c := range l.Items {
		s, ok := c.(*parse.Simple)
		if !ok {
			return errors.New("too hard for this test")
		}
		if err := m.simple(s); err != nil {
			return err
		}
	}
	return nil
}

func (m *mini) simple(s *parse.Simple) error {
	for _, a := range s.Assigns {
		if err := m.x.Assign(a.X); err != nil {
			return err
		}
	}
	var args []string
	for i := range s.Words {
		if s.Words[i].Assign != nil {
			a := s.Words[i].Assign.X
			if len(args) > 1 && strings.HasPrefix(args[0], "declare") && strings.Contains(args[1], "n") {
				value, err := m.x.Value(a)
				if err != nil {
					return err
				}
				if err := m.vars.SetRef(a.Name, value); err != nil {
					return err
				}
				continue
			}
			if len(args) > 1 && strings.Contains(args[1], "A") {
				_ = m.vars.Declare(a.Name, variable.Associate, 0)
			}
			if err := m.x.Assign(a); err != nil {
				return err
			}
			continue
		}
		if s.Words[i].Fixed {
			args = append(args, s.Words[i].Text)
			continue
		}
		var err error
		if args, err = m.x.Fields(args, s.Words[i].X); err != nil {
			return err
		}
	}
	if len(args) == 0 {
		return nil
	}
	for _, r := range s.Redirs {
		text := r.Raw
		if r.Hdoc != nil {
			var err error
			if text, err = m.x.Document(r.Hdoc); err != nil {
				return err
			}
		}
		m.out.WriteString(text)
	}
	if len(args) < 2 && args[0] != "c" || args[0] == "declare" && (len(args[1]) < 1 || args[1][0] != '-') {
		return nil
	}
	switch args[0] {
	case "c":
		m.out.WriteString(strconv.Itoa(len(args)-1) + ":")
		for _, a := range args[1:] {
			m.out.WriteString("<" + a + ">")
		}
		if len(args) == 1 {
			m.out.WriteString("<>")
		}
		m.out.WriteString("\n")
	case "echo":
		m.out.WriteString(strings.Join(args[1:], " ") + "\n")
	case "set":
		switch args[1] {
		case "-u":
			m.flags.NoUnset = true
		case "-f":
			m.flags.NoGlob = true
		default:
			m.params = args[2:]
		}
	case "shopt":
		for _, o := range args[2:] {
			on := args[1] == "-s"
			switch o {
			case "nullglob":
				m.flags.NullGlob = on
			case "globstar":
				m.flags.GlobStar = on
			case "dotglob":
				m.flags.DotGlob = on
			case "nocasematch":
				m.flags.NoCaseMatch = on
			}
		}
	case "declare":
		for _, a := range args[2:] {
			var attr variable.Attr
			for _, f := range args[1][1:] {
				attr |= map[rune]variable.Attr{
					'A': variable.Associate, 'a': variable.Indexed, 'i': variable.Integer, 'n': variable.NameRef,
					'r': variable.ReadOnly, 'x': variable.Export, 'l': variable.Lower, 'u': variable.Upper,
				}[f]
			}
			if err := m.vars.Declare(a, attr, 0); err != nil {
				return err
			}
		}
	case "unset":
		for _, a := range args[1:] {
			r, _ := variable.Split(a)
			if r.Element {
				if err := m.vars.UnsetAt(r.Name, r.Subscript); err != nil {
					return err
				}
			} else if err := m.vars.Unset(a); err != nil {
				return err
			}
		}
	case "true", "cat", ":", "cd", "touch", "mkdir":
	default:
		return errors.New("no such command: " + args[0])
	}
	return nil
}

// dir is where both shells are.
var names = []string{"a.txt", "b.txt", "c.md", ".hidden", "sub/x.txt", "sub/deep/y.txt", "sp ace", "[x]", "Upper"}

func newMini(t testing.TB) *mini {
	t.Helper()
	fs := vfs.New(vfs.Options{})
	root := &vfs.View{FS: fs, Dir: vfs.Root}
	for _, d := range []string{"/w", "/w/sub", "/w/sub/deep", "/etc"} {
		if err := root.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put := func(name, content string) {
		f, err := root.Open(name, linux.O_CREAT|linux.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte(content), 0); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	for _, n := range names {
		put("/w/"+n, "")
	}
	put("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n")
	view := vfs.View{FS: fs, Dir: vfs.Root}
	if err := view.Chdir("/w"); err != nil {
		t.Fatal(err)
	}
	k := kernel.New(kernel.Options{FS: fs})
	run := k.NewRun()
	t.Cleanup(func() { run.End(); _ = k.Close() })
	task, err := run.NewTask(view, []string{"bash"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return newMiniOn(task)
}

func newMiniOn(task *kernel.Task) *mini {
	m := &mini{t: task}
	m.vars = variable.New(task, m, task.K.Limits)
	_ = m.vars.Set("HOME", "/h")
	_ = m.vars.Set("IFS", " \t\n")
	m.x = expand.New(m)
	return m
}

func TestWordsExpandAsInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	dir := t.TempDir()
	setup := exec.Command(bash, "-c", "mkdir -p sub/deep && touch "+"a.txt b.txt c.md .hidden sub/x.txt sub/deep/y.txt 'sp ace' '[x]' Upper")
	setup.Dir = dir
	if err := setup.Run(); err != nil {
		t.Fatal(err)
	}
	const prelude = `shopt -s extglob
c() { printf '%d:' $#; printf '<%s>' "$@"; echo; }
HOME=/h
`
	for _, script := range scripts() {
		cmd := exec.Command(bash)
		cmd.Args[0] = "bash"
		cmd.Dir = dir
		cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"}
		cmd.Stdin = strings.NewReader(prelude + script)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, _ := cmd.Output() // a status is part of some scripts
		want := string(out)
		if e := stderr.String(); e != "" {
			if _, after, ok := strings.Cut(e, ": line "); ok {
				_, after, _ = strings.Cut(after, ": ")
				want += "ERROR " + after
			}
		}
		got := newMini(t).run(script)
		if got != want {
			t.Errorf("%s\n--- here\n%s--- bash\n%s", script, got, want)
		}
	}
}
