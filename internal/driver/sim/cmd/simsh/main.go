// Simsh runs the simulated shell on a script from standard input, or with the
// arguments of bash, while it is being built.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/file"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/number"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/order"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/text"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/shell"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/vfs"
)

func main() { os.Exit(run()) }

func check(errs ...error) {
	for _, err := range errs {
		if err != nil {
			panic(err)
		}
	}
}

// A host file is the host's, for the outputs.
type host struct{ f *os.File }

func (h host) Read(*proc.Task, []byte) (int, error) { return 0, io.EOF }

func (h host) Write(_ *proc.Task, p []byte) (int, error) {
	n, err := h.f.Write(p)
	if err != nil {
		return n, syscall.EPIPE
	}
	return n, nil
}

func (h host) Info() (vfs.Info, error) { return vfs.Info{Mode: syscall.S_IFIFO | 0o600}, nil }

func (h host) Close() {}

func run() int {
	if p := os.Getenv("SIMSH_PROFILE"); p != "" {
		f, err := os.Create(p)
		check(err, pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	fs := vfs.New(vfs.Options{})
	root := &vfs.View{FS: fs, Dir: vfs.Root}
	for _, d := range []string{"/usr", "/usr/bin", "/dev", "/etc", "/home", "/home/user", "/tmp", "/proc", "/tmp/w", "/tmp/w/d", "/tmp/w/bin"} {
		check(root.Mkdir(d, 0o755))
	}
	check(root.Symlink("usr/bin", "/bin"), root.Chmod("/tmp", 0o1777), root.Chown("/home/user", 1000, 1000, true),
		root.Chown("/tmp/w", 1000, 1000, true), root.Chown("/tmp/w/d", 1000, 1000, true), root.Chown("/tmp/w/bin", 1000, 1000, true))
	for name, dev := range map[string]uint32{"null": proc.DevNull, "zero": proc.DevZero, "full": proc.DevFull, "urandom": proc.DevURandom, "tty": proc.DevTTY} {
		check(root.Mknod("/dev/"+name, syscall.S_IFCHR|0o666, dev))
	}
	write(root, "/etc/passwd", "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000:user:/home/user:/bin/bash\n")
	write(root, "/etc/group", "root:x:0:\nuser:x:1000:\n")
	programs := map[string]proc.Program{"bash": shell.Program, "sh": shell.Program}
	for _, c := range slices.Concat(text.Commands(), file.Commands(), number.Commands(), order.Commands(), []command.Command{{Name: "sleep", Run: sleep}}) {
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			programs[name] = c.Run
		}
	}
	for _, name := range []string{"grep", "egrep", "sed", "date", "printenv", "env", "awk", "od", "diff", "dd", "hexdump", "bc"} {
		if _, ok := programs[name]; !ok {
			programs[name] = hostTool(name)
		}
	}
	for name := range programs {
		write(root, "/usr/bin/"+name, string(proc.ProgramFile(name)))
		check(root.Chmod("/usr/bin/"+name, 0o755))
	}
	limits := budget.Limits{}
	if os.Getenv("SIMSH_BIG") != "" {
		limits.Commands, limits.Iterations, limits.Steps = 1<<40, 1<<40, 1<<50
	}
	k := proc.New(proc.Options{FS: fs, Limits: limits, Programs: func(name string) (proc.Program, bool) {
		p, ok := programs[name]
		return p, ok
	}})
	r := k.NewRun()
	defer r.End()
	view := vfs.View{FS: fs, Dir: vfs.Root, UID: 1000, GID: 1000, Umask: 0o022}
	check(view.Chdir("/home/user"))
	args := []string{"bash"}
	if len(os.Args) > 1 {
		args = append(args, os.Args[1:]...)
	}
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/user", "LANG=C.UTF-8", "SHELL=/bin/bash", "TERM=dumb", "USER=user", "LOGNAME=user"}
	task, err := r.NewTask(view, args, env)
	check(err)
	in, w := proc.PipeFromOutside()
	check(task.SetFD(0, in, false), task.SetFD(1, proc.NewDesc(host{os.Stdout}, "out"), false), task.SetFD(2, proc.NewDesc(host{os.Stderr}, "err"), false))
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		task.On(sig, proc.Ignore)
	}
	task.Go(func(t *proc.Task) int {
		st, err := t.Exec(proc.Command{Path: "/bin/bash", Args: args})
		check(err)
		return st
	})
	go func() {
		data, _ := io.ReadAll(os.Stdin)
		_, _ = io.Copy(w, bytes.NewReader(data))
		_ = w.Close()
	}()
	<-task.Done()
	if cause := r.Cause(); cause != nil {
		fmt.Fprintln(os.Stderr, cause)
		return 137
	}
	st, _ := task.Status()
	return st.Shell()
}

// hostTool runs a tool of the host that is not made yet, without files.
func hostTool(name string) proc.Program {
	return func(t *proc.Task) int {
		cmd := exec.Command(name, t.Args[1:]...)
		cmd.Env = t.Env
		var in []byte
		if name != "date" && name != "printenv" && name != "env" {
			in, _ = io.ReadAll(t.Stream(0))
		}
		cmd.Stdin = bytes.NewReader(in)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		_, _ = t.Write(2, errs.Bytes())
		_, _ = t.Write(1, out.Bytes())
		return cmd.ProcessState.ExitCode()
	}
}

func sleep(t *proc.Task) int {
	d, _ := time.ParseDuration(t.Args[1] + "s")
	_ = t.Sleep(d)
	return 0
}

func write(v *vfs.View, name, content string) {
	f, err := v.Open(name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC, 0o644)
	check(err)
	_, err = f.Write([]byte(content))
	check(err, f.Close())
}
