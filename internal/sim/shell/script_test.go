package shell_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/file"
	"github.com/paddock-sandbox/paddock/internal/sim/command/sort"
	"github.com/paddock-sandbox/paddock/internal/sim/command/text"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/shell"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A result is what a script did.
type result struct {
	out, err string
	status   int
	cause    error
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// sleep is the tool, enough for scripts here.
func sleep(t *kernel.Task) int {
	d, err := time.ParseDuration(t.Args[1] + "s")
	if err != nil {
		return 1
	}
	if err := t.Sleep(d); err != nil {
		return 1
	}
	return 0
}

// run runs a script from standard input on a computer of its own.
func run(t testing.TB, script string, limits budget.Limits, args ...string) result {
	t.Helper()
	fs := vfs.New(vfs.Options{})
	root := &vfs.View{FS: fs, Dir: vfs.Root}
	for _, d := range []string{"/usr", "/usr/bin", "/dev", "/tmp"} {
		must(t, root.Mkdir(d, 0o755))
	}
	must(t, root.Symlink("usr/bin", "/bin"), root.Chmod("/tmp", 0o1777), root.Mknod("/dev/null", linux.S_IFCHR|0o666, kernel.DevNull))
	programs := map[string]kernel.Program{"bash": shell.Program, "sh": shell.Program, "sleep": sleep}
	for _, c := range slices.Concat(text.Commands(), file.Commands(), sort.Commands(), []command.Command{}) {
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			programs[name] = c.Run
		}
	}
	for name := range programs {
		f, err := root.Open("/usr/bin/"+name, linux.O_WRONLY|linux.O_CREAT, 0o755)
		must(t, err)
		_, err = f.Write(kernel.ProgramFile(name))
		must(t, err, f.Close())
	}
	k := kernel.New(kernel.Options{FS: fs, Limits: limits, Programs: func(name string) (kernel.Program, bool) {
		p, ok := programs[name]
		return p, ok
	}})
	defer func() { _ = k.Close() }()
	r := k.NewRun()
	view := vfs.View{FS: fs, Dir: vfs.Root, UID: 1000, GID: 1000, Umask: 0o022}
	must(t, view.Chdir("/tmp"))
	args = append([]string{"bash"}, args...)
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=dumb"}
	task, err := r.NewTask(view, args, env)
	must(t, err)
	in, w := kernel.PipeFromOutside()
	out, stdout := kernel.NewBuffer(1 << 24)
	errs, stderr := kernel.NewBuffer(1 << 24)
	must(t, task.SetFD(0, in, false), task.SetFD(1, out, false), task.SetFD(2, errs, false))
	task.Go(func(task *kernel.Task) int {
		st, err := task.Exec(kernel.Command{Path: "/bin/bash", Args: args})
		if err != nil {
			return 127
		}
		return st
	})
	_, _ = io.Copy(w, strings.NewReader(script)) // it need not be read to its end
	must(t, w.Close())
	select {
	case <-task.Done():
	case <-time.After(time.Minute):
		t.Fatal("the script does not end")
	}
	st, _ := task.Status()
	_ = k.Close()
	return result{string(stdout.Bytes()), string(stderr.Bytes()), st.Shell(), r.Cause()}
}

// bash runs a script with the real shell, or skips the test where that is not
// one of the version that is followed.
func bash(t *testing.T, script string, args ...string) result {
	t.Helper()
	path, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here to compare with")
	}
	version, err := exec.Command(path, "-c", "echo ${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}").Output()
	if err != nil || strings.TrimSpace(string(version)) != "5.2" {
		t.Skip("the bash here is not 5.2")
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=dumb"}
	cmd.Stdin = strings.NewReader(script)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // its status is looked at
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode(), nil}
}

// TestScriptsDoWhatBashDoes runs the scripts of testdata, and the real shell as
// their referee. What is recorded is what it said.
func TestScriptsDoWhatBashDoes(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/script/*.sh")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("there are no scripts")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".sh"), func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile(file)
			must(t, err)
			want, err := os.ReadFile(strings.TrimSuffix(file, ".sh") + ".out")
			must(t, err)
			got := run(t, string(script), budget.Limits{})
			compare(t, string(want), record(got), got.err)
			real := bash(t, string(script))
			compare(t, record(real), string(want), "what is recorded is not what bash says")
		})
	}
}

func record(r result) string { return r.out + "status " + strconv.Itoa(r.status) + "\n" }

func compare(t *testing.T, want, got, why string) {
	t.Helper()
	if got == want {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		a, b := "", ""
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			t.Fatalf("line %d: got %q, want %q\n%s", i+1, a, b, why)
		}
	}
}
