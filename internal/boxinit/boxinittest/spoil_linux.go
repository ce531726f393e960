package boxinittest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

const (
	// spoilVariable in the environment of a box tells its init how to spoil the file of its program.
	spoilVariable = "PADDOCK_TEST_SPOIL"

	makeUseless = "make useless"
	rewriteAll  = "rewrite"

	writerArgv0 = "paddock-test-writer"
	written     = "#!/another program\n"
)

// Main must be called first by the program of a Taken. It returns false if this process is no part of it.
func Main() bool {
	if len(os.Args) != 2 || os.Args[0] != writerArgv0 {
		return false
	}
	_ = syscall.Kill(-1, syscall.SIGKILL) // fails if there is none
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); err == syscall.ECHILD {
			break
		}
	}
	for {
		f, err := os.OpenFile("/proc/self/fd/"+os.Args[1], os.O_WRONLY, 0) //nolint:gosec // as this program itself has said
		if errors.Is(err, syscall.ETXTBSY) {
			continue // a box that ends still executes it
		}
		if err == nil {
			_, _ = f.WriteAt([]byte(written), 0) // the test looks at the file
		}
		return true
	}
}

// Save implements boxinit.GuestKernel.
func (k Taken) Save(files []*os.File, stop bool, room boxinit.Room) error {
	if how, _ := os.LookupEnv(spoilVariable); how != "" {
		return errors.Join(spoil(how), errSpoiled)
	}
	return k.GuestKernel.Save(files, stop, room)
}

// errSpoiled says that a box did what it was to do, instead of saving itself.
var errSpoiled = errors.New("nothing is saved")

// spoil spoils the file of this program. The kernel refuses that to a root caller's box.
func spoil(how string) error {
	const exe = "/proc/self/exe"
	mode := os.FileMode(0)
	if how == rewriteAll {
		mode = 0o755
	}
	if err := os.Chmod(exe, mode); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if how == makeUseless {
		return nil
	}
	// While a process executes the file, nobody can write it. So this one executes another file, and ends the others.
	again, err := syscall.Open(exe, syscall.O_RDONLY, 0)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(exe)
	if err != nil {
		return err
	}
	writer, err := sys.SealedFile("writer", data)
	if err != nil {
		return err
	}
	// The host sees the end of this box when that program has done its work.
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, e := range open {
		if fd, err := strconv.Atoi(e.Name()); err == nil {
			_ = sys.OpenAcrossExec(fd) // fails for the directory
		}
	}
	return syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", writer.Fd()), []string{writerArgv0, strconv.Itoa(again)}, nil)
}

// Spoiled tries the driver of a Taken, whose program has this file in its cache: after each way in which the only box
// spoils the file, the next box has the true program.
func Spoiled(t *testing.T, d paddock.Driver, spec paddock.Spec, pattern string) {
	t.Helper()
	spec.Ephemeral = true
	works(t, d, spec)
	for _, how := range []string{makeUseless, rewriteAll} {
		list, err := filepath.Glob(pattern)
		if err != nil || len(list) != 1 {
			t.Fatalf("the files of the program are %q (%v)", list, err)
		}
		f, err := os.Open(list[0])
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		bad := spec
		bad.Env = map[string]string{spoilVariable: how}
		sb, err := d.Create(t.Context(), bad)
		if err != nil {
			t.Fatal(err)
		}
		// The init does it now. It has ended then, or says so.
		if _, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: true}); err == nil {
			t.Errorf("%s: the box is saved", how)
		}
		if err := sb.Remove(context.Background()); err != nil {
			t.Error(err)
		}
		if done, err := spoiled(f, how); err != nil || done != (os.Geteuid() != 0) {
			t.Errorf("%s: that the box can, as user %d, is %v (%v); without it this test shows nothing", how, os.Geteuid(), done, err)
		}
		works(t, d, spec)
	}
}

// spoiled reports whether a file was spoiled.
func spoiled(f *os.File, how string) (bool, error) {
	if how == makeUseless {
		st, err := f.Stat()
		return err == nil && st.Mode().Perm() == 0, err
	}
	begin := make([]byte, len(written))
	_, err := io.ReadFull(io.NewSectionReader(f, 0, int64(len(begin))), begin)
	return string(begin) == written, err
}

// works makes a sandbox, and runs a command in it.
func works(t *testing.T, d paddock.Driver, spec paddock.Spec) {
	t.Helper()
	sb, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	var out strings.Builder
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"echo", "works"}, Output: paddock.Output{Stdout: &out}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 || out.String() != "works\n" {
		t.Errorf("it ends with %+v, %v, and says %q", exit, err, out.String())
	}
}
