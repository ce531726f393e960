package steptest

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// Seen promises that the info of a tier tells what a monitor sees and whether changes can be reviewed, and that a server's
// clients are told of neither. Freezes says whether a pause stops processes where they are.
func Seen(t *testing.T, open Open, freezes bool) {
	t.Helper()
	dir := t.TempDir()
	ask := func(journal string) paddock.Info {
		d, err := open(filepath.Join(dir, "state"), journal)
		if err != nil {
			t.Fatal(err)
		}
		info, err := d.Info(t.Context(), paddock.Auto)
		if closed := d.Close(); err == nil {
			err = closed
		}
		if err != nil {
			t.Fatal(err)
		}
		if !info.Available {
			t.Skipf("tier %s makes no sandbox here", info.Tier)
		}
		return info
	}
	info := ask(filepath.Join(dir, "steps"))
	for c, want := range map[paddock.Capability]bool{
		paddock.CanReview:         true, // the tests of reviews run on the same kernel
		paddock.CanMonitorFiles:   true,
		paddock.CanMonitorNetwork: info.Can(paddock.CanNetworkList),
		paddock.CanMonitorFreeze:  freezes && info.Can(paddock.CanPause),
	} {
		if info.Can(c) != want {
			t.Errorf("%s: %t, not %t", c, info.Can(c), want)
		}
	}
	told := info.ForClients()
	for _, c := range info.Capabilities {
		ours := slices.Contains([]paddock.Capability{paddock.CanReview, paddock.CanMonitorFiles, paddock.CanMonitorNetwork, paddock.CanMonitorFreeze}, c)
		if told.Can(c) == ours {
			t.Errorf("a server's client is told of %s: %t", c, told.Can(c))
		}
	}
	if without := ask(""); without.Can(paddock.CanMonitorFiles) || without.Can(paddock.CanUndo) {
		t.Errorf("without a journal there is %v", without.Capabilities)
	}
}
