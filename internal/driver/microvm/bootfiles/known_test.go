package bootfiles

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// QEMU is queried again if the program changes, and only then.
func TestAnEngineIsKnownUntilItChanges(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("programs are no shell scripts there")
	}
	dir := t.TempDir()
	program, file, asked := filepath.Join(dir, "qemu"), filepath.Join(dir, "data", "engine.json"), filepath.Join(dir, "asked")
	write := func(version string, at time.Time) {
		t.Helper()
		text := "#!/bin/sh\necho x >> " + asked + "\ncase $1 in --version) echo QEMU emulator version " + version + ";; *) echo " + dir + ";; esac\n"
		if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(program, at, at); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Unix(1e9, 0)
	for _, step := range []struct {
		what    string
		change  func()
		version string
		asked   int
	}{
		{"the first time", func() { write("8.1.0", then) }, "8.1.0", 2},
		{"again", func() {}, "8.1.0", 2},
		{"after an upgrade", func() { write("8.2.0", then.Add(time.Second)) }, "8.2.0", 4},
		{"a file that makes no sense", func() { _ = os.WriteFile(file, []byte("{"), 0o600) }, "8.2.0", 6},
		{"again", func() {}, "8.2.0", 6},
	} {
		step.change()
		e, dirs, err := KnownEngine(program, file)
		if err != nil {
			t.Fatal(step.what, ": ", err)
		}
		said, _ := os.ReadFile(asked)
		if n := strings.Count(string(said), "x"); e.Version != step.version || !slices.Equal(dirs, []string{dir}) || n != step.asked {
			t.Errorf("%s: version %s, directories %q, asked %d times; not %s and %d", step.what, e.Version, dirs, n, step.version, step.asked)
		}
	}
}

// The kernel beside it is for every user, whichever of them came first.
func TestOnlyTheFileThatIsKeptIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have other rights there")
	}
	defer syscall.Umask(syscall.Umask(0o022))
	file := filepath.Join(t.TempDir(), "paddock", "vm", "engine.json")
	if err := Keep(file, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{filepath.Dir(filepath.Dir(file)): 0o755, filepath.Dir(file): 0o755, file: 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has the mode %o, not %o", path, got, want)
		}
	}
}
