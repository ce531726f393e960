package box

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
)

// An Identity is the user of commands, inside and for the host's kernel.
type Identity struct {
	User guest.User
	KUID int  // the host's user for inside.UID
	KGID int  // the host's group for inside.GID
	Root bool // the caller is root: KUID belongs to no account
}

// A range of numbers without accounts on the host. systemd reserves it for containers (524288 to
// 1879048191).
const (
	firstKernelID = 0x60000000
	kernelIDs     = 1 << 27 // gateways have those above
)

// identify chooses the identity for a spec. Commands of a root caller get a number that no
// account has. It is drawn at random, so that nobody can choose a sandbox whose number is
// that of another one: they would share what the kernel counts for each user. Commands of
// other callers can only have the caller's number.
func identify(spec *paddock.Spec, env environ) (Identity, error) {
	id := Identity{KUID: os.Geteuid(), KGID: os.Getegid(), Root: os.Geteuid() == 0}
	if id.Root {
		var random [4]byte
		_, _ = rand.Read(random[:]) // never fails
		id.KUID = firstKernelID + int(binary.BigEndian.Uint32(random[:])%kernelIDs)
		id.KGID = id.KUID
	}
	u, err := insideUser(spec, id, env["HOME"])
	id.User = u
	return id, err
}

func insideUser(spec *paddock.Spec, id Identity, home string) (guest.User, error) {
	base, err := treeOf(spec.Root)
	if err != nil {
		return guest.User{}, err
	}
	defer base.close()
	switch {
	case spec.User == "" && id.Root:
		return guest.User{Name: "user", UID: 1000, GID: 1000, Home: "/home/user", Shell: "/bin/sh"}, nil
	case spec.User == "":
		own, ok := lookup(tree{base: "/"}, func(l guest.User) bool { return l.UID == id.KUID })
		if !ok {
			own = guest.User{Name: "user", UID: id.KUID, GID: id.KGID, Home: "/home/" + strconv.Itoa(id.KUID), Shell: "/bin/sh"}
			if u, err := user.Current(); err == nil && u.Username != "" { // of an account that is not in the file
				own.Name = u.Username
			}
		}
		if filepath.IsAbs(home) && filepath.Clean(home) != "/" {
			own.Home = filepath.Clean(home)
		}
		return sane(own), nil
	}
	if n, err := strconv.Atoi(spec.User); err == nil {
		if n < 0 || n > 65533 && n != id.KUID {
			return guest.User{}, fmt.Errorf("user %s: a number is 0 to 65533: %w", spec.User, paddock.Invalid)
		}
		if u, ok := lookup(base, func(l guest.User) bool { return l.UID == n }); ok {
			return sane(u), nil
		}
		return guest.User{Name: "user" + spec.User, UID: n, GID: n, Home: "/home/user" + spec.User, Shell: "/bin/sh"}, nil
	}
	if strings.ContainsAny(spec.User, ":/\n\x00 ") {
		return guest.User{}, fmt.Errorf("user %.64q: not a name: %w", spec.User, paddock.Invalid)
	}
	if u, ok := lookup(base, func(l guest.User) bool { return l.Name == spec.User }); ok {
		return sane(u), nil
	}
	if spec.User == "root" && spec.Root.Kind == paddock.RootImage { // an image of one program has no list of users
		return guest.User{Name: "root", Home: "/root", Shell: "/bin/sh"}, nil
	}
	if spec.User == "user" {
		return guest.User{Name: "user", UID: 1000, GID: 1000, Home: "/home/user", Shell: "/bin/sh"}, nil
	}
	return guest.User{}, fmt.Errorf("there is no user %.64q in the root's /etc/passwd; a number needs no line there: %w", spec.User, paddock.Invalid)
}

// plainName reports whether an account's name can be the name of a directory.
func plainName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// sane replaces a passwd line's home and shell if they are invalid.
func sane(u guest.User) guest.User {
	u.Home = filepath.Clean(u.Home)
	switch {
	case !filepath.IsAbs(u.Home), u.Home == "/", u.Home == "/nonexistent", isSystemDir(u.Home):
		u.Home = "/home/" + u.Name
	}
	if !filepath.IsAbs(u.Shell) || strings.HasSuffix(u.Shell, "/nologin") || strings.HasSuffix(u.Shell, "/false") {
		u.Shell = "/bin/sh"
	}
	return u
}

// isSystemDir reports whether a private home there would hide the system.
func isSystemDir(path string) bool {
	for _, dir := range append(hostroot.SystemDirs(), "/dev", "/proc", "/sys") {
		if hostroot.Within(path, dir) {
			return true
		}
	}
	return path == "/run" || path == "/tmp" || path == "/var" || path == "/var/tmp"
}

// lookup finds a line of a tree's /etc/passwd. It is the host's own tree, one that the caller
// named, or an image's; guests write none of them.
func lookup(t tree, match func(guest.User) bool) (guest.User, bool) {
	f, err := t.passwd()
	if err != nil {
		return guest.User{}, false
	}
	defer func() { _ = f.Close() }() // it is only read
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() || st.Size() > 16<<20 {
		return guest.User{}, false
	}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		p := strings.Split(lines.Text(), ":")
		if len(p) != 7 {
			continue
		}
		uid, err1 := strconv.Atoi(p[2])
		gid, err2 := strconv.Atoi(p[3])
		if err1 != nil || err2 != nil || uid < 0 || gid < 0 || !plainName(p[0]) {
			continue
		}
		if u := (guest.User{Name: p[0], UID: uid, GID: gid, Home: p[5], Shell: p[6]}); match(u) {
			return u, true
		}
	}
	return guest.User{}, false
}

// passwd opens a tree's /etc/passwd.
func (t tree) passwd() (fs.File, error) {
	if t.image != nil {
		at, there := t.find("/etc/passwd")
		if !there {
			return nil, fs.ErrNotExist
		}
		return t.open(at)
	}
	root, err := os.OpenRoot(t.base)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile("etc/passwd", os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not wait if it is a FIFO
}

// accounts returns the box's /etc/passwd and /etc/group: the system's accounts and the
// box's user, without other users.
func accounts(u guest.User) (passwd, group string) {
	var p, g strings.Builder
	fmt.Fprintf(&p, "%s:x:%d:%d::%s:%s\n", u.Name, u.UID, u.GID, u.Home, u.Shell)
	system := func(id string) bool {
		n, err := strconv.Atoi(id)
		return err == nil && (n < 1000 || n == 65534)
	}
	copyLines("/etc/passwd", func(line string, f []string) {
		if len(f) == 7 && system(f[2]) && f[0] != u.Name && f[2] != strconv.Itoa(u.UID) {
			p.WriteString(line + "\n")
		}
	})
	fmt.Fprintf(&g, "%s:x:%d:\n", u.Name, u.GID)
	copyLines("/etc/group", func(_ string, f []string) {
		if len(f) == 4 && system(f[2]) && f[0] != u.Name && f[2] != strconv.Itoa(u.GID) {
			g.WriteString(f[0] + ":x:" + f[2] + ":\n")
		}
	})
	return p.String(), g.String()
}

func copyLines(name string, each func(line string, fields []string)) {
	f, err := os.Open(name)
	if err != nil {
		return // a system without accounts
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		each(lines.Text(), strings.Split(lines.Text(), ":"))
	}
}
