package step

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// chmods makes a journal with steps that each change the modes of many files.
func chmods(t *testing.T, o Options, steps, files int) (j *Journal, dir string, first, last int64) {
	t.Helper()
	j, dir = journal(t, o), workspace(t)
	name := func(i int) string { return fmt.Sprintf("f%0200d", i) }
	for i := range files {
		must(t, os.WriteFile(filepath.Join(dir, name(i)), nil, 0o600))
	}
	for s := range steps {
		r := begin(t, j, dir)
		for i := range files {
			must(t, r.Mode(0, name(i)))
			must(t, os.Chmod(filepath.Join(dir, name(i)), os.FileMode(0o700-s%2*0o100)))
		}
		if last = end(t, r).Number; first == 0 {
			first = last
		}
	}
	return j, dir, first, last
}

func TestUndoAndDiffRefuseMoreThanFitsTogether(t *testing.T) {
	j, dir, first, last := chmods(t, Options{together: load{changes: 50, bytes: 1 << 30}}, 3, 20)
	before := picture(t, dir)
	if _, err := j.Undo(t.Context(), Request{To: first}); !errors.Is(err, paddock.Exhausted) {
		t.Error("undo:", err)
	}
	same(t, "a refused undo", before, picture(t, dir))
	if _, err := j.Diff(t.Context(), first, last, nil); !errors.Is(err, paddock.Exhausted) {
		t.Error("diff:", err)
	}
	if _, err := j.Diff(t.Context(), first, first+1, nil); err != nil {
		t.Error("diff of two:", err)
	}
	if _, err := j.Undo(t.Context(), Request{Steps: []int64{last, last - 1}}); err != nil {
		t.Error("undo in pieces:", err)
	}
	j.opts.together = load{changes: 1, bytes: 1}
	if _, err := j.Undo(t.Context(), Request{Steps: []int64{first}}); err != nil {
		t.Error("one step is always possible:", err)
	}
	j.opts.together = load{changes: 1 << 30, bytes: 30_000}
	if _, err := j.Diff(t.Context(), first, last, nil); !errors.Is(err, paddock.Exhausted) {
		t.Error("diff, by bytes:", err)
	}
}

// What an undo holds of the records before it begins does not grow with their changes.
func TestUndoHoldsTheHeadsOfRecordsOnly(t *testing.T) {
	j, _, first, _ := chmods(t, Options{}, 10, 2000)
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	heads, err := j.requested(t.Context(), &Request{To: first})
	must(t, err)
	if n := live() - before; n > 2<<20 {
		t.Errorf("%d records take %d bytes", len(heads), n)
	}
	runtime.KeepAlive(heads)
}
