package box

import (
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestTheKernelsUserOfASandboxDoesNotFollowFromItsName(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the sandboxes of an ordinary caller have its own user")
	}
	seen := make(map[int]bool)
	for range 20 { // two of them are alike once in a million runs
		id, err := identify(&paddock.Spec{ID: "same"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if id.KUID < firstKernelID || id.KUID >= firstKernelID+kernelIDs || id.KGID != id.KUID {
			t.Errorf("user %d, group %d", id.KUID, id.KGID)
		}
		seen[id.KUID] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d users of 20 sandboxes", len(seen))
	}
}
