package box

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A Layout is the meaning of a spec on this host: the configuration of the box, and the
// host paths of its mounts.
type Layout struct {
	Config boxinit.Config
	ID     Identity
	env    environ  // of the caller
	pins   []string // of one mount, while it is added
	// partial lists directories of homes of which a part is shown: those of tool chains.
	partial   map[string]bool
	adopted   map[string]string // files of certificates inside, by the variables that name them
	sshSocket string            // inside, of the caller's ssh-agent; empty without it
	installs  bool              // commands may install programs below the home
	own       []string          // host paths of which sandboxes are made
	Mounts    []boxinit.Mount   // the spec's mounts
	paths     []string          // host paths to which an io limit applies
	data      string            // directory of saved sandboxes
	agents    string            // directory of agents' files that is not in data; empty is none
	kept      string            // directory of snapshots that is not in data; empty is none
	private   private.Files     // what else no sandbox may see
	builds    string            // directory of caches of build tools
	volumes   string            // directory of the caller's volumes
	images    []string          // directory of the caller's images, and the link that leads there
	layers    map[string]string // see Options.Layers
	// overlay means that a root directory gets a private layer of the host's kernel. saves
	// means that the sandbox may be saved.
	overlay, saves bool
	inFile         bool // the tree is in a file, of an image
	ownTree        bool // the root has a file tree of its own, in which nothing of the host is found

	// Reserve is how much memory the host allows in addition to the limit, in bytes, for
	// the tier's own needs, until the configuration says so.
	Reserve int64
}

// newLayout begins a layout, and reports invalid paths of the caller. It reads the host's
// file tree and changes nothing.
func newLayout(spec *paddock.Spec, limits paddock.Limits, id Identity, s *Site, t *Tier) (*Layout, error) {
	l := &Layout{ID: id, env: s.env, own: s.own(), data: s.Hidden, agents: s.agents, kept: s.kept(), private: s.o.Private.Real(), builds: s.builds(), volumes: s.volumes(), images: s.images(), layers: s.o.Layers, overlay: t.Overlay, saves: t.Snapshots != nil, inFile: inFile(spec.Root)}
	l.Config = boxinit.Config{
		Hostname: spec.Hostname, HostNet: spec.Policy.Network.Mode == paddock.NetworkHost, User: id.User,
		Netlinks: netlinks(), Streams: streams(), Files: limits.Files, PIDs: limits.PIDs + boxinit.AgentThreads + boxinit.SpareThreads, Landlock: true,
		Protect: spec.Policy.Files.Protect, Unprotect: spec.Policy.Files.Unprotect,
	}
	if l.Config.Hostname == "" {
		l.Config.Hostname = "paddock"
	}
	var err error
	if l.Mounts, err = l.userMounts(spec); err != nil {
		return nil, err
	}
	if dir, ok := ownTree(spec.Root); ok {
		if err := l.private.Refuse("root", private.RealPath(dir)); err != nil {
			return nil, err
		}
		l.paths, l.ownTree = append(l.paths, dir), true
	}
	l.Config.Dir = workDir(spec, l.Mounts, id.User.Home)
	return l, l.placeKeyAgents(spec)
}

// netlinks returns the number of sockets from which on a box gets no further netlink socket. Twice
// rmem_max can wait in such a socket, and the kernel charges nobody for it.
func netlinks() int {
	const all, least, most = 256 << 20, 64, 512
	n, err := sys.Quota("net/core/rmem_max")
	if err != nil || n <= 0 {
		return least
	}
	return int(min(max(all/(2*n), least), most))
}

// streams returns the number of sockets from which on a box gets no further socket of TCP. Each can leave
// two connections that nobody has open, its own and the accepted one. So a box has at most a quarter of
// those that the machine may have.
func streams() int {
	const ends, share, least, unknown = 2, 4, 64, 1024
	n, err := sys.Quota("net/ipv4/tcp_max_orphans")
	if err != nil || n <= 0 { // as in a container, whose network namespace does not show it
		return unknown
	}
	return int(max(n/(ends*share), least))
}

