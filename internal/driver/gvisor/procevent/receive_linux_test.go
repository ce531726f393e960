package procevent_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/procevent"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A list keeps events for a test. Only Receive writes it, until it returns.
type list []audit.Event

func (l *list) Record(e audit.Event) { *l = append(*l, e) }

func (l *list) lost() (sum uint64) {
	for _, e := range *l {
		sum += e.Dropped
	}
	return sum
}

// receive sends packets from a sentry's end, closes it, and returns the events.
func receive(t *testing.T, now func() time.Time, packets ...[]byte) list {
	t.Helper()
	ours, theirs, err := sys.EventPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	var got list
	done := make(chan error, 1)
	go func() { done <- procevent.Receive(ours, procevent.Options{Sandbox: "s1", Sink: &got, Now: now}) }()
	for _, p := range packets {
		if _, err := theirs.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return got
}

func noon() time.Time { return time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC) }

func TestEventsHaveTheHostsTimeAndTheSandboxsName(t *testing.T) {
	got := receive(t, noon, recorded(t, "exec"), recorded(t, "exit-one"))
	if len(got) != 2 || got[0].Kind != audit.Exec || got[1].Kind != audit.Exited {
		t.Fatalf("got %+v", got)
	}
	if e := got[0]; !e.Time.Equal(noon()) || e.Sandbox != "s1" || e.Dropped != 0 {
		t.Errorf("got %+v", e)
	}
}

func TestWhatWasLostIsToldByTheNextEvent(t *testing.T) {
	good := func(lost byte) []byte { return packet(clone, lost, by(1)) }
	for _, row := range []struct {
		name    string
		packets [][]byte
		want    []uint64 // Dropped of each event
	}{
		{"none", [][]byte{good(0), good(0)}, []uint64{0, 0}},
		{"the sentry could not send", [][]byte{good(2), good(2), good(5)}, []uint64{2, 0, 3}},
		{"not a packet", [][]byte{{1}, good(0)}, []uint64{1}},
		{"unknown, and the sentry lost some before", [][]byte{packet(99, 4, nil), good(4)}, []uint64{5}},
		{"nothing follows", [][]byte{good(0), {1}}, []uint64{0, 1}},
		{"longer than a packet may be", [][]byte{make([]byte, procevent.MaxPacket+100), good(0)}, []uint64{1}},
		{"a count that goes back is a lie with a bound", [][]byte{good(9), good(8)}, []uint64{9, 1 << 24}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := receive(t, noon, row.packets...)
			if len(got) != len(row.want) {
				t.Fatalf("got %+v", got)
			}
			for i, e := range got {
				if e.Dropped != row.want[i] {
					t.Errorf("event %d tells of %d, want %d", i, e.Dropped, row.want[i])
				}
			}
		})
	}
}

func TestAFloodOfOneKindDoesNotPushOutAnother(t *testing.T) {
	const flood = 60_000
	ours, theirs, err := sys.EventPair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	var got list
	done := make(chan error, 1)
	go func() { done <- procevent.Receive(ours, procevent.Options{Sink: &got, Now: noon}) }()
	open := recorded(t, "open-read")
	for range flood {
		if _, err := theirs.Write(open); err != nil { // os.File waits for room; the sentry would drop
			t.Fatal(err)
		}
	}
	if _, err := theirs.Write(recorded(t, "exec")); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if last := got[len(got)-1]; last.Kind != audit.Exec || last.Dropped == 0 {
		t.Errorf("after the flood came %+v", last)
	}
	if n := uint64(len(got)-1) + got.lost(); n != flood {
		t.Errorf("%d events of %d are told or counted", n, flood)
	}
}

// What is read costs the host processor time that no limit of the sandbox counts.
func TestASentryThatSendsWhatNoGenuineOneDoesIsSlowedDown(t *testing.T) {
	const burst, spare = 50_000, 10_000 // at one time, of a kind; and more until it is slowed down
	open := recorded(t, "open-read")
	for name, row := range map[string]struct {
		packet []byte
		free   int // packets without a pause
	}{"too many events": {open, burst + spare}, "no packets": {[]byte{1}, spare}} {
		t.Run(name, func(t *testing.T) {
			ours, theirs, err := sys.EventPair()
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			var got list
			var paused time.Duration
			done := make(chan error, 1)
			go func() {
				done <- procevent.Receive(ours, procevent.Options{Sink: &got, Now: noon, Sleep: func(d time.Duration) { paused += d }})
			}()
			for range row.free + 1000 {
				if _, err := theirs.Write(row.packet); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := theirs.Write(recorded(t, "exec")); err != nil {
				t.Fatal(err)
			}
			theirs.Close()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if paused != time.Second {
				t.Errorf("1000 packets too many took %v of sleep", paused)
			}
			if last := got[len(got)-1]; last.Kind != audit.Exec || last.Dropped == 0 {
				t.Errorf("after the flood came %+v", last)
			}
		})
	}
}

func TestClosingTheSocketEndsReceive(t *testing.T) {
	ours, theirs, err := sys.EventPair()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	done := make(chan error, 1)
	go func() { done <- procevent.Receive(ours, procevent.Options{Sink: &list{}, Now: noon}) }()
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, os.ErrClosed) {
		t.Errorf("Receive: %v, want %v", err, os.ErrClosed)
	}
}
