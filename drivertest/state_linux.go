package drivertest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// StateGone checks that a sandbox ends, with its keeper, when the state directory that leads to it is
// removed. It is for drivers whose sandboxes have keepers.
func StateGone(t *testing.T, open func(state string) (paddock.Driver, error)) {
	t.Helper()
	weak := Weak(t, open)
	dir, err := os.MkdirTemp("", "dt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	state := filepath.Join(dir, "state")
	d, err := open(state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	keepers := func() (list []string) {
		t.Helper()
		names, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			stat, err := os.ReadFile(name)
			args, argsErr := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			if err != nil || argsErr != nil || !strings.HasPrefix(string(args), "paddock-keeper\x00") {
				continue // it has ended
			}
			if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); fields[1] == fmt.Sprint(os.Getpid()) {
				list = append(list, name)
			}
		}
		return list
	}
	before := len(keepers())
	sb, err := d.Create(t.Context(), paddock.Spec{AllowMissing: weak})
	if err != nil {
		t.Fatal(err)
	}
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sleep", "1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(keepers()); n != before+1 {
		t.Fatalf("%d keepers, and were %d", n, before)
	}
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(bounded(t)); err == nil && exit.Signal == 0 && exit.Cause == "" && exit.Code == 0 {
		t.Errorf("the command ended well: %+v", exit)
	}
	for end := time.Now().Add(patience); len(keepers()) > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the keeper goes on")
		}
	}
	if _, err := d.Open(t.Context(), sb.ID()); paddock.KindOf(err) != paddock.NotFound {
		t.Errorf("open: %v", err)
	}
}
