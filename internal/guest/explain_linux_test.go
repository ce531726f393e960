package guest

import (
	"os"
	"testing"
)

func TestAProgramsLoaderIsNamed(t *testing.T) {
	// A program of this machine that is linked dynamically.
	h := readHead("/bin/sh")
	if h.machine() != thisMachine() {
		t.Errorf("it is for %q, this is %q", h.machine(), thisMachine())
	}
	if _, err := os.Stat(h.loader()); err != nil {
		t.Errorf("its loader is %q: %v", h.loader(), err)
	}
}

func TestAScriptsInterpreterIsNamed(t *testing.T) {
	for line, want := range map[string]string{
		"#!/bin/sh\nx": "/bin/sh", "#! \t/usr/bin/env python\n": "/usr/bin/env", "#!/bin/sh": "/bin/sh",
		"#!/bin/sh\r\n": "/bin/sh\r", "#!/a\t-x\n": "/a", "": "", "#!\n": "", "#": "", "echo": "",
	} {
		if got := head(line).script(); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// FuzzHead reads what anyone may have written into a file.
func FuzzHead(f *testing.F) {
	f.Add([]byte(readHead("/bin/sh")))
	f.Add([]byte("#!/bin/sh\n"))
	f.Add(append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"), make([]byte, 44)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		h := head(b)
		if len(h.loader()) > len(b) || len(h.script()) > len(b) {
			t.Error("a name is longer than the file")
		}
		_ = h.machine()
	})
}

// FuzzStat reads lines in which a program's name may be anything.
func FuzzStat(f *testing.F) {
	f.Add("12 (sh) S 1 12 12 0 -1")
	f.Add("12 () 1 (x) Z 1 12 12 0 -1")
	f.Add("(")
	f.Fuzz(func(_ *testing.T, line string) { parseStat([]byte(line)) })
}

func TestAProgramsNameDoesNotConfuseTheSearch(t *testing.T) {
	st, ok := parseStat([]byte("12 (a) R 99 99 99 (b) Z 3 4 5 0 -1 4194304 0"))
	if want := (stat{pid: 12, parent: 3, group: 4, session: 5, dead: true}); !ok || st != want {
		t.Errorf("%+v, %v", st, ok)
	}
	for _, line := range []string{"", "12 (a)", "12 (a) R", "12 (a) R x y z", "(a) R 1 2 3", ") 12 ( R 1 2 3"} {
		if st, ok := parseStat([]byte(line)); ok {
			t.Errorf("%q is %+v", line, st)
		}
	}
}
