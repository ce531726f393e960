package process

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var whoamiSpec = &command.Spec{Name: "whoami", Synopsis: "[OPTION]...", About: "Print the user name associated with the current effective user ID. Same as id -un."}

func runWhoami(t *kernel.Task) int {
	a, status, ok := whoamiSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) > 0 {
		return whoamiSpec.Usage(t, "extra operand %s", command.Quote(a.Operands[0]))
	}
	name, ok := (&command.Accounts{View: &t.View}).UserName(t.View.UID)
	if !ok {
		t.Errorf("cannot find name for user ID %d", t.View.UID)
		return 1
	}
	say(t, name)
	return 0
}

var idSpec = &command.Spec{
	Name: "id", Synopsis: "[OPTION]... [USER]...", About: "Print user and group information for each specified USER, or (when USER omitted) for the current user.",
	Options: []command.Option{
		{Short: 'a', Help: "ignore, for compatibility with other versions"},
		{Short: 'Z', Long: "context", Help: "print only the security context of the process"},
		{Short: 'g', Long: "group", Help: "print only the effective group ID"},
		{Short: 'G', Long: "groups", Help: "print all group IDs"},
		{Short: 'n', Long: "name", Help: "print a name instead of a number, for -ugG"},
		{Short: 'r', Long: "real", Help: "print the real ID instead of the effective ID, with -ugG"},
		{Short: 'u', Long: "user", Help: "print only the effective user ID"},
		{Short: 'z', Long: "zero", Help: "delimit entries with NUL characters, not whitespace"},
	},
}

// A person is who is asked about.
type person struct {
	uid, gid int
	groups   []int
}

// groupsOf lists a user's groups, the first one first.
func groupsOf(b *command.Accounts, name string, gid int) []int {
	list := []int{gid}
	for _, g := range b.Groups() {
		if slices.Contains(g.Members, name) && !slices.Contains(list, g.GID) {
			list = append(list, g.GID)
		}
	}
	return list
}

func self(t *kernel.Task) person {
	p := person{t.View.UID, t.View.GID, []int{t.View.GID}}
	for _, g := range t.View.Groups {
		if !slices.Contains(p.groups, g) {
			p.groups = append(p.groups, g)
		}
	}
	return p
}

func find(b *command.Accounts, name string) (person, bool) {
	u, ok := b.User(name)
	if !ok {
		uid, isNumber := b.UserID(name)
		if !isNumber {
			return person{}, false
		}
		i := slices.IndexFunc(b.Users(), func(u command.User) bool { return u.UID == uid })
		if i < 0 {
			return person{}, false
		}
		u = b.Users()[i]
	}
	return person{u.UID, u.GID, groupsOf(b, u.Name, u.GID)}, true
}

func runID(t *kernel.Task) int {
	a, status, ok := idSpec.Parse(t)
	if !ok {
		return status
	}
	only := 0
	for _, k := range []string{"u", "g", "G"} {
		if a.Has(k) {
			only++
		}
	}
	named, zero := a.Has("n"), a.Has("z")
	switch {
	case a.Has("Z"):
		t.Errorf("--context (-Z) works only on an SELinux-enabled kernel")
		return 1
	case only > 1:
		t.Errorf("cannot print \"only\" of more than one choice")
		return 1
	case only == 0 && (named || a.Has("r")):
		t.Errorf("cannot print only names or real IDs in default format")
		return 1
	case only == 0 && zero:
		t.Errorf("option --zero not permitted in default format")
		return 1
	}
	b := &command.Accounts{View: &t.View}
	people := []person{self(t)}
	if len(a.Operands) > 0 {
		people = people[:0]
		for _, name := range a.Operands {
			p, ok := find(b, name)
			if !ok {
				t.Errorf("%s: no such user", command.Quote(name))
				status = 1
				continue
			}
			people = append(people, p)
		}
	}
	end, between := "\n", " "
	if zero {
		end, between = "\x00", "\x00"
	}
	w := t.Out()
	user := func(uid int) string {
		if named {
			if s, ok := b.UserName(uid); ok {
				return s
			}
			t.Errorf("cannot find name for user ID %d", uid)
			status = 1
		}
		return itoa(uid)
	}
	group := func(gid int) string {
		if named {
			if s, ok := b.GroupName(gid); ok {
				return s
			}
			t.Errorf("cannot find name for group ID %d", gid)
			status = 1
		}
		return itoa(gid)
	}
	for _, p := range people {
		switch {
		case a.Has("u"):
			_, _ = w.WriteString(user(p.uid) + end)
		case a.Has("g"):
			_, _ = w.WriteString(group(p.gid) + end)
		case a.Has("G"):
			var list []string
			for _, g := range p.groups {
				list = append(list, group(g))
			}
			_, _ = w.WriteString(strings.Join(list, between) + end)
			if zero && len(a.Operands) > 1 {
				_, _ = w.WriteString(end)
			}
		default:
			_, _ = w.WriteString(full(b, p) + "\n")
		}
	}
	return status
}

func full(b *command.Accounts, p person) string {
	with := func(n int, name string, ok bool) string {
		if ok {
			return itoa(n) + "(" + name + ")"
		}
		return itoa(n)
	}
	u, uok := b.UserName(p.uid)
	g, gok := b.GroupName(p.gid)
	s := "uid=" + with(p.uid, u, uok) + " gid=" + with(p.gid, g, gok) + " groups="
	for i, n := range p.groups {
		if i > 0 {
			s += ","
		}
		name, ok := b.GroupName(n)
		s += with(n, name, ok)
	}
	return s
}

var groupsSpec = &command.Spec{Name: "groups", Synopsis: "[OPTION]... [USERNAME]...", About: "Print group memberships for each USERNAME or, if no USERNAME is specified, for the current process."}

