//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// writeOutside is A01.
func writeOutside() []probe {
	at := func(dir func(*protocol.Brief) string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			return plant(dir(b)+"/"+b.Marker+"-a01"+strings.ReplaceAll(strings.TrimPrefix(dir(b), b.Home), "/", "_"), unix.O_CREAT|unix.O_EXCL)
		}
	}
	ps := []probe{
		{"home", at(func(b *protocol.Brief) string { return b.Home })},
		{"place", at(func(b *protocol.Brief) string { return b.Place })},
		{"parent of workspace through ..", at(func(b *protocol.Brief) string { return b.Work + "/../" })},
	}
	for _, d := range []string{"/", "/etc", "/etc/cron.d", "/usr/bin", "/usr/lib", "/usr/local/bin", "/var/tmp", "/var/lib", "/run", "/opt", "/root", "/boot", "/srv", "/home", "/lib", "/sbin"} {
		ps = append(ps, probe{d, at(func(*protocol.Brief) string { return d })})
	}
	return append(ps, probe{"overwrite /usr/bin/env", func(*protocol.Brief) protocol.Try {
		// Open for writing and close again, which changes nothing.
		fd, err := unix.Open("/usr/bin/env", unix.O_WRONLY, 0)
		if err == nil {
			unix.Close(fd)
		}
		if err != nil {
			return refused(err)
		}
		return inside("a system program is writable")
	}})
}

// writeHome is A02.
func writeHome() []probe {
	var ps []probe
	for _, name := range []string{".bashrc", ".profile", ".gitconfig", ".ssh/authorized_keys", ".config/autostart/x.desktop", ".local/bin/tool"} {
		ps = append(ps, probe{"append " + name, func(b *protocol.Brief) protocol.Try {
			return plant(filepath.Join(b.Home, name), unix.O_APPEND|unix.O_CREAT)
		}})
	}
	for _, w := range ways() {
		switch w.name {
		case "rename", "link", "symlink", "truncate", "unlink", "renameat2 EXCHANGE", "reopen /proc/self/fd", "mmap shared", "hard link and write", "metadata: utimensat", "chmod":
			ps = append(ps, probe{w.name + " .bashrc", func(b *protocol.Brief) protocol.Try {
				p := filepath.Join(b.Home, ".bashrc")
				if w.name == "link" || w.name == "symlink" {
					p = filepath.Join(b.Home, b.Marker+"-link")
				}
				return stays(changed(b, w, p))
			}})
		}
	}
	return ps
}

// stays turns a success into one for the host to judge, because a private home is
// permitted.
func stays(t protocol.Try) protocol.Try {
	if t.Outcome == protocol.Reached {
		t.Outcome = protocol.Inside
	}
	return t
}

// writeThroughLink is A03. The links exist before the sandbox.
func writeThroughLink() []probe {
	in := func(name string, flags int) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			return plant(b.Work+"/"+strings.ReplaceAll(name, "MARK", b.Marker), flags)
		}
	}
	return []probe{
		{"absolute link to a file", in("link-bashrc", unix.O_APPEND)},
		{"truncate through it", in("link-bashrc", unix.O_TRUNC)},
		{"relative link upwards", in("link-up", unix.O_APPEND)},
		{"link to the home", in("link-home/MARK-a03", unix.O_CREAT)},
		{"link to /etc", in("link-etc/MARK-a03", unix.O_CREAT)},
		{"link to the root", in("link-root/var/tmp/MARK-a03", unix.O_CREAT)},
		{"mkdir through a link", func(b *protocol.Brief) protocol.Try {
			if err := unix.Mkdir(b.Work+"/link-home/"+b.Marker+"-a03d", 0o755); err != nil {
				return refused(err)
			}
			return inside("made a directory")
		}},
		{"rename through a link", func(b *protocol.Brief) protocol.Try {
			s, err := scratch(b)
			if err != nil {
				return refused(err)
			}
			if err := unix.Rename(s, b.Work+"/link-home/"+b.Marker+"-a03r"); err != nil {
				return refused(err)
			}
			return inside("moved a file out of the workspace")
		}},
		{"hard link through a link", func(b *protocol.Brief) protocol.Try {
			if err := unix.Link(b.Work+"/link-home/.bashrc", b.Work+"/pulled"); err != nil {
				return refused(err)
			}
			return plant(b.Work+"/pulled", unix.O_APPEND)
		}},
		{"dangling link", in("link-dangling", unix.O_CREAT)},
	}
}

