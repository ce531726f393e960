//go:build linux

package jail

import (
	"bytes"
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestMain(m *testing.M) {
	if Main() {
		return
	}
	os.Exit(m.Run())
}

func TestSmoke(t *testing.T) {
	d, err := New(Options{State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, eph := range []bool{true, false} {
		sb, err := d.Create(t.Context(), paddock.Spec{Ephemeral: eph})
		if err != nil {
			t.Fatal(err)
		}
		var out, errb bytes.Buffer
		p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", "id; mount; ls -la / /dev ~; env; cat /proc/self/status | egrep 'Cap|NoNew|Secc|Uid'; ip a; ps aux"}, Output: paddock.Output{Stdout: &out, Stderr: &errb}})
		if err != nil {
			t.Fatal(err)
		}
		ex, err := p.Wait(t.Context())
		t.Log(ex, err, out.String(), errb.String())
		t.Log(sb.Status(t.Context()))
		if err := sb.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
