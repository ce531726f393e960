package file

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

func chownSpec(name, synopsis, about string) *command.Spec {
	return &command.Spec{
		Name: name, Synopsis: synopsis, About: about,
		Options: []command.Option{
			{Short: 'c', Long: "changes", Help: "like verbose but report only when a change is made"},
			{Short: 'f', Long: "silent", Help: "suppress most error messages"},
			{Long: "quiet", Help: "same as -f"},
			{Short: 'v', Long: "verbose", Help: "output a diagnostic for every file processed"},
			{Long: "dereference", Help: "affect the referent of each symbolic link (the default)"},
			{Short: 'h', Long: "no-dereference", Help: "affect symbolic links instead of any referenced file"},
			{Long: "from", Arg: command.Required, Name: "CURRENT_OWNER:CURRENT_GROUP", Help: "change only if the current owner and group match"},
			{Long: "no-preserve-root", Help: "do not treat '/' specially (the default)"},
			{Long: "preserve-root", Help: "fail to operate recursively on '/'"},
			{Long: "reference", Arg: command.Required, Name: "RFILE", Help: "use RFILE's owner and group"},
			{Short: 'R', Long: "recursive", Help: "operate on files and directories recursively"},
			{Short: 'H', Help: "if a command line argument is a symbolic link to a directory, traverse it"},
			{Short: 'L', Help: "traverse every symbolic link to a directory encountered"},
			{Short: 'P', Help: "do not traverse any symbolic links (default)"},
		},
	}
}

type chowner struct {
	t                       *kernel.Task
	book                    *command.Accounts
	group                   bool // it is chgrp
	uid, gid                int  // -1 stays
	fromUID, fromGID        int
	follow                  bool // links at which the walk stands
	quiet, verbose, changes bool
	status                  int
}

func runChown(t *kernel.Task) int {
	return changeOwner(t, chownSpec("chown", "[OPTION]... [OWNER][:[GROUP]] FILE...\n  or:  chown [OPTION]... --reference=RFILE FILE...",
		"Change the owner and/or group of each FILE to OWNER and/or GROUP."), false)
}

func runChgrp(t *kernel.Task) int {
	return changeOwner(t, chownSpec("chgrp", "[OPTION]... GROUP FILE...\n  or:  chgrp [OPTION]... --reference=RFILE FILE...",
		"Change the group of each FILE to GROUP."), true)
}

func changeOwner(t *kernel.Task, s *command.Spec, group bool) int {
	a, status, ok := s.Parse(t)
	if !ok {
		return status
	}
	c := &chowner{
		t: t, book: &command.Accounts{View: &t.View}, group: group, uid: -1, gid: -1, fromUID: -1, fromGID: -1, follow: true,
		quiet: a.Has("f") || a.Has("quiet"), verbose: a.Has("v"), changes: a.Has("c"),
	}
	o := command.WalkOptions{Bounded: !a.Has("R")}
	said := false
	for _, f := range a.Flags {
		switch f.Key {
		case "h":
			c.follow, said = false, true
		case "dereference":
			c.follow, said = true, true
		case "H":
			o.Follow = command.FollowRoots
		case "L":
			o.Follow = command.FollowAll
		case "P":
			o.Follow = command.FollowNever
		}
	}
	if a.Has("R") && o.Follow == command.FollowNever {
		if said && c.follow {
			t.Errorf("-R --dereference requires either -H or -L")
			return 1
		}
		c.follow = false
	}
	files := a.Operands
	ref, byRef := a.Value("reference")
	least := 2
	if byRef {
		least = 1
	}
	if len(files) < least {
		if len(files) == 0 {
			return s.Usage(t, "missing operand")
		}
		return s.Usage(t, "missing operand after %s", command.Quote(files[len(files)-1]))
	}
	if from, given := a.Value("from"); given {
		if c.fromUID, c.fromGID, ok = c.parse(from); !ok {
			return 1
		}
	}
	if byRef {
		i, err := t.View.Stat(ref)
		if err != nil {
			t.Errorf("failed to get attributes of %s: %s", command.QuoteAlways(ref), reason(err))
			return 1
		}
		c.uid, c.gid = i.UID, i.GID
		if group {
			c.uid = -1
		}
	} else {
		who := files[0]
		files = files[1:]
		if group {
			if who != "" {
				gid, ok := c.book.GroupID(who)
				if !ok {
					t.Errorf("invalid group: %s", command.Quote(who))
					return 1
				}
				c.gid = gid
			}
		} else if c.uid, c.gid, ok = c.parse(who); !ok {
			return 1
		}
	}
	for _, f := range files {
		if a.Has("R") && a.Has("preserve-root") && isRoot(t, f) {
			rootRefused(t, f)
			c.status = 1
			continue
		}
		command.Walk(t, f, o, c.visit)
	}
	return c.status
}

