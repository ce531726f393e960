package agentprofile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// OpenProject reads the file of the project in a workspace, without following a link and without waiting. Nil is that
// there is none.
func OpenProject(workspace string) ([]byte, error) {
	name := filepath.Join(workspace, ProjectFile)
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case errors.Is(err, syscall.ELOOP):
		return nil, fmt.Errorf("%s is a link, which is not followed: %w", name, paddock.Denied)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file: %w", name, paddock.Denied)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, nil
	}
	return data, nil
}

// openPlain opens a regular file of somebody else's, without following a link at its end and without waiting.
func openPlain(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no file: %w", name, paddock.Denied), f.Close())
	}
	return f, nil
}

// readPlain reads what openPlain opens, up to a size.
func readPlain(name string, most int64) ([]byte, error) {
	f, err := openPlain(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d bytes: %w", name, most, paddock.Invalid)
	}
	return data, err
}

const approvedName = "approved"

// Approved reports whether the user approved these contents for the directory at this real path.
func Approved(dir, workspace string, data []byte) bool {
	st, err := os.Lstat(filepath.Join(dir, approvedName, digest(workspace, data)))
	return err == nil && st.Mode().IsRegular() && sys.Owned(st, 0o077)
}

// Approve keeps that the user approved these contents for the directory at this real path.
func Approve(dir, workspace string, data []byte) error {
	at := filepath.Join(dir, approvedName)
	if err := errors.Join(makeOwn(dir), makeOwn(at)); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(at, digest(workspace, data)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(workspace + "\n") // for people who look
	return errors.Join(err, f.Close())
}

// makeOwn makes a directory that only the caller can enter, and refuses one of somebody else's.
func makeOwn(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() || !sys.Owned(st, 0o077) {
		return fmt.Errorf("%s: not a directory of this user alone: %w", dir, paddock.Denied)
	}
	return nil
}
