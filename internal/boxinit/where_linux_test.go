package boxinit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// elsewhere runs a shell in its own mount namespace, and returns its PID when it has
// printed something. Its mounts are visible only there.
func elsewhere(t *testing.T, script string) int {
	t.Helper()
	cmd := exec.Command("unshare", "-r", "-m", "sh", "-e", "-c", script+"\necho ready\nread _")
	if os.Geteuid() == 0 {
		cmd.Args = append([]string{"unshare", "-m"}, cmd.Args[3:]...)
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // its end is enough
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd.Process.Pid
}

// A sentry or gofer that was taken over, and that could still mount, could show a protected
// directory at an unprotected path.
func TestADirectoryIsWhereTheBrokerSeesIt(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBroker(&Config{Trees: []Tree{{Path: dir, Protected: true, Source: dir}}, GuestKernel: &GuestKernelConfig{}})
	if err != nil {
		t.Fatal(err)
	}
	b.root = "/" // as it is here
	for _, name := range []string{".git/hooks", "plain", "decoy"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".git/hooks/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c := &call{broker: b}
	for _, row := range []struct {
		what, script string
		want         error
	}{
		{"as it is", "cd plain", nil},
		{"mounted elsewhere", "mount --bind .git/hooks plain; cd plain", errGoOn},
		{"mounted elsewhere, what it is in", "mount --bind .git plain; cd plain/hooks", errGoOn},
		{"mounted where nothing is", "mount -t tmpfs none decoy; mkdir -p decoy/a; mount --bind .git/hooks decoy/a; cd decoy/a", errGoOn},
		{"mounted on what seems deleted", "mount -t tmpfs none decoy; mkdir 'decoy/a (deleted)'; mount --bind .git/hooks 'decoy/a (deleted)'; cd 'decoy/a (deleted)'", errGoOn},
		{"a tree that is another", fmt.Sprintf("mount -t tmpfs none %s; cd %[1]s", dir), errGoOn},
	} {
		t.Run(row.what, func(t *testing.T) {
			pid := elsewhere(t, "cd "+dir+"\n"+row.script)
			at, err := sys.DirOf(pid, sys.AtCWD)
			if err != nil {
				t.Fatal(err)
			}
			defer sys.Close(at)
			p, err := c.resolve(at, "file", false)
			if err == nil {
				p.close()
			}
			if !errors.Is(err, row.want) {
				t.Errorf("%+v, %v, want %v", p, err, row.want)
			}
		})
	}
	t.Run("a file", func(t *testing.T) {
		pid := elsewhere(t, fmt.Sprintf("cd %s; : > plain/file; mount --bind .git/hooks/file plain/file; exec 9< plain/file", dir))
		fd, err := sys.DescriptorOf(pid, 9)
		if err != nil {
			t.Fatal(err)
		}
		defer sys.Close(fd)
		if path, err := c.where(fd); err == nil {
			t.Errorf("it is taken for %s", path)
		}
		if r := c.chmodFile(fd, 0o777); r.err != syscall.EACCES {
			t.Errorf("%+v", r)
		}
	})
	t.Run("a file whose name seems deleted", func(t *testing.T) {
		pid := elsewhere(t, fmt.Sprintf("cd %s; mount -t tmpfs none decoy; : > 'decoy/a (deleted)'; mount --bind .git/hooks/file 'decoy/a (deleted)'; exec 9< 'decoy/a (deleted)'", dir))
		fd, err := sys.DescriptorOf(pid, 9)
		if err != nil {
			t.Fatal(err)
		}
		defer sys.Close(fd)
		if path, err := c.where(fd); err == nil {
			t.Errorf("it is taken for %s", path)
		}
	})
	t.Run("a file without a name", func(t *testing.T) {
		f, err := os.CreateTemp(dir, "x")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := os.Remove(f.Name()); err != nil {
			t.Fatal(err)
		}
		if path, err := c.where(int(f.Fd())); err != nil || !strings.HasPrefix(path, dir) {
			t.Errorf("%q, %v", path, err)
		}
	})
}
