package drivertest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func userPromises() []group {
	return []group{{promises: []promise{
		{"commands run as the user that Status names, who has a home", sameUser},
		{"a user who does not exist is refused", unknownUser},
		{"the sandbox's own user may be named", namedUser},
	}}, {can: []paddock.Capability{paddock.CanUsers}, promises: []promise{
		{"a command runs as another user", otherUser},
		{"a command of another user is signalled, and ended in time, as any other", otherUserEnds},
		{"a user whom the sandbox does not know is refused, and the next command runs", otherUserUnknown},
	}}, {can: []paddock.Capability{paddock.CanUsers}, limits: []paddock.Control{paddock.ControlKernel}, promises: []promise{
		{"no user has a right over the agent, the kernel or another user's commands, root neither", otherUserRights},
	}}, {can: []paddock.Capability{paddock.CanSudo}, promises: sudoPromises()},
		{can: []paddock.Capability{paddock.CanSudo, paddock.CanMountWrite}, walls: []paddock.Control{paddock.ControlProtected}, promises: []promise{
			{"sudo changes nothing of a mount that its user may not, nor a protected name", sudoMounts},
		}}, {can: []paddock.Capability{paddock.CanSudo, paddock.CanPause}, promises: []promise{
			{"sudo goes on after a pause", sudoResumes},
		}}, {can: []paddock.Capability{paddock.CanSudo, paddock.CanSnapshotMemory, paddock.CanRootSnapshot}, promises: []promise{
			{"memory goes on with sudo only as it began", sudoForks},
		}}}
}

func sameUser(t *testing.T, s *suite) {
	b := s.box(t)
	st, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	got := b.must(t, `id -un; id -u; echo "$USER"; echo "$LOGNAME"`)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if len(lines) != 4 {
		t.Fatalf("%q", got)
	}
	if lines[0] != st.User && lines[1] != st.User {
		t.Errorf("Status says %q, id says %q (%s)", st.User, lines[0], lines[1])
	}
	if lines[2] != lines[0] || lines[3] != lines[0] {
		t.Errorf("USER is %q and LOGNAME %q, id says %q", lines[2], lines[3], lines[0])
	}
	b.must(t, `[ -d "$HOME" ] && [ -O "$HOME" ]`)
	if s.absent(paddock.ControlMountNS) {
		return // the users are the host's, but the home is not
	}
	b.must(t, `IFS=:; while read -r name _ uid _ _ home _; do
	[ "$uid" = "$(id -u)" ] && [ "$home" = "$HOME" ] && exit 0
done < /etc/passwd; exit 1`)
}

func unknownUser(t *testing.T, s *suite) {
	for _, user := range []string{"nobody-of-that-name", "a\x00b", "-1", "99999999999999999999", "a:b"} {
		sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) { spec.User = user }))
		if err == nil {
			s.removeAfter(t, sb)
		}
		wantKind(t, "create as "+user, err, paddock.Invalid, paddock.NotFound)
	}
	b := s.box(t)
	for _, user := range []string{"nobody-of-that-name", "a\x00b", "-1"} {
		_, err := b.try(bounded(t), paddock.Cmd{Args: []string{"id"}, User: user})
		wantKind(t, "start as "+user, err, paddock.Invalid, paddock.NotFound, paddock.Unsupported)
	}
}

func namedUser(t *testing.T, s *suite) {
	b := s.box(t)
	name := strings.TrimSpace(b.must(t, "id -un"))
	r := b.run(t, paddock.Cmd{Args: []string{"id", "-un"}, User: name})
	if r.out != name+"\n" {
		t.Errorf("%+v", r)
	}
}

func otherUser(t *testing.T, s *suite) {
	b := s.own(t)
	for _, other := range b.strangers(t) {
		for what, c := range map[string]struct{ command, want string }{
			"its name":      {"id -un", other},
			"its variables": {`echo "$USER $LOGNAME"`, other + " " + other},
			"its group":     {`[ "$(id -g)" = "$(id -G)" ] && IFS=: && while read -r n _ u g _; do [ "$n" = "$USER" ] && [ "$u $g" = "$(id -u) $(id -g)" ] && echo yes; done < /etc/passwd`, "yes"},
		} {
			r := b.run(t, paddock.Cmd{Args: []string{"sh", "-c", c.command}, User: other, Dir: "/"})
			if r.out != c.want+"\n" {
				t.Errorf("%s, of %s: %+v", what, other, r)
			}
		}
		if r := b.run(t, paddock.Cmd{Args: []string{"id", "-un"}}); r.out == other+"\n" {
			t.Errorf("the next command is one of theirs: %+v", r)
		}
	}
}