// parse reads "owner:group".
func (c *chowner) parse(s string) (uid, gid int, ok bool) {
	uid, gid = -1, -1
	owner, group, both := strings.Cut(s, ":")
	if !both {
		if _, found := c.book.UserID(owner); !found && strings.Contains(owner, ".") {
			owner, group, both = strings.Cut(s, ".")
		}
	}
	if owner != "" {
		if uid, ok = c.book.UserID(owner); !ok {
			c.t.Errorf("invalid user: %s", command.Quote(s))
			return -1, -1, false
		}
	}
	switch {
	case !both:
	case group != "":
		if gid, ok = c.book.GroupID(group); !ok {
			c.t.Errorf("invalid group: %s", command.Quote(s))
			return -1, -1, false
		}
	case owner != "":
		found := false
		for _, u := range c.book.Users() {
			if u.UID == uid {
				gid, found = u.GID, true
				break
			}
		}
		if !found {
			c.t.Errorf("invalid spec: %s", command.Quote(s))
			return -1, -1, false
		}
	}
	return uid, gid, true
}

func (c *chowner) fail(format string, args ...any) {
	c.status = 1
	if !c.quiet {
		c.t.Errorf(format, args...)
	}
}

func (c *chowner) visit(e *command.WalkEntry) command.WalkOrder {
	switch e.What {
	case command.VisitLost:
		c.fail("cannot access %s: %s", command.QuoteAlways(e.Path), reason(e.Err))
		return command.WalkNext
	case command.VisitFailed:
		c.fail("cannot read directory %s: %s", command.QuoteAlways(e.Path), reason(e.Err))
		return command.WalkNext
	case command.VisitBefore, command.VisitAfter, command.VisitLoop:
	}
	i := e.Info
	if i.IsLink() && c.follow {
		var err error
		if i, err = e.In.Stat(e.Name); err != nil {
			c.fail("cannot dereference %s: %s", command.QuoteAlways(e.Path), reason(err))
			return command.WalkNext
		}
	}
	if c.fromUID >= 0 && c.fromUID != i.UID || c.fromGID >= 0 && c.fromGID != i.GID {
		return command.WalkNext
	}
	what := "ownership"
	if c.group {
		what = "group"
	}
	if err := e.In.Chown(e.Name, c.uid, c.gid, c.follow || e.Link); err != nil {
		if c.uid < 0 {
			what = "group"
		}
		c.fail("changing %s of %s: %s", what, command.QuoteAlways(e.Path), reason(err))
		return command.WalkNext
	}
	c.tell(e.Path, i)
	return command.WalkNext
}

func (c *chowner) tell(path string, old vfs.Info) {
	changed := c.uid >= 0 && c.uid != old.UID || c.gid >= 0 && c.gid != old.GID
	if !c.verbose && (!c.changes || !changed) {
		return
	}
	what := "ownership"
	now := func(uid, gid int) string {
		u, g := c.book.UserText(uid), c.book.GroupText(gid)
		switch {
		case c.uid >= 0 && c.gid >= 0:
			return u + ":" + g
		case c.uid >= 0:
			return u
		}
		return g
	}
	if c.uid < 0 {
		what = "group"
	}
	uid, gid := c.uid, c.gid
	if uid < 0 {
		uid = old.UID
	}
	if gid < 0 {
		gid = old.GID
	}
	text := what + " of " + command.QuoteAlways(path) + " retained as " + now(uid, gid)
	if changed {
		text = "changed " + what + " of " + command.QuoteAlways(path) + " from " + now(old.UID, old.GID) + " to " + now(uid, gid)
	}
	say(c.t, text)
}
