package guestkernel

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// A file that claims a huge size is not read to its end.
func TestWhatABoxWroteIsBoundedAgain(t *testing.T) {
	var files []*os.File
	for _, name := range []string{"state", "pages"} {
		f, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	set := func(i int, size int64) {
		if err := files[i].Truncate(size); err != nil {
			t.Fatal(err)
		}
	}
	set(0, 600)
	set(1, 400)
	if err := Bounded(files, 1000); err != nil {
		t.Error(err)
	}
	for _, size := range []int64{401, 8 << 40} {
		set(1, size)
		if err := Bounded(files, 1000); paddock.KindOf(err) != paddock.Exhausted {
			t.Errorf("%d: %v", size, err)
		}
	}
}
