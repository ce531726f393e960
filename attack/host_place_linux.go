package attack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/protocol"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// cacheName is the directory of a driver's cache, beside its state.
const cacheName = "cache"

// A placing is one way to put the host's files into a sandbox, and where the attacker finds
// them.
type placing struct {
	name   string
	root   paddock.RootKind
	mounts []paddock.Mount
	brief  func(b *protocol.Brief) // adds to the attacker's brief

	// Create may refuse it, because it names something that no sandbox may have, or, for a
	// root caller with an open root, something that the sandbox's user cannot reach.
	mayRefuse bool
}

// placed tries the case for each placing. It leaves out the caller's rules, because they
// name other paths.
func (x *trial) placed(places []placing) []protocol.Try {
	var tries []protocol.Try
	for _, p := range places {
		sb, err := x.box(func(s *paddock.Spec) {
			s.Root.Kind, s.Mounts, s.Policy.Files = p.root, p.mounts, paddock.FilePolicy{}
		})
		unsupported := errors.Is(err, paddock.Unsupported) && (x.h.Tier == paddock.Sim || x.h.ownKernel() && p.root == paddock.RootOpen)
		if err != nil && (p.mayRefuse || unsupported) {
			tries = append(tries, refused(p.name+"create", err))
			continue
		}
		if err != nil {
			tries = append(tries, broken(p.name+"create", err))
			continue
		}
		told := x.w.brief
		p.brief(&x.w.brief)
		tries = append(tries, x.attackIn(sb, p.name)...)
		x.w.brief = told
	}
	return tries
}

// at returns where the attacker finds what is mounted at target. Without a sandbox nothing
// is mounted, so it is the source.
func (x *trial) at(target, source string) string {
	if x.h.Unconfined {
		return source
	}
	return target
}

// plantShared is C10: a directory beside the workspace has a socket.
func plantShared(w *world) error {
	w.brief.Canary.InWork = w.brief.Home + "/shared/host.sock"
	return os.Mkdir(w.brief.Home+"/shared", 0o755)
}

// mountMoved is C10: the workspace and a read-only mount lie below directories of the
// sandbox itself.
func mountMoved(x *trial) []protocol.Try {
	b := x.w.brief
	bin := paddock.Mount{Source: b.Place + "/bin"}
	form := func(name, work, shared string) placing {
		return placing{name: name, mounts: []paddock.Mount{{Source: b.Work, Target: work, Write: true}, bin, {Source: b.Home + "/shared", Target: shared}},
			brief: func(b *protocol.Brief) {
				b.Target, b.Canary.InWork = x.at(work, b.Work), x.at(shared, b.Home+"/shared")+"/host.sock"
			}}
	}
	return x.placed([]placing{
		form("home: ", b.Work, b.Home+"/shared"),
		form("/tmp: ", "/tmp/a/ws", "/tmp/a/b/shared"),
		form("/tmp, at once: ", "/tmp/ws", "/tmp/shared"),
		form("/run: ", "/run/a/b/c/ws", "/run/a/b/shared"),
	})
}

// plantOwn is A24: files in the cache and the state that must not change.
func plantOwn(w *world) error {
	dir := filepath.Dir(w.brief.Home)
	own := []string{filepath.Join(dir, cacheName, "guest-planted"), w.brief.State + "/PLANTED/about.json", dir + "/program/paddock"}
	w.brief.Own = own
	var errs []error
	for _, name := range own {
		errs = append(errs, os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("#!/bin/sh\necho of the next sandbox\n"), 0o755))
	}
	return errors.Join(errs...)
}

