package sys

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// address encodes a path as bind takes it.
func address(path string) []byte {
	return append([]byte{unix.AF_UNIX, 0}, path...)
}

func TestASocketIsBoundInTheDirectoryThatWasJudgedOrNotAtAll(t *testing.T) {
	const again = "PADDOCK_TEST_BIND"
	if LandlockABI() < 3 {
		t.Skip("this kernel has no Landlock of version 3")
	}
	if os.Getenv(again) == "" { // what it takes from its process is for good
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), again+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	const allow = 0x7fff0000
	if err := SeccompAll([]unix.SockFilter{{Code: unix.BPF_RET, K: allow}}); err != nil { // with no_new_privs
		t.Fatal(err)
	}
	top := t.TempDir()
	for _, name := range []string{"judged/below", "other"} {
		if err := os.MkdirAll(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../other", filepath.Join(top, "judged/link")); err != nil {
		t.Fatal(err)
	}
	open := func(name string) int {
		fd, err := unix.Open(filepath.Join(top, name), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { Close(fd) })
		return fd
	}
	judged, start := open("judged"), open(".")
	for _, tc := range []struct {
		path string
		want error
		made string
	}{
		{"judged/a", nil, "judged/a"},
		{filepath.Join(top, "judged/below/b"), nil, "judged/below/b"},
		{"other/c", unix.EACCES, ""},
		{"judged/link/d", unix.EACCES, ""},
		{"judged/none/e", unix.ENOENT, ""},
	} {
		fd, err := Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := BindBelow(fd, address(tc.path), start, judged, 0o027); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, and not %v", tc.path, err, tc.want)
		}
		Close(fd)
		if tc.made == "" {
			continue
		}
		if st, err := os.Stat(filepath.Join(top, tc.made)); err != nil || st.Mode() != os.ModeSocket|0o750 {
			t.Errorf("%s: %v, %v", tc.made, st, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(top, "other")); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := os.WriteFile(filepath.Join(top, "other/f"), nil, 0o600); err != nil {
		t.Errorf("this thread is restricted too: %v", err)
	}
}
