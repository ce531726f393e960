package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A hostileInside is a tier whose boxes answer what an attacker chose.
type hostileInside struct {
	Client

	refusals func(ctx context.Context) error
	told     []paddock.Refusal
}

func (h hostileInside) Refusals(ctx context.Context, _ *Sandbox, _ *guestclient.Guest, st *paddock.Status) error {
	st.Refused = h.told
	return h.refusals(ctx)
}

// A standingOwner owns a box that runs.
type standingOwner struct{ boxOwner }

func (standingOwner) Measure(context.Context) (Measure, error) {
	return Measure{Standing: Standing{State: paddock.Ready}}, nil
}

func (standingOwner) Standing(context.Context) (Standing, error) {
	return Standing{State: paddock.Ready}, nil
}

func (standingOwner) connect(context.Context) (net.Conn, *statusBoard, error) {
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }() // an agent that only reads; ends with the connection
	return ours, nil, nil
}

// hostileSandboxes returns a driver with sandboxes whose inside answers with refusals.
func hostileSandboxes(t *testing.T, n int, refusals func(ctx context.Context) error) (*Driver, []*Sandbox) {
	t.Helper()
	d := &Driver{site: &Site{state: t.TempDir()}}
	d.tier.Client = hostileInside{refusals: refusals}
	var list []*Sandbox
	for i := range n {
		id := paddock.ID(fmt.Sprintf("hostile-%d", i))
		sb := &Sandbox{id: id, driver: d, owner: standingOwner{}, dialing: make(chan struct{}, 1)}
		t.Cleanup(sb.letGo)
		if err := d.ephemeral.Reserve(id); err != nil {
			t.Fatal(err)
		}
		if err := d.ephemeral.Add(sb); err != nil {
			t.Fatal(err)
		}
		list = append(list, sb)
	}
	return d, list
}

func TestTheInsideOfASandboxCannotHideItOrBreakTheList(t *testing.T) {
	for _, kind := range []paddock.Kind{paddock.NotFound, paddock.Unavailable, paddock.Timeout, paddock.Internal, paddock.Canceled} {
		t.Run(kind.Error(), func(t *testing.T) {
			d, boxes := hostileSandboxes(t, 2, func(context.Context) error { return fmt.Errorf("no\nsuch sandbox: %w", kind) })
			st, err := boxes[0].Status(t.Context())
			if err != nil || st.State != paddock.Ready || !strings.Contains(st.Reason, "no such sandbox") {
				t.Errorf("status: %+v, %v", st, err)
			}
			if list, err := d.List(t.Context()); err != nil || len(list) != 2 {
				t.Errorf("list: %+v, %v", list, err)
			}
		})
	}
}

func TestSandboxesThatDoNotAnswerDelayTheListOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, boxes := hostileSandboxes(t, 200, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		defer func() {
			for _, sb := range boxes {
				sb.letGo()
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		list, err := d.List(ctx)
		if took := time.Since(began); err != nil || len(list) != len(boxes) || took > listTime {
			t.Errorf("%d sandboxes after %v, %v", len(list), took, err)
		}
	})
}

func TestACallerWhoGivesUpIsToldSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, boxes := hostileSandboxes(t, 1, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if _, err := boxes[0].Status(ctx); !errors.Is(err, paddock.Canceled) {
		t.Error(err)
	}
}

