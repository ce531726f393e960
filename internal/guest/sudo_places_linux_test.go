package guest

import "testing"

// What commands ask by sudo leaves the agent descriptors, however few it may have: without
// any it finds no process that is to be killed.
func TestSudoLeavesTheAgentDescriptors(t *testing.T) {
	for files, want := range map[uint64]int{0: 1, 16: 1, 256: 16, 1024: 64, 1 << 20: 64, 1<<64 - 1: 64} {
		if n := sudoPlaces(files); n != want {
			t.Errorf("of %d files: %d places, want %d", files, n, want)
		}
	}
}