// finish computes the rest.
func (l *Layout) finish(spec *paddock.Spec, limits paddock.Limits, g *gatewayclient.Gateway) error {
	mounts := l.Mounts
	everything := false // the whole open tree becomes writable
	if i := slices.IndexFunc(mounts, func(m boxinit.Mount) bool { return m.Target == "/" }); i >= 0 {
		everything = mounts[i].Write
		mounts = slices.Delete(mounts, i, i+1)
	}
	if spec.Root.Kind == paddock.RootOpen {
		if err := l.openRoot(limits, everything); err != nil {
			return err
		}
	} else if err := l.closedRoot(spec, limits, mounts); err != nil {
		return err
	}
	for _, m := range mounts {
		l.pin(m.Target)
		l.Add(m)
	}
	if err := l.files(spec); err != nil {
		return err
	}
	if err := l.ownFiles(); err != nil {
		return err
	}
	l.rights()
	if err := l.aliases(); err != nil {
		return err
	}
	l.Config.Env = l.environment(spec)
	others := len(l.Config.Mounts)
	if err := l.network(spec, g); err != nil {
		return err
	}
	return l.apart(others)
}

// apart refuses a root whose links lead files of the box's own into a mount. The tree of a root may be a stranger's, and what
// is missing on the way to a file is made where the mount's source is, which is on the host. All mounts but the first ones
// are files for the network, whose places the root's links decide, whatever their kind.
func (l *Layout) apart(first int) error {
	if !l.ownTree {
		return nil
	}
	for _, m := range l.Mounts {
		if home := l.Config.User.Home; hostroot.Within(home, m.Target) && m.Target != home && m.Target != "/" {
			return fmt.Errorf("the home %s, which the root's /etc/passwd gives the user, would be in the mount %s: choose another target for it, or another user: %w", home, m.Target, paddock.Invalid)
		}
	}
	for n, own := range l.Config.Mounts {
		switch own.Kind {
		case boxinit.MountFile, boxinit.MountReplace, boxinit.MountAppend, boxinit.MountCopy:
		default:
			if n < first {
				continue
			}
		}
		for _, m := range l.Mounts {
			if hostroot.Within(own.Target, m.Target) && m.Target != "/" {
				return fmt.Errorf("a file of the sandbox's own would be at %s, in the mount %s: the root has a link that leads there, or choose another target: %w", own.Target, m.Target, paddock.Invalid)
			}
		}
	}
	return nil
}

// InFile reports whether the tree is in a file, of an image, which only a guest kernel can mount.
func (l *Layout) InFile() bool { return l.inFile }

// Add appends mounts to the configuration.
func (l *Layout) Add(m ...boxinit.Mount) { l.Config.Mounts = append(l.Config.Mounts, m...) }

// userMounts returns the spec's mounts, parents before their children.
func (l *Layout) userMounts(spec *paddock.Spec) ([]boxinit.Mount, error) {
	var mounts []boxinit.Mount
	for _, m := range spec.Mounts {
		st, err := os.Stat(m.Source)
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.Source, notThere(err))
		}
		source, err := filepath.EvalSymlinks(m.Source)
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.Source, notThere(err))
		}
		if real := filepath.Clean(m.Source); source != real {
			return nil, fmt.Errorf("mount %s: leads through a symbolic link, which somebody inside could have made; name the real place if it is meant, %s: %w",
				m.Source, source, paddock.Invalid)
		}
		if !st.IsDir() && !st.Mode().IsRegular() {
			return nil, fmt.Errorf("mount %s: neither a directory nor a regular file: %w", m.Source, paddock.Invalid)
		}
		target := m.Target
		if target == "" {
			target = m.Source
		}
		if rest, ok := strings.CutPrefix(target, "~/"); ok && m.Cache {
			target = filepath.Join(l.Config.User.Home, rest)
		}
		mounts = append(mounts, boxinit.Mount{Kind: boxinit.MountBind, Source: source, Target: filepath.Clean(target), Write: m.Write, IsFile: !st.IsDir(), Owned: true, Cache: m.Cache})
		if m.Overlay {
			if !st.IsDir() {
				return nil, fmt.Errorf("mount %s: only a directory has a layer for changes; mount the one that it is in: %w", m.Source, paddock.Unsupported)
			}
			mounts[len(mounts)-1].Upper = l.layers[m.Source]
		}
		if !m.Cache || l.builds == "" || !hostroot.Within(source, l.builds) { // anybody may write this word into a spec
			if err := l.private.Refuse("mount", source); err != nil {
				return nil, err
			}
		}
		l.paths = append(l.paths, source)
	}
	// What the caller shows or keeps from a place counts more than a cache there. Otherwise a cache would hide it, or a
	// sandbox before could have made a link where it belongs.
	mounts = slices.DeleteFunc(mounts, func(m boxinit.Mount) bool {
		return m.Cache && !isVolume(l.volumes, m.Source) && slices.ContainsFunc(mounts, func(o boxinit.Mount) bool {
			return (!o.Cache || isVolume(l.volumes, o.Source)) && (hostroot.Within(m.Target, o.Target) || hostroot.Within(o.Target, m.Target))
		})
	})
	sort.SliceStable(mounts, func(i, j int) bool { return len(mounts[i].Target) < len(mounts[j].Target) })
	for i := 1; i < len(mounts); i++ {
		if slices.ContainsFunc(mounts[:i], func(m boxinit.Mount) bool { return m.Target == mounts[i].Target }) {
			return nil, fmt.Errorf("mount %s: two mounts have this target: %w", mounts[i].Target, paddock.Invalid)
		}
	}
	return mounts, nil
}

