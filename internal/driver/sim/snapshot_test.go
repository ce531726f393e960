package sim_test

import (
	"bytes"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

func sh(t testing.TB, sb paddock.Sandbox, script string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"bash", "-c", script}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 {
		t.Fatalf("%s: %+v, %v, %s", script, exit, err, &out)
	}
	return out.String()
}

func create(t testing.TB, d paddock.Driver, spec paddock.Spec) paddock.Sandbox {
	t.Helper()
	sb, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

func TestASnapshotOnDiskIsOpenedByTheNextDriver(t *testing.T) {
	dir := t.TempDir()
	first, err := sim.New(sim.Options{Snapshots: dir})
	if err != nil {
		t.Fatal(err)
	}
	sb := create(t, first, paddock.Spec{})
	sh(t, sb, `mkdir -p work/sub; echo one > work/a; ln work/a work/b; ln -s a work/c; chmod 600 work/a; truncate -s 1M work/hole; rm -f .profile; printf 'x\0\xff' > work/$'odd\nname'; touch -d @12345 work/a`)
	id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := sim.New(sim.Options{Snapshots: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	again := create(t, second, paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}})
	got := sh(t, again, `cd work; cat b c; stat -c '%a %h %Y' a; wc -c < hole; cat -v $'odd\nname'; echo; ls -ld . | cut -c1-10; echo more >> a; cat b`)
	if want := "one\none\n600 2 12345\n1048576\nx^@M-^?\ndrwxr-xr-x\none\nmore\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
