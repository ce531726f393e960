package daytona

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// What is kept of terminals has the bound of what a sandbox can have at a time.
func TestATerminalThatHasEndedIsForgotten(t *testing.T) {
	key := func(box paddock.ID, id string) ptyKey { return ptyKey{box, id} }
	h := &Handler{ptys: map[ptyKey]*pty{key("a", "ended"): {}, key("a", "runs"): {}, key("a", "again"): {}, key("b", "ended"): {}}}
	known := h.ptysNow("a")
	h.ptys[key("a", "new")], h.ptys[key("a", "again")] = &pty{}, &pty{} // begun while the list is read
	h.sweepPTYs(known, []paddock.ProcessInfo{{Args: []string{"sh", "-c", "", ptyShell, "runs"}}})
	for k, want := range map[ptyKey]bool{key("a", "ended"): false, key("a", "runs"): true, key("a", "again"): true, key("a", "new"): true, key("b", "ended"): true} {
		if h.ptys[k] != nil != want {
			t.Errorf("%v is kept: %v", k, !want)
		}
	}
}