// plantLinks is A04: traps for tools of the host.
func plantLinks() []probe {
	return []probe{{"plant", func(b *protocol.Brief) protocol.Try {
		links := map[string]string{
			"report.txt": b.Home + "/.bashrc",
			"result.key": b.Secret,
			"outdir":     b.Home,
			"up":         "../../../../../../../../.." + b.Home,
			"etc":        "/etc",
		}
		for name, to := range links {
			if err := unix.Symlink(to, b.Work+"/"+name); err != nil {
				return refused(err)
			}
		}
		if err := unix.Mkdir(b.Work+"/tidy", 0o755); err != nil {
			return refused(err)
		}
		if err := unix.Symlink(b.Home, b.Work+"/tidy/deep"); err != nil {
			return refused(err)
		}
		return inside("planted links")
	}}}
}

// writeDenied is A06: a file and a directory with a write denial.
func writeDenied() []probe {
	ps := everyWay(func(b *protocol.Brief) string { return b.DenyWrite })
	for _, w := range ways() {
		if w.once() && !w.foreign() {
			continue
		}
		ps = append(ps,
			probe{"in directory: " + w.name, func(b *protocol.Brief) protocol.Try { return changed(b, w, b.DenyWriteDir+"/file.txt") }},
			probe{"new in directory: " + w.name, func(b *protocol.Brief) protocol.Try { return changed(b, w, b.DenyWriteDir+"/new.txt") }})
	}
	return append(ps,
		probe{"directory: rename", func(b *protocol.Brief) protocol.Try {
			err := unix.Rename(b.DenyWriteDir, b.Work+"/unlocked")
			if err == nil {
				_ = unix.Rename(b.Work+"/unlocked", b.DenyWriteDir)
			}
			return done(err, "renamed the directory")
		}},
		probe{"directory: chmod", func(b *protocol.Brief) protocol.Try {
			return done(unix.Chmod(b.DenyWriteDir, 0o700), "changed its mode")
		}},
		probe{"directory: exchange", func(b *protocol.Brief) protocol.Try {
			d := b.Work + "/other-dir"
			if err := unix.Mkdir(d, 0o755); err != nil {
				return refused(err)
			}
			return done(unix.Renameat2(unix.AT_FDCWD, d, unix.AT_FDCWD, b.DenyWriteDir, unix.RENAME_EXCHANGE), "exchanged the directory")
		}},
	)
}

// renameAncestor is A07: it moves a directory above a protected path.
func renameAncestor() []probe {
	aside := func(dir, again, file string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			from, to := b.Work+"/"+dir, b.Work+"/"+dir+"-aside"
			before := state(b.Work + "/" + file)
			moved := unix.Rename(from, to)
			_ = os.MkdirAll(b.Work+"/"+again, 0o755)
			err := os.WriteFile(b.Work+"/"+file, []byte(payload), 0o755)
			after := state(b.Work + "/" + file)
			if moved == nil {
				// Move it back, for the next technique and for the host, which detects
				// lasting changes.
				_ = os.RemoveAll(from)
				if err := unix.Rename(to, from); err != nil {
					if strings.Contains(file, "locked") {
						return reached("moved %s aside, and it cannot come back: %v", dir, err)
					}
					return inside("moved %s aside with what it holds; %s could not be made anew", dir, file)
				}
			}
			if after != before && (err == nil || strings.Contains(file, "locked")) {
				return reached("moved %s aside: %s is not what it was", dir, file)
			}
			if moved == nil {
				return inside("moved %s aside; %s could not be made anew", dir, file)
			}
			return refused(moved)
		}
	}
	return []probe{
		{"parent of a denied directory", aside("tree/inner", "tree/inner/locked", "tree/inner/locked/file.txt")},
		{"grandparent of a denied directory", aside("tree", "tree/inner/locked", "tree/inner/locked/file.txt")},
		{".git", aside(".git", ".git/hooks", ".git/hooks/pre-commit")},
		{".git/hooks", aside(".git/hooks", ".git/hooks", ".git/hooks/pre-commit")},
		{"nested repository", aside("nested", "nested/.git/hooks", "nested/.git/hooks/pre-commit")},
		{"nested .git", aside("nested/.git", "nested/.git/hooks", "nested/.git/hooks/pre-commit")},
		{"the workspace itself", func(b *protocol.Brief) protocol.Try {
			err := unix.Rename(b.Work, b.Work+"-aside")
			if err != nil {
				return refused(err)
			}
			_ = unix.Rename(b.Work+"-aside", b.Work)
			return reached("renamed the workspace")
		}},
		{"write into the moved repository", func(b *protocol.Brief) protocol.Try {
			if err := unix.Rename(b.Work+"/nested", b.Work+"/moved"); err != nil {
				return refused(err)
			}
			t := throughAll(b, b.Work+"/moved/.git/hooks/pre-commit")
			if err := unix.Rename(b.Work+"/moved", b.Work+"/nested"); err != nil {
				return inside("a repository can be moved: %v", err)
			}
			if t.Outcome == protocol.Denied {
				return inside("a repository can be moved; its hooks stay protected: %s", t.Detail)
			}
			return t
		}},
		{"exchange an ancestor", func(b *protocol.Brief) protocol.Try {
			d := b.Work + "/sham"
			if err := os.MkdirAll(d+"/hooks", 0o755); err != nil {
				return refused(err)
			}
			if err := os.WriteFile(d+"/hooks/pre-commit", []byte(payload), 0o755); err != nil {
				return refused(err)
			}
			return done(unix.Renameat2(unix.AT_FDCWD, d, unix.AT_FDCWD, b.Work+"/.git", unix.RENAME_EXCHANGE), "exchanged .git")
		}},
	}
}

