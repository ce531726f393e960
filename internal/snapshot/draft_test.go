package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// held gives an entry whose contents were added.
func held(name string, size int64, c Contents) Entry {
	return Entry{Path: name, Kind: File, Mode: 0o600, Size: size, Held: &c}
}

func add(t *testing.T, d *Draft, text string) Contents {
	t.Helper()
	c, _, err := d.Add(t.Context(), int64(len(text)), data(Extent{0, []byte(text)}))
	must(t, err)
	return c
}

func blobs(t *testing.T, dir string) (n int) {
	t.Helper()
	must(t, filepath.WalkDir(filepath.Join(dir, dirBlobs), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	}))
	return n
}

func TestADraftBecomesASnapshotOfWhatWasAdded(t *testing.T) {
	s, dir := open(t)
	d, err := s.Draft("step-1")
	must(t, err)
	a := add(t, d, "first")
	_ = add(t, d, "nobody needs it")
	long := bytes.Repeat([]byte("long"), chunkSize)
	b, fresh, err := d.Add(t.Context(), 3*int64(len(long)), data(Extent{int64(len(long)), long}))
	must(t, err)
	if fresh != 4<<20 && fresh != chunkSize || b.Size() != int64(len(long)) {
		t.Errorf("%d fresh bytes of %d", fresh, b.Size())
	}
	if _, err := s.Read("step-1"); !errors.Is(err, paddock.NotFound) {
		t.Error("a draft is read:", err)
	}
	if _, err := s.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := b.MarshalBinary()
	must(t, err)
	var again Contents
	must(t, again.UnmarshalBinary(text))
	must(t, d.Commit(t.Context(), Meta{}, seq(held("00", 5, a), held("01", 3*int64(len(long)), again))))
	x, err := s.Read("step-1")
	must(t, err)
	defer x.Close()
	n := 0
	for e, err := range x.Entries() {
		must(t, err)
		got := make([]byte, e.Size)
		for x, err := range e.Data {
			must(t, err)
			copy(got[x.Offset:], x.Bytes)
		}
		want := []byte("first")
		if n == 1 {
			want = append(append(make([]byte, len(long)), long...), make([]byte, len(long))...)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s holds something else", e.Path)
		}
		n++
	}
	for name, c := range x.Held(t.Context()) {
		if name == "00" {
			for e, err := range s.Data(c) {
				if err != nil || string(e.Bytes) != "first" {
					t.Errorf("%q %v", e.Bytes, err)
				}
			}
		}
	}
	must(t, x.Err())
	if got := blobs(t, dir); got != 2 {
		t.Errorf("%d blobs", got)
	}
	if ids, err := s.Drafts(); err != nil || len(ids) > 0 {
		t.Error(ids, err)
	}
	if _, err := s.Draft("step-1"); !errors.Is(err, paddock.Exists) {
		t.Error(err)
	}
}

func TestADeadDraftStaysUntilItIsResumed(t *testing.T) {
	s, dir := open(t)
	d, err := s.Draft("step-1")
	must(t, err)
	c := add(t, d, "kept")
	if _, err := s.Resume("step-1"); !errors.Is(err, paddock.Conflict) {
		t.Fatal("a living one is resumed:", err)
	}
	must(t, d.Leave()) // as the end of the process does
	if _, err := s.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What was cut off by the kill takes no whole blob's place.
	other, err := s.Draft("step-2")
	must(t, err)
	o := add(t, other, "shared")
	must(t, other.Commit(t.Context(), Meta{}, seq(held("0", 6, o))))
	name := o.parts[0].sum.flat()
	must(t, os.WriteFile(filepath.Join(dir, dirKept, "step-1", name), []byte("sha"), 0o600))
	d, err = s.Resume("step-1")
	must(t, err)
	must(t, d.Commit(t.Context(), Meta{}, seq(held("0", 4, c), held("1", 6, o))))
	for _, id := range []paddock.SnapshotID{"step-1", "step-2"} {
		x, err := s.Read(id)
		must(t, err)
		if _, err := show(x.Entries()); err != nil {
			t.Error(id, err)
		}
		must(t, x.Close())
	}
	if _, err := s.Resume("step-1"); !errors.Is(err, paddock.NotFound) {
		t.Error(err)
	}
}

