package parent

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// usurped gives a sandbox whose child was taken over: what is sent to it is handed to answer, which
// gives what it says. Nil is silence, until the connection ends.
func usurped(t *testing.T, d *Driver, spec paddock.Spec, answer func(protocol.Order) any) (*sandbox, paddock.Status) {
	t.Helper()
	made, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	sb, ok := made.(*sandbox)
	if !ok {
		t.Fatalf("a sandbox is a %T", made)
	}
	before, err := sb.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = sb.Remove(context.WithoutCancel(t.Context())) })
	t.Cleanup(func() { _ = theirs.Close() })
	old := sb.control
	t.Cleanup(func() { _ = old.Close() })
	sb.control, sb.link = ours, protocol.Link{Conn: ours}
	go func() {
		for {
			var o protocol.Order
			if protocol.Receive(theirs, &o, math.MaxUint32) != nil {
				return
			}
			if says := answer(o); says != nil && protocol.Send(theirs, says) != nil {
				_ = theirs.Close()
				return
			}
		}
	}()
	return sb, before
}

func driver(t *testing.T) *Driver {
	t.Helper()
	d, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

var owned = paddock.Spec{Labels: map[string]string{"owner": "acme"}, Limits: paddock.Limits{Memory: 64 << 20, Disk: 32 << 20, PIDs: 50}}

// isHosts checks that a status is what the host knows, whatever the child said.
func isHosts(t *testing.T, st, before paddock.Status) {
	t.Helper()
	if st.ID != before.ID || st.Tier != paddock.Sim || st.State != paddock.Ready || st.Limits != before.Limits || !maps.Equal(st.Labels, before.Labels) ||
		!st.Created.Equal(before.Created) || st.User != before.User || st.Dir != before.Dir || len(st.Enforced) != len(before.Enforced) || st.PassedOver != nil {
		t.Errorf("it is\n%+v\nand was\n%+v", st, before)
	}
	if u := st.Usage; u.Wall < before.Usage.Wall || u.Wall > time.Since(before.Created)+time.Hour {
		t.Errorf("it has run for %v, and was made at %v", u.Wall, before.Created)
	}
	if strings.ContainsAny(st.Reason, "\x1b\x07\n") || len(st.Reason) > protocol.MaxText {
		t.Errorf("its reason is not plain: %.200q", st.Reason)
	}
}

func TestAnErrorOfAHostileChildNeitherHidesItsSandboxNorFailsAList(t *testing.T) {
	d := driver(t)
	failure := func(k paddock.Kind) any { return protocol.Reply{Kind: k, Error: "sandbox \x1b[31m: no"} }
	for name, says := range map[string]any{
		"not found": failure(paddock.NotFound), "unavailable": failure(paddock.Unavailable), "denied": failure(paddock.Denied),
		"canceled": failure(paddock.Canceled), "no kind": failure(200), "nothing": protocol.Reply{},
		"a long story": protocol.Reply{Kind: paddock.NotFound, Error: strings.Repeat("x", protocol.MaxReply/2)},
	} {
		t.Run(name, func(t *testing.T) {
			sb, before := usurped(t, d, owned, func(protocol.Order) any { return says })
			for range 2 { // it is asked again
				st, err := sb.Status(t.Context())
				if err != nil {
					t.Fatalf("its status fails: %v", err)
				}
				isHosts(t, st, before)
				if u := st.Usage; st.Reason == "" || u.CPU < before.Usage.CPU || u.CPU > 4096*u.Wall || u.Memory != -1 || u.MemoryPeak != -1 || u.PIDs != -1 {
					t.Errorf("it does not say what is missing: %q, %+v", st.Reason, u)
				}
			}
			list, err := d.List(t.Context())
			if err != nil || len(list) != 1 {
				t.Fatalf("the list: %v, %v", list, err)
			}
			isHosts(t, list[0], before)
			select {
			case <-sb.ended:
				t.Error("its child was ended")
			default:
			}
			if err := sb.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOfAStatusOfAHostileChildOnlyWhatCanBeTrueIsBelieved(t *testing.T) {
	d := driver(t)
	lie := protocol.Status{
		User: "root", Dir: "/\x1b", Limits: paddock.Limits{Memory: 1 << 60, CPUs: 1 << 20},
		Usage: paddock.Usage{Wall: math.MaxInt64, CPU: math.MaxInt64, Memory: math.MaxInt64, MemoryPeak: math.MaxInt64, PIDs: math.MaxInt},
	}
	for range 2 * maxRefused {
		lie.Refused = append(lie.Refused, paddock.Refusal{Time: time.Unix(1<<40, 0), What: "\x1b]0;\x07", Target: strings.Repeat("x", 60), Rule: "\n", Remedy: "\x1b", Count: -1})
	}
	long := &lie.Refused[len(lie.Refused)-1]
	long.Target, long.Rule = strings.Repeat("x", 10_000), strings.Repeat("\x1b", 10_000)
	low := lie
	low.Limits, low.Usage, low.Refused = paddock.Limits{}, paddock.Usage{Wall: math.MinInt64, CPU: math.MinInt64, Memory: math.MinInt64, MemoryPeak: math.MinInt64, PIDs: math.MinInt}, nil
	var says protocol.Status
	sb, before := usurped(t, d, owned, func(protocol.Order) any { return protocol.Reply{Status: &says} })
	var last paddock.Usage
	for i, lies := range []protocol.Status{lie, low, lie} {
		says = lies
		st, err := sb.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		isHosts(t, st, before)
		u := st.Usage
		if u.CPU < max(last.CPU, before.Usage.CPU) || u.CPU > time.Duration(runtime.NumCPU())*u.Wall+time.Second || u.Memory < 0 || u.Memory > 96<<20 || u.MemoryPeak < last.MemoryPeak || u.MemoryPeak > 96<<20 || u.PIDs < 0 || u.PIDs > 50 {
			t.Errorf("status %d: %+v after %+v", i, u, last)
		}
		last = u
		if *st.Traffic != (paddock.Traffic{}) || len(st.Refused) > maxRefused {
			t.Errorf("status %d: traffic %+v, %d refusals", i, st.Traffic, len(st.Refused))
		}
		if data, err := json.Marshal(st.Refused); err != nil || len(data) > gatewayclient.InsideMax {
			t.Errorf("status %d: %d bytes of refusals, %v", i, len(data), err)
		}
		for _, r := range st.Refused {
			if strings.ContainsAny(r.What+r.Rule+r.Remedy, "\x1b\x07\n") || len(r.Target) > protocol.MaxText || r.Count < 1 || r.Time.After(time.Now().Add(time.Hour)) {
				t.Fatalf("status %d: a refusal is %q %.300q %q %q, %d times at %v", i, r.What, r.Target, r.Rule, r.Remedy, r.Count, r.Time)
			}
		}
	}
}

func TestLimitsAndLabelsAreThoseOfTheLastUpdateThatWasNotRefused(t *testing.T) {
	d := driver(t)
	var refuse bool
	sb, before := usurped(t, d, owned, func(o protocol.Order) any {
		if o.Op == "update" && refuse {
			return protocol.Reply{Kind: paddock.Conflict, Error: "no"}
		}
		return protocol.Reply{Status: &protocol.Status{Limits: paddock.Limits{Memory: 1}}}
	})
	if err := sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{Memory: 32 << 20}, Labels: map[string]string{"owner": "b"}}); err != nil {
		t.Fatal(err)
	}
	refuse = true
	if err := sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{Memory: 16 << 20}, Labels: map[string]string{}}); !errors.Is(err, paddock.Conflict) {
		t.Fatal(err)
	}
	refuse = false
	if err := sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{Memory: -1}}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("a negative limit: %v", err)
	}
	want, err := d.Create(t.Context(), paddock.Spec{Limits: paddock.Limits{Memory: 32 << 20, Disk: owned.Limits.Disk, PIDs: owned.Limits.PIDs}})
	if err != nil {
		t.Fatal(err)
	}
	honest, err := want.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	st, err := sb.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before.Limits, before.Labels = honest.Limits, map[string]string{"owner": "b"}
	isHosts(t, st, before)
}

