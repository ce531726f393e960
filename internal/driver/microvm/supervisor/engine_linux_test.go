package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/boxinit/boxinittest"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// argvTrial is the first argument of the process in which TestAnEngineIsConfined starts an
// engine.
const argvTrial = "paddock-test-engine"

func TestMain(m *testing.M) {
	if os.Args[0] == argvTrial {
		if err := trial(); err != nil {
			fmt.Println("trial:", err)
			os.Exit(1)
		}
		return
	}
	if os.Args[0] == Argv0 {
		boxinit.Main(taken())
	}
	if boxinittest.Main() || box.Main(microvm.Runtime()) || Main() {
		return
	}
	os.Exit(m.Run())
}

// hostile tries, with a shell alone, what a compromised QEMU would try.
const hostile = `
exec >&2
read x </paddock/kernel && echo "kernel $x"
read x </paddock/kernel && echo "again $x"
echo y 3<>/dev/kvm && echo "kvm"
: >/paddock/kernel
(echo >/new) 2>/dev/null || echo "no new file"
(echo >/paddock/other) 2>/dev/null || echo "no other file"
read x </etc/passwd || echo "no tree"
[ -e /proc/self ] || echo "no proc"
(exec /bin/true) 2>/dev/null || echo "no program"
kill -0 "$PPID" 2>/dev/null || echo "no signal"
kill -0 $$ && echo "own signal"
ulimit -c
`

// trial makes the tree of a box, and starts a shell as its engine.
func trial() error {
	if err := buildTrial(); err != nil {
		return fmt.Errorf("build a tree: %w", err)
	}
	first, err := sys.SealedData("kernel", []byte("one\ntwo\n"))
	if err != nil {
		return err
	}
	kvm, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	e := engine{program: "/bin/sh", policy: policy{files: map[string]*os.File{kernelPath: first, kvmPath: kvm}}}
	p, err := e.start([]string{"-c", hostile}, nil)
	if err != nil {
		return err
	}
	_, err = p.Wait()
	<-e.said.over
	fmt.Println(strings.ReplaceAll(e.said.lines(100), "; ", "\n"))
	return err
}

func buildTrial() error {
	if err := sys.MakePrivate(); err != nil {
		return err
	}
	tmp, err := sys.NewMount("tmpfs", sys.NoSUID)
	if err != nil {
		return err
	}
	at, err := sys.OpenPath(nil, "/tmp", false)
	if err != nil {
		return err
	}
	if err := sys.Attach(tmp, at); err != nil {
		return err
	}
	for _, m := range []struct{ from, to string }{{"/proc", "/proc"}, {"/dev", "/dev"}, {"/bin", "/engine/bin"}, {"/usr", "/engine/usr"}, {"/lib", "/engine/lib"}, {"/lib64", "/engine/lib64"}} {
		to := filepath.Join("/tmp", m.to)
		if link, err := os.Readlink(m.from); err == nil {
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Symlink(link, to)); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		tree, err := sys.CloneTree(sys.AtCWD, m.from, true)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		at, err := sys.OpenPath(nil, to, false)
		if err != nil {
			return err
		}
		if err := sys.Attach(tree, at); err != nil {
			return err
		}
	}
	root, err := sys.OpenPath(nil, "/tmp", false)
	if err != nil {
		return err
	}
	if err := sys.PivotInto(root); err != nil {
		return err
	}
	if _, err := os.Stat(boxinit.Engine); err != nil {
		return err
	}
	return sys.SeccompAll([]sys.Instruction{{Code: 0x06, K: 0x7fff0000}}) // with no_new_privs, as in a box
}

func TestAnEngineIsConfined(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	c.Args = []string{argvTrial}
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  sys.CloneUser | sys.CloneMount,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("no user namespaces: %v", err)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, line := range []string{"kernel one", "again one", "kvm", "no new file", "no other file", "no tree", "no proc", "no program", "no signal", "own signal"} {
		if !strings.Contains(string(out), line+"\n") {
			t.Errorf("it does not say %q", line)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
}