func TestAFailedAddLeavesNothing(t *testing.T) {
	s, dir := open(t)
	d, err := s.Draft("step-1")
	must(t, err)
	c := add(t, d, "kept")
	bad := errors.New("bad")
	var broken iter.Seq2[Extent, error] = func(yield func(Extent, error) bool) {
		if yield(Extent{0, []byte("kept")}, nil) && yield(Extent{chunkSize, bytes.Repeat([]byte{1}, chunkSize)}, nil) {
			yield(Extent{}, bad)
		}
	}
	if _, _, err := d.Add(t.Context(), 4*chunkSize, broken); !errors.Is(err, bad) {
		t.Fatal(err)
	}
	must(t, d.Commit(t.Context(), Meta{}, seq(held("0", 4, c))))
	if n := blobs(t, dir); n != 1 {
		t.Errorf("%d blobs", n)
	}
}

func TestACommitThatFailedCanBeMadeAgain(t *testing.T) {
	s, dir := open(t)
	d, err := s.Draft("step-1")
	must(t, err)
	var all []Entry
	for i := range 20 {
		text := fmt.Sprint("contents ", i)
		all = append(all, held(fmt.Sprintf("%02d", i), int64(len(text)), add(t, d, text)))
	}
	// A shelf that is no directory: some blobs are moved before it, and some are not.
	name := all[7].Held.parts[0].sum.name()[:2]
	must(t, os.WriteFile(filepath.Join(dir, dirBlobs, name), nil, 0o600))
	if err := d.Commit(t.Context(), Meta{}, seq(all...)); err == nil {
		t.Fatal("it went through")
	}
	must(t, os.Remove(filepath.Join(dir, dirBlobs, name)))
	if _, err := s.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(t, d.Leave())
	d, err = s.Resume("step-1")
	must(t, err)
	must(t, d.Commit(t.Context(), Meta{}, seq(all...)))
	x, err := s.Read("step-1")
	must(t, err)
	defer x.Close()
	if _, err := show(x.Entries()); err != nil {
		t.Error(err)
	}
}

func TestHeldContentsAreOnlyForDrafts(t *testing.T) {
	s, _ := open(t)
	d, err := s.Draft("step-1")
	must(t, err)
	c := add(t, d, "x")
	if err := s.Write(context.Background(), Meta{ID: "snap-1"}, seq(held("0", 1, c))); !errors.Is(err, paddock.Invalid) {
		t.Error(err)
	}
	if err := d.Commit(t.Context(), Meta{}, seq(held("0", 0, c))); !errors.Is(err, paddock.Invalid) {
		t.Error("contents longer than their file:", err)
	}
	must(t, d.Discard())
}

func FuzzContents(f *testing.F) {
	c := Contents{[]chunk{{5, 3, sum{1}}, {chunkSize, 7, sum{2}}}}
	b, err := c.MarshalBinary()
	must(f, err)
	f.Add(b)
	f.Add(b[:40])
	f.Fuzz(func(t *testing.T, b []byte) {
		var c Contents
		if c.UnmarshalBinary(b) != nil {
			return
		}
		end := int64(0)
		for _, p := range c.parts {
			if p.offset < end || p.size <= 0 {
				t.Fatalf("%+v", c)
			}
			end = p.offset + p.size
		}
		again, err := c.MarshalBinary()
		must(t, err)
		var d Contents
		must(t, d.UnmarshalBinary(again))
		if fmt.Sprint(c) != fmt.Sprint(d) {
			t.Fatalf("%v %v", c, d)
		}
	})
}
