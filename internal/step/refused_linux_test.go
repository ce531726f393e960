package step

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// To find out that a file has too many pieces takes many calls, and it may have as many names as the file system lets it have.
func TestAFileThatIsNotReadIsSoughtOnceForAllItsNames(t *testing.T) {
	dir := workspace(t)
	pieces, large := filepath.Join(dir, "pieces"), filepath.Join(dir, "large")
	f, err := os.Create(pieces)
	must(t, err)
	for i := range int64(maxPieces + 1) {
		if _, err := f.WriteAt([]byte("x"), i*8192); err != nil {
			t.Fatal(err)
		}
	}
	must(t, f.Close())
	must(t, os.WriteFile(large, make([]byte, 3000), 0o600))
	for _, p := range []string{pieces, large} {
		for _, more := range []string{"2", "3"} {
			must(t, os.Link(p, p+more))
		}
	}
	tr, err := openTree(dir)
	must(t, err)
	defer tr.close()
	keep := func(data iter.Seq2[snapshot.Extent, error]) error {
		for _, err := range data {
			if err != nil {
				return err
			}
		}
		return nil
	}
	read := func(name string, most int64, sought int64, want error) {
		t.Helper()
		s, err := tr.stat(name)
		for must(t, err); s.Racy; must(t, err) { // whose times could be those of a later change
			s, err = tr.stat(name)
		}
		was := tr.sought.Load()
		if _, err := tr.contents(name, s, most, keep); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if n := tr.sought.Load() - was; n != sought {
			t.Errorf("%s: its pieces were looked for %d times, not %d", name, n, sought)
		}
	}
	read("pieces", 1<<40, 1, errPieces)
	read("pieces2", 1<<40, 0, errPieces)
	read("pieces3", 1, 0, errPieces)
	read("large", 1000, 1, errLarge)
	read("large2", 2999, 0, errLarge)
	read("large3", 3000, 1, nil)
	must(t, os.Truncate(large, 500))
	read("large2", 1000, 1, nil)
}
