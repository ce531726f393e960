package gvisor_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
)

func TestASandboxMayBeRootsWhoHasNoCapability(t *testing.T) {
	d, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{User: "root", Ephemeral: true, AllowMissing: drivertest.Weak(t, open)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{
		Args:   []string{"sh", "-c", `id -u; echo x > "$HOME/x"; cat "$HOME/x"; grep ^Cap /proc/self/status; unshare -m true || echo refused`},
		Output: paddock.Output{Stdout: &out},
	})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(t.Context())
	lines := strings.Fields(out.String())
	want := "0 x CapInh: 0 CapPrm: 0 CapEff: 0 CapBnd: 0 CapAmb: 0 refused"
	for i, l := range lines {
		if strings.Trim(l, "0") == "" {
			lines[i] = "0"
		}
	}
	if got := strings.Join(lines, " "); err != nil || exit.Code != 0 || got != want {
		t.Errorf("%q, %+v, %v", got, exit, err)
	}
}
