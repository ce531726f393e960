package boxinit

import (
	"strings"
	"testing"
)

func TestReportsOfChangesAreReadAsTheyWereWritten(t *testing.T) {
	for _, c := range []Change{
		{Kind: ChangeContent, Tree: 3, Path: "a/b"},
		{Kind: ChangeMode},
		{Kind: ChangeSettled},
		{Kind: ChangeRemoved, Path: strings.Repeat("x/", 2047) + "x"},
		{Kind: ChangeMade, Tree: 0xffff, Path: "\xff\n"},
		{Kind: ChangeFailed, Path: "a"},
		{Kind: ChangeLinked, Path: "a", To: "b"},
		{Kind: ChangeMoved, Tree: 1, Path: "a", ToTree: 2, To: "b/c"},
		{Kind: ChangeExchanged, Path: "a", To: "\x01"},
	} {
		got, err := ParseChange(c.Append(nil))
		if err != nil || got != c {
			t.Errorf("%+v is read as %+v, %v", c, got, err)
		}
	}
}

func TestForgedReportsOfChangesAreRefused(t *testing.T) {
	for what, packet := range map[string]string{
		"nothing":             "",
		"no path":             "\x01\x00",
		"kind 0":              "\x00\x00\x00a",
		"an unknown kind":     "\x0a\x00\x00a",
		"the parent":          "\x01\x00\x00../a",
		"the parent within":   "\x01\x00\x00a/../../b",
		"an absolute path":    "\x01\x00\x00/etc",
		"an empty name":       "\x01\x00\x00a//b",
		"the directory":       "\x01\x00\x00a/.",
		"a slash at the end":  "\x01\x00\x00a/",
		"a second path":       "\x01\x00\x00a\x00\x00\x00b",
		"no second path":      "\x08\x00\x00a",
		"half a second path":  "\x08\x00\x00a\x00\x00",
		"three paths":         "\x08\x00\x00a\x00\x00\x00b\x00\x00\x00c",
		"a second one up":     "\x08\x00\x00a\x00\x00\x00..",
		"a long name":         "\x01\x00\x00" + strings.Repeat("x", 256),
		"a long path":         "\x01\x00\x00" + strings.Repeat("x/", 2048) + "xx",
		"more than a report":  "\x08\x00\x00" + strings.Repeat("x/", 2047) + "x\x00\x00\x00" + strings.Repeat("x/", 2060),
		"a number of 1 byte":  "\x08\x00\x00a\x00\x00",
		"an empty first part": "\x05\x00\x00/",
	} {
		if c, err := ParseChange([]byte(packet)); err == nil {
			t.Errorf("%s is read as %+v", what, c)
		}
	}
}

func FuzzChange(f *testing.F) {
	for _, c := range []Change{{Kind: ChangeContent, Path: "a/b"}, {Kind: ChangeMoved, Path: "a", ToTree: 2, To: "b/c"}, {Kind: ChangeMade}} {
		f.Add(c.Append(nil))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseChange(data)
		if err != nil {
			return
		}
		if got := c.Append(nil); string(got) != string(data) {
			t.Errorf("%q is read as %+v, which is %q", data, c, got)
		}
		for _, p := range []string{c.Path, c.To} {
			if strings.HasPrefix(p, "/") || strings.Contains("/"+p+"/", "/../") {
				t.Errorf("%q has the path %q", data, p)
			}
		}
	})
}
