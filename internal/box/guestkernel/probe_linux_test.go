package guestkernel

import (
	"os"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// Without a cache everything works, but takes longer. doctor reports that.
func TestAProgramThatCannotBeKeptIsTold(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for cache, told := range map[string]bool{dir + "/cache": false, dir + "/file/cache": true} {
		site, err := box.NewSite(paddock.GVisor, box.Options{State: dir + "/state", Data: dir + "/data", Cache: cache})
		if err != nil {
			t.Fatal(err)
		}
		carried := program.Embedded("kernel", []byte("a program"))
		p := &Probe{Site: site, Name: func() string { return "none" }, Program: carried, Init: site.Open(carried)}
		for _, f := range p.Controls(nil, nil) {
			if f.Control == paddock.ControlKernel && strings.Contains(f.How, cache) != told {
				t.Errorf("%s: %q", cache, f.How)
			}
		}
		if err := box.New(site, box.Tier{}).Close(); err != nil {
			t.Error(err)
		}
	}
}
