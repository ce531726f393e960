package box

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/keyagent"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// check rejects a spec that is invalid by itself.
func (d *Driver) check(spec *paddock.Spec) error {
	if !spec.ID.Valid() {
		return fmt.Errorf("id %.64q is not a name of lower-case letters, digits and dashes, at most 63: %w", string(spec.ID), paddock.Invalid)
	}
	if spec.Tier != paddock.Auto && spec.Tier != d.tier.Name {
		return fmt.Errorf("tier %.64q is not %q: %w", string(spec.Tier), string(d.tier.Name), paddock.Unsupported)
	}
	if err := checkLimits(spec.Limits); err != nil {
		return err
	}
	switch spec.Root.Kind {
	case paddock.RootHost, paddock.RootOpen:
		if spec.Root.Path != "" {
			return fmt.Errorf("root %.64q takes no path: %w", string(spec.Root.Kind), paddock.Invalid)
		}
	case paddock.RootDir:
		if err := checkPath(spec.Root.Path); err != nil {
			return fmt.Errorf("root: %w", err)
		}
		if st, err := os.Stat(spec.Root.Path); err != nil {
			return fmt.Errorf("root %s: %w", spec.Root.Path, notThere(err))
		} else if !st.IsDir() {
			return fmt.Errorf("root %s: not a directory: %w", spec.Root.Path, paddock.Invalid)
		}
	case paddock.RootImage:
		if err := d.checkImage(spec); err != nil {
			return err
		}
	case paddock.RootSnapshot:
		if d.tier.Snapshots == nil {
			return fmt.Errorf("root %.64q: this tier has no snapshots yet: %w", string(spec.Root.Kind), paddock.Unsupported)
		}
		if !paddock.ID(spec.Root.Snapshot).Valid() {
			return fmt.Errorf("snapshot %.64q is not a name: %w", string(spec.Root.Snapshot), paddock.NotFound)
		}
	default:
		return fmt.Errorf("root %.64q is none of this tier: %w", string(spec.Root.Kind), paddock.Unsupported)
	}
	for _, m := range spec.Mounts {
		switch {
		case m.Write && m.Overlay:
			return fmt.Errorf("mount %s: changes either reach the host or stay inside: %w", m.Source, paddock.Invalid)
		case m.Overlay && (!spec.Ephemeral || d.site.o.Layers[m.Source] == ""):
			return fmt.Errorf("mount %s: this tier has an overlay only for a command whose changes are reviewed, as of paddock run --review: %w", m.Source, paddock.Unsupported)
		case m.Overlay:
			if err := unlayered(); err != nil {
				return fmt.Errorf("mount %s: %w", m.Source, err)
			}
		}
		if err := checkPath(m.Source); err != nil {
			return fmt.Errorf("mount: %w", err)
		}
		if isVolume(d.site.volumes(), m.Source) && !spec.Ephemeral {
			return fmt.Errorf("mount %s: a volume is shown by paddock run alone, which holds it while its sandbox lives: %w", m.Source, paddock.Unsupported)
		}
		if m.Cache && !m.Write && !isVolume(d.site.volumes(), m.Source) {
			return fmt.Errorf("mount %s: a cache that nobody may write is none: %w", m.Source, paddock.Invalid)
		}
		if m.Cache && strings.HasPrefix(m.Target, "~/") {
			if err := checkPath(m.Target[1:]); err != nil {
				return fmt.Errorf("mount target: %w", err)
			}
		} else if m.Target != "" {
			if err := checkPath(m.Target); err != nil {
				return fmt.Errorf("mount target: %w", err)
			}
		}
		if t := filepath.Clean(cmp.Or(m.Target, m.Source)); t == "/" && spec.Root.Kind != paddock.RootOpen {
			return fmt.Errorf("mount %s: the target is the whole tree: %w", m.Source, paddock.Invalid)
		} else if hostroot.Within(t, "/proc") || hostroot.Within(t, "/dev") || hostroot.Within(t, "/sys") {
			return fmt.Errorf("mount %s: the target %s is the box's own: %w", m.Source, t, paddock.Invalid)
		}
	}
	if spec.Dir != "" {
		if err := checkPath(spec.Dir); err != nil {
			return fmt.Errorf("dir: %w", err)
		}
	}
	f := spec.Policy.Files
	for _, p := range slices.Concat(f.DenyRead, f.DenyWrite) {
		if err := checkPath(p); err != nil {
			return fmt.Errorf("deny: %w", err)
		}
		if filepath.Clean(p) == "/" {
			return fmt.Errorf("deny /: then nothing can run: %w", paddock.Invalid)
		}
	}
	if _, err := protect.New(f.Protect, f.Unprotect); err != nil {
		return fmt.Errorf("protected names: %w: %w", err, paddock.Invalid)
	}
	for _, c := range spec.AllowMissing {
		if !slices.ContainsFunc(d.controls(nil), func(f paddock.Finding) bool { return f.Control == c }) {
			return fmt.Errorf("allow missing %.64q: this tier has no such control: %w", string(c), paddock.Invalid)
		}
	}
	if err := d.checkMonitor(spec); err != nil {
		return err
	}
	if err := d.checkUndo(spec); err != nil {
		return err
	}
	if err := checkAudit(spec.Policy.Audit); err != nil {
		return err
	}
	if err := checkNetwork(spec); err != nil {
		return err
	}
	if err := keyagent.Check(spec.Policy.KeyAgents); err != nil {
		return err
	}
	if len(spec.Hostname) > 63 || strings.ContainsAny(spec.Hostname, " /\x00\n") {
		return fmt.Errorf("hostname %.64q: a name has no space, slash or line break, and at most 63 bytes: %w", spec.Hostname, paddock.Invalid)
	}
	return checkEnv(spec.Env)
}

