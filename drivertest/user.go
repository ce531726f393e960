package drivertest

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func userPromises() []group {
	return []group{{promises: []promise{
		{"commands run as the user that Status names, who has a home", sameUser},
		{"a user who does not exist is refused", unknownUser},
		{"the sandbox's own user may be named", namedUser},
	}}, {can: []paddock.Capability{paddock.CanUsers}, promises: []promise{
		{"a command runs as another user", otherUser},
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
		return // the users are the host's, and the home is not
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
	other := b.stranger(t)
	r := b.run(t, paddock.Cmd{Args: []string{"id", "-un"}, User: other, Dir: "/"})
	if r.out != other+"\n" {
		t.Errorf("%+v", r)
	}
}

// stranger names a user who is not the sandbox's.
func (b box) stranger(t testing.TB) string {
	t.Helper()
	if strings.TrimSpace(b.must(t, "id -un")) == "nobody" {
		return "root"
	}
	return "nobody"
}
