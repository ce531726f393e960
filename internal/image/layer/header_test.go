package layer_test

import (
	"archive/tar"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/layer"
)

func TestAHeaderGetsNamesOfItsOwn(t *testing.T) {
	block := strings.Repeat("x", 1<<20)
	h := &tar.Header{Name: block[:4096], Linkname: block[7:9]}
	if err := layer.Own(h); err != nil || h.Name != block[:4096] || h.Linkname != "xx" {
		t.Fatal(h.Linkname, err)
	}
	if unsafe.StringData(h.Name) == unsafe.StringData(block) || unsafe.StringData(h.Linkname) == unsafe.StringData(block[7:]) {
		t.Error("the names are parts of the record")
	}
	for what, h := range map[string]tar.Header{"name": {Name: block[:4097]}, "link": {Name: "a", Linkname: block[:4097]}} {
		if err := layer.Own(&h); !errors.Is(err, paddock.Invalid) || len(err.Error()) > 1000 {
			t.Errorf("a long %s: %v", what, err)
		}
	}
}
