package container

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestASumIsRememberedUntilTheFileChanges(t *testing.T) {
	name := filepath.Join(t.TempDir(), "part")
	write := func(text string) *os.File {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // longer than a tick of the file system's clock
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	var s sums
	first := write("one")
	for range 2 {
		got, n, err := s.of(first)
		want, _, _ := sumOf(first)
		if err != nil || got != want || n != 3 {
			t.Fatalf("%s of %d bytes, %v, want %s", got, n, err, want)
		}
	}
	if len(s.known) != 1 {
		t.Errorf("%d are remembered", len(s.known))
	}
	second := write("two")
	got, _, err := s.of(second)
	want, _, _ := sumOf(second)
	if err != nil || got != want {
		t.Errorf("of the changed file it says %s, %v, want %s", got, err, want)
	}
}
