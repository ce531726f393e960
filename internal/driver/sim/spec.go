package sim

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// An account is a line of the computer's /etc/passwd.
type account struct {
	name     string
	uid, gid int
	home     string
}

// accounts are who there is, before a spec adds one.
func accounts() []account {
	return []account{{"root", 0, 0, "/root"}, {"user", 1000, 1000, "/home/user"}, {"nobody", 65534, 65534, "/nonexistent"}}
}

// find gives the account that a spec or command names, by name or number.
func find(all []account, user string) (account, error) {
	if user == "" {
		user = "user"
	}
	for _, a := range all {
		if a.name == user || strconv.Itoa(a.uid) == user {
			return a, nil
		}
	}
	return account{}, fmt.Errorf("user %.64q: the computer has no such user: %w", user, paddock.NotFound)
}

// check refuses what is wrong in a spec, and what this tier cannot do.
func (d *Driver) check(spec *paddock.Spec) error {
	switch {
	case !spec.ID.Valid():
		return fmt.Errorf("id %.64q is not a name of lower-case letters, digits and dashes, at most 63: %w", string(spec.ID), paddock.Invalid)
	case spec.Tier != paddock.Auto && spec.Tier != paddock.Sim:
		return fmt.Errorf("tier %.64q is not %q: %w", string(spec.Tier), string(paddock.Sim), paddock.Unsupported)
	case len(spec.Hostname) > 63 || strings.ContainsAny(spec.Hostname, " /\x00\n"):
		return fmt.Errorf("hostname %.64q: a name has no space, slash or line break, and at most 63 bytes: %w", spec.Hostname, paddock.Invalid)
	}
	if spec.Sudo {
		return fmt.Errorf("sudo: the simulated computer has no privilege to gain by it; ask for gvisor or microvm, or leave it out: %w", paddock.Unsupported)
	}
	if spec.Undo != paddock.UndoOff {
		return fmt.Errorf("undo: the simulated computer changes nothing of this machine that could be undone; ask for jail, gvisor or microvm, or leave it out: %w", paddock.Unsupported)
	}
	if spec.Monitor != nil {
		return fmt.Errorf("monitor: the simulated computer has none that outlives a command; ask for jail, gvisor or microvm, or leave it out: %w", paddock.Unsupported)
	}
	if err := description.CheckLimits(spec.Limits); err != nil {
		return err
	}
	if err := checkEnv(spec.Env); err != nil {
		return err
	}
	if size := sizeOf(spec.Env); size > paddock.MaxEnv {
		return fmt.Errorf("the environment has %d bytes, but the maximum is %d: %w", size, paddock.MaxEnv, paddock.Invalid)
	}
	switch spec.Root.Kind {
	case paddock.RootHost:
		if spec.Root.Path != "" || spec.Root.Snapshot != "" {
			return fmt.Errorf("the tier's own root takes no path and no snapshot: %w", paddock.Invalid)
		}
	case paddock.RootSnapshot:
		if spec.Root.Snapshot == "" || spec.Root.Path != "" {
			return fmt.Errorf("a root from a snapshot needs its name, and no path: %w", paddock.Invalid)
		}
	default:
		return fmt.Errorf("root %.64q: the simulated computer has a system of its own and runs no programs of others: %w", string(spec.Root.Kind), paddock.Unsupported)
	}
	for _, m := range spec.Mounts {
		if err := checkMount(m); err != nil {
			return err
		}
	}
	if spec.Dir != "" {
		if err := description.CheckPath(spec.Dir); err != nil {
			return fmt.Errorf("dir: %w", err)
		}
	}
	if err := d.checkPolicy(spec.Policy); err != nil {
		return err
	}
	for _, c := range spec.AllowMissing {
		if !slices.ContainsFunc(description.Controls(d.o.Walls), func(f paddock.Finding) bool { return f.Control == c }) {
			return fmt.Errorf("allow missing %.64q: this tier has no such control: %w", string(c), paddock.Invalid)
		}
	}
	return nil
}

func (d *Driver) checkPolicy(p paddock.Policy) error {
	if err := description.CheckPolicy(p); err != nil {
		return err
	}
	return d.checkNetwork(p.Network)
}

func checkMount(m paddock.Mount) error {
	if err := description.CheckPath(m.Source); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	target := cmp.Or(m.Target, m.Source)
	if err := description.CheckPath(target); err != nil {
		return fmt.Errorf("mount target: %w", err)
	}
	target = path.Clean(target)
	switch {
	case m.Write && m.Overlay:
		return fmt.Errorf("mount %s: changes either reach the host or stay inside: %w", m.Source, paddock.Invalid)
	case m.Write:
		return fmt.Errorf("mount %s: this tier never writes to the host; it can show the directory read-only, or with an overlay that keeps changes inside: %w", m.Source, paddock.Unsupported)
	case target == "/":
		return fmt.Errorf("mount %s: the target is the whole tree: %w", m.Source, paddock.Invalid)
	}
	for _, own := range []string{"/proc", "/dev", "/bin", "/usr/bin", "/etc"} {
		if target == own || strings.HasPrefix(target, own+"/") {
			return fmt.Errorf("mount %s: the target %s is the box's own: %w", m.Source, target, paddock.Invalid)
		}
	}
	return nil
}

func checkEnv(env map[string]string) error {
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("environment variable %.64q: not a name, or a NUL in it: %w", name, paddock.Invalid)
		}
	}
	return nil
}

func sizeOf(env map[string]string) (size int) {
	for name, value := range env {
		size += len(name) + len(value)
	}
	return size
}

func (d *Driver) bounds() budget.Limits {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.limit
}