func notThere(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("does not exist on this host: %w", paddock.NotFound)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot be read by the calling user: %w", paddock.Denied)
	}
	return fmt.Errorf("%w: %w", err, paddock.Invalid)
}

// closedRoot is a tree of system directories, read-only or below a private layer.
// Everything else is private to the box.
func (l *Layout) closedRoot(spec *paddock.Spec, limits paddock.Limits, user []boxinit.Mount) error {
	l.Add(boxinit.Mount{Kind: boxinit.MountTmpfs, Target: "/", Size: limits.Disk, Mode: 0o755, Write: true})
	switch path, own := ownTree(spec.Root); {
	case own && inFile(spec.Root): // the guest kernel has it
	case own && !l.overlay:
		if err := l.entries(path, false); err != nil {
			return err
		}
	case own:
		if err := l.directory(path, limits.Disk); err != nil {
			return err
		}
	default:
		for _, dir := range hostroot.SystemDirs() {
			l.system(dir)
		}
	}
	if err := l.devices(); err != nil {
		return err
	}
	for _, dir := range append(hostroot.PrivateDirs(), l.Config.User.Home) {
		if !l.placeable(spec, dir) {
			continue
		}
		mode := uint32(0o1777)
		if dir == l.Config.User.Home {
			mode = 0o700
		}
		l.Add(boxinit.Mount{Kind: boxinit.MountPrivate, Target: dir, Mode: mode, Write: true})
	}
	if _, own := ownTree(spec.Root); !own || l.placeable(spec, "/var/run") && !l.has(spec, "/var/run") {
		l.Add(boxinit.Mount{Kind: boxinit.MountLink, Target: "/var/run", Source: "/run"})
	}
	if spec.Root.Kind == paddock.RootHost {
		passwd, group := accounts(l.Config.User)
		l.replace("/etc/passwd", passwd)
		l.replace("/etc/group", group)
		l.toolchains(user)
		hidden := l.secrets()
		l.certificates(hidden)
		l.loginShells()
		l.installs = true
		for _, name := range hidden {
			l.Add(boxinit.Mount{Kind: boxinit.MountMask, Target: name, Maybe: true})
		}
	}
	return nil
}

// placeable reports whether a mount can be made at a path of the box: in the files of a root it has to be there, or its
// first directory is the box's own.
func (l *Layout) placeable(spec *paddock.Spec, name string) bool {
	if _, own := ownTree(spec.Root); !own || inFile(spec.Root) {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	return slices.Contains(ownEntries(), first) || !l.has(spec, "/"+first) || l.has(spec, name)
}

// has reports whether the root's own tree has a name.
func (l *Layout) has(spec *paddock.Spec, name string) bool {
	dir, _ := ownTree(spec.Root)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false // the layout reads it, and says so
	}
	defer root.Close()
	_, err = root.Lstat(strings.TrimPrefix(name, "/"))
	return err == nil
}

// ownEntries are directories of a root that each box has for itself.
func ownEntries() []string {
	return []string{"proc", "sys", "dev", "tmp", "run", "home", "mnt", "media", "lost+found"}
}

// system shows one of the host's system directories in the host's form, including a link.
func (l *Layout) system(dir string) {
	st, err := os.Lstat(dir)
	if err != nil {
		return
	}
	if st.Mode()&fs.ModeSymlink != 0 {
		if to, err := os.Readlink(dir); err == nil {
			l.Add(boxinit.Mount{Kind: boxinit.MountLink, Target: dir, Source: to})
		}
		return
	}
	l.Add(boxinit.Mount{Kind: boxinit.MountBind, Target: dir, Source: dir})
}

// directory shows the entries of a directory with a whole file tree, below a private layer.
func (l *Layout) directory(path string, size int64) error {
	l.Add(boxinit.Mount{Kind: boxinit.MountOverlay, Source: path, Size: size, Owned: true})
	return l.entries(path, true)
}

