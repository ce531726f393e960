package microvm_test

import (
	"crypto/sha256"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/bootfiles"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// needBalloon skips a test if an earlier version set up the kernel of machines, without a
// balloon.
func needBalloon(t *testing.T) {
	t.Helper()
	microvmtest.Need(t)
	data := os.Getenv(microvmtest.KernelVariable)
	if data == "" {
		data = filepath.Join(box.DefaultData(os.Environ()), "vm")
	}
	linux, err := bootfiles.Find(bootfiles.Options{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	if gives, err := linux.GivesBack(); err != nil || !gives {
		t.Skipf("this kernel gives no memory back (%v); run `paddock vm setup` again", err)
	}
}

// used returns the memory that the host has given to a sandbox.
func used(t *testing.T, sb paddock.Sandbox) int64 {
	t.Helper()
	st, err := sb.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st.Usage.Memory
}

// until polls without a short deadline.
func until(t *testing.T, what string, there func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !there(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never comes: %s", what)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// sums returns the hashes of the files of templates.
func sums(t *testing.T, data string) map[string][32]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(data, "templates", "*", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	all := map[string][32]byte{}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		all[name] = [32]byte(h.Sum(nil))
	}
	return all
}

const (
	fill  = "head -c 150000000 /dev/urandom > /dev/shm/fill"
	empty = "rm /dev/shm/fill"
	much  = 100 << 20 // less than fill uses and returns
)

func TestMemoryThatCommandsFreeGoesBackToTheHost(t *testing.T) {
	sample.Turn(t, "machines", 3)
	needBalloon(t)
	d, data := own(t, nil)
	if err := create(t, d, paddock.Spec{ID: "starts"}).Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	template(t, data)
	sb := create(t, d, paddock.Spec{ID: "returns"}) // restored from it
	says(t, sb, "true")
	before, whole := used(t, sb), sums(t, data)
	for range 2 { // the second time it takes the returned memory again
		if got := says(t, sb, "sh", "-c", fill); got != "" {
			t.Fatalf("%q", got)
		}
		full := used(t, sb)
		if full < before+much {
			t.Fatalf("%d MiB are in use, and %d were before", full>>20, before>>20)
		}
		says(t, sb, "sh", "-c", empty)
		freed := time.Now()
		until(t, "the host has it back", func() bool { return used(t, sb) < full-much })
		t.Logf("of %d MiB (%d before) %d are left after %v", full>>20, before>>20, used(t, sb)>>20, time.Since(freed))
	}
	// The returned memory was mapped from the template, which others use.
	for name, sum := range sums(t, data) {
		if sum != whole[name] {
			t.Errorf("%s was changed", name)
		}
	}
	if got := says(t, create(t, d, paddock.Spec{ID: "other"}), "echo", "hi"); got != "hi\n" {
		t.Errorf("the next machine of the template says %q", got)
	}
}

// Memory that a machine returned is not in its saved state, and the machine can take it
// again.
func TestAMachineThatGaveMemoryBackIsSavedAndGoesOn(t *testing.T) {
	sample.Turn(t, "machines", 3)
	needBalloon(t)
	d, _ := own(t, nil)
	sb := create(t, d, paddock.Spec{ID: "goes-on"})
	says(t, sb, "sh", "-c", fill+"; echo kept > /tmp/file")
	full := used(t, sb)
	says(t, sb, "sh", "-c", empty)
	until(t, "the host has it back", func() bool { return used(t, sb) < full-much })
	id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sb.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	fork := create(t, d, paddock.Spec{ID: "fork", Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}})
	for _, b := range []paddock.Sandbox{sb, fork} {
		if n := used(t, b); n > full-much {
			t.Errorf("%s has %d MiB", b.ID(), n>>20)
		}
		if got := says(t, b, "sh", "-c", fill+"; cat /tmp/file; sha256sum /dev/shm/fill | wc -c; "+empty); got != "kept\n80\n" {
			t.Errorf("%s says %q", b.ID(), got)
		}
	}
}

func TestTheMemoryOfALivingMachineCanBeChanged(t *testing.T) {
	sample.Turn(t, "machines", 3)
	needBalloon(t)
	d, _ := own(t, nil)
	info, err := d.Info(t.Context(), paddock.Auto)
	if err != nil {
		t.Fatal(err)
	}
	if f, ok := info.Finding(paddock.ControlMemory); !ok || f.Strength != paddock.Full || !slices.Contains(info.Capabilities, paddock.CanUpdateLimits) {
		t.Skipf("limits of what lives cannot be changed here: %+v", f)
	}
	sb := create(t, d, paddock.Spec{ID: "changes"})
	limit := func(n int64) error {
		return sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{Memory: n}})
	}
	now := func() int64 {
		t.Helper()
		st, err := sb.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return st.Limits.Memory
	}
	const was, less = 256 << 20, 64 << 20
	if err := limit(was + 1<<20); paddock.KindOf(err) != paddock.Unsupported || !strings.Contains(err.Error(), "made for 256 MiB") {
		t.Errorf("more than it was made with: %v", err)
	}
	// Memory of running commands is not taken from them.
	says(t, sb, "sh", "-c", fill)
	if err := limit(less); paddock.KindOf(err) != paddock.Conflict || now() != was {
		t.Errorf("less than is in use: %v, and the limit is %d", err, now())
	}
	if got := says(t, sb, "sh", "-c", "wc -c < /dev/shm/fill"); got != "150000000\n" {
		t.Errorf("%q", got)
	}
	full := used(t, sb)
	says(t, sb, "sh", "-c", empty)
	if err := limit(less); err != nil || now() != less {
		t.Fatalf("%v, and the limit is %d", err, now())
	}
	until(t, "the host has it back", func() bool { return used(t, sb) < full-much })
	const grow = "head -c 150000000 /dev/zero | tail | wc -c"
	if got := says(t, sb, "sh", "-c", grow); got == "150000000\n" {
		t.Errorf("a command that has more than the new limit says %q", got)
	}
	for _, step := range []func() error{
		func() error { return sb.Pause(t.Context()) }, func() error { return sb.Resume(t.Context()) },
		func() error { return limit(was) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	if got := says(t, sb, "sh", "-c", grow); got != "150000000\n" || now() != was {
		t.Errorf("%q, and the limit is %d", got, now())
	}
}