// readDenied is the plain part of A08, for A05 and A22.
func readDenied() []probe {
	return []probe{
		{"direct", func(b *protocol.Brief) protocol.Try { return readName(b.DenyReadDir + "/secret.txt") }},
		{"file", func(b *protocol.Brief) protocol.Try { return readName(b.DenyReadFile) }},
		{"list", func(b *protocol.Brief) protocol.Try { return listDir(b.DenyReadDir) }},
	}
}

func listDir(dir string) protocol.Try {
	ents, err := os.ReadDir(dir)
	if err != nil {
		return refused(err)
	}
	if len(ents) == 0 {
		return inside("the directory is empty")
	}
	return protocol.Try{Outcome: protocol.Reached, Detail: fmt.Sprintf("listed %d names", len(ents)), Loot: fmt.Sprint(names(dir))}
}

// readLate is A10: the host makes the file after the sandbox.
func readLate() []probe {
	return []probe{
		{"direct", func(b *protocol.Brief) protocol.Try { return readName(b.DenyReadLate) }},
		{"hard link", func(b *protocol.Brief) protocol.Try {
			if err := unix.Link(b.DenyReadLate, b.Work+"/late-link"); err != nil {
				return refused(err)
			}
			return readName(b.Work + "/late-link")
		}},
		{"/proc/self/root", func(b *protocol.Brief) protocol.Try { return readName("/proc/self/root" + b.DenyReadLate) }},
		{"rename", func(b *protocol.Brief) protocol.Try {
			if err := unix.Rename(b.DenyReadLate, b.Work+"/late-moved"); err != nil {
				return refused(err)
			}
			return readName(b.Work + "/late-moved")
		}},
	}
}

// writeHardlink is A11: a file with one name inside and one outside.
func writeHardlink() []probe {
	return []probe{{"append", func(b *protocol.Brief) protocol.Try {
		t := plant(b.Hard, unix.O_APPEND)
		if t.Outcome == protocol.Inside {
			t.Outcome = protocol.Reached
			t.Detail = "wrote a file outside by its name inside"
		}
		return t
	}}}
}

// sharedMemoryDir is A12.
func sharedMemoryDir() []probe {
	return []probe{
		{"write", func(b *protocol.Brief) protocol.Try {
			return plant("/dev/shm/"+b.Marker+"-a12", unix.O_CREAT|unix.O_EXCL)
		}},
		{"read the host's", func(b *protocol.Brief) protocol.Try { return readName("/dev/shm/" + b.Marker + "-canary") }},
	}
}

// temporaryDir is A13.
func temporaryDir() []probe {
	var ps []probe
	for _, d := range []string{"/tmp", "/var/tmp"} {
		ps = append(ps,
			probe{"write " + d, func(b *protocol.Brief) protocol.Try {
				return plant(d+"/"+b.Marker+"-a13", unix.O_CREAT|unix.O_EXCL)
			}},
			probe{"read the host's " + d, func(b *protocol.Brief) protocol.Try { return readName(d + "/" + b.Marker + "-canary") }})
	}
	return ps
}

// plantSpecial is A16: special files with names of reports.
func plantSpecial() []probe {
	return []probe{{"plant", func(b *protocol.Brief) protocol.Try {
		for _, n := range []string{"fifo.txt", "fifo-out.txt"} {
			if err := unix.Mkfifo(b.Work+"/"+n, 0o644); err != nil {
				return refused(err)
			}
		}
		for name, to := range map[string]string{"endless.txt": "/dev/zero", "tty.txt": "/dev/tty", "loop.txt": "loop.txt", "fd.txt": "/proc/self/fd/0"} {
			if err := unix.Symlink(to, b.Work+"/"+name); err != nil {
				return refused(err)
			}
		}
		if err := bindSocket(b, b.Work+"/socket.txt"); err != nil {
			return inside("planted all but the socket: %v", err)
		}
		return inside("planted")
	}}}
}
