package box

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestAKeeperTellsWhetherAnErrorIsTheHosts(t *testing.T) {
	full := fmt.Errorf("no space left on device: %w", paddock.Exhausted)
	for _, c := range []struct {
		err  error
		host bool
	}{
		{full, false},
		{fmt.Errorf("pause: %w", HostFault(full)), true},
		{errors.Join(&ToldError{"it does not hold still", paddock.Exhausted}, HostFault(full)), true},
		{fmt.Errorf("pause: %w", &ToldError{"the host's disk is full, says the box", paddock.Exhausted}), false},
	} {
		data, err := json.Marshal(failed(c.err))
		if err != nil {
			t.Fatal(err)
		}
		var r response
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		told := fmt.Errorf("sandbox a: %w", r.err())
		var says interface{ OfHost() bool } // as others find it
		if host := errors.As(told, &says) && says.OfHost(); host != c.host || paddock.KindOf(told) != paddock.Exhausted {
			t.Errorf("%v: the host's: %t, of kind %v", told, host, paddock.KindOf(told))
		}
	}
	if err := HostFault(nil); err != nil {
		t.Error(err)
	}
}

func TestADiskIsTriedAndNothingIsLeftOnIt(t *testing.T) {
	dir := t.TempDir()
	if err := TryDisk(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if err := TryDisk(filepath.Join(dir, "none")); err == nil {
		t.Error("nothing can be written to a directory that is not there")
	}
}
