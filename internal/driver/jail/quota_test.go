//go:build linux

package jail

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
)

// The system-call filter refuses namespaces as well. This is what holds if it does not.
func TestTheKernelGivesAJailNoNamespace(t *testing.T) {
	d, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{ID: "quota", AllowMissing: drivertest.Weak(t, open)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"/bin/sh", "-c", "cat /proc/sys/user/max_*_namespaces /proc/sys/user/max_fanotify_*"},
		Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(out.String())
	if len(got) < 10 || slices.ContainsFunc(got, func(s string) bool { return s != "0" }) {
		t.Errorf("%q", out.String())
	}
}

func TestTheKernelGivesAJailOfAUserNoNamespace(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestTheKernelGivesAJailNoNamespace$", 1)
}
