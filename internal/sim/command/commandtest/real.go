package commandtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What a real tool may take: a case of a table needs far less, and a table
// must not be able to fill the memory or hold up the tests.
const (
	realTime   = 10 * time.Second
	realOutput = 16 << 20
)

// Real runs the case with the real tool, in a directory of its own. It has ten
// seconds and may write 16 MiB; the test fails beyond. Where root runs the
// tests, the tool is nobody and owns its directory, so that no table of
// arguments can change the host, unless the case is Privileged.
func Real(t *testing.T, c Case) Result {
	t.Helper()
	at := t.TempDir()
	for _, name := range sorted(c.Files) {
		text, path := c.Files[name], filepath.Join(at, name)
		do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		switch target, link := strings.CutPrefix(text, "-> "); {
		case strings.HasSuffix(name, "/"):
			do(t, os.MkdirAll(path, 0o755))
		case link:
			do(t, os.Symlink(target, path))
		default:
			do(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), realTime)
	defer cancel()
	r := Result{Files: map[string]string{}}
	cmd := Command(ctx, t, at, c.Privileged, c.Args...)
	cmd.Env = append(cmd.Env, c.Env...)
	var stdout, stderr bytes.Buffer
	end := connect(t, cmd, c.Stdin, &bounded{&stdout, cancel}, &bounded{&stderr, cancel})
	if err := cmd.Start(); err != nil {
		end()
		t.Fatalf("run the real %q: %v", c.Args, err)
	}
	err := cmd.Wait()
	end()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("the real %q does not end, or writes more than %d bytes: %v", c.Args, realOutput, err)
	}
	r.Stdout, r.Stderr, r.Status = stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		r.Status = 128 + int(ws.Signal())
	}
	for _, name := range c.Look {
		b, err := os.ReadFile(filepath.Join(at, name))
		if err != nil {
			r.Files[name] = "missing"
		} else {
			r.Files[name] = string(b)
		}
	}
	return r
}

// Command is a run of a real tool in a directory that the caller made by
// t.TempDir: with little in its environment, ended with all that it started
// when ctx is, and as nobody where root runs the tests and it is not privileged.
func Command(ctx context.Context, t *testing.T, at string, privileged bool, args ...string) *exec.Cmd {
	t.Helper()
	path := filepath.SplitList(os.Getenv("PATH")) //nolint:forbidigo // tests look for the real tools where the caller does
	low := os.Geteuid() == 0 && !privileged
	if low {
		path = slices.DeleteFunc(path, closed)
	}
	program := args[0]
	for _, dir := range path {
		if found, err := exec.LookPath(filepath.Join(dir, args[0])); err == nil {
			program = found
			break
		}
	}
	cmd := exec.CommandContext(ctx, program, args[1:]...) //nolint:gosec // the tables name what to run
	cmd.Args[0] = args[0]
	cmd.Dir = at
	cmd.Env = []string{"PATH=" + strings.Join(path, ":"), "HOME=" + at, "TZ=UTC", "LC_ALL=C.UTF-8"}
	cmd.WaitDelay = time.Second // for what holds its output open
	apart(cmd)
	if low {
		do(t, os.Chmod(filepath.Dir(at), 0o711)) // nobody has to come through
		do(t, filepath.WalkDir(at, func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, nobody, nobody) //nolint:gosec // nothing runs in it yet
		}))
		lower(cmd)
	}
	return cmd
}

// closed tells that nobody comes into a directory: a search for a program
// would end there with another complaint than where it is open to all.
func closed(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err != nil || st.Mode()&1 == 0 {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// connect gives a tool pipes that it may also open again by name, as
// /dev/stdin, whoever it is. The function it returns is called when the tool
// ended, and gives what it left open a second.
func connect(t *testing.T, cmd *exec.Cmd, input string, stdout, stderr io.Writer) (end func()) {
	t.Helper()
	var own, other []*os.File
	var wg sync.WaitGroup
	pipe := func() (r, w *os.File) {
		r, w, err := os.Pipe()
		do(t, err)
		if cmd.SysProcAttr != nil && os.Geteuid() == 0 {
			do(t, r.Chown(nobody, nobody)) // both ends are one file
		}
		return r, w
	}
	r, w := pipe()
	cmd.Stdin, own, other = r, append(own, w), append(other, r)
	wg.Go(func() {
		_, _ = io.WriteString(w, input) // a tool need not read it
		_ = w.Close()
	})
	read := func(into io.Writer) *os.File {
		r, w := pipe()
		own, other = append(own, r), append(other, w)
		wg.Go(func() { _, _ = io.Copy(into, r) }) // too much ends the tool
		return w
	}
	cmd.Stdout, cmd.Stderr = read(stdout), read(stderr)
	return func() {
		for _, f := range other {
			_ = f.Close()
		}
		for _, f := range own {
			_ = f.SetDeadline(time.Now().Add(time.Second)) // of a file that may be closed
		}
		wg.Wait()
		for _, f := range own {
			_ = f.Close() // perhaps again
		}
	}
}

// nobody is who has nothing on this machine.
const nobody = 65534

// A bounded writer ends what writes too much.
type bounded struct {
	*bytes.Buffer

	end context.CancelFunc
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > realOutput {
		b.end()
		return 0, errors.New("too much output")
	}
	return b.Buffer.Write(p)
}
