package shell_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/shell"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// TestAConnectionIsADescriptor talks to a server that answers one line.
func TestAConnectionIsADescriptor(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	served := make(chan string, 1)
	go func() {
		b := make([]byte, 64)
		n, _ := there.Read(b)
		_, _ = there.Write([]byte("answer\n"))
		_ = there.Close()
		served <- string(b[:n])
	}()
	asked := ""
	dial := func(_ context.Context, network, address string) (net.Conn, error) {
		asked = network + " " + address
		return here, nil
	}
	out, errs := dialing(t, dial, "exec 3<>/dev/tcp/example.com/80; echo hello >&3; cat <&3; exec 3>&-; echo $?\n")
	if out != "answer\n0\n" || errs != "" || asked != "tcp example.com:80" || <-served != "hello\n" {
		t.Errorf("out %q, errors %q, asked for %q", out, errs, asked)
	}
}

func TestThereIsNoNetworkByItself(t *testing.T) {
	t.Parallel()
	out, errs := dialing(t, nil, "echo x >/dev/tcp/127.0.0.1/80; echo $?\n")
	if out != "1\n" || !strings.Contains(errs, "/dev/tcp/127.0.0.1/80: Network is unreachable") {
		t.Errorf("out %q, errors %q", out, errs)
	}
}

// dialing runs a script on a computer with a way to the network.
func dialing(t *testing.T, dial func(context.Context, string, string) (net.Conn, error), script string) (out, errs string) {
	t.Helper()
	fs := vfs.New(vfs.Options{})
	programs := func(name string) (kernel.Program, bool) {
		return func(t *kernel.Task) int {
			b := make([]byte, 64)
			for {
				n, err := t.Read(0, b)
				if n > 0 {
					_, _ = t.Write(1, b[:n])
				}
				if err != nil {
					return 0
				}
			}
		}, name == "cat"
	}
	root := &vfs.View{FS: fs, Dir: vfs.Root}
	must(t, root.Mkdir("/bin", 0o755))
	f, err := root.Open("/bin/cat", 0o101, 0o755)
	must(t, err)
	_, err = f.Write(kernel.ProgramFile("cat"))
	must(t, err, f.Close())
	k := kernel.New(kernel.Options{FS: fs, Programs: programs, Dial: dial})
	defer func() { _ = k.Close() }()
	r := k.NewRun()
	defer r.End()
	task, err := r.NewTask(vfs.View{FS: fs, Dir: vfs.Root}, []string{"bash", "-c", script}, []string{"PATH=/bin"})
	must(t, err)
	in, w := kernel.PipeFromOutside()
	o, stdout := kernel.NewBuffer(1 << 16)
	e, stderr := kernel.NewBuffer(1 << 16)
	must(t, w.Close(), task.SetFD(0, in, false), task.SetFD(1, o, false), task.SetFD(2, e, false))
	task.Do(shell.Program)
	return string(stdout.Bytes()), string(stderr.Bytes())
}
