package guest

import (
	"maps"
	"strconv"
	"strings"
	"testing"
)

func TestNamesOfUsersAreRead(t *testing.T) {
	for text, want := range map[string]map[uint32]string{
		"":                                 {},
		"root:x:0:0:root:/root:/bin/sh\n":  {0: "root"},
		"root:x:0\nalias:x:0\nuser:x:1000": {0: "root", 1000: "user"},
		"short:x\n:x:1\nno number:x:a\nneg:x:-1\nbig:x:4294967296\n": {},
		"max:x:4294967295:\n":                   {4294967295: "max"},
		"esc\x1b[2J:x:5:\nbad\xff:x:6\n#no:x:7": {},
		"ünï:x:8:":                              {8: "ünï"},
		strings.Repeat("n", 257) + ":x:9":       {},
	} {
		if got := parseNames([]byte(text)); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if got := parseNames([]byte(strings.Repeat("u:x:1\n", 10) + manyNames(maxNames+10))); len(got) != maxNames {
		t.Errorf("%d names", len(got))
	}
}

func TestAUserIsFoundAsItStands(t *testing.T) {
	const text = "root:x:0:0:root:/root:/bin/sh\nshort:x:7\nneg:x:-1:1::/:\nbig:x:2147483648:1::/:\nextra:x:3:3::/:::\n" +
		"esc\x1b:x:4:4::/:\nnul:x:5:5::/a\x00b:\nuser:x:1000:100:A User,,,:/home/user:/bin/bash\nuser:x:1001:101::/other:\nalias:x:1000:1::/:"
	for name, want := range map[string]User{
		"root": {"root", 0, 0, "/root", "/bin/sh"}, "0": {"root", 0, 0, "/root", "/bin/sh"},
		"user": {"user", 1000, 100, "/home/user", "/bin/bash"}, "1000": {"user", 1000, 100, "/home/user", "/bin/bash"},
		"alias": {"alias", 1000, 1, "/", ""}, "1001": {"user", 1001, 101, "/other", ""},
		"short": {}, "7": {}, "neg": {}, "-1": {}, "big": {}, "extra": {}, "esc\x1b": {}, "nul": {}, "": {}, "A User,,,": {}, "01000": {},
	} {
		got, ok := parseUser([]byte(text), name)
		if got != want || ok != (want != User{}) {
			t.Errorf("%q: %+v, %v, want %+v", name, got, ok, want)
		}
	}
}

// Whatever the file holds, a user is one of its lines, with numbers that are some.
func FuzzUser(f *testing.F) {
	f.Add("root:x:0:0:root:/root:/bin/sh\nuser:x:1:2::/:\n", "user")
	f.Add("a:x:1:2:::", "1")
	f.Fuzz(func(t *testing.T, text, name string) {
		u, ok := parseUser([]byte(text), name)
		switch {
		case !ok && u != User{}:
			t.Errorf("nobody is %+v", u)
		case ok && (u.UID < 0 || u.GID < 0 || u.Name == "" || strings.ContainsRune(u.Home, 0) || !strings.Contains(text, u.Name+":")):
			t.Errorf("%+v of %q", u, text)
		case ok && u.Name != name && !strings.Contains(text, ":"+name+":"):
			t.Errorf("%q is %+v", name, u)
		}
	})
}

func manyNames(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("user:x:")
		b.WriteString(strconv.Itoa(i + 2))
		b.WriteString(":\n")
	}
	return b.String()
}

func FuzzNames(f *testing.F) {
	f.Add([]byte("root:x:0:0:root:/root:/bin/sh\nuser:x:1000:\n"))
	f.Add([]byte(":::::\n\x00:\xff:4294967296"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for id, name := range parseNames(data) {
			if !presentable([]byte(name)) || strings.ContainsAny(name, ":\n") {
				t.Errorf("%d has the name %q", id, name)
			}
		}
	})
}

func FuzzGuestName(f *testing.F) {
	for _, s := range []string{"/", "//a/./b/", "/a/..", "rel", "", "/a\x00", "/.", "/..", "/a/.", "/\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := checkName("test", []byte(s))
		if err != nil {
			return
		}
		once := tidy(name)
		if once[0] != '/' || strings.Contains(once, "//") || tidy(once) != once || len(once) > len(name) {
			t.Errorf("%q is tidied to %q", name, once)
		}
		for _, part := range components(once) {
			if part == "" || part == "." {
				t.Errorf("%q has the component %q", once, part)
			}
		}
	})
}
