package gvisor_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
)

func TestTooLittleMemoryIsSaidToBe(t *testing.T) {
	d, dir := driver(t)
	for _, limit := range []int64{1 << 20, 16 << 20} {
		sb, err := d.Create(t.Context(), paddock.Spec{Ephemeral: true, AllowMissing: drivertest.Weak(t, open), Limits: paddock.Limits{Memory: limit}})
		if err == nil {
			if limit < 16<<20 {
				t.Errorf("%d MiB are enough", limit>>20)
			}
			if err := sb.Remove(t.Context()); err != nil { // a watchdog may be late
				t.Error(err)
			}
			continue
		}
		if paddock.KindOf(err) != paddock.Invalid && paddock.KindOf(err) != paddock.Unavailable || !strings.Contains(err.Error(), "memory") {
			t.Errorf("%d MiB: %v", limit>>20, err)
		}
	}
	if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestWhereNothingCanBeSavedOnlySavingFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := gvisor.New(gvisor.Options{State: filepath.Join(dir, "state"), Data: filepath.Join(file, "data"), Environ: os.Environ(), Audit: new(events)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), spec(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for _, memory := range []bool{true, false} {
		if _, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: memory}); err == nil || !strings.Contains(err.Error(), "/file") {
			t.Errorf("memory %v: %v", memory, err)
		}
	}
	var host interface{ OfHost() bool } // for the sandbox's terms, which else would remove it after an hour of this
	if err := sb.Pause(t.Context()); !errors.As(err, &host) || !host.OfHost() {
		t.Errorf("pause: %v", err)
	}
	if out, exit := in(t.Context(), t, sb, "echo goes on"); exit.Code != 0 || out != "goes on\n" {
		t.Errorf("%q, %+v", out, exit)
	}
}
