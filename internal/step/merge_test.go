package step

import (
	"bytes"
	"strings"
	"testing"
)

func TestTextIsMergedWhereBothDidNotChangeTheSameLines(t *testing.T) {
	const base = "1\n2\n3\n4\n5\n6\n7\n8\n"
	for _, c := range []struct {
		name, ours, theirs, want string
		clean                    bool
	}{
		{"apart", "one\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\n5\n6\n7\neight\n", "one\n2\n3\n4\n5\n6\n7\neight\n", true},
		{"the same", "1\n2\nthree\n4\n5\n6\n7\n8\n", "1\n2\nthree\n4\n5\n6\n7\n8\n", "1\n2\nthree\n4\n5\n6\n7\n8\n", true},
		{"the same, and more", "1\n2\nthree\n4\n5\n6\n7\n8\n", "1\n2\nthree\n4\n5\n6\nseven\n8\n", "1\n2\nthree\n4\n5\n6\nseven\n8\n", true},
		{"the same line", "1\n2\nthree\n4\n5\n6\n7\n8\n", "1\n2\nTHREE\n4\n5\n6\n7\n8\n", "", false},
		{"beside each other", "1\n2\nthree\n4\n5\n6\n7\n8\n", "1\n2\n3\nfour\n5\n6\n7\n8\n", "", false},
		{"both at one place", "1\n2\na\n3\n4\n5\n6\n7\n8\n", "1\n2\nb\n3\n4\n5\n6\n7\n8\n", "", false},
		{"removed and added", "3\n4\n5\n6\n7\n8\n", base + "9\n", "3\n4\n5\n6\n7\n8\n9\n", true},
		{"no line break at the end", "one\n2\n3\n4\n5\n6\n7\n8\n", strings.TrimSuffix(base, "\n"), "one\n2\n3\n4\n5\n6\n7\n8", true},
		{"removed and changed", "", "1\n2\n3\nfour\n5\n6\n7\n8\n", "", false},
	} {
		got, clean := merge([]byte(base), []byte(c.ours), []byte(c.theirs))
		if clean != c.clean || string(got) != c.want {
			t.Errorf("%s: %q, %t", c.name, got, clean)
		}
		got, clean = merge([]byte(base), []byte(c.theirs), []byte(c.ours))
		if clean != c.clean || string(got) != c.want {
			t.Errorf("%s, the other way round: %q, %t", c.name, got, clean)
		}
	}
}

func TestHunksAreChosenEachByItself(t *testing.T) {
	base, now := []byte("1\n2\n3\n4\n5\n"), []byte("one\n2\n3\nfour\n5\n6\n")
	list := hunks(base, now)
	if len(list) != 3 || list[1].Text != "@@ -2,4 +2,4 @@\n 2\n 3\n-4\n+four\n 5\n" {
		t.Fatalf("%d: %+v", len(list), list)
	}
	if got := string(choose(base, []Hunk{list[0], list[2]})); got != "one\n2\n3\n4\n5\n6\n" {
		t.Errorf("%q", got)
	}
}

// Whatever the texts are, a merge with what did not change is the other text, and all hunks together are the new text.
func FuzzMerge(f *testing.F) {
	f.Add([]byte("1\n2\n3\n"), []byte("1\nx\n3\n"), []byte("1\n2\n3\n4"))
	f.Add([]byte(""), []byte("a"), []byte("\n"))
	f.Add([]byte("a\nb"), []byte("a"), []byte("a\nb\nc"))
	f.Fuzz(func(t *testing.T, base, a, b []byte) {
		for _, c := range []struct{ base, ours, theirs, want []byte }{{base, base, a, a}, {base, a, base, a}, {base, a, a, a}} {
			if got, clean := merge(c.base, c.ours, c.theirs); !clean || !bytes.Equal(got, c.want) {
				t.Fatalf("merge(%q, %q, %q) is %q, %t", c.base, c.ours, c.theirs, got, clean)
			}
		}
		one, clean := merge(base, a, b)
		if other, too := merge(base, b, a); clean != too || !bytes.Equal(one, other) {
			t.Fatalf("merge(%q, %q, %q) is %q, %t, and the other way round %q, %t", base, a, b, one, clean, other, too)
		}
		list := hunks(base, a)
		if got := choose(base, list); !bytes.Equal(got, a) {
			t.Fatalf("all hunks from %q to %q make %q", base, a, got)
		}
		if got := choose(base, nil); !bytes.Equal(got, base) {
			t.Fatalf("no hunk of %q makes %q", base, got)
		}
		// What was chosen before is in the next offer no more, and the rest of it leads to the same end.
		if len(list) > 1 {
			part := choose(base, list[:1])
			if rest, clean := merge(base, part, a); !clean || !bytes.Equal(rest, a) {
				t.Fatalf("after the first hunk from %q to %q the rest makes %q, %t", base, a, rest, clean)
			}
		}
	})
}

// Whatever the attributes of a file are, only those that Paddock knows have a meaning.
func FuzzLaid(f *testing.F) {
	f.Add("user.overlay.opaque", "y")
	f.Add("user.overlay.opaque", "x")
	f.Add("user.overlay.redirect", "/etc")
	f.Add("user.overlay.metacopy", "")
	f.Add("user.overlay.overlay.opaque", "y")
	f.Add("user.other", "y")
	f.Fuzz(func(t *testing.T, key, value string) {
		var l laid
		l.read(map[string]string{key: value})
		switch name, ok := strings.CutPrefix(key, "user.overlay."); {
		case !ok && l != laid{}:
			t.Errorf("%q means %+v", key, l)
		case ok && (name == "redirect" || name == "metacopy" || name == "whiteout" || name == "opaque" && value != "y") && !l.strange:
			t.Errorf("%q of %q means %+v", value, name, l)
		case l.opaque && (name != "opaque" || value != "y"):
			t.Errorf("%q of %q is opaque", value, name)
		}
	})
}