// By a kind a caller learns what the driver says of a sandbox: that it is gone, or has no keeper.
func TestABoxHasNoKindThatTheDriverSays(t *testing.T) {
	for kind := paddock.Internal; kind <= paddock.Canceled+1; kind++ {
		running := kind
		switch kind {
		case paddock.NotFound, paddock.Exists, paddock.Unavailable, paddock.Canceled, paddock.Canceled + 1:
			running = paddock.Internal
		default:
		}
		made := running
		switch kind {
		case paddock.NotFound: // what the spec names
			made = paddock.Invalid
		case paddock.Unavailable:
			made = kind
		case paddock.Internal, paddock.Exists, paddock.Canceled, paddock.Canceled + 1:
			made = paddock.Unsupported
		default:
		}
		said, err := json.Marshal(boxinit.Report{Error: "as the box says", Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs, err := sys.Pair()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := theirs.Write(said); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		if err := (&Box{ended: ended}).Report(t.Context(), ours); paddock.KindOf(err) != running || err.Error() != "as the box says" {
			t.Errorf("a report of %v: %v, of kind %v", kind, err, paddock.KindOf(err))
		}
		CloseAll([]*os.File{ours, theirs})
		control, inside := channels(t)
		if err := inside.Send(said); err != nil {
			t.Fatal(err)
		}
		if err := (&Box{control: control, ended: ended}).ready(t.Context()); paddock.KindOf(err) != made || !strings.Contains(err.Error(), "as the box says") {
			t.Errorf("a first report of %v: %v, of kind %v", kind, err, paddock.KindOf(err))
		}
	}
}

// longRefusals returns as many refusals as a box may tell, each of them long.
func longRefusals() (many []paddock.Refusal) {
	for i := range maxRefusals {
		many = append(many, paddock.Refusal{What: "make", Target: fmt.Sprintf("/%d/%s", i, strings.Repeat("\x01", 4000)), Rule: ".git/hooks", Count: 1})
	}
	return many
}

func TestAStatusHasTheNewestRefusalsOfABoxAndNotMegabytesOfThem(t *testing.T) {
	d, boxes := hostileSandboxes(t, 1, func(context.Context) error { return nil })
	many := longRefusals()
	d.tier.Client = hostileInside{refusals: func(context.Context) error { return nil }, told: many}
	st, err := boxes[0].Status(t.Context())
	must(t, err)
	data, err := json.Marshal(st.Refused)
	if err != nil || len(data) > gatewayclient.InsideMax {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if n := len(st.Refused); n == 0 || st.Refused[n-1].Target != many[len(many)-1].Target {
		t.Errorf("%d refusals, and not the newest", n)
	}
}

func TestAKeepersAnswerFitsIntoAPacket(t *testing.T) {
	many := longRefusals()
	i := boxinit.Inspection{Refusals: many}
	fit(&i)
	data, err := json.Marshal(response{Inspect: &i})
	if err != nil || len(data) > sys.PacketMax {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if n := len(i.Refusals); n == 0 || i.Refusals[n-1].Target != many[999].Target {
		t.Errorf("%d refusals, and not the newest", n)
	}
}

func TestAnInspectionThatDecodesToGigabytesIsRefused(t *testing.T) {
	for text, well := range map[string]bool{
		`{"refusals":[{"target":"/x","rule":"y","count":1}],"pids":3}`:               true,
		`{"refusals":[` + strings.Repeat("{},", maxInspection/4) + `{}]}`:            false,
		`{"refusals":[` + strings.Repeat("{},", maxInspection/3) + `{}]}`:            false, // longer than it may be
		`{"refusals":[{"target":"` + strings.Repeat("{", 100_000) + `"}],"pids":1} `: true,
	} {
		mine, theirs, err := sys.NewChannelPair()
		must(t, err)
		init, err := sys.NewChannelOf(theirs)
		must(t, err)
		b := &Box{control: mine}
		go func() {
			defer init.Close()
			_, files, err := init.Receive()
			if err == nil && len(files) == 1 {
				_, _ = io.WriteString(files[0], text) // is cut off when the host closes its end
			}
			CloseAll(files)
		}()
		i, err := b.Inspect(t.Context())
		if well != (err == nil) || !well && paddock.KindOf(err) != paddock.Unavailable || well && len(i.Refusals) != 1 {
			t.Errorf("%d bytes: %d refusals, %v", len(text), len(i.Refusals), err)
		}
		must(t, mine.Close())
	}
}