// entries shows each entry of a directory with a whole file tree separately. With layer it
// takes them from a layer made before.
func (l *Layout) entries(path string, layer bool) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return fmt.Errorf("root %s: %w", path, notThere(err))
	}
	own := ownEntries()
	found := 0
	for _, e := range entries {
		if slices.Contains(own, e.Name()) {
			continue
		}
		target := "/" + e.Name()
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(filepath.Join(path, e.Name()))
			if err != nil {
				return fmt.Errorf("root %s: %w", path, notThere(err))
			}
			l.Add(boxinit.Mount{Kind: boxinit.MountLink, Target: target, Source: to})
		case e.IsDir() || e.Type().IsRegular():
			m := boxinit.Mount{Kind: boxinit.MountBind, Target: target, Source: e.Name(), Layer: true, Write: true, IsFile: !e.IsDir()}
			if !layer {
				m = boxinit.Mount{Kind: boxinit.MountBind, Target: target, Source: filepath.Join(path, e.Name()), Owned: true, InRoot: true, IsFile: !e.IsDir()}
			}
			l.Add(m)
		default:
			continue
		}
		found++
	}
	if found == 0 {
		return fmt.Errorf("root %s: holds no file tree (no /usr, /bin, …): %w", path, paddock.Invalid)
	}
	return nil
}

// devices makes /dev, /proc and /sys.
func (l *Layout) devices() error {
	l.Add(boxinit.Mount{Kind: boxinit.MountDir, Target: "/dev"})
	for _, d := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		l.Add(boxinit.Mount{Kind: boxinit.MountBind, Target: "/dev/" + d, Source: "/dev/" + d, Write: true, Device: true, NoExec: true, IsFile: true})
	}
	l.Add(
		boxinit.Mount{Kind: boxinit.MountPTS, Target: "/dev/pts"},
		boxinit.Mount{Kind: boxinit.MountLink, Target: "/dev/ptmx", Source: "pts/ptmx"},
		boxinit.Mount{Kind: boxinit.MountLink, Target: "/dev/fd", Source: "/proc/self/fd"},
		boxinit.Mount{Kind: boxinit.MountLink, Target: "/dev/stdin", Source: "/proc/self/fd/0"},
		boxinit.Mount{Kind: boxinit.MountLink, Target: "/dev/stdout", Source: "/proc/self/fd/1"},
		boxinit.Mount{Kind: boxinit.MountLink, Target: "/dev/stderr", Source: "/proc/self/fd/2"},
		boxinit.Mount{Kind: boxinit.MountProc, Target: "/proc", Write: true, NoExec: true},
	)
	if err := l.proc(); err != nil {
		return err
	}
	// Runtimes count processors there. No other part of /sys is needed.
	l.Add(boxinit.Mount{Kind: boxinit.MountBind, Target: "/sys/devices/system/cpu", Source: "/sys/devices/system/cpu", NoExec: true, Maybe: true})
	for _, at := range []string{"/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/sys/devices/system/cpu/online"} {
		if _, err := os.Stat(at); err == nil {
			l.Add(boxinit.Mount{Kind: boxinit.MountView, Target: at, Source: filepath.Base(at), IsFile: true})
		}
	}
	return nil
}

// What of /proc is shown besides processes: shownProc as it is, with what programs read of it. Files of
// emptyProc are empty, because programs look for them first. Everything else cannot be read. It would tell
// more of what the host does, as interrupts do, or reading it would stop others: while somebody reads locks,
// no file on the machine can be locked.
const (
	shownProc = "cgroups config.gz cpuinfo crypto devices filesystems loadavg meminfo mounts net partitions pressure self stat swaps sys sysvipc " +
		"thread-self tty uptime version version_signature vmstat"
	emptyProc = "buddyinfo cmdline diskstats interrupts locks schedstat softirqs zoneinfo"
)

// proc covers what of /proc is not shown. Files that only the host's root may read need no mask, because
// nobody inside is that user. For writing, Landlock closes all of /proc.
func (l *Layout) proc() error {
	names, err := procNames()
	if err != nil {
		return err
	}
	shown, empty := strings.Fields(shownProc), strings.Fields(emptyProc)
	for _, name := range names {
		if slices.Contains(shown, name) {
			continue
		}
		m := boxinit.Mount{Kind: boxinit.MountMask, Target: "/proc/" + name, Maybe: true}
		if slices.Contains(empty, name) {
			m.Mode = 0o444
		}
		if st, err := os.Lstat(m.Target); err == nil && st.Mode().Perm()&0o004 != 0 {
			l.Add(m)
		}
	}
	return nil
}

