package microvm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// driverIn returns a driver that makes nothing, and its site.
func driverIn(t *testing.T) (*box.Site, *box.Driver) {
	t.Helper()
	site, err := box.NewSite(paddock.MicroVM, box.Options{State: t.TempDir(), Data: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return site, box.New(site, box.Tier{Name: paddock.MicroVM})
}

// A template exists once its writer has reported that it is complete.
func TestATemplateIsThereWhenItIsWholeAndNotBefore(t *testing.T) {
	site, d := driverIn(t)
	dir := filepath.Join(site.Data, templatesName, "shape")
	begin := func() *nascent {
		t.Helper()
		n, _, _, err := newTemplate(t.Context(), site, dir, boxinit.Room{All: 100}, nil)
		if err != nil || n == nil {
			t.Fatalf("%v, %v", n, err)
		}
		return n
	}
	write := func(n *nascent, text string) {
		t.Helper()
		for _, f := range n.theirs.Of(boxinit.FileTemplate) {
			if _, err := f.WriteString(text); err != nil {
				t.Fatal(err)
			}
		}
	}
	tell := func(n *nascent) {
		t.Helper()
		if _, err := n.theirs.One(boxinit.FileWritten).Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	left := func(want ...string) {
		t.Helper()
		entries, err := os.ReadDir(filepath.Dir(dir))
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range entries {
			if i >= len(want) || e.Name() != want[i] {
				t.Errorf("%s is there, want %q", e.Name(), want)
			}
		}
		if len(entries) < len(want) {
			t.Errorf("%d are there, want %q", len(entries), want)
		}
	}
	n := begin()
	write(n, "half")
	n.theirs.Close() // its box was killed
	<-n.over
	left()
	// A killed maker has left its files, but no lock.
	if err := os.MkdirAll(filepath.Join(dir+".new", templateRAM), 0o700); err != nil {
		t.Fatal(err)
	}
	n = begin()
	write(n, string(make([]byte, 60)))
	tell(n)
	n.theirs.Close()
	<-n.over
	left() // more than there is room for
	n = begin()
	left("shape.new")
	// Other users of the shape wait, for as long as their context permits, or their patience lasts.
	ended, stop := context.WithCancel(t.Context())
	stop()
	if other, _, _, err := newTemplate(ended, site, dir, boxinit.Room{}, nil); other != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait has %v, %v", other, err)
	}
	if end := patience(paddock.Limits{CPUs: 0.5}); end != nil {
		t.Error("a box that would boot slowly boots by itself after a while")
	}
	if end := patience(paddock.Limits{CPUs: 1}); end == nil {
		t.Error("a box that would boot fast waits without end")
	}
	over := make(chan time.Time)
	close(over)
	if other, _, _, err := newTemplate(t.Context(), site, dir, boxinit.Room{}, over); other != nil || !errors.Is(err, errNoRoom) {
		t.Errorf("who has waited in vain has %v, %v", other, err)
	}
	if _, _, err := openTemplate(dir); !absent(err) {
		t.Errorf("one that is being made is opened: %v", err)
	}
	write(n, "whole")
	tell(n)
	n.theirs.Close()
	other, state, memory, err := newTemplate(t.Context(), site, dir, boxinit.Room{}, make(chan time.Time))
	if err != nil || other != nil {
		t.Fatalf("who waited has %v, %v", other, err)
	}
	for _, f := range []*os.File{state, memory} {
		b := make([]byte, 10)
		if k, _ := f.Read(b); string(b[:k]) != "whole" {
			t.Errorf("%s says %q", f.Name(), b[:k])
		}
		f.Close()
	}
	if err := d.Close(); err != nil { // waits for it
		t.Error(err)
	}
	left("shape")
}

// The attacker is what supervises a machine, taken over: it has a template open for reading, and a user of its own who
// owns the files. It keeps sizes, and sets times back.
func TestATemplateThatWasChangedIsMadeAgain(t *testing.T) {
	site, d := driverIn(t)
	dir := filepath.Join(site.Data, templatesName, "shape")
	for _, name := range []string{templateState, templateRAM} {
		n, _, _, err := newTemplate(t.Context(), site, dir, boxinit.Room{All: 100}, nil)
		if err != nil || n == nil {
			t.Fatalf("before %s is changed: %v, %v", name, n, err)
		}
		for _, f := range n.theirs.Of(boxinit.FileTemplate) {
			if _, err := f.WriteString("whole"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := n.theirs.One(boxinit.FileWritten).Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		n.theirs.Close()
		<-n.over
		state, memory, err := openTemplate(dir)
		if err != nil {
			t.Fatal(err)
		}
		read := map[string]*os.File{templateState: state, templateRAM: memory}[name]
		was, err := read.Stat()
		if err != nil {
			t.Fatal(err)
		}
		again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", read.Fd()), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.WriteString("owned"); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(again.Close(), os.Chtimes(read.Name(), was.ModTime(), was.ModTime())); err != nil {
			t.Fatal(err)
		}
		state.Close()
		memory.Close()
		if state, memory, err = openTemplate(dir); !absent(err) {
			t.Errorf("a template whose %s was changed is used: %v", name, err)
			box.CloseAll([]*os.File{state, memory})
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// The attacker asks for one machine of another memory after the other, and lets none be saved.
func TestWhoMakesATemplateHoldsUpNoOther(t *testing.T) {
	site, d := driverIn(t)
	all := filepath.Join(site.Data, templatesName)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var held []*nascent
	for i := range 20 {
		dir := filepath.Join(all, classOther.name(fmt.Sprint("odd", i)))
		n, _, _, err := newTemplate(ctx, site, dir, boxinit.Room{All: 100}, nil)
		if n != nil {
			held = append(held, n)
		} else if !errors.Is(err, errNoRoom) {
			t.Errorf("who has no place for %d has %v", i, err)
		}
	}
	if len(held) == 0 || len(held) > classOther.places() {
		t.Errorf("%d odd templates are made at once", len(held))
	}
	for _, c := range []class{classDefault, classRound} {
		n, _, _, err := newTemplate(ctx, site, filepath.Join(all, c.name("usual")), boxinit.Room{All: 100}, nil)
		if err != nil {
			t.Fatalf("while odd ones are made, one of class %s: %v", c, err)
		}
		held = append(held, n)
	}
	for _, n := range held {
		n.theirs.Close()
		<-n.over
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestATemplateKeepsItsPlaceWhileItIsUsed(t *testing.T) {
	all, now := t.TempDir(), time.Now()
	put := func(name string, unused time.Duration) {
		t.Helper()
		path := filepath.Join(all, name)
		if err := errors.Join(os.MkdirAll(path, 0o700), os.Chtimes(path, now.Add(-unused), now.Add(-unused))); err != nil {
			t.Fatal(err)
		}
	}
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(all, name))
		return err == nil
	}
	place := func(name string, want bool) {
		t.Helper()
		if got := makePlace(all, name, now); got != want {
			t.Errorf("%s has a place: %t", name, got)
		}
	}
	put("default-a", 300*time.Hour)
	put("round-a", 300*time.Hour)
	put("abcdef", time.Minute) // of an older version
	put("other-a", time.Second)
	place("other-b", false) // both were used just now
	put("abcdef", time.Hour)
	place("other-b", true)
	if there("abcdef") || !there("other-a") || !there("default-a") || !there("round-a") {
		t.Error("not the one that was unused for longest went")
	}
	put("other-b", time.Hour)
	place("other-a", true) // one that was changed is made again
	if !there("other-a") || !there("other-b") {
		t.Error("one has gone for one that has a place")
	}
	put("other-c.new", 0) // its maker was killed
	place("other-d", true)
	if there("other-c.new") || there("other-b") {
		t.Error("what a killed maker left, or what is unused, is still there")
	}
	put("default-b", time.Second)
	place("default-c", true)
	if there("default-a") || !there("default-b") {
		t.Error("the older one of the default shape is still there, or the other one is not")
	}
}

func TestTheShapeSaysWhichPlacesATemplateMayHave(t *testing.T) {
	defaults := paddock.Limits{Memory: 3 << 30}
	for _, c := range []struct {
		memory int64
		cpus   int
		want   class
	}{
		{3 << 30, 4, classDefault}, {3 << 30, 3, classOther}, {1 << 30, 4, classRound}, {16 << 20, 4, classRound}, {16 << 20, 1, classOther}, {1 << 30, 3, classOther},
		{1<<30 + 2<<20, 4, classOther}, {768 << 20, 4, classOther}, {0, 1, classOther},
	} {
		got := classFor(paddock.Limits{Memory: c.memory}, defaults, c.cpus, 4)
		if got != c.want || classOf(got.name("0a-b")) != got {
			t.Errorf("%d bytes and %d processors: %s", c.memory, c.cpus, got)
		}
	}
}

func TestNoTemplateBeginsWhenTheDriverIsClosed(t *testing.T) {
	site, d := driverIn(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(site.Data, templatesName, "shape")
	if n, _, _, err := newTemplate(t.Context(), site, dir, boxinit.Room{All: 100}, nil); n != nil || !errors.Is(err, errNoRoom) {
		t.Errorf("%v, %v", n, err)
	}
	if _, err := os.Lstat(dir + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was begun is left: %v", err)
	}
}