// checkEnv rejects variables that no program can get, and a too large environment.
func checkEnv(env map[string]string) error {
	size := 0
	for k, v := range env {
		if k == "" || strings.ContainsAny(k, "=\x00") || strings.Contains(v, "\x00") {
			return fmt.Errorf("environment variable %.64q: not a name, or a NUL in it: %w", k, paddock.Invalid)
		}
		size += len(k) + len(v)
	}
	if size > paddock.MaxEnv {
		return fmt.Errorf("the environment has %d bytes, but the maximum is %d: %w", size, paddock.MaxEnv, paddock.Invalid)
	}
	return nil
}

// checkNetwork rejects rules that cannot be applied.
func checkNetwork(spec *paddock.Spec) error {
	n := spec.Policy.Network
	if n.Mode != paddock.NetworkList {
		if len(n.Rules) > 0 || len(n.Secrets) > 0 {
			return fmt.Errorf("network: rules and secrets go with the mode %q, and it is %.64q: %w", string(paddock.NetworkList), string(n.Mode), paddock.Invalid)
		}
		return nil
	}
	if _, err := decide.Compile(n); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	for _, s := range n.Secrets {
		if _, both := spec.Env[s.Name]; both {
			return fmt.Errorf("secret %s: the environment has a variable of this name too: %w", s.Name, paddock.Invalid)
		}
	}
	return nil
}

// checkAudit rejects unknown kinds of events.
func checkAudit(kinds []paddock.AuditKind) error {
	for _, k := range kinds {
		if !slices.Contains(paddock.AuditKinds(), k) {
			return fmt.Errorf("audit %.64q: there is no such kind of event: %w", string(k), paddock.Invalid)
		}
	}
	return nil
}

// checkLimits rejects limits with which no box can work.
func checkLimits(l paddock.Limits) error {
	if l.Memory < 0 || l.CPUs < 0 || l.CPUs != l.CPUs || l.PIDs < 0 || l.Disk < 0 || l.Files < 0 || l.IO < 0 || l.Lifetime < 0 {
		return fmt.Errorf("a limit is negative: %w", paddock.Invalid)
	}
	for _, small := range []struct {
		what      string
		have, min int64
		words     string
	}{{"memory", l.Memory, 16 << 20, "16 MiB"}, {"pids", int64(l.PIDs), 16, "16"}, {"disk", l.Disk, 1 << 20, "1 MiB"}, {"files", int64(l.Files), 256, "256"}} {
		if small.have != 0 && small.have < small.min {
			return fmt.Errorf("limit %s is too small: a box needs at least %s: %w", small.what, small.words, paddock.Invalid)
		}
	}
	return nil
}

// checkPath rejects everything except one absolute path.
func checkPath(p string) error {
	switch {
	case strings.Contains(p, "\x00"):
		return fmt.Errorf("path %.200q holds a NUL byte: %w", p, paddock.Invalid)
	case !filepath.IsAbs(p):
		return fmt.Errorf("path %.200q is not absolute: %w", p, paddock.Invalid)
	case len(p) >= syscall.PathMax:
		return fmt.Errorf("a path of %d bytes is too long: %w", len(p), paddock.Invalid)
	case slices.Contains(strings.Split(p, "/"), ".."):
		return fmt.Errorf("path %.200q has a .. in it: %w", p, paddock.Invalid)
	}
	return nil
}