// procNames returns the names in /proc that are not processes. The kernel lists them first, so that not
// every process of the host has to be read.
func procNames() ([]string, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	var names []string
	for {
		some, err := d.Readdirnames(100)
		i := slices.IndexFunc(some, func(name string) bool { return '0' <= name[0] && name[0] <= '9' })
		if i >= 0 || errors.Is(err, io.EOF) {
			return append(names, some[:max(i, 0)]...), nil
		}
		if err != nil {
			return nil, err
		}
		names = append(names, some...)
	}
}

// replace mounts a file of the box itself over one of the read-only system.
func (l *Layout) replace(path, content string) {
	if _, err := os.Stat(path); err != nil {
		return
	}
	l.Add(boxinit.Mount{Kind: boxinit.MountReplace, Target: path, Source: content, Mode: 0o644, IsFile: true})
}

// openRoot is the host's whole file tree. The mounts decide what may be changed; with
// everything, all of it may be.
func (l *Layout) openRoot(limits paddock.Limits, everything bool) error {
	l.Add(boxinit.Mount{Kind: boxinit.MountTmpfs, Target: "/", Size: limits.Disk, Mode: 0o755, Write: true})
	entries, err := os.ReadDir("/")
	if err != nil {
		return fmt.Errorf("open root: %w", err)
	}
	for _, e := range entries {
		if slices.Contains([]string{"proc", "sys", "dev", "lost+found"}, e.Name()) {
			continue
		}
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 {
			l.system("/" + e.Name())
		}
	}
	for i := range l.Config.Mounts {
		l.Config.Mounts[i].Write = l.Config.Mounts[i].Write || everything
	}
	if err := l.devices(); err != nil {
		return err
	}
	l.Add(boxinit.Mount{Kind: boxinit.MountPrivate, Target: "/dev/shm", Mode: 0o1777, Write: true})
	return nil
}

// pin also makes each directory between a private place and a mount in it a mount.
// Otherwise it could be renamed, and the mount with it would get a path that no rule names.
func (l *Layout) pin(target string) {
	for dir := filepath.Dir(target); dir != "/"; dir = filepath.Dir(dir) {
		private := slices.ContainsFunc(l.Config.Mounts, func(m boxinit.Mount) bool {
			return (m.Kind == boxinit.MountPrivate || m.Kind == boxinit.MountBind && m.Layer) && m.Target != dir && hostroot.Within(dir, m.Target)
		})
		pinned := slices.ContainsFunc(l.Config.Mounts, func(m boxinit.Mount) bool {
			return m.Kind == boxinit.MountPin && m.Target == dir
		})
		if private && !pinned {
			l.pins = append(l.pins, dir)
		}
	}
	// Outer ones first, because a mount covers earlier mounts below it.
	slices.Reverse(l.pins)
	for _, dir := range l.pins {
		l.Add(boxinit.Mount{Kind: boxinit.MountPin, Target: dir, Mode: 0o755})
	}
	l.pins = nil
}

// files applies the file policy.
func (l *Layout) files(spec *paddock.Spec) error {
	for _, p := range spec.Policy.Files.DenyRead {
		p = filepath.Clean(p)
		there, err := l.hideable(p)
		if err != nil {
			return err
		}
		l.Add(boxinit.Mount{Kind: boxinit.MountMask, Target: p, Maybe: !there})
		l.Config.Deny = append(l.Config.Deny, p)
	}
	for _, p := range spec.Policy.Files.DenyWrite {
		p = filepath.Clean(p)
		l.Add(boxinit.Mount{Kind: boxinit.MountLock, Target: p})
		l.Config.Deny = append(l.Config.Deny, p)
	}
	for _, p := range l.Config.Deny {
		if real, ok := l.resolved(p); ok && real != p {
			return fmt.Errorf("deny %s: leads through a symbolic link; name the real place, %s: %w", p, real, paddock.Invalid)
		}
	}
	return nil
}

