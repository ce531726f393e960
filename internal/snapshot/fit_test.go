package snapshot

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func jailFit() *Fit {
	return &Fit{
		From: &Owner{1000, 1000, "/home/user"}, To: Owner{1001, 1002, "/srv/jane"}, OneOwner: true, Sockets: true,
		Places: []string{"srv/jane", "tmp", "var/tmp"}, Own: func(p string) bool { return p == "etc/hostname" },
		Attributes: func(key string) bool { return strings.HasPrefix(key, "user.") }, Most: 1 << 20,
	}
}

func TestWhatATierCannotHaveIsNamed(t *testing.T) {
	for _, row := range []struct {
		e    Entry
		says string // empty is no error
		kind error  // nil is Unsupported
	}{
		{e: Entry{Path: "home/user/a", Kind: File, UID: 1000}},
		{e: Entry{Path: "home/user", Kind: Dir, UID: 0}},
		{e: Entry{Path: "tmp/s", Kind: Socket, UID: 1000}},
		{e: Entry{Path: "tmp/removed", Kind: Gone}},
		{e: Entry{Path: "etc", Kind: Dir, UID: 0}}, // its attributes alone
		{e: Entry{Path: "etc/hostname", Kind: File}},
		{e: Entry{Path: "tmp/x", Kind: File, UID: 1000, Attributes: map[string]string{"user.x": "y"}}},
		{e: Entry{Path: "tmp/x", Kind: File, UID: 1000, Attributes: map[string]string{"trusted.x": "y"}}, says: "trusted.x"},
		{e: Entry{Path: "etc/passwd", Kind: File}, says: `"/etc/passwd" (in the system`},
		{e: Entry{Path: "usr/bin/true", Kind: Gone}, says: `"/usr/bin/true" (removed from the system`},
		{e: Entry{Path: "usr/lib", Kind: Dir, Opaque: true}, says: "/usr/lib"},
		{e: Entry{Path: "tmpx/a", Kind: File, UID: 1000}, says: "/tmpx/a"},
		{e: Entry{Path: "tmp", Kind: Link, Target: "/", UID: 1000}, says: "no directory"},
		{e: Entry{Path: "tmp/null", Kind: Char, Device: 1<<32 | 3, UID: 1000}, says: "a device"},
		{e: Entry{Path: "tmp/other", Kind: File, UID: 7}, says: "user 7"},
		{e: Entry{Path: "tmp/large", Kind: File, UID: 1000, Size: 2 << 20}, says: "/tmp/large", kind: paddock.Exhausted},
		{e: Entry{Path: "tmp/" + strings.Repeat("n", 255) + "\x1b[2J\xff", Kind: File, UID: 7}, says: `\xff`},
	} {
		err := jailFit().Check(seq(row.e))
		kind := row.kind
		if kind == nil {
			kind = paddock.Unsupported
		}
		if row.says == "" && err != nil || row.says != "" && (!errors.Is(err, kind) || row.says != `\xff` && !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%q: %v", row.e.Path, err)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\x1b\n") {
			t.Errorf("the error has bytes of the name: %q", err)
		}
	}
	var many []Entry
	for i := range 25 {
		many = append(many, Entry{Path: fmt.Sprintf("etc/%02d", i), Kind: File})
	}
	err := jailFit().Check(seq(many...))
	if err == nil || !strings.Contains(err.Error(), "25 of its files") || !strings.Contains(err.Error(), "and 15 more") {
		t.Errorf("%v", err)
	}
}

func TestFilesBecomeThoseOfTheNewUser(t *testing.T) {
	var got []string
	for e, err := range jailFit().Adopt(seq(
		Entry{Path: "etc", Kind: Dir}, Entry{Path: "etc/hostname", Kind: File}, Entry{Path: "home/user", Kind: Dir},
		Entry{Path: "home/user/a", Kind: File, UID: 1000, GID: 1000}, Entry{Path: "home/userx", Kind: Dir}, Entry{Path: "tmp/b", Kind: File})) {
		must(t, err)
		got = append(got, fmt.Sprintf("%s %d:%d", e.Path, e.UID, e.GID))
	}
	if want := []string{"srv/jane 1001:1002", "srv/jane/a 1001:1002", "tmp/b 1001:1002"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	wide := &Fit{From: &Owner{1000, 1000, "/home/user"}, To: Owner{5, 6, "/home/user"}}
	for e, err := range wide.Adopt(seq(Entry{Path: "a", Kind: File, UID: 1000, GID: 0}, Entry{Path: "b", Kind: File, UID: 9, GID: 1000})) {
		must(t, err)
		if want := map[string][2]uint32{"a": {5, 0}, "b": {9, 6}}[e.Path]; e.UID != want[0] || e.GID != want[1] {
			t.Errorf("%s belongs to %d:%d", e.Path, e.UID, e.GID)
		}
	}
}

func TestAttributesAreKept(t *testing.T) {
	s, _ := open(t)
	want := map[string]string{"user.note": "a\x00b\xff", "system.posix_acl_access": "\x02\x00\x00\x00"}
	id := NewID()
	must(t, s.Write(t.Context(), Meta{ID: id, Owner: &Owner{1, 2, "/h"}}, seq(
		Entry{Path: "a", Kind: Dir, Attributes: want}, Entry{Path: "a/f", Kind: File, Size: 3, Attributes: want, Data: func(yield func(Extent, error) bool) { yield(Extent{0, []byte("abc")}, nil) }})))
	x, err := s.Read(id)
	must(t, err)
	defer x.Close()
	if o := x.Meta.Owner; o == nil || *o != (Owner{1, 2, "/h"}) {
		t.Errorf("owner %+v", o)
	}
	for e, err := range x.Entries() {
		must(t, err)
		if fmt.Sprint(e.Attributes) != fmt.Sprint(want) {
			t.Errorf("%s has %q", e.Path, e.Attributes)
		}
	}
	for key, value := range map[string]string{"": "v", "a=b": "v", "user.large": strings.Repeat("x", maxAttribute)} {
		if err := s.Write(t.Context(), Meta{ID: NewID()}, seq(Entry{Path: "a", Kind: File, Attributes: map[string]string{key: value}})); !errors.Is(err, paddock.Invalid) {
			t.Errorf("attribute %q: %v", key, err)
		}
	}
}
