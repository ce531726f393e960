package shell_test

import (
	"os/exec"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/shell"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// sim runs a script and gives what it writes and its status.
func sim(t *testing.T, script string) (string, int) {
	t.Helper()
	fs := vfs.New(vfs.Options{})
	root := &vfs.View{FS: fs, Dir: vfs.Root}
	for _, d := range []string{"/etc", "/dev", "/tmp"} {
		if err := root.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := root.Mknod("/dev/null", linux.S_IFCHR|0o666, kernel.DevNull); err != nil {
		t.Fatal(err)
	}
	k := kernel.New(kernel.Options{FS: fs, Programs: func(string) (kernel.Program, bool) { return nil, false }})
	run := k.NewRun()
	defer run.End()
	task, err := run.NewTask(vfs.View{FS: fs, Dir: vfs.Root, Umask: 0o022}, []string{"bash", "-c", script, "bash"}, []string{"HOME=/root"})
	if err != nil {
		t.Fatal(err)
	}
	in, w := kernel.PipeFromOutside()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out, stdout := kernel.NewBuffer(1 << 20)
	errs, _ := kernel.NewBuffer(1 << 20)
	for fd, d := range []*kernel.Desc{in, out, errs} {
		if err := task.SetFD(fd, d, false); err != nil {
			t.Fatal(err)
		}
	}
	s := task.Do(shell.Program)
	_ = k.Close()
	return string(stdout.Bytes()), s.Shell()
}

func TestBuiltinsOfVariablesDoAsInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	for _, script := range variableScripts() {
		c := exec.Command(bash, "-c", script, "bash")
		c.Env = []string{"HOME=/root", "PATH=/usr/bin:/bin"}
		out, _ := c.Output() // a status is part of some scripts
		got, status := sim(t, script)
		if got != string(out) || status != c.ProcessState.ExitCode() {
			t.Errorf("%s\n--- here %d\n%s--- bash %d\n%s", script, status, got, c.ProcessState.ExitCode(), out)
		}
	}
}