// ownFiles protects what is the caller's own in every mount that contains it. Nobody may see what is saved of
// sandboxes, caches of build tools, and what the caller keeps to itself. Nobody may change the files of which
// sandboxes are made: this program, its cache and its state.
func (l *Layout) ownFiles() error {
	hidden := private.Files{Paths: append(slices.Clone(l.private.Paths), l.data)}
	if l.agents != "" {
		hidden.Paths = append(hidden.Paths, l.agents)
	}
	if l.kept != "" {
		hidden.Paths = append(hidden.Paths, l.kept)
	}
	if l.builds != "" {
		hidden.Paths = append(hidden.Paths, l.builds) // what one workspace's sandboxes put there reaches no other one's
	}
	if l.volumes != "" {
		hidden.Paths = append(hidden.Paths, l.volumes) // a sandbox sees those alone that were given to it by name
	}
	for _, dir := range l.images {
		hidden.Paths = append(hidden.Paths, dir) // other sandboxes begin with them
		if i := slices.IndexFunc(l.Mounts, func(m boxinit.Mount) bool { return hostroot.Within(m.Source, dir) }); i >= 0 {
			return fmt.Errorf("mount %s: in %s are images, with which sandboxes begin: --image REFERENCE: %w", l.Mounts[i].Source, dir, paddock.Denied)
		}
	}
	for _, m := range slices.Clone(l.Config.Mounts) {
		source, target := m.Source, m.Target
		switch {
		case m.Kind == boxinit.MountOverlay:
			target = "/"
		case m.Kind != boxinit.MountBind || m.Device || m.Layer:
			continue
		}
		switch {
		case source != l.data && hostroot.Within(source, l.data) && (!m.Cache || !isAgentHome(l.data, source)):
			return fmt.Errorf("mount %s: in %s is what is saved of sandboxes, which none may see: %w", source, l.data, paddock.Denied)
		case l.agents != "" && hostroot.Within(source, l.agents):
			return fmt.Errorf("mount %s: in %s are files of agents, which no other sandbox may see: %w", source, l.agents, paddock.Denied)
		case l.kept != "" && hostroot.Within(source, l.kept):
			return fmt.Errorf("mount %s: in %s are snapshots of sandboxes, which none may see: %w", source, l.kept, paddock.Denied)
		case l.builds != "" && hostroot.Within(source, l.builds) && !m.Cache:
			return fmt.Errorf("mount %s: in %s are the caches of other sandboxes: %w", source, l.builds, paddock.Denied)
		case l.volumes != "" && hostroot.Within(source, l.volumes) && (!m.Cache || !isVolume(l.volumes, source)):
			return fmt.Errorf("mount %s: in %s are volumes, which are shown by name: --volume NAME:/path: %w", source, l.volumes, paddock.Denied)
		}
		// A directory made later could not be hidden. If it cannot be made now, nothing is put into it.
		if l.saves && hostroot.Within(l.data, source) {
			_ = OwnDirectory(l.data)
		}
		if l.agents != "" && hostroot.Within(filepath.Dir(l.agents), source) {
			_ = os.MkdirAll(l.agents, 0o700)
		}
		if l.builds != "" && hostroot.Within(l.builds, source) {
			_ = OwnDirectory(l.builds)
		}
		for _, dir := range append(slices.Clone(l.images), l.kept, l.volumes) {
			if dir != "" && hostroot.Within(dir, source) {
				_ = OwnDirectory(dir)
			}
		}
		for _, inside := range hidden.In(source, target) {
			if i := slices.IndexFunc(l.Mounts, func(m boxinit.Mount) bool { return !m.Cache && m.Target != inside && hostroot.Within(m.Target, inside) }); i >= 0 {
				return fmt.Errorf("mount %s: no sandbox may see %s, so nothing can be mounted there; choose another target: %w", l.Mounts[i].Target, inside, paddock.Denied)
			}
			l.Add(boxinit.Mount{Kind: boxinit.MountMask, Target: inside, Maybe: true})
			l.Config.Deny = append(l.Config.Deny, inside)
		}
	}
	for _, own := range l.own {
		for _, m := range slices.Clone(l.Config.Mounts) {
			if m.Kind != boxinit.MountBind || !m.Writable() || m.Device || m.Layer {
				continue
			}
			if hostroot.Within(m.Source, own) {
				return fmt.Errorf("mount %s: sandboxes are made of what is in %s, which none may change: %w", m.Source, own, paddock.Denied)
			}
			if !hostroot.Within(own, m.Source) {
				continue
			}
			inside := strings.TrimSuffix(m.Target, "/") + strings.TrimPrefix(own, strings.TrimSuffix(m.Source, "/"))
			// If the user cannot even reach it, it needs no lock.
			l.Add(boxinit.Mount{Kind: boxinit.MountLock, Target: inside, Maybe: true})
			l.Config.Deny = append(l.Config.Deny, inside)
		}
	}
	return nil
}

