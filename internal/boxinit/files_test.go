package boxinit

import (
	"os"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestFilesAreReadByNameOnTheOtherSide(t *testing.T) {
	var sent Files
	var all []*os.File
	for range 4 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	sent.Add(FileEvents, all[0])
	sent.Add(FileImage, all[1:3]...)
	var more Files
	more.Add(FileTUN, all[3])
	sent.Append(&more)
	got, err := NamedFiles(sent.Names(), sent.All())
	if err != nil {
		t.Fatal(err)
	}
	if got.One(FileEvents) != all[0] || got.One(FileTUN) != all[3] || !slices.Equal(got.Of(FileImage), all[1:3]) || got.One(FileAgent) != nil {
		t.Errorf("%v", got)
	}
	got.Close()
	if err := all[2].Close(); err == nil {
		t.Error("a file of the table is still open")
	}
	if got.Close(); len(got.All()) != 0 {
		t.Error("the table is not empty")
	}
	(*Files)(nil).Close()
}

func TestADescriptorWithoutANameIsRefused(t *testing.T) {
	if _, err := NamedFiles([]string{FileTUN}, nil); paddock.KindOf(err) != paddock.Internal {
		t.Errorf("%v", err)
	}
}
