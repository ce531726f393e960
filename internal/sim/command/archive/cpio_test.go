package archive

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

// newc writes a member as the manual page cpio(5) describes "New ASCII".
func newc(name, data string, mode, nlink int) string {
	s := fmt.Sprintf("070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00", 7, mode, 1000, 1000, nlink, 1577934245, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
	s += strings.Repeat("\x00", -len(s)&3) + data
	return s + strings.Repeat("\x00", -len(s)&3)
}

// What is right is by cpio(1) and cpio(5); the tool itself is seldom
// installed.
func TestCPIOArchivesAreReadAndMade(t *testing.T) {
	end := newc("TRAILER!!!", "", 0, 1)
	arch := newc("d", "", 0o40755, 2) + newc("d/a", "hello\n", 0o100640, 1) + newc("l", "d/a", 0o120777, 1) + end
	old := fmt.Sprintf("070707%06o%06o%06o%06o%06o%06o%06o%011o%06o%011oa\x00hello\n", 0, 7, 0o100644, 1000, 1000, 1, 0, 1577934245, 2, 6) +
		fmt.Sprintf("070707%06o%06o%06o%06o%06o%06o%06o%011o%06o%011oTRAILER!!!\x00", 0, 0, 0, 0, 0, 1, 0, 0, 11, 0)
	for _, c := range []struct {
		args, stdin string
		out         string
		status      int
		look, want  string
	}{
		{"-it", arch, "d\nd/a\nl\n", 0, "", ""},
		{"-itv", arch, "drwxr-xr-x   2 1000     1000            0 Jan  2  2020 d\n-rw-r-----   1 1000     1000            6 Jan  2  2020 d/a\nlrwxrwxrwx   1 1000     1000            3 Jan  2  2020 l -> d/a\n", 0, "", ""},
		{"-id", arch, "", 0, "d/a", "hello\n"},
		{"-id d/*", arch, "", 0, "d/a", "hello\n"},
		{"-i d/a", arch, "", 2, "d/a", "missing"},
		{"-if d/*", arch, "", 0, "l", "missing"},
		{"-i --to-stdout d/a", arch, "hello\n", 0, "", ""},
		{"-id", newc("/x/../../etc/f", "F", 0o100644, 1) + end, "", 0, "etc/f", "F"},
		{"-i", newc("s", "/tmp", 0o120777, 1) + newc("s/f", "F", 0o100644, 1) + end, "", 2, "../f", "missing"},
		{"-i", newc("f", "", 0o100644, 2) + newc("g", "data", 0o100644, 2) + end, "", 0, "f", "data"},
		{"-i", newc("old", "new", 0o100644, 1) + end, "", 0, "old", "there"},
		{"-iu", newc("old", "new", 0o100644, 1) + end, "", 0, "old", "new"},
		{"-i", "nonsense", "", 2, "", ""},
		{"-i", arch[:150], "", 2, "", ""},
		{"-o -H newc", "none\n", newc("TRAILER!!!", "", 0, 1), 2, "", ""},
		{"-pd to", "old\n", "", 0, "to/old", "there"},
		{"-o -H nothing", "", "", 2, "", ""},
		{"-io", "", "", 2, "", ""},
	} {
		r := commandtest.Run(t, Commands(), commandtest.Case{
			Args: append([]string{"cpio"}, strings.Fields(c.args)...), Stdin: c.stdin, Files: map[string]string{"old": "there", "to/": ""}, Look: []string{c.look, "a"},
		})
		if c.args == "-o -H newc" { // but for the times
			r.Stdout, c.out = r.Stdout[len(r.Stdout)-300:], strings.Repeat("\x00", 300)
		}
		if c.status != r.Status || r.Stdout != c.out || c.look != "" && r.Files[c.look] != c.want {
			t.Errorf("%s: status %d, %q, %q, %s is %q; want %d, %q, %q", c.args, r.Status, r.Stdout, r.Stderr, c.look, r.Files[c.look], c.status, c.out, c.want)
		}
	}
	if r := commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"cpio", "-it"}, Stdin: old}); r.Stdout != "a\n" {
		t.Errorf("the old form gives %q, %q", r.Stdout, r.Stderr)
	}
	for _, form := range []string{"bin", "odc", "newc", "crc", "ustar"} {
		made := commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"cpio", "-o", "-H", form}, Stdin: "f\ne\n", Files: map[string]string{"f": "12345\n", "e": ""}})
		if len(made.Stdout)%512 != 0 {
			t.Errorf("%s: the archive has %d bytes", form, len(made.Stdout))
		}
		got := commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"cpio", "-i"}, Stdin: made.Stdout, Look: []string{"f", "e"}})
		if got.Files["f"] != "12345\n" || got.Files["e"] != "" || got.Status != 0 {
			t.Errorf("%s: %d, %q, %q", form, got.Status, got.Files, got.Stderr)
		}
	}
}

func FuzzCPIO(f *testing.F) {
	end := newc("TRAILER!!!", "", 0, 1)
	f.Add(newc("d/../a", "hello\n", 0o100640, 2) + newc("l", "d/a", 0o120777, 1) + newc("l/x", "", 0o100640, 2) + end)
	f.Add("070707000000000007100644001750001750000001000000136055441450000020000000000006a\x00hello\n")
	f.Add("\xc7\x71\x00\x00\x01\x00\xa4\x81\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x02\x00a\x00hi")
	f.Fuzz(func(t *testing.T, in string) {
		commandtest.Fuzz(t, Commands(), in, "cpio", "-idum")
		commandtest.Fuzz(t, Commands(), in, "cpio", "-itv")
	})
}