// A script chooses how many refusals there are, and how long.
func TestRefusalsOfAnHonestChildFitIntoItsStatus(t *testing.T) {
	d := driver(t)
	sb, err := d.Create(t.Context(), paddock.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	said(t, sb, `long=$(printf 'x%.0s' {1..3000}); for i in {1..400}; do curl http://$i.$long/; done`)
	st, err := sb.Status(t.Context())
	if err != nil || st.State != paddock.Ready || st.Reason != "" || st.Usage.PIDs < 0 {
		t.Fatalf("%v %v %q %+v", err, st.State, st.Reason, st.Usage)
	}
	if n := len(st.Refused); n < 10 || !strings.Contains(st.Refused[n-1].Target, "400.xxx") {
		t.Errorf("%d refusals, and the last is %+.100v", n, st.Refused[max(0, n-1):])
	}
}

// What a child counts its limits by is what the host believes of them.
func TestAnHonestChildHasTheLimitsThatTheHostTells(t *testing.T) {
	d := driver(t)
	sb, err := d.Create(t.Context(), owned)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := sb.(*sandbox)
	if !ok {
		t.Fatalf("a sandbox is a %T", sb)
	}
	for _, l := range []paddock.Limits{owned.Limits, {}, {CPUs: 0.5, Files: 20, Lifetime: time.Hour}} {
		if err := sb.Update(t.Context(), paddock.Update{Limits: &l}); err != nil {
			t.Fatal(err)
		}
		st, err := sb.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		told, err := s.inside(t.Context())
		if err != nil || told.Limits != st.Limits || told.User != st.User || told.Dir != st.Dir {
			t.Errorf("the child says\n%+v, %v\nand the host\n%+v", told, err, st)
		}
	}
}

func TestAStatusWaitsNeitherForAnotherExchangeNorForASilentChild(t *testing.T) {
	d := driver(t)
	begun := make(chan string, 10)
	silent, before := usurped(t, d, owned, func(o protocol.Order) any {
		begun <- o.Op
		return nil
	})
	if _, err := d.Create(t.Context(), paddock.Spec{}); err != nil {
		t.Fatal(err)
	}
	list := func(why string) {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		st, err := silent.Status(ctx)
		if err != nil || !strings.Contains(st.Reason, why) {
			t.Fatalf("its status: %q, %v", st.Reason, err)
		}
		isHosts(t, st, before)
		all, err := d.List(ctx)
		if err != nil || len(all) != 2 {
			t.Errorf("the list: %v, %v", all, err)
		}
	}
	list("not answered in time")
	if op := <-begun; op != "status" {
		t.Errorf("it was asked for %s", op)
	}
	// The first question holds the socket still.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := silent.Pause(ctx); !errors.Is(err, paddock.Canceled) {
		t.Errorf("pause: %v", err)
	}
	list("its process")
	select {
	case <-silent.ended:
		t.Error("the child was ended before its time")
	default:
	}
	if err := silent.Remove(t.Context()); err != nil { // it waits for the question
		t.Error(err)
	}
}

