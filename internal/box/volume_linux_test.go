package box

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestOnlyTheFilesOfAVolumeAreShown(t *testing.T) {
	for source, want := range map[string]bool{
		"/v/a/data": true, "/v/a-1/data": true,
		"/v": false, "/v/a": false, "/v/a/data/x": false, "/v/a/lock": false, "/v/.gone-1/data": false, "/v/../data": false, "/vv/a/data": false, "/v//data": false,
	} {
		if got := isVolume("/v", source); got != want {
			t.Errorf("%s: %v", source, got)
		}
	}
	if isVolume("", "/a/data") {
		t.Error("without a directory of volumes there is one")
	}
}

// A sandbox that outlives its caller would use a volume that nobody holds.
func TestASandboxThatStaysGetsNoVolume(t *testing.T) {
	home := t.TempDir()
	s, err := NewSite(paddock.Jail, Options{State: filepath.Join(home, "state"), Environ: []string{"HOME=" + home, "XDG_DATA_HOME=" + home}})
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 && s.volumes() != "/var/lib/paddock-volumes" {
		t.Error(s.volumes())
	}
	d := &Driver{site: s, tier: Tier{Name: paddock.Jail}}
	for _, write := range []bool{true, false} {
		spec := paddock.Spec{ID: "a", Root: paddock.Root{Kind: paddock.RootHost}, Mounts: []paddock.Mount{{Source: filepath.Join(s.volumes(), "a", "data"), Target: "/v", Write: write, Cache: true}}}
		if err := d.check(&spec); !errors.Is(err, paddock.Unsupported) {
			t.Errorf("writable %v: %v", write, err)
		}
	}
}
