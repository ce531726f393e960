package drivertest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// A box is a sandbox with a directory of its own for one promise.
type box struct {
	paddock.Sandbox
	s   *suite
	dir string
}

// box returns the sandbox that promises without side effects share, which also shows that
// they do not disturb each other. A promise that needs a spec or breaks things calls own.
func (s *suite) box(t testing.TB) box {
	t.Helper()
	return s.scratch(t, s.shared(t))
}

func (s *suite) shared(t testing.TB) paddock.Sandbox {
	t.Helper()
	spec := s.spec()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.common != nil {
		st, err := s.common.Status(bounded(t))
		if err == nil && st.State == paddock.Ready {
			return s.common
		}
		t.Errorf("the common sandbox is not ready any more (state %q, reason %q, error %v): something before broke it",
			st.State, st.Reason, err)
		if err := s.common.Remove(bounded(t)); err != nil {
			t.Errorf("remove the broken sandbox: %v", err)
		}
		s.common = nil
	}
	sb, err := s.driver.Create(bounded(t), spec)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	s.common = sb
	return sb
}

// dropCommon removes the shared sandbox, also when t is over.
func (s *suite) dropCommon(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.common == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if err := s.common.Remove(ctx); err != nil {
		t.Errorf("remove: %v", err)
	}
	s.common = nil
}

// own makes a sandbox for one promise.
func (s *suite) own(t testing.TB, change ...func(*paddock.Spec)) box {
	t.Helper()
	return s.ownOf(t, s.driver, change...)
}

func (s *suite) ownOf(t testing.TB, d paddock.Driver, change ...func(*paddock.Spec)) box {
	t.Helper()
	sb, err := d.Create(bounded(t), s.spec(change...))
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	s.removeAfter(t, sb)
	return s.scratch(t, sb)
}

func (s *suite) removeAfter(t testing.TB, sb paddock.Sandbox) {
	t.Helper()
	t.Cleanup(func() {
		// t.Context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := sb.Remove(ctx); err != nil {
			t.Errorf("remove %s: %v", sb.ID(), err)
		}
	})
}

// scratch makes an empty directory in the home directory.
func (s *suite) scratch(t testing.TB, sb paddock.Sandbox) box {
	t.Helper()
	b := box{Sandbox: sb, s: s}
	home := b.must(t, `printf %s "$HOME"`)
	b.dir = path.Join(home, "dt-"+strings.ToLower(rand.Text()[:10]))
	if err := sb.FS().Mkdir(bounded(t), b.dir, paddock.MkdirOptions{Parents: true}); err != nil {
		t.Fatalf("mkdir %s: %v", b.dir, err)
	}
	return b
}

// in returns a path in the box's directory.
func (b box) in(name ...string) string {
	return path.Join(append([]string{b.dir}, name...)...)
}

// A result is the output and exit of an ended command.
type result struct {
	out, err string
	exit     paddock.Exit
}

// shell returns the command that runs script in the box's directory.
func (b box) shell(script string, args ...string) paddock.Cmd {
	return paddock.Cmd{Args: append([]string{b.s.h.Shell, "-c", script, "sh"}, args...), Dir: b.dir}
}

// run runs a command and waits for its end.
func (b box) run(t testing.TB, cmd paddock.Cmd) result {
	t.Helper()
	r, err := b.try(bounded(t), cmd)
	if err != nil {
		t.Fatalf("run %q: %v", cmd.Args, err)
	}
	return r
}

// try is run for goroutines, because those must not end the test.
func (b box) try(ctx context.Context, cmd paddock.Cmd) (result, error) {
	var out, errs bytes.Buffer
	cmd.Output = paddock.Output{Stdout: &out, Stderr: &errs}
	p, err := b.Start(ctx, cmd)
	if err != nil {
		return result{}, err
	}
	defer p.Release()
	exit, err := p.Wait(ctx)
	if err != nil {
		return result{}, err
	}
	return result{out.String(), errs.String(), exit}, nil
}

// sh runs a script and waits for its end.
func (b box) sh(t testing.TB, script string, args ...string) result {
	t.Helper()
	return b.run(t, b.shell(script, args...))
}

// must runs a script that has to succeed, and returns its output.
func (b box) must(t testing.TB, script string, args ...string) string {
	t.Helper()
	r := b.sh(t, script, args...)
	if r.exit.Cause != paddock.Exited || r.exit.Code != 0 {
		t.Fatalf("%s\n\tended with %+v\n\tstdout %q\n\tstderr %q", script, r.exit, clip(r.out), clip(r.err))
	}
	return r.out
}