// isAgentHome reports whether a directory is what sandboxes of one agent and workspace keep: agents/ID/home/… of the data
// directory. Everything else in the data directory is shown to no sandbox.
func isAgentHome(data, source string) bool {
	parts := strings.Split(strings.TrimPrefix(source, data+"/"), "/")
	return len(parts) > 3 && parts[0] == "agents" && parts[2] == "home"
}

// isVolume reports whether a directory holds the files of a volume: NAME/data of the directory of volumes.
func isVolume(volumes, source string) bool {
	rest, ok := strings.CutPrefix(source, volumes+"/")
	name, data, _ := strings.Cut(rest, "/")
	return volumes != "" && ok && paddock.ID(name).Valid() && data == "data"
}

// hideable reports whether a file of the host is at a path inside that can be hidden. If it
// is missing, it returns an error, because the host could make the file later, and then it
// would be readable. A place where only the box could make a file is no error.
func (l *Layout) hideable(path string) (there bool, err error) {
	for i := len(l.Config.Mounts) - 1; i >= 0; i-- {
		m := l.Config.Mounts[i]
		if m.Kind != boxinit.MountBind || m.Layer || !hostroot.Within(path, m.Target) {
			continue
		}
		host := m.Source + strings.TrimPrefix(path, strings.TrimSuffix(m.Target, "/"))
		if _, err := os.Lstat(host); errors.Is(err, fs.ErrNotExist) {
			return false, fmt.Errorf("deny reading %s: it does not exist, and could not be hidden if the host made it later; "+
				"deny its directory, or make it first: %w", path, paddock.Invalid)
		}
		return true, nil
	}
	return false, nil
}

// resolved returns the real location of a path inside, if it is an existing file of the
// host.
func (l *Layout) resolved(path string) (string, bool) {
	for i := len(l.Config.Mounts) - 1; i >= 0; i-- {
		m := l.Config.Mounts[i]
		if m.Kind != boxinit.MountBind || m.Layer || !hostroot.Within(path, m.Target) {
			continue
		}
		host := m.Source + strings.TrimPrefix(path, strings.TrimSuffix(m.Target, "/"))
		real, err := filepath.EvalSymlinks(host)
		if err != nil || !hostroot.Within(real, m.Source) {
			return real, err == nil
		}
		return m.Target + strings.TrimPrefix(real, m.Source), true
	}
	return "", false
}

// rights determines which paths may be changed, and for which the broker decides. Those are
// the host's directories, and any private directory that contains one, because Landlock's
// rights extend to mounts below.
func (l *Layout) rights() {
	c := &l.Config
	c.Writable = []string{"/dev"}
	var private []string
	for i, m := range c.Mounts {
		switch {
		case m.Kind == boxinit.MountPrivate, m.Kind == boxinit.MountBind && m.Layer:
			// What a later mount covers is not there: the path leads to that mount's files, which may be the host's.
			if !slices.ContainsFunc(c.Mounts[i+1:], func(o boxinit.Mount) bool { return o.Kind != boxinit.MountPin && hostroot.Within(m.Target, o.Target) }) {
				private = append(private, m.Target)
			}
		case m.Kind == boxinit.MountBind && m.Writable() && !m.Device:
			c.Trees = append(c.Trees, boxinit.Tree{Path: m.Target, Protected: true, Source: m.Source, Cache: m.Cache})
		}
	}
	for _, m := range c.Mounts {
		if m.Kind == boxinit.MountBind && !m.Device && !m.Layer {
			c.Hosts = append(c.Hosts, m.Target)
		}
	}
	for _, m := range l.Mounts {
		if m.Target != "" {
			c.Named = append(c.Named, m.Target)
		}
	}
	hosts := slices.Clone(c.Trees)
	for _, p := range private {
		c.Writable = append(c.Writable, p)
		holds := slices.ContainsFunc(hosts, func(t boxinit.Tree) bool { return hostroot.Within(t.Path, p) })
		denies := slices.ContainsFunc(c.Deny, func(d string) bool { return hostroot.Within(d, p) })
		if holds || denies {
			c.Trees = append(c.Trees, boxinit.Tree{Path: p})
		}
	}
	for _, t := range hosts {
		c.Writable = append(c.Writable, t.Path)
	}
}

func workDir(spec *paddock.Spec, mounts []boxinit.Mount, home string) string {
	if spec.Dir != "" {
		return spec.Dir
	}
	for _, m := range spec.Mounts {
		target := m.Target
		if target == "" {
			target = m.Source
		}
		for _, have := range mounts {
			if have.Target == filepath.Clean(target) && !have.IsFile {
				return have.Target
			}
		}
	}
	if spec.Root.Kind == paddock.RootOpen {
		return "/"
	}
	return home
}

