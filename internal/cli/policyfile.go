package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// host gives what a policy needs to know of the caller. With an error it is
// good but for the working directory, which is not known then: where nothing
// is relative to it, it is not needed.
func (a *App) host() (policy.Host, error) {
	home, _ := a.Lookup("HOME")
	h := policy.Host{Home: home, Env: a.Lookup, Secret: readSecret, Files: unwaited{os.DirFS("/")}}
	dir, err := a.Dir()
	if err != nil {
		return h, WithHint(fmt.Errorf("working directory: %w: %w", err, paddock.NotFound), "it may have been removed: change to another one")
	}
	h.Dir = dir
	return h, nil
}

// unwaited is the file system of this machine, in which nothing is waited for: a command in a sandbox may
// have put a FIFO in the place of a file of the project.
type unwaited struct{ fs.FS }

func (unwaited) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return os.OpenFile("/"+name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

func readPolicy(name string) (*policy.File, error) {
	data, err := ReadDocument("policy file", name)
	if err != nil {
		return nil, err
	}
	return policy.Read(name, data)
}

func readSRT(name string, o policy.Host) (*policy.File, error) {
	data, err := ReadDocument("settings file", name)
	if err != nil {
		return nil, err
	}
	return policy.ReadSRT(name, data, o)
}

// ReadDocument reads a file of at most [policy.MaxDocument] bytes, and one byte more of a larger
// file, which package policy then refuses. The word what names the kind of file in errors.
// It does not wait for a FIFO; see openFile.
func ReadDocument(what, name string) ([]byte, error) {
	f, err := openFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, WithHint(fmt.Errorf("%s %s: there is no such file: %w", what, name, paddock.NotFound), "check the name")
	case errors.Is(err, errFIFO):
		return nil, fmt.Errorf("%s: %w: %w", what, err, paddock.Invalid)
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %w", what, err, paddock.Denied)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, policy.MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", what, err, paddock.Invalid)
	}
	return data, nil
}

var errFIFO = errors.New("it is a FIFO")

// openFile opens a file that the caller named. A command in a sandbox may have put a FIFO in its place, for
// which one would wait; that is an errFIFO. A pipe of the caller's own, such as /dev/stdin, is opened.
func openFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && st.Mode()&fs.ModeNamedPipe != 0 && !strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/proc/") {
		err = &fs.PathError{Op: "open", Path: name, Err: errFIFO}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// readSecret reads a file that holds a secret. A command in a sandbox may have
// been able to write in its directory, so what stands there is taken only if it
// is a plain file, by its real name: a link could make a secret of any file.
func readSecret(name string, limit int) ([]byte, error) {
	before, err := plainFile(name)
	if err != nil {
		return nil, err
	}
	// Without waiting for the other end of a FIFO that came meanwhile.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errors.Unwrap(err), paddock.Denied)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !os.SameFile(before, info) {
		return nil, fmt.Errorf("it was replaced meanwhile: %w", paddock.Conflict)
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	case len(data) > limit:
		return nil, fmt.Errorf("it is larger than any secret, %d bytes: %w", limit, paddock.Invalid)
	}
	return data, nil
}

// plainFile describes a file that is one, and that no link leads to.
func plainFile(name string) (fs.FileInfo, error) {
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no such file: %w", paddock.NotFound)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errors.Unwrap(err), paddock.Denied)
	}
	actual, err := filepath.EvalSymlinks(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	case actual != name:
		return nil, fmt.Errorf("a symbolic link leads there; name the real place, %s: %w", actual, paddock.Invalid)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is no plain file: %w", paddock.Invalid)
	}
	return info, nil
}
