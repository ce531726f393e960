package policy

import (
	"fmt"
	"path"
	"slices"

	"github.com/paddock-sandbox/paddock"
)

// The modes known from Codex.
const (
	modeRead      = "read-only"
	modeWorkspace = "workspace-write"
	modeFull      = "full"
)

// Modes lists the names of modes, the least permission first.
func Modes() []string { return []string{modeRead, modeWorkspace, modeFull} }

// Mode applies one of the modes known from Codex to spec, replacing its root,
// network and working directory, and any mount of the same target:
//
//   - read-only: this machine's system, and o.Dir read-only; no network.
//   - workspace-write: the same, with o.Dir writable but for protected names,
//     and a private /tmp.
//   - full: everything that the caller can read and write, but for protected
//     names, and the host's network. It is less isolation, asked by name.
//
// A name that is not known is Invalid, as is an o.Dir that is not absolute, or
// is "/" where it would have to be mounted. After an error spec is unchanged.
func Mode(spec *paddock.Spec, name string, o Host) error {
	if !slices.Contains(Modes(), name) {
		return fmt.Errorf("mode %q is not known (%s): %w", clip(name), hintFor(name, Modes()), paddock.Invalid)
	}
	if !path.IsAbs(o.Dir) {
		return fmt.Errorf("mode %s: the caller's directory is not known: %w", name, paddock.Invalid)
	}
	dir := path.Clean(o.Dir)
	if name == modeFull {
		spec.Root = paddock.Root{Kind: paddock.RootOpen}
		spec.Policy.Network = paddock.NetworkPolicy{Mode: paddock.NetworkHost}
		spec.Mounts = replaceMount(spec.Mounts, paddock.Mount{Source: "/", Write: true})
		if dir != "/" {
			// By itself too, because a root caller's files are its own only
			// where a mount maps their owner.
			spec.Mounts = replaceMount(spec.Mounts, paddock.Mount{Source: dir, Write: true})
		}
		spec.Dir = dir
		return nil
	}
	if dir == "/" {
		return fmt.Errorf("mode %s: the working directory is \"/\", which cannot be mounted; go to a directory below it: %w", name, paddock.Invalid)
	}
	spec.Root = paddock.Root{}
	spec.Policy.Network = paddock.NetworkPolicy{}
	spec.Mounts = replaceMount(spec.Mounts, paddock.Mount{Source: dir, Write: name == modeWorkspace})
	spec.Dir = dir
	return nil
}

// replaceMount puts m first, in place of any mount of the same target.
func replaceMount(mounts []paddock.Mount, m paddock.Mount) []paddock.Mount {
	kept := slices.DeleteFunc(slices.Clone(mounts), func(other paddock.Mount) bool { return target(other) == target(m) })
	return slices.Insert(kept, 0, m)
}