// otherUserRights tries operations, as each user, against process 1, which is the agent,
// and against processes of the other users.
func otherUserRights(t *testing.T, s *suite) {
	const tries = `
grep ^Cap /proc/self/status | grep -v '[[:space:]]0000000000000000$'
kill -0 1 2> /dev/null && echo signals the agent
[ "$0" = stranger ] && { readlink /proc/1/fd/[0-9] /proc/1/exe /proc/1/cwd; cat /proc/1/environ /proc/1/maps; } 2> /dev/null | grep -q . && echo looks into the agent
{ echo x > /proc/sys/kernel/hostname; } 2> /dev/null && echo names the kernel
{ mount -t tmpfs none /tmp || unshare -U true; } 2> /dev/null && echo mounts, or has a namespace
for pid; do kill -0 "$pid" 2> /dev/null && echo signals "$pid"; done
echo tried`
	b := s.own(t)
	users := append(b.strangers(t), "")
	var pids []string
	for _, user := range users {
		p := b.start(t, paddock.Cmd{Args: []string{"sleep", "1000"}, User: user, Dir: "/"})
		defer kill(t, p)
		pids = append(pids, strconv.Itoa(int(p.ID())))
	}
	for i, user := range users {
		theirs := slices.Delete(slices.Clone(pids), i, i+1)
		who := "stranger"
		if user == "" {
			who = "own"
		}
		r := b.run(t, paddock.Cmd{Args: append([]string{"sh", "-c", tries, who}, theirs...), User: user, Dir: "/"})
		if r.out != "tried\n" {
			t.Errorf("%q: %+v", user, r)
		}
	}
}

// strangers returns users other than the sandbox's.
func (b box) strangers(t testing.TB) []string {
	t.Helper()
	own := strings.TrimSpace(b.must(t, "id -un"))
	return slices.DeleteFunc([]string{"root", "nobody"}, func(name string) bool { return name == own })
}

func otherUserEnds(t *testing.T, s *suite) {
	b := s.own(t)
	for _, other := range b.strangers(t) {
		otherEnds(t, b, other)
	}
}

func otherEnds(t *testing.T, b box, other string) {
	t.Helper()
	cmd := paddock.Cmd{Args: []string{"sh", "-c", "sleep 1000 & echo up; wait"}, User: other, Dir: "/"}
	for what, end := range map[string]struct {
		timeout time.Duration
		by      func(p paddock.Process)
		cause   paddock.Cause
	}{
		"a signal":  {0, func(p paddock.Process) { kill(t, p) }, paddock.Signaled},
		"a timeout": {2 * time.Second, func(paddock.Process) {}, paddock.TimedOut},
	} {
		var out syncBuffer
		cmd.Timeout, cmd.Output = end.timeout, paddock.Output{Stdout: &out}
		p := b.start(t, cmd)
		if end.timeout == 0 {
			until(t, "it is up", func() bool { return out.String() == "up\n" })
		}
		end.by(p)
		if exit := wait(t, p); exit.Cause != end.cause {
			t.Errorf("%s: %+v", what, exit)
		}
	}
	until(t, "nothing of it is left", func() bool {
		return !strings.Contains(b.must(t, "ps -e -o args 2> /dev/null || cat /proc/[0-9]*/cmdline | tr '\\0' ' '"), "sleep 1000")
	})
}

func otherUserUnknown(t *testing.T, s *suite) {
	b := s.own(t)
	for _, user := range []string{"nobody-of-that-name", "1073741824", "4294967295"} {
		_, err := b.try(bounded(t), paddock.Cmd{Args: []string{"id"}, User: user})
		wantKind(t, "start as "+user, err, paddock.Invalid, paddock.NotFound, paddock.Unsupported)
	}
	b.must(t, "true")
}

// stranger returns a user other than the sandbox's.
func (b box) stranger(t testing.TB) string {
	t.Helper()
	if strings.TrimSpace(b.must(t, "id -un")) == "nobody" {
		return "root"
	}
	return "nobody"
}
