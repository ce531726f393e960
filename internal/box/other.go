//go:build !linux

package box

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/program"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// Options configure a [Driver].
type Options struct {
	State   string
	Environ []string
	Cache   string
	Data    string

	Snapshots string

	Private private.Files
	Guest   program.Program
	Gateway program.Program
	Keeper  program.Program
	Ask     func(context.Context, gatewayclient.Question) gatewayclient.Answer
	Judge   gatewayclient.Judge // see [gatewayclient.Options]
	Login   gatewayclient.Login // see [gatewayclient.Options]
	Watch   step.Watcher        // see [step.Options]
	Hosts   map[string][]netip.Addr
	Roots   []byte
	Spares  int
	Scope   func() error
	Audit   audit.Sink
	Steps   string
	Layers  map[string]string
	Images  image.Source

	Changing func(source, path string)
}

// A Runtime is a tier's part in the process that owns a box, which runs on Linux only.
type Runtime struct{}

// Main returns false on this system. See the version for Linux.
func Main(...*Runtime) bool { return false }

// A Driver makes no sandboxes here, because the tier needs Linux.
type Driver struct{ tier paddock.Tier }

// Elsewhere returns a driver of a tier that reports that this system is not Linux.
func Elsewhere(tier paddock.Tier) *Driver { return &Driver{tier} }

func missing() error {
	return &paddock.MissingError{Finding: paddock.Finding{Control: paddock.ControlUserNS, Strength: paddock.Absent,
		Cause: "this system is " + runtime.GOOS + ", not Linux", Remedy: "run paddock on Linux, or in a Linux virtual machine"}}
}

func (d *Driver) Info(_ context.Context, tier paddock.Tier) (paddock.Info, error) {
	if tier != paddock.Auto && tier != d.tier {
		return paddock.Info{}, fmt.Errorf("tier %.64q is not %q: %w", string(tier), string(d.tier), paddock.Unsupported)
	}
	return paddock.Info{Tier: d.tier, Version: runtime.GOOS}, nil
}
func (*Driver) Create(context.Context, paddock.Spec) (paddock.Sandbox, error) { return nil, missing() }
func (*Driver) Open(context.Context, paddock.ID) (paddock.Sandbox, error)     { return nil, missing() }
func (*Driver) List(context.Context) ([]paddock.Status, error)                { return nil, nil }
func (*Driver) RemoveSnapshot(context.Context, paddock.SnapshotID) error      { return missing() }
func (*Driver) Layer(paddock.SnapshotID) (*os.File, error)                    { return nil, missing() }
func (*Driver) Close() error                                                  { return nil }

// An Unowned is a part of a sandbox that nobody owns. See the version for Linux.
type Unowned struct{ What string }

// Remove does nothing.
func (Unowned) Remove(context.Context) error { return nil }

// FindUnowned returns nothing, because no sandbox of this package is here.
func FindUnowned(...string) ([]Unowned, error) { return nil, nil }

// StatesOf returns nothing.
func StatesOf([]string) []string { return nil }

// Certificates returns nothing, because no sandbox of this package is here.
func Certificates(func(string) (string, bool)) map[string]string { return nil }
