//go:build !linux

package program

import (
	"fmt"
	"os"
	"runtime"

	"github.com/paddock-sandbox/paddock"
)

func unsupported() error {
	return fmt.Errorf("programs of sandboxes on %s: %w", runtime.GOOS, paddock.Unsupported)
}

// Open gives nothing: the system has no use for it.
func (Program) Open(string) (*os.File, error) { return nil, unsupported() }

// OpenToMount gives nothing either.
func (Program) OpenToMount(string) (*os.File, error) { return nil, unsupported() }

// A Source opens nothing.
type Source struct{}

// Source gives one that opens nothing.
func (Program) Source(string) *Source { return &Source{} }

// Open gives nothing.
func (*Source) Open() (*os.File, error) { return nil, unsupported() }

// Close closes nothing.
func (*Source) Close() error { return nil }

// Intact knows no program.
func Intact(*os.File) error { return unsupported() }

// Renew has no use here.
func Renew(string, func() []Program) bool { return false }

// Exec executes nothing here: all commands are in the one program.
func (Program) Exec(string, []string, []string, ...Program) error { return unsupported() }

// Received gives nothing: nobody hands programs on.
func Received() (Handed, error) { return Handed{}, nil }
