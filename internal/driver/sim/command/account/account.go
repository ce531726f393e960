// Package account knows the users and groups that the computer's own files
// tell of.
package account

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/vfs"
)

// maxFile is how much of such a file is looked at.
const maxFile = 1 << 20

// A User is a line of /etc/passwd.
type User struct {
	Name     string
	UID, GID int
	Info     string
	Home     string
	Shell    string
}

// A Group is a line of /etc/group.
type Group struct {
	Name    string
	GID     int
	Members []string
}

// A Book looks users and groups up. Files are read when they are first asked
// for. Its zero value but for View is ready.
type Book struct {
	View *vfs.View

	users  []User
	groups []Group
	byUID  map[int]string
	byGID  map[int]string
}

// lines gives the fields of each line of a file that has enough of them.
func lines(v *vfs.View, name string, fields int) [][]string {
	b, err := v.ReadFile(name, maxFile)
	if err != nil {
		return nil // then there is nobody
	}
	var all [][]string
	for line := range strings.SplitSeq(string(b), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if f := strings.Split(line, ":"); len(f) >= fields {
			all = append(all, f)
		}
	}
	return all
}

// Users lists all users.
func (b *Book) Users() []User {
	if b.byUID != nil {
		return b.users
	}
	b.byUID = map[int]string{}
	for _, f := range lines(b.View, "/etc/passwd", 7) {
		uid, err1 := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		if err1 != nil || err2 != nil {
			continue
		}
		b.users = append(b.users, User{f[0], uid, gid, f[4], f[5], f[6]})
		if _, ok := b.byUID[uid]; !ok {
			b.byUID[uid] = f[0]
		}
	}
	return b.users
}

// Groups lists all groups.
func (b *Book) Groups() []Group {
	if b.byGID != nil {
		return b.groups
	}
	b.byGID = map[int]string{}
	for _, f := range lines(b.View, "/etc/group", 4) {
		gid, err := strconv.Atoi(f[2])
		if err != nil {
			continue
		}
		g := Group{Name: f[0], GID: gid}
		if f[3] != "" {
			g.Members = strings.Split(f[3], ",")
		}
		b.groups = append(b.groups, g)
		if _, ok := b.byGID[gid]; !ok {
			b.byGID[gid] = f[0]
		}
	}
	return b.groups
}

// UserName gives a user's name, if there is one.
func (b *Book) UserName(uid int) (string, bool) {
	b.Users()
	name, ok := b.byUID[uid]
	return name, ok
}

// GroupName gives a group's name, if there is one.
func (b *Book) GroupName(gid int) (string, bool) {
	b.Groups()
	name, ok := b.byGID[gid]
	return name, ok
}

// UserText is UserName, or the number.
func (b *Book) UserText(uid int) string {
	if name, ok := b.UserName(uid); ok {
		return name
	}
	return strconv.Itoa(uid)
}

// GroupText is GroupName, or the number.
func (b *Book) GroupText(gid int) string {
	if name, ok := b.GroupName(gid); ok {
		return name
	}
	return strconv.Itoa(gid)
}

// User finds a user by name.
func (b *Book) User(name string) (User, bool) {
	for _, u := range b.Users() {
		if u.Name == name {
			return u, true
		}
	}
	return User{}, false
}

// Group finds a group by name.
func (b *Book) Group(name string) (Group, bool) {
	for _, g := range b.Groups() {
		if g.Name == name {
			return g, true
		}
	}
	return Group{}, false
}

// UserID reads a name or a number.
func (b *Book) UserID(s string) (int, bool) {
	if s != "" && s[0] == '+' {
		return number(s[1:])
	}
	if u, ok := b.User(s); ok {
		return u.UID, true
	}
	return number(s)
}

// GroupID reads a name or a number.
func (b *Book) GroupID(s string) (int, bool) {
	if s != "" && s[0] == '+' {
		return number(s[1:])
	}
	if g, ok := b.Group(s); ok {
		return g.GID, true
	}
	return number(s)
}

func number(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == 1<<32-1 {
		return 0, false
	}
	return int(n), true
}
