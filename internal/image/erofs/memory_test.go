package erofs_test

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/image/erofs"
)

// A gauge is a file that forgets what is written, and keeps how much memory was in use when it was.
type gauge struct{ most uint64 }

func (g *gauge) Truncate(int64) error { return g.look() }

func (g *gauge) WriteAt(p []byte, _ int64) (int, error) { return len(p), g.look() }

func (g *gauge) look() error {
	g.most = max(g.most, live())
	return nil
}

func live() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Package tar returns names that are parts of the records before an entry, of up to 1 MiB each.
func TestATreeKeepsNothingOfAHeaderButItsNames(t *testing.T) {
	const links = 100
	r, w := io.Pipe()
	go func() {
		tw := tar.NewWriter(w)
		h := tar.Header{Typeflag: tar.TypeSymlink, Linkname: strings.Repeat("n/", 60), Format: tar.FormatPAX}
		h.PAXRecords = map[string]string{"PADDOCK.x": strings.Repeat("a", 1<<20-4096)}
		for i := range links {
			h.Name = fmt.Sprintf("%0100d/%d", i, i)
			if err := tw.WriteHeader(&h); err != nil {
				w.CloseWithError(err)
				return
			}
		}
		w.CloseWithError(tw.Close())
	}()
	before, g := live(), &gauge{}
	layer := func() (io.ReadCloser, error) { return r, nil }
	if _, err := erofs.Convert(context.Background(), g, []func() (io.ReadCloser, error){layer}, usual); err != nil {
		t.Fatal(err)
	}
	if g.most == 0 {
		t.Fatal("nothing was written")
	}
	if more := int64(g.most) - int64(before); more > 20<<20 {
		t.Errorf("with %d links, %d MiB more are in use", links, more>>20)
	}
}
