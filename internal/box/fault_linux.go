package box

import (
	"crypto/rand"
	"errors"
	"os"
)

// A hostFault is an error of what this host does alone: nothing inside a box has a part in it. Whoever bounds how long
// a sandbox may refuse something finds it by its method, also behind a keeper.
type hostFault struct{ error }

func (e *hostFault) Unwrap() error { return e.error }

// OfHost tells that the error is the host's own.
func (*hostFault) OfHost() bool { return true }

// HostFault marks an error of what this host does alone.
func HostFault(err error) error {
	if err == nil {
		return nil
	}
	return &hostFault{err}
}

func isHostFault(err error) bool { return errors.As(err, new(*hostFault)) }

// trialSize is how much TryDisk writes.
const trialSize = 1 << 20

// TryDisk writes a file in a directory, and removes it. A box that could not write to its files says so itself, and may
// lie; this shows whether the host can.
func TryDisk(dir string) (err error) {
	f, err := os.CreateTemp(dir, "trial-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	b := make([]byte, trialSize)
	_, _ = rand.Read(b) // never fails; zeros may take no room
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Sync()
}
