package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
)

func wording(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// What a build has for itself goes with it, also if it was killed, and not while another build works.
func TestABuildLeavesWhatItMadeAlone(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	begin := func() *Build {
		t.Helper()
		b, err := s.Build(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const empty = 1024
	archive := wording(string(make([]byte, empty))) // the end of an archive
	config := func(name, sum string) []byte {
		return fmt.Appendf(nil, `{"os": "linux", "architecture": %q, "config": {"User": %q}, "rootfs": {"type": "layers", "diff_ids": [%q]}}`, runtime.GOARCH, name, sum)
	}
	one, two := begin(), begin()
	kept, err := one.Layer(t.Context(), 1<<20, archive)
	if err != nil {
		t.Fatal(err)
	}
	lost, err := one.Layer(t.Context(), 1<<20, wording("never used"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Layer(t.Context(), 5, wording("too long")); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("a layer that is too long: %v", err)
	}
	inner, err := one.Inner(t.Context(), config("inner", kept.Digest), []Blob{kept})
	if err != nil {
		t.Fatal(err)
	}
	if _, hold, err := s.Tree(t.Context(), inner, image.FormDir); err != nil {
		t.Error(err)
	} else if err := hold.Close(); err != nil {
		t.Error(err)
	}
	img, err := one.Image(t.Context(), config("own", kept.Digest), []Blob{kept}, "own:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Keep("sha256:"+kept.Digest[len("sha256:"):], kept); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Images(""); err != nil || len(list) != 1 || list[0].Digest != img.Digest || list[0].Origins[0] != "build" {
		t.Errorf("the images are %v: %v", list, err)
	}
	// It is killed: its locks are gone, and nothing else is done.
	if err := errors.Join(one.alive.Close(), one.lock.Close()); err != nil {
		t.Fatal(err)
	}
	three := begin()
	if !three.There(inner) {
		t.Error("an image that another build may need was removed")
	}
	if err := errors.Join(two.Close(), three.Close()); err != nil {
		t.Fatal(err)
	}
	four := begin()
	defer four.Close()
	if four.There(inner) || !four.There(img.Digest) {
		t.Error("a dead build's own image is left, or the image that it made is gone")
	}
	if _, err := os.Stat(four.p.blob(lost.Digest)); err == nil {
		t.Error("a layer of no image is left")
	}
	if l, ok := four.Cached(kept.Digest); !ok || l.Digest != kept.Digest {
		t.Errorf("the step is forgotten: %v", l)
	}
	if _, ok := four.Cached(lost.Digest); ok {
		t.Error("a step is known that never was")
	}
}