// ownBelowMount is A24. The program is the running one. Without a sandbox it is a copy,
// because it is spoiled.
func ownBelowMount(x *trial) []protocol.Try {
	b := x.w.brief
	place, dir := b.Place, filepath.Dir(b.Home)
	own := []string{b.Own[0], b.Own[1], place + "/bin/attack.test"}
	if x.h.Unconfined {
		own[2] = b.Own[2]
	}
	before, err := x.states(own)
	if err != nil {
		return []protocol.Try{broken("prepare", err)}
	}
	here := func(b *protocol.Brief) { b.Own = own }
	write := func(source string) paddock.Mount { return paddock.Mount{Source: source, Write: true} }
	tries := x.placed([]placing{
		{name: "itself: ", mounts: []paddock.Mount{write(b.Work), write(filepath.Dir(own[0])), write(b.State), write(place + "/bin")}, brief: here, mayRefuse: true},
		{name: "parent: ", mounts: []paddock.Mount{write(dir), write(place + "/bin")}, brief: here},
		{name: "above: ", mounts: []paddock.Mount{write(place)}, brief: here},
		{name: "elsewhere: ", mounts: []paddock.Mount{{Source: place, Target: "/srv/box", Write: true}, {Source: place + "/bin"}}, brief: func(b *protocol.Brief) {
			if x.h.Unconfined {
				b.Own = own
				return
			}
			b.Work = "/srv/box" + strings.TrimPrefix(b.Work, place)
			b.Own = nil
			for _, o := range own {
				b.Own = append(b.Own, "/srv/box"+strings.TrimPrefix(o, place))
			}
		}},
		{name: "open root: ", root: paddock.RootOpen, mounts: []paddock.Mount{write("/"), write(place)}, brief: here},
	})
	after, err := x.states(own)
	if err != nil {
		x.extra = append(x.extra, err.Error())
	}
	x.extra = append(x.extra, compare(before, after)...)
	return tries
}

// states returns the states of files, and of the neighbours of those in the cache and the
// state.
func (x *trial) states(own []string) (map[string]string, error) {
	out := map[string]string{}
	for _, dir := range []string{filepath.Dir(own[0]), filepath.Dir(own[1])} {
		m, err := x.w.walk(dir, "")
		if err != nil {
			return nil, err
		}
		for p, s := range m {
			out[p] = s
		}
	}
	info, err := os.Lstat(own[2])
	if err != nil {
		return nil, err
	}
	out[own[2]] = fileState(own[2], info)
	return out, nil
}

// gitMount is C11: a linked worktree, whose repository is elsewhere.
func gitMount(x *trial) []protocol.Try {
	b := x.w.brief
	bin, git := paddock.Mount{Source: b.Place + "/bin"}, b.Work+"/.git"
	form := func(name, to, scratch string, mounts ...paddock.Mount) placing {
		return placing{name: name, mounts: append(mounts, bin), brief: func(b *protocol.Brief) {
			b.Target = x.at(to, git)
			b.Work = x.at(scratch, b.Work)
		}}
	}
	return x.placed([]placing{
		form("git directory: ", git, git, paddock.Mount{Source: git, Write: true}),
		form("linked worktree: ", git, git, paddock.Mount{Source: b.Work + "/wt", Write: true}, paddock.Mount{Source: git, Write: true}),
		form("elsewhere: ", "/srv/repository", "/srv/repository", paddock.Mount{Source: git, Target: "/srv/repository", Write: true}),
		form("nested: ", "/ws/.git", "/ws/.git", paddock.Mount{Source: b.Work, Target: "/ws", Write: true}, paddock.Mount{Source: git, Target: "/ws/.git", Write: true}),
		form("nested, from the workspace: ", "/ws/.git", "/ws", paddock.Mount{Source: b.Work, Target: "/ws", Write: true}, paddock.Mount{Source: git, Target: "/ws/.git", Write: true}),
	})
}

// plantSource is A25: links that an earlier sandbox may have left.
func plantSource(w *world) error {
	work, ssh := w.brief.Work, w.brief.Home+"/.ssh"
	return errors.Join(
		os.Symlink(ssh, work+"/source"), os.Symlink(w.brief.Home, work+"/through"), os.Symlink("source", work+"/chain"),
		os.Mkdir(work+"/swapped", 0o755), os.Symlink(ssh, work+"/swapped-link"))
}

// linkedSource is A25.
func linkedSource(x *trial) []protocol.Try {
	work := x.w.brief.Work
	var tries []protocol.Try
	try := func(name, source, to string) {
		sb, err := x.box(func(s *paddock.Spec) {
			s.Mounts = append(s.Mounts, paddock.Mount{Source: source, Target: to, Write: true})
		})
		if err != nil {
			tries = append(tries, refused(name+"create", err))
			return
		}
		told := x.w.brief
		x.w.brief.Target = source
		if to != "" {
			x.w.brief.Target = x.at(to, source)
		}
		tries = append(tries, x.attackIn(sb, name)...)
		x.w.brief = told
	}
	for _, f := range []struct{ name, source string }{
		{"a link: ", work + "/source"}, {"through a link: ", work + "/through/.ssh"}, {"a chain of links: ", work + "/chain"},
		{"a link, with a dot: ", work + "/source/."},
	} {
		try(f.name, f.source, "")
		try(f.name+"elsewhere: ", f.source, "/srv/source")
	}
	return append(tries, x.swappedSource(work, try)...)
}

