package microvm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

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
		n, _, _, err := newTemplate(t.Context(), site, dir, boxinit.Room{All: 100})
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
	// Other users wait, for as long as their context permits.
	ended, stop := context.WithCancel(t.Context())
	stop()
	if other, _, _, err := newTemplate(ended, site, dir, boxinit.Room{}); other != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait has %v, %v", other, err)
	}
	if _, _, err := openTemplate(dir); !absent(err) {
		t.Errorf("one that is being made is opened: %v", err)
	}
	write(n, "whole")
	tell(n)
	n.theirs.Close()
	other, state, memory, err := newTemplate(t.Context(), site, dir, boxinit.Room{})
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
		n, _, _, err := newTemplate(t.Context(), site, dir, boxinit.Room{All: 100})
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

func TestNoTemplateBeginsWhenTheDriverIsClosed(t *testing.T) {
	site, d := driverIn(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(site.Data, templatesName, "shape")
	if n, _, _, err := newTemplate(t.Context(), site, dir, boxinit.Room{All: 100}); n != nil || !errors.Is(err, errNoRoom) {
		t.Errorf("%v, %v", n, err)
	}
	if _, err := os.Lstat(dir + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was begun is left: %v", err)
	}
}