// environment returns the base of every command's environment.
func (l *Layout) environment(spec *paddock.Spec) map[string]string {
	u := l.Config.User
	env := map[string]string{
		"PATH": l.path(), "HOME": u.Home, "USER": u.Name, "LOGNAME": u.Name, "SHELL": u.Shell,
		"TERM": "dumb", "LANG": "C.UTF-8", "TMPDIR": "/tmp",
	}
	if t := l.env["TERM"]; t != "" && len(t) < 64 && !strings.ContainsAny(t, "/\n\x00") {
		env["TERM"] = t
	}
	if l.installs {
		dirs, variables := l.installed()
		maps.Copy(env, variables)
		env["PATH"] = strings.Join(append(dirs, env["PATH"]), ":")
	}
	maps.Copy(env, l.adopted)
	for _, name := range paddock.ToolchainVariables() {
		v, set := l.env[name]
		if dir := chainHomes()[name]; !set && dir != "" && u.Home != l.env["HOME"] {
			v = filepath.Join(l.env["HOME"], dir)
		}
		if v, ok := l.inside(v); ok {
			env[name] = v
		}
	}
	if _, own := spec.Env["GIT_CONFIG_COUNT"]; !own && len(spec.Mounts) > 0 {
		// Owners and inode numbers differ inside. Otherwise git reads every file of a repository of the host
		// again, and then leaves numbers in its index that make the host's git do the same.
		env["GIT_CONFIG_COUNT"], env["GIT_CONFIG_KEY_0"], env["GIT_CONFIG_VALUE_0"] = "1", "core.checkStat", "minimal"
	}
	if l.sshSocket != "" {
		env[sshAuthSock] = l.sshSocket
	}
	for k, v := range spec.Env {
		env[k] = v
	}
	return env
}

// path returns the caller's PATH without directories that are not visible inside. Before shims come the programs that
// they lead to.
func (l *Layout) path() string {
	const plain = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	if l.ownTree {
		return plain
	}
	var dirs []string
	for _, dir := range append(filepath.SplitList(l.env["PATH"]), filepath.SplitList(plain)...) {
		for _, dir := range append(l.behind(dir), dir) {
			if at, ok := l.inside(dir); ok && !slices.Contains(dirs, at) {
				dirs = append(dirs, at)
			}
		}
	}
	return strings.Join(dirs, ":")
}

// inside returns the path in the box of a host directory, if at least a part of it is visible
// there at the same place. Links on the way to it may not be visible in homes, so there the path
// is the real one.
func (l *Layout) inside(path string) (string, bool) {
	if !filepath.IsAbs(path) {
		return "", false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	if _, ok := homeOf(real, l.env["HOME"]); ok {
		path = real
	}
	return path, l.partial[real] || slices.ContainsFunc(l.Config.Mounts, func(m boxinit.Mount) bool {
		return m.Kind == boxinit.MountBind && !m.Layer && m.Source == m.Target && hostroot.Within(real, m.Source)
	})
}

// readable reports whether the box's user could read a host path.
func readable(path string, rootCaller bool) bool {
	st, err := os.Stat(path)
	if err != nil {
		return false
	}
	if rootCaller {
		return st.Mode().Perm()&0o007 != 0
	}
	f, err := os.Open(path)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// A PlannedLayout is a layout in the form that is sent to a keeper, or stored with a saved
// box.
type PlannedLayout struct {
	Config boxinit.Config `json:"config"`
	User   guest.User     `json:"user"`
	KUID   int            `json:"kuid"`
	KGID   int            `json:"kgid"`
	Root   bool           `json:"root"`
	Paths  []string       `json:"paths,omitempty"`
}

// clone returns a copy for one box.
func (l *Layout) clone() *Layout {
	c := *l
	c.Config.Mounts = slices.Clone(l.Config.Mounts)
	if k := l.Config.GuestKernel; k != nil {
		own := *k
		c.Config.GuestKernel = &own
	}
	return &c
}

// Planned returns the parts of the layout that another process needs.
func (l *Layout) Planned() PlannedLayout {
	return PlannedLayout{Config: l.Config, User: l.ID.User, KUID: l.ID.KUID, KGID: l.ID.KGID, Root: l.ID.Root, Paths: l.paths}
}

// Layout undoes Planned.
func (w PlannedLayout) Layout() *Layout {
	return &Layout{Config: w.Config, ID: Identity{User: w.User, KUID: w.KUID, KGID: w.KGID, Root: w.Root}, paths: w.Paths}
}