// start starts a command whose process is released when the test ends.
func (b box) start(t testing.TB, cmd paddock.Cmd) paddock.Process {
	t.Helper()
	p, err := b.Start(bounded(t), cmd)
	if err != nil {
		t.Fatalf("start %q: %v", cmd.Args, err)
	}
	t.Cleanup(p.Release)
	return p
}

// wait waits for the end of a process.
func wait(t testing.TB, p paddock.Process) paddock.Exit {
	t.Helper()
	exit, err := p.Wait(bounded(t))
	if err != nil {
		t.Fatalf("wait: %v", err)
	}
	return exit
}

// kill kills a process that a promise left running.
func kill(t testing.TB, p paddock.Process) {
	t.Helper()
	if err := p.Signal(bounded(t), sigKill); err != nil && !errors.Is(err, paddock.NotFound) {
		t.Errorf("kill: %v", err)
	}
}

// put writes a file.
func (b box) put(t testing.TB, name string, data []byte, mode fs.FileMode) {
	t.Helper()
	if err := b.write(bounded(t), name, bytes.NewReader(data), paddock.CreateOptions{Mode: mode}); err != nil {
		t.Fatalf("write %q: %v", name, err)
	}
}

// write copies r to a file. It closes the file even after an error.
func (b box) write(ctx context.Context, name string, r io.Reader, o paddock.CreateOptions) error {
	w, err := b.FS().Create(ctx, name, o)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// get reads a file.
func (b box) get(t testing.TB, name string) []byte {
	t.Helper()
	data, err := b.read(bounded(t), name, paddock.OpenOptions{})
	if err != nil {
		t.Fatalf("read %q: %v", name, err)
	}
	return data
}

func (b box) read(ctx context.Context, name string, o paddock.OpenOptions) ([]byte, error) {
	r, err := b.FS().Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// exists reports whether a name exists.
func (b box) exists(t testing.TB, name string) bool {
	t.Helper()
	_, err := b.FS().Stat(bounded(t), name)
	if err != nil && !errors.Is(err, paddock.NotFound) {
		t.Fatalf("stat %q: %v", name, err)
	}
	return err == nil
}

// gone waits until the processes whose numbers a script wrote to a file have ended.
func (b box) gone(t testing.TB, file string) {
	t.Helper()
	until(t, "the processes in "+file+" are gone", func() bool {
		return b.must(t, `n=0; for p in $(cat "$1"); do kill -0 "$p" 2>/dev/null && n=$((n+1)); done; echo $n`, file) == "0\n"
	})
}

// helper copies the probe into the box and returns its path.
func (b box) helper(t testing.TB) string {
	t.Helper()
	built, err := b.s.probe()
	if err != nil {
		t.Fatalf("build the probe: %v", err)
	}
	data, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	name := b.in("probe")
	if b.exists(t, name) {
		return name // it may be running, and then it cannot be written
	}
	b.put(t, name, data, 0o755)
	if r := b.run(t, paddock.Cmd{Args: []string{name, "hello"}}); r.out != "hello\n" {
		t.Fatalf("the probe does not run: %+v", r)
	}
	return name
}

// ProbeVariable names the environment variable with the path of a prebuilt probe. It is for
// a user who cannot read the source.
const ProbeVariable = "PADDOCK_DRIVERTEST_PROBE"

// Probe is the package of the probe, a static program for actions beyond those of a shell.
const Probe = "github.com/paddock-sandbox/paddock/drivertest/internal/probe"

// buildProbe builds the probe, or returns the prebuilt one.
func buildProbe(t testing.TB) (string, error) {
	if name := os.Getenv(ProbeVariable); name != "" {
		return name, nil
	}
	name := filepath.Join(t.TempDir(), "probe")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", name, Probe)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return name, nil
}

// wantKind fails unless err is of one of the kinds.
func wantKind(t testing.TB, what string, err error, kinds ...paddock.Kind) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("%s: no error, want %v", what, kinds)
	case !slices.Contains(kinds, paddock.KindOf(err)):
		t.Errorf("%s: %v (kind %q), want %v", what, err, paddock.KindOf(err), kinds)
	}
}

// clip shortens a long text.
func clip(s string) string {
	if len(s) > 600 {
		return s[:300] + " … " + s[len(s)-300:]
	}
	return s
}