func TestAChildThatClosesItsConnectionIsEnded(t *testing.T) {
	d := driver(t)
	sb, _ := usurped(t, d, owned, func(protocol.Order) any { return struct{ X chan int }{} }) // cannot be sent, so it hangs up
	st, err := sb.Status(t.Context())
	for err == nil && st.State != paddock.Dead {
		st, err = sb.Status(t.Context())
	}
	if err != nil || st.Reason == "" {
		t.Fatalf("its status: %v %v %q", err, st.State, st.Reason)
	}
	<-sb.ended
}

// A process cannot raise its own bounds, and would end beyond them.
func TestLimitsBeyondThoseOfTheProcessAreRefused(t *testing.T) {
	sb, err := driver(t).Create(t.Context(), paddock.Spec{Limits: paddock.Limits{Memory: 64 << 20, Disk: 64 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	for memory, kind := range map[int64]paddock.Kind{192 << 20: 0, 193 << 20: paddock.Conflict, 1 << 62: paddock.Conflict} {
		err := sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{Memory: memory}})
		if kind == 0 && err != nil || kind != 0 && (!errors.Is(err, kind) || !strings.Contains(err.Error(), "268435456 bytes")) {
			t.Errorf("%d: %v", memory, err)
		}
	}
	st, err := sb.Status(t.Context())
	if err != nil || st.State != paddock.Ready || st.Limits.Memory != 192<<20 || st.Limits.Disk != 64<<20 {
		t.Errorf("%v, %v, %+v", err, st.State, st.Limits)
	}
}
