package jail

import (
	"fmt"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A drafter refuses what a jail cannot do. Its boxes need nothing besides what every box has, and a snapshot if they begin
// with one.
type drafter struct{ snapshots snapshots }

// Draft implements box.Drafter.
func (d drafter) Draft(spec *paddock.Spec) (box.Draft, error) {
	if err := refuse(spec); err != nil {
		return box.Draft{}, box.Around().Foremost(err)
	}
	spec, supply, err := d.snapshots.begin(spec)
	if err != nil {
		return box.Draft{}, err
	}
	return box.Draft{Spec: spec, Supply: supply, Finish: func(l *box.Layout, _ paddock.Limits) error {
		if slices.Contains(spec.AllowMissing, paddock.ControlLandlock) && sys.LandlockABI() < landlockNeeded {
			l.Config.Landlock, l.Config.Trees = false, nil
		}
		return nil
	}}, nil
}

// Trial implements box.Drafter.
func (drafter) Trial() (box.Draft, paddock.Limits, *box.Failure) {
	return box.Draft{Finish: func(l *box.Layout, _ paddock.Limits) error {
		l.Config.Landlock = landlock().Strength == paddock.Full
		return nil
	}}, box.Defaults(), nil
}

// refuse returns an error for what this host or tier cannot do, before anything is made.
func refuse(spec *paddock.Spec) error {
	if spec.Policy.Network.Mode == paddock.NetworkList {
		if f := rules(); f.Strength != paddock.Full {
			return &paddock.MissingError{Finding: f}
		}
	}
	if box.AsksKernel(spec) {
		return fmt.Errorf("audit: this tier has no kernel that could tell what processes do: %w", paddock.Unsupported)
	}
	if spec.Sudo {
		return fmt.Errorf("sudo: this tier has one user, and nothing in it becomes another one; ask for a tier with a kernel of its own, gvisor or microvm, or leave it out: %w", paddock.Unsupported)
	}
	f := landlock()
	if f.Strength == paddock.Full {
		return nil
	}
	if !slices.Contains(spec.AllowMissing, paddock.ControlLandlock) {
		return &paddock.MissingError{Finding: f}
	}
	if !slices.Contains(spec.AllowMissing, paddock.ControlProtected) && slices.ContainsFunc(spec.Mounts, func(m paddock.Mount) bool { return m.Write }) {
		f.Control = paddock.ControlProtected
		return &paddock.MissingError{Finding: f}
	}
	return nil
}
