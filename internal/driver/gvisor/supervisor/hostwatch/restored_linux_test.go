package hostwatch

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"gvisor.dev/gvisor/pkg/sentry/vfs"
)

// A newer gVisor may have other fields, and then watches are not found after a pause.
func TestWatchesAreFoundInAnInstanceOfGVisors(t *testing.T) {
	i := new(vfs.Inotify)
	if got := targets(i); len(got) > 0 {
		t.Errorf("%v", got)
	}
	watches, _ := reflect.TypeFor[vfs.Inotify]().FieldByName("watches")
	if watches.Type != reflect.TypeFor[map[int32]*vfs.Watch]() {
		t.Errorf("the watches of an instance are a %v", watches.Type)
	}
	if target, ok := reflect.TypeFor[vfs.Watch]().FieldByName("target"); !ok || target.Type != reflect.TypeFor[*vfs.Dentry]() {
		t.Errorf("the target of a watch is a %v", target.Type)
	}
}

func TestTheConfigurationIsReadAsItWasWritten(t *testing.T) {
	for _, want := range [][]string{nil, {"/work", "/mnt/with space"}} {
		data, err := json.Marshal(Config(want))
		if err != nil {
			t.Fatal(err)
		}
		var config map[string]any
		if err := json.Unmarshal(data, &config); err != nil {
			t.Fatal(err)
		}
		if got := mounts(config); !slices.Equal(got, want) {
			t.Errorf("%q is read as %q", want, got)
		}
	}
}
