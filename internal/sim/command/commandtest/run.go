// Package commandtest compares a tool of the simulated computer with the real
// tool of the same name, for tests.
package commandtest

import (
	"errors"
	"os/exec"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A Case is a run of a tool: in a directory that holds Files.
type Case struct {
	Args  []string
	Stdin string
	Files map[string]string // relative names; one that ends in "/" is a directory, one whose value begins with "-> " a link
	Env   []string          // besides PATH, HOME, TZ=UTC, LC_ALL=C.UTF-8

	// Privileged lets the real tool keep the identity of a root that runs the
	// tests. Never with one that can change the host by its arguments.
	Privileged bool

	// Of the comparison.
	Stderr bool     // compare standard error too
	Look   []string // files whose contents afterwards are compared too
	Why    string   // a known difference: the case is not compared, for this reason
	Want   *Result  // what is right where there is no referee
}

// A Result is what came of it.
type Result struct {
	Stdout, Stderr string
	Status         int
	Files          map[string]string // of Look: contents, or "missing"
}

const dir = "/tmp/case"

// Run runs a case on a fresh computer that has the commands.
func Run(t *testing.T, commands []command.Command, c Case) Result {
	t.Helper()
	return RunWithin(t, commands, c, budget.Limits{})
}

// RunWithin is Run with limits.
func RunWithin(t *testing.T, commands []command.Command, c Case, limits budget.Limits) Result {
	t.Helper()
	fs := vfs.New(vfs.Options{})
	root := &vfs.View{FS: fs, Dir: vfs.Root}
	programs := map[string]kernel.Program{}
	do(t, root.Mkdir("/usr", 0o755), root.Mkdir("/usr/bin", 0o755), root.Mkdir("/dev", 0o755), root.Mkdir("/tmp", 0o777),
		root.Mkdir(dir, 0o755), root.Chown(dir, 1000, 1000, true), root.Chmod("/tmp", 0o1777),
		root.Mknod("/dev/null", linux.S_IFCHR|0o666, kernel.DevNull), root.Mknod("/dev/zero", linux.S_IFCHR|0o666, kernel.DevZero),
		root.Mknod("/dev/full", linux.S_IFCHR|0o666, kernel.DevFull))
	for _, cmd := range commands {
		for _, name := range append([]string{cmd.Name}, cmd.Aliases...) {
			programs[name] = cmd.Run
			write(t, root, "/usr/bin/"+name, kernel.ProgramFile(name), 0o755)
		}
	}
	view := vfs.View{FS: fs, Dir: vfs.Root, UID: 1000, GID: 1000, Umask: 0o022}
	do(t, view.Chdir(dir))
	for _, name := range sorted(c.Files) {
		place(t, &view, name, c.Files[name])
	}
	k := kernel.New(kernel.Options{FS: fs, Limits: limits, Programs: func(name string) (kernel.Program, bool) {
		p, ok := programs[name]
		return p, ok
	}})
	run := k.NewRun()
	defer run.End()
	task, err := run.NewTask(view, c.Args, append([]string{"PATH=/usr/bin", "HOME=" + dir, "TZ=UTC", "LC_ALL=C.UTF-8"}, c.Env...))
	do(t, err)
	in, w := kernel.PipeFromOutside()
	out, stdout := kernel.NewBuffer(1 << 30)
	errs, stderr := kernel.NewBuffer(1 << 30)
	do(t, task.SetFD(0, in, false), task.SetFD(1, out, false), task.SetFD(2, errs, false))
	task.Go(func(task *kernel.Task) int {
		code, err := task.Exec(kernel.Command{Args: c.Args})
		if err != nil {
			task.Errorf("%s", vfs.Message(err))
			return 127
		}
		return code
	})
	_, _ = w.Write([]byte(c.Stdin)) // a tool need not read it
	do(t, w.Close())
	select {
	case <-task.Done():
	case <-time.After(time.Minute):
		t.Fatalf("%q does not end", c.Args)
	}
	_ = k.Close()
	s, _ := task.Status()
	if cause := run.Cause(); cause != nil {
		if bug := (*kernel.Broken)(nil); errors.As(cause, &bug) {
			t.Fatalf("%q: %v", c.Args, bug)
		}
		_, _ = stderr, cause
		return Result{string(stdout.Bytes()), string(stderr.Bytes()) + cause.Error() + "\n", 137, nil}
	}
	r := Result{string(stdout.Bytes()), string(stderr.Bytes()), s.Shell(), map[string]string{}}
	for _, name := range c.Look {
		r.Files[name] = look(&view, name)
	}
	return r
}

// Compare runs each case on the simulated computer and with the real tool, and
// reports where they differ. Where the real tool is missing, cases with a Want
// are compared to that and the others are skipped.
func Compare(t *testing.T, commands []command.Command, cases []Case) {
	t.Helper()
	for _, c := range cases {
		name := strings.Join(c.Args, " ")
		name = strings.ReplaceAll(name, "/", "|") // a slash begins a subtest
		if len(name) > 60 {
			name = name[:60]
		}
		t.Run(name, func(t *testing.T) {
			t.Helper()
			if c.Why != "" {
				t.Logf("not compared: %s", c.Why)
			}
			got := Run(t, commands, c)
			want := c.Want
			if want == nil {
				if c.Why != "" {
					return
				}
				if _, err := exec.LookPath(c.Args[0]); err != nil {
					t.Skipf("there is no %s here to compare with", c.Args[0])
				}
				r := Real(t, c)
				want = &r
			}
			if got.Stdout != want.Stdout || got.Status != want.Status || c.Stderr && got.Stderr != want.Stderr {
				t.Errorf("%q\nstdin %q\ngot  status %d\n%q\n%q\nwant status %d\n%q\n%q", c.Args, clip(c.Stdin), got.Status, clip(got.Stdout), clip(got.Stderr), want.Status, clip(want.Stdout), clip(want.Stderr))
			}
			for name, text := range want.Files {
				if got.Files[name] != text {
					t.Errorf("%q: file %s is %q, want %q", c.Args, name, clip(got.Files[name]), clip(text))
				}
			}
		})
	}
}

func look(v *vfs.View, name string) string {
	f, err := v.Open(name, linux.O_RDONLY, 0)
	if err != nil {
		return "missing"
	}
	defer f.Close()
	i, err := f.Info()
	if err != nil || !i.IsRegular() {
		return "missing"
	}
	b := make([]byte, i.Size)
	n, _ := f.ReadAt(b, 0) // an empty file ends at once
	return string(b[:n])
}

func place(t *testing.T, v *vfs.View, name, text string) {
	t.Helper()
	for i, c := range name {
		if c == '/' && i > 0 {
			if err := v.Mkdir(name[:i], 0o755); err != nil && err != linux.EEXIST {
				t.Fatal(err)
			}
		}
	}
	target, link := strings.CutPrefix(text, "-> ")
	switch {
	case strings.HasSuffix(name, "/"):
	case link:
		do(t, v.Symlink(target, name))
	default:
		write(t, v, name, []byte(text), 0o644)
	}
}

func write(t *testing.T, v *vfs.View, name string, b []byte, mode uint32) {
	t.Helper()
	f, err := v.Open(name, linux.O_WRONLY|linux.O_CREAT|linux.O_TRUNC, mode)
	do(t, err)
	_, err = f.Write(b)
	do(t, err, f.Close(), v.Chmod(name, mode))
}

func sorted(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func clip(s string) string {
	if len(s) > 2000 {
		return s[:2000] + "…"
	}
	return s
}

func do(t *testing.T, errs ...error) {
	t.Helper()
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		t.Fatal(errs[i])
	}
}

// Fuzz runs a tool on hostile text, within limits that make every run short:
// it must end, whatever it says.
func Fuzz(t *testing.T, commands []command.Command, stdin string, args ...string) {
	t.Helper()
	if strings.ContainsRune(strings.Join(args, ""), 0) {
		return // no argument has one
	}
	RunWithin(t, commands, Case{Args: args, Stdin: stdin}, budget.Limits{Steps: 100_000, Heap: 32 << 20, Record: 1 << 20})
}