// swappedSource exchanges a source with a link while Create looks at it.
func (x *trial) swappedSource(work string, try func(name, source, to string)) []protocol.Try {
	dir, err := os.Open(work)
	if err != nil {
		return []protocol.Try{broken("open", err)}
	}
	defer dir.Close()
	fd := int(dir.Fd())
	const exchange = 2
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = sys.Renameat2(fd, "swapped", fd, "swapped-link", exchange)
			}
		}
	}()
	for i := range 8 {
		try(fmt.Sprintf("swapped, round %d: ", i+1), work+"/swapped", "/srv/source")
	}
	close(stop)
	<-done
	return nil
}

// plantSetID is A26: one program for each way to change it.
func plantSetID(w *world) error {
	w.brief.Prepared = w.brief.Work + "/prepared"
	errs := []error{os.Mkdir(w.brief.Prepared, 0o755)}
	for n := range 200 {
		p := filepath.Join(w.brief.Prepared, strconv.Itoa(n))
		errs = append(errs, os.WriteFile(p, []byte("#!/bin/sh\necho a set-id program, long enough\n"), 0o755), os.Chmod(p, 0o755|os.ModeSetuid))
	}
	return errors.Join(errs...)
}

// plantToolchain is P31: a directory of PATH has a socket.
func plantToolchain(w *world) error {
	w.brief.Canary.InWork = w.brief.Home + "/.pyenv/shims/host.sock" // of a tool chain, only what its programs need is shown
	return os.MkdirAll(w.brief.Home+"/.pyenv/shims", 0o755)
}

// shownSocket is P31.
func shownSocket(x *trial) []protocol.Try {
	b := x.w.brief
	socket := b.Canary.InWork
	work, bin := paddock.Mount{Source: b.Work, Write: true}, paddock.Mount{Source: b.Place + "/bin"}
	shown := func(p string) func(*protocol.Brief) {
		return func(b *protocol.Brief) { b.Target = p }
	}
	tries := x.placed([]placing{
		{name: "open root: ", root: paddock.RootOpen, mounts: []paddock.Mount{work, bin}, brief: shown(socket), mayRefuse: x.caller == "root"},
		{name: "read-only mount: ", mounts: []paddock.Mount{work, bin, {Source: filepath.Dir(socket)}}, brief: shown(socket)},
		{name: "read-only mount elsewhere: ", mounts: []paddock.Mount{work, bin, {Source: filepath.Dir(socket), Target: "/srv/shown"}}, brief: shown(x.at("/srv/shown/host.sock", socket))},
		{name: "read-only mount in the workspace: ", mounts: []paddock.Mount{work, bin, {Source: filepath.Dir(socket), Target: b.Work + "/mnt"}}, brief: shown(x.at(b.Work+"/mnt/host.sock", socket))},
		{name: "writable mount: ", mounts: []paddock.Mount{work, bin, {Source: filepath.Dir(socket), Write: true}}, brief: shown(socket)},
	})
	// A driver whose caller has this PATH.
	x.t.Setenv("PATH", filepath.Dir(socket)+":"+os.Getenv("PATH"))
	first, d := x.driver, x.h.New(x.t, b.State+"-path")
	x.driver = d
	tries = append(tries, x.placed([]placing{{name: "toolchain: ", mounts: []paddock.Mount{work, bin}, brief: shown(socket)}})...)
	x.driver = first
	if err := d.Close(); err != nil {
		tries = append(tries, broken("toolchain: close", err))
	}
	return append(tries, protocol.Try{Name: "system directory: connect", Outcome: protocol.Absent,
		Detail: "the harness puts nothing into the host's system directories; a toolchain directory is shown in the same way"})
}

// hostNetwork is P32.
func hostNetwork(_ *world, s *paddock.Spec) { s.Policy.Network.Mode = paddock.NetworkHost }
