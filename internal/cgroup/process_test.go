package cgroup

import (
	"strings"
	"testing"
)

const plainStat = "4242 (%s) S 17 4242 4242 0 -1 4194304 117 0 0 0 30 12 5 3 20 0 3 0 98765 2879488 221 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n"

func TestANameDoesNotDisturbTheStatOfAProcess(t *testing.T) {
	want := stat{pid: 4242, state: 'S', parent: 17, ticks: 42, waited: 8, threads: 3, start: 98765}
	for _, name := range []string{"sh", "a b", ") R 1 1", "(((", ")))", "x) Z 1 1 1 1 1 1", "a\nb", "", "\xff\x00", "1 (x) S 1"} {
		got, err := parseStat([]byte(strings.Replace(plainStat, "%s", name, 1)))
		if err != nil || got != want {
			t.Errorf("name %q: %+v, %v", name, got, err)
		}
	}
}

func TestAStatThatIsCutShortIsRefused(t *testing.T) {
	whole := strings.Replace(plainStat, "%s", "sh", 1)
	end := strings.Index(whole, "98765")
	for n := range end {
		if s, err := parseStat([]byte(whole[:n])); err == nil {
			t.Fatalf("%q gives %+v", whole[:n], s)
		}
	}
}

func FuzzStat(f *testing.F) {
	f.Add([]byte(strings.Replace(plainStat, "%s", ") R 1 (", 1)))
	f.Add([]byte("1 (init) S"))
	f.Add([]byte(") ("))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseStat(b)
		if err == nil && (s.pid <= 0 || s.parent < 0 || s.threads < 0 || s.ticks >= 1<<63) {
			t.Errorf("%q gives %+v", b, s)
		}
	})
}

// A process chooses its name freely; whatever it is, the rest is read right.
func FuzzStatName(f *testing.F) {
	f.Add("sh")
	f.Add(") R 1 1 1")
	f.Fuzz(func(t *testing.T, name string) {
		s, err := parseStat([]byte(strings.Replace(plainStat, "%s", name, 1)))
		if err != nil || s.pid != 4242 || s.start != 98765 || s.parent != 17 {
			t.Errorf("name %q: %+v, %v", name, s, err)
		}
	})
}

func FuzzMemory(f *testing.F) {
	f.Add([]byte("703 221 190 5 0 113 0\n"))
	f.Add([]byte("55d-7ff ---p 00000000 00:00 0 [rollup]\nRss: 884 kB\nPss:  123 kB\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if pages, err := parseStatm(b); err == nil && (pages < 0 || pages*65536 < 0) {
			t.Errorf("%q gives %d pages", b, pages)
		}
		if n, err := parseRollup(b); err == nil && n < 0 {
			t.Errorf("%q gives %d bytes", b, n)
		}
	})
}

func FuzzPIDs(f *testing.F) {
	f.Add([]byte("1 22 333 "))
	f.Add([]byte("0\n-1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parsePIDs(b)
		if err != nil && list != nil {
			t.Error("a list and an error")
		}
		for _, pid := range list {
			if pid < 0 {
				t.Errorf("%q gives %d", b, pid)
			}
		}
	})
}

func TestMemoryIsReadWhereTheKernelPutIt(t *testing.T) {
	if pages, err := parseStatm([]byte("703 221 190 5 0 113 0\n")); err != nil || pages != 221 {
		t.Errorf("statm: %d, %v", pages, err)
	}
	rollup := "559c-7ffe ---p 00000000 00:00 0    [rollup]\nRss:                 884 kB\nPss:                 123 kB\nPss_Anon: 88 kB\n"
	if n, err := parseRollup([]byte(rollup)); err != nil || n != 123<<10 {
		t.Errorf("smaps_rollup: %d, %v", n, err)
	}
}

func TestOnlyLabelsOfOursAreUnderstood(t *testing.T) {
	o := owner{pid: 12, start: 34, space: 56}
	for _, name := range []string{"a", "a-1", "1-2-3", "box-7", strings.Repeat("x", 63)} {
		got, who, ok := parseLabel(label(name, o))
		if !ok || got != name || who != o {
			t.Errorf("%q comes back as %q, %+v, %v", name, got, who, ok)
		}
	}
	for _, s := range []string{
		"", "paddock-", supervisor, "paddock-a", "paddock-a-1-2", "paddock--1-2-3", "paddock-a-01-2-3",
		"paddock-a-0-2-3", "paddock-a-1-2-3-", "paddock-A-1-2-3", "paddock-a/b-1-2-3", "paddock-..-1-2-3",
		"paddock-a-1-2-99999999999999999999", "user.slice", "xpaddock-a-1-2-3",
	} {
		if name, who, ok := parseLabel(s); ok {
			t.Errorf("%q is taken for %q of %+v", s, name, who)
		}
	}
}

func FuzzLabel(f *testing.F) {
	f.Add("paddock-a-1-2-3")
	f.Fuzz(func(t *testing.T, s string) {
		if name, o, ok := parseLabel(s); ok && label(name, o) != s {
			t.Errorf("%q is understood as %q of %+v, which is %q", s, name, o, label(name, o))
		}
	})
}

func TestMountsOfControlGroupsAreFound(t *testing.T) {
	const table = `22 27 0:21 / /proc rw,relatime - proc proc rw
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
36 31 0:33 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /a\040b\134c rw,relatime - cgroup2 cgroup2 rw,nsdelegate
42 31 0:38 / /evil - cgroup rw - ext4 /dev/vda rw
broken - cgroup
`
	got := parseMounts(table)
	if len(got) != 3 {
		t.Fatalf("%d mounts: %+v", len(got), got)
	}
	if got[0].point != "/sys/fs/cgroup/memory" || got[0].v2 || got[0].locked {
		t.Errorf("memory: %+v", got[0])
	}
	if !got[1].locked {
		t.Errorf("a read-only mount is taken for a writable one: %+v", got[1])
	}
	if got[2].point != `/a b\c` || !got[2].v2 {
		t.Errorf("version 2: %+v", got[2])
	}
}

func TestOurOwnGroupIsFoundInWhatIsMounted(t *testing.T) {
	for _, c := range []struct{ root, own, want string }{
		{"/", "/", "/m"},
		{"/", "/user/a", "/m/user/a"},
		{"/docker/abc", "/docker/abc", "/m"},
		{"/docker/abc", "/docker/abc/d", "/m/d"},
		{"/docker/abc", "/docker/abcd", ""},
		{"/docker/abc", "/", ""},
		{"/", "/../other", ""},
		{"/", "", ""},
		{"/..", "/..", ""},
	} {
		got, err := mount{root: c.root, point: "/m"}.dir(c.own)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%q below %q is %q, %v; want %q", c.own, c.root, got, err, c.want)
		}
	}
}

func FuzzMounts(f *testing.F) {
	f.Add("35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n", "/a")
	f.Add(`35 31 0:32 /\04 /\0 rw - cgroup2 cgroup2 rw`, "/..")
	f.Fuzz(func(t *testing.T, table, own string) {
		for _, m := range parseMounts(table) {
			dir, err := m.dir(own)
			if err == nil && m.root == "/" && strings.HasPrefix(m.point, "/") && m.point == "/m" && !strings.HasPrefix(dir, "/m") {
				t.Errorf("%q leads out of the mount: %q", own, dir)
			}
		}
	})
}
