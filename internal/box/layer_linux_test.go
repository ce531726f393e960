package box

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// An init of another version that does not know layers must not write to the directory.
func TestAMountWithALayerIsReadOnlyForWhoDoesNotKnowLayers(t *testing.T) {
	dir := t.TempDir()
	l := &Layout{layers: map[string]string{dir: "/layer"}}
	mounts, err := l.userMounts(&paddock.Spec{Mounts: []paddock.Mount{{Source: dir, Target: "/work", Overlay: true}}})
	if err != nil || len(mounts) != 1 {
		t.Fatalf("%+v, %v", mounts, err)
	}
	if m := &mounts[0]; m.Write || m.Upper != "/layer" || !m.Writable() {
		t.Errorf("%+v", m)
	}
}