func runGroups(t *kernel.Task) int {
	a, status, ok := groupsSpec.Parse(t)
	if !ok {
		return status
	}
	b := &command.Accounts{View: &t.View}
	line := func(p person) string {
		var names []string
		for _, g := range p.groups {
			name, ok := b.GroupName(g)
			if !ok {
				t.Errorf("cannot find name for group ID %d", g)
				status = 1
				name = itoa(g)
			}
			names = append(names, name)
		}
		return strings.Join(names, " ")
	}
	if len(a.Operands) == 0 {
		say(t, line(self(t)))
		return status
	}
	for _, name := range a.Operands {
		p, ok := find(b, name)
		if !ok {
			t.Errorf("%s: no such user", command.Quote(name))
			status = 1
			continue
		}
		say(t, name, " : ", line(p))
	}
	return status
}

var lognameSpec = &command.Spec{Name: "logname", Synopsis: "[OPTION]", About: "Print the user's login name."}

func runLogname(t *kernel.Task) int {
	a, status, ok := lognameSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) > 0 {
		return lognameSpec.Usage(t, "extra operand %s", command.Quote(a.Operands[0]))
	}
	t.Errorf("no login name")
	return 1
}

// runUsers is users and who: nobody ever logged in.
func runUsers(t *kernel.Task) int {
	s := &command.Spec{
		Name: t.Name(), Synopsis: "[OPTION]... [FILE]", About: "Print who is currently logged in.",
		Options: []command.Option{
			{Short: 'a', Long: "all", Help: "everything"}, {Short: 'b', Long: "boot", Help: "time of last system boot"}, {Short: 'd', Long: "dead", Help: "dead processes"},
			{Short: 'H', Long: "heading", Help: "print line of column headings"}, {Short: 'l', Long: "login", Help: "login processes"},
			{Short: 'm', Help: "only hostname and user associated with stdin"}, {Short: 'q', Long: "count", Help: "all login names and number of users logged on"},
			{Short: 'r', Long: "runlevel", Help: "current runlevel"}, {Short: 's', Long: "short", Help: "name, line and time"}, {Short: 'u', Long: "users", Help: "list users logged in"},
		},
	}
	if t.Name() == "users" {
		s.Options = nil
	}
	a, status, ok := s.Parse(t)
	if !ok {
		return status
	}
	if a.Has("H") && !a.Has("q") {
		say(t, "NAME     LINE         TIME             COMMENT")
	}
	if a.Has("q") {
		say(t, "# users=0")
	}
	return 0
}

var wSpec = &command.Spec{
	Name: "w", Synopsis: "[options]", About: "Show who is logged on and what they are doing.",
	Options: []command.Option{{Short: 'h', Long: "no-header", Help: "do not print header"}, {Short: 's', Long: "short", Help: "short format"}, {Short: 'f', Long: "from", Help: "show remote hostname field"}},
}

func runW(t *kernel.Task) int {
	a, status, ok := wSpec.Parse(t)
	if !ok {
		return status
	}
	if !a.Has("h") {
		say(t, uptimeLine(t, time.Now()))
		say(t, "USER     TTY      FROM             LOGIN@   IDLE   JCPU   PCPU WHAT")
	}
	return 0
}

var getentSpec = &command.Spec{
	Name: "getent", Synopsis: "[OPTION...] database [key ...]", About: "Get entries from administrative database.",
	Options: []command.Option{{Short: 's', Long: "service", Arg: command.Required, Name: "CONFIG", Help: "(ignored)"}, {Short: 'i', Long: "no-idn", Help: "(ignored)"}},
}

func runGetent(t *kernel.Task) int {
	a, status, ok := getentSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		t.Errorf("wrong number of arguments")
		_, _ = t.Write(2, []byte("Try `getent --help' or `getent --usage' for more information.\n"))
		return 1
	}
	keys := a.Operands[1:]
	b := &command.Accounts{View: &t.View}
	var lines []string // by the key that each belongs to
	var names [][]string
	switch a.Operands[0] {
	case "passwd":
		for _, u := range b.Users() {
			lines = append(lines, strings.Join([]string{u.Name, "x", itoa(u.UID), itoa(u.GID), u.Info, u.Home, u.Shell}, ":"))
			names = append(names, []string{u.Name, itoa(u.UID)})
		}
	case "group":
		for _, g := range b.Groups() {
			lines = append(lines, strings.Join([]string{g.Name, "x", itoa(g.GID), strings.Join(g.Members, ",")}, ":"))
			names = append(names, []string{g.Name, itoa(g.GID)})
		}
	case "hosts", "ahosts", "ahostsv4", "ahostsv6":
		lines, names = hosts(t)
	case "services", "protocols", "networks", "shadow", "gshadow", "aliases", "ethers", "rpc", "netgroup", "initgroups":
	default:
		_, _ = t.Write(2, []byte("Unknown database: "+a.Operands[0]+"\nTry `getent --help' or `getent --usage' for more information.\n"))
		return 1
	}
	if len(keys) == 0 {
		for _, l := range lines {
			say(t, l)
		}
		return 0
	}
	for _, k := range keys {
		i := slices.IndexFunc(names, func(n []string) bool { return slices.Contains(n, k) })
		if i < 0 {
			status = 2
			continue
		}
		say(t, lines[i])
	}
	return status
}

func hosts(t *kernel.Task) (lines []string, names [][]string) {
	text, err := t.View.ReadFile("/etc/hosts", 1<<20)
	if err != nil {
		return nil, nil
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		lines = append(lines, f[0]+strings.Repeat(" ", max(1, 16-len(f[0])))+strings.Join(f[1:], " "))
		names = append(names, f)
	}
	return lines, names
}

// atoi reads a number that has no sign.
func atoi(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil
}
