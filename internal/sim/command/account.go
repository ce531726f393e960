package command

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// maxAccountFile is how many bytes of /etc/passwd or /etc/group are read.
const maxAccountFile = 1 << 20

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

// Accounts looks up users and groups in /etc/passwd and /etc/group. Each file
// is read at its first use. Only View has to be set.
type Accounts struct {
	View *vfs.View

	users  []User
	groups []Group
	byUID  map[int]string
	byGID  map[int]string
}

// colonFields returns the fields of each line of a file that has enough of them.
func colonFields(v *vfs.View, name string, fields int) [][]string {
	b, err := v.ReadFile(name, maxAccountFile)
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
func (b *Accounts) Users() []User {
	if b.byUID != nil {
		return b.users
	}
	b.byUID = map[int]string{}
	for _, f := range colonFields(b.View, "/etc/passwd", 7) {
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
func (b *Accounts) Groups() []Group {
	if b.byGID != nil {
		return b.groups
	}
	b.byGID = map[int]string{}
	for _, f := range colonFields(b.View, "/etc/group", 4) {
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

// UserName returns a user's name, if there is one.
func (b *Accounts) UserName(uid int) (string, bool) {
	b.Users()
	name, ok := b.byUID[uid]
	return name, ok
}

// GroupName returns a group's name, if there is one.
func (b *Accounts) GroupName(gid int) (string, bool) {
	b.Groups()
	name, ok := b.byGID[gid]
	return name, ok
}

// UserText is UserName, or the number.
func (b *Accounts) UserText(uid int) string {
	if name, ok := b.UserName(uid); ok {
		return name
	}
	return strconv.Itoa(uid)
}

// GroupText is GroupName, or the number.
func (b *Accounts) GroupText(gid int) string {
	if name, ok := b.GroupName(gid); ok {
		return name
	}
	return strconv.Itoa(gid)
}

// User finds a user by name.
func (b *Accounts) User(name string) (User, bool) {
	for _, u := range b.Users() {
		if u.Name == name {
			return u, true
		}
	}
	return User{}, false
}

// Group finds a group by name.
func (b *Accounts) Group(name string) (Group, bool) {
	for _, g := range b.Groups() {
		if g.Name == name {
			return g, true
		}
	}
	return Group{}, false
}

// UserID reads a name or a number.
func (b *Accounts) UserID(s string) (int, bool) {
	if s != "" && s[0] == '+' {
		return accountNumber(s[1:])
	}
	if u, ok := b.User(s); ok {
		return u.UID, true
	}
	return accountNumber(s)
}

// GroupID reads a name or a number.
func (b *Accounts) GroupID(s string) (int, bool) {
	if s != "" && s[0] == '+' {
		return accountNumber(s[1:])
	}
	if g, ok := b.Group(s); ok {
		return g.GID, true
	}
	return accountNumber(s)
}

func accountNumber(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == 1<<32-1 {
		return 0, false
	}
	return int(n), true
}
