package e2b

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// Inside is the information for the handlers of a sandbox's ports.
type Inside struct {
	Sandbox    paddock.Sandbox
	Tier       paddock.Tier
	Tenant     string
	Token      string
	Env        map[string]string
	SandboxID  string
	TemplateID string
	User       string
	Dir        string
	Log        *slog.Logger
}

// A Port answers requests from outside to one port of a sandbox.
type Port interface {
	http.Handler
	Close() error
}

// A record is the state of a sandbox that is kept across restarts.
type record struct {
	ID       paddock.ID        `json:"id"`
	Box      paddock.ID        `json:"box,omitempty"` // the driver's ID; empty means the same as ID
	Tenant   string            `json:"tenant"`
	Template string            `json:"template"`
	Alias    string            `json:"alias,omitempty"`
	Tier     paddock.Tier      `json:"tier"`
	Limits   paddock.Limits    `json:"limits"`
	User     string            `json:"user"`
	Dir      string            `json:"dir"`
	Image    string            `json:"image,omitempty"` // image of the root
	Sudo     bool              `json:"sudo,omitempty"`
	Token    string            `json:"token"`
	Traffic  string            `json:"traffic,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Started  time.Time         `json:"started"`
	Ends     time.Time         `json:"ends,omitzero"` // by the wall clock when it was set; zero while paused by request
	Paused   bool              `json:"paused,omitempty"`
	// Cold is the snapshot of a sandbox whose pause kept only its files. Such a sandbox
	// does not exist until it resumes. Empty for a sandbox that exists.
	Cold paddock.SnapshotID `json:"cold,omitempty"`

	AutoPause  bool            `json:"auto_pause,omitempty"`
	AutoResume bool            `json:"auto_resume,omitempty"`
	Internet   *bool           `json:"internet,omitempty"`
	Network    *network        `json:"network,omitempty"`
	MCP        json.RawMessage `json:"mcp,omitempty"`

	// These fields are not stored. The end is on the monotonic clock, which decides. theirs
	// means that the lease's terms decide instead: an earlier server made the sandbox, and
	// its clock is unknown.
	end    time.Time
	life   time.Duration // the requested lifetime
	theirs bool
}

// lasts sets the end of the sandbox.
func (h *Handler) lasts(r *record, life time.Duration) {
	r.end, r.life, r.theirs, r.Ends = time.Now().Add(life), life, false, h.now().Add(life)
}

// endless removes the end.
func (r *record) endless() { r.end, r.theirs, r.Ends = time.Time{}, false, time.Time{} }

// over reports whether the sandbox has reached its end.
func (r record) over() bool { return !r.theirs && !r.end.IsZero() && !r.end.After(time.Now()) }

// now returns the time by the wall clock, without the monotonic clock.
func (h *Handler) now() time.Time { return h.o.Wall().Round(0).UTC() }

// leap is the difference between the computed and the stored end above which the wall clock
// must have jumped.
const leap = 2 * time.Second

// endAt returns the end by the present wall clock.
func (h *Handler) endAt(r record) time.Time {
	if r.end.IsZero() {
		return r.Ends
	}
	if at := h.now().Add(time.Until(r.end)); at.Sub(r.Ends).Abs() >= leap {
		return at
	}
	return r.Ends
}

// name returns the driver's ID of the sandbox. A sandbox taken from a pool had an ID
// before.
func (r record) name() paddock.ID { return cmp.Or(r.Box, r.ID) }

// A box is a sandbox that was made through this API.
type box struct {
	h    *Handler
	id   paddock.ID
	turn chan struct{} // its holder may change the box's state

	mu      sync.Mutex
	rec     record    // guarded by mu; its maps are immutable
	in      *inside   // guarded by mu; nil if not opened, or cut
	gone    bool      // guarded by mu; the sandbox does not exist any more
	metrics []metric  // guarded by mu; oldest first
	used    usage     // guarded by mu; at the last sample
	look    time.Time // guarded by mu; if theirs, the time to ask the terms again
	looking bool      // guarded by mu
	log     []logEntry
}

// inside is an opened sandbox with the handlers of its ports.
type inside struct {
	sb         paddock.Sandbox
	envd, code Port
	ctx        context.Context // ends when the box is cut
	cancel     context.CancelFunc
}

func (h *Handler) newBox(rec record) *box {
	return &box{h: h, id: rec.ID, rec: rec, turn: make(chan struct{}, 1)}
}

// Kinds of stored texts.
const (
	kindSandbox  = "sandbox"
	kindTemplate = "template"
	kindLoose    = "snapshot" // a snapshot that is, or may soon be, unreferenced
)

// load reads the stored state.
func (h *Handler) load(ctx context.Context) error {
	err := h.o.Store.Each(ctx, kindSandbox, func(tenant, _, data string) error {
		var rec record
		if err := json.Unmarshal([]byte(data), &rec); err != nil || rec.Tenant != tenant {
			return fmt.Errorf("a sandbox of tenant %s is kept in a form that this program cannot read: %w", tenant, paddock.Internal)
		}
		rec.theirs = !rec.Ends.IsZero()
		large := fits(rec.Env)
		if large != nil { // kept by an earlier version
			rec.Env = nil
		}
		b := h.newBox(rec)
		h.boxes[rec.ID] = b
		if large != nil {
			b.note(fmt.Sprintf("commands no longer get the variables of the sandbox: %v", large))
			h.log.Warn("e2b: the variables of a sandbox were dropped", "id", rec.ID, "error", large)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("e2b: %w", err)
	}
	if err := h.o.Store.Each(ctx, kindTemplate, h.loadTemplate); err != nil {
		return fmt.Errorf("e2b: %w", err)
	}
	if h.left, err = h.orphans(ctx); err != nil {
		return fmt.Errorf("e2b: %w", err)
	}
	return nil
}

// keep stores a record.
func (h *Handler) keep(ctx context.Context, rec record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("keep sandbox %s: %w", rec.ID, err)
	}
	return h.o.Store.Keep(ctx, kindSandbox, rec.Tenant, string(rec.ID), string(data))
}

// find returns a box by the ID in a request. Older clients append a dash and a name.
func (h *Handler) find(id string) (*box, bool) {
	id, _, _ = strings.Cut(id, "-")
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.boxes[paddock.ID(id)]
	return b, ok
}

// all returns every box.
func (h *Handler) all() []*box {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*box, 0, len(h.boxes))
	for _, b := range h.boxes {
		list = append(list, b)
	}
	return list
}

// record returns a copy of the record, and whether the box still exists.
func (b *box) record() (record, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rec, !b.gone
}

// take waits for the turn.
func (b *box) take(ctx context.Context) error {
	select {
	case b.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sandbox %s is being changed: %w", b.id, paddock.Canceled)
	}
}

func (b *box) leave() { <-b.turn }

// change changes and stores the record. The caller holds the turn.
func (b *box) change(ctx context.Context, f func(*record)) error {
	b.mu.Lock()
	rec := b.rec
	b.mu.Unlock()
	f(&rec)
	if err := b.h.keep(ctx, rec); err != nil {
		return err
	}
	b.mu.Lock()
	b.rec = rec
	b.mu.Unlock()
	b.h.ring()
	return nil
}

// cut ends every stream of the box without a proper end. A later call opens the box again,
// unless the sandbox is gone. It does not wait for the handlers of ports: the sandbox, which may be
// paused or hostile, must not keep anybody from removing or resuming it. Close of the Handler waits
// for them.
func (b *box) cut() {
	b.mu.Lock()
	in := b.in
	b.in = nil
	b.mu.Unlock()
	if in == nil {
		return
	}
	in.cancel()
	if !b.h.spawn(func() { in.close(b.h.log) }) {
		in.close(b.h.log)
	}
}

func (in *inside) close(log *slog.Logger) {
	in.cancel()
	for _, p := range []Port{in.envd, in.code} {
		if p == nil {
			continue
		}
		if err := p.Close(); err != nil {
			log.Warn("e2b: the handler of a port did not close", "error", err)
		}
	}
}

// leaves makes the box answer nothing more. It waits for nothing; end does the rest.
func (b *box) leaves() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
	if b.in != nil {
		b.in.cancel()
	}
}

// end makes the box answer nothing more, and deletes its record.
func (b *box) end(ctx context.Context) error {
	b.mu.Lock()
	b.gone = true
	rec := b.rec
	b.mu.Unlock()
	b.cut()
	b.h.mu.Lock()
	if b.h.boxes[rec.ID] == b {
		delete(b.h.boxes, rec.ID)
	}
	b.h.mu.Unlock()
	return b.h.o.Store.Forget(ctx, kindSandbox, rec.Tenant, string(rec.ID))
}

// open makes the port handlers of an existing sandbox. The caller holds the turn.
func (b *box) open(sb paddock.Sandbox) (*inside, error) {
	rec, _ := b.record()
	o := Inside{
		Sandbox: sb, Tier: rec.Tier, Tenant: rec.Tenant, Token: rec.Token, Env: rec.Env, SandboxID: string(rec.ID), TemplateID: rec.Template,
		User: rec.User, Dir: rec.Dir, Log: b.h.log,
	}
	in := &inside{sb: sb}
	var err error
	if in.envd, err = b.h.o.Envd(o); err != nil {
		return nil, err
	}
	in.ctx, in.cancel = context.WithCancel(b.h.ctx)
	if b.h.o.Code != nil {
		if in.code, err = b.h.o.Code(o); err != nil {
			in.close(b.h.log)
			return nil, err
		}
	}
	b.mu.Lock()
	gone := b.gone
	if !gone {
		b.in = in
	}
	b.mu.Unlock()
	if gone {
		in.close(b.h.log)
		return nil, noSandbox(string(rec.ID))
	}
	return in, nil
}

// enter returns the opened sandbox, and opens it if needed.
func (b *box) enter(ctx context.Context) (*inside, error) {
	b.mu.Lock()
	in := b.in
	b.mu.Unlock()
	if in != nil {
		return in, nil
	}
	if err := b.take(ctx); err != nil {
		return nil, err
	}
	defer b.leave()
	b.mu.Lock()
	in, rec := b.in, b.rec
	b.mu.Unlock()
	if in != nil {
		return in, nil
	}
	d, err := b.h.o.Tenant(ctx, rec.Tenant)
	if err != nil {
		return nil, err
	}
	sb, err := d.Open(ctx, rec.name())
	if err != nil {
		return nil, err
	}
	return b.open(sb)
}

// expire cuts the sandboxes that have reached their end, and returns the time until the
// next end. It waits for no handler of a port, and for no sandbox. Terms do the pause at an
// end.
func (h *Handler) expire(ctx context.Context, now time.Time) time.Duration {
	next := time.Hour
	for _, b := range h.all() {
		rec, ok := b.record()
		if !ok || rec.Ends.IsZero() || rec.Paused {
			continue
		}
		if rec.theirs {
			next = min(next, b.lookAt(now))
			continue
		}
		if left := rec.end.Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		if rec.AutoPause {
			h.wg.Go(func() { b.rest(ctx) })
			continue
		}
		b.note("the sandbox reached its end")
		b.leaves()
		h.wg.Go(func() {
			if err := b.end(ctx); err != nil {
				h.log.Warn("e2b: the record of an ended sandbox was not deleted", "id", rec.ID, "error", err)
			}
			h.clear(ctx, rec)
		})
	}
	return next
}

// lookAt starts a check of a sandbox's terms if it is due, and returns the time until the
// next one.
func (b *box) lookAt(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looking {
		return time.Hour // the running check rings
	}
	if left := b.look.Sub(now); left > 0 {
		return left
	}
	b.looking = true
	b.h.wg.Go(func() {
		again := b.looks(b.h.ctx)
		b.mu.Lock()
		b.looking, b.look = false, time.Now().Add(again)
		b.mu.Unlock()
		b.h.ring()
	})
	return time.Hour
}

// lookAgain is the delay of the next check, after the end of a sandbox whose terms decide,
// or after a failed check.
const lookAgain = time.Second

// looks asks the terms for the end of a sandbox that an earlier server made, and acts on
// the answer. It returns the delay of the next check.
func (b *box) looks(ctx context.Context) time.Duration {
	rec, ok := b.record()
	if !ok || !rec.theirs {
		return lookAgain
	}
	d, err := b.h.o.Tenant(ctx, rec.Tenant)
	var l lifetime.Lease
	if err == nil {
		l, err = d.Terms(ctx, rec.name())
	}
	switch {
	case errors.Is(err, paddock.NotFound):
		if now, ok := b.record(); ok && now.theirs { // it was not restarted meanwhile
			b.note("the sandbox reached its end")
			if err := b.end(ctx); err != nil {
				b.h.log.Warn("e2b: the record of an ended sandbox was not deleted", "id", rec.ID, "error", err)
			}
		}
		return lookAgain
	case err != nil:
		b.h.log.Warn("e2b: the end of a sandbox is not known yet", "id", rec.ID, "error", err)
		return 10 * lookAgain
	case l.Paused == lifetime.ByDeadline:
		b.rest(ctx)
		return lookAgain
	case l.Ends.IsZero():
		return time.Hour
	}
	left := l.Ends.Sub(b.h.now())
	b.mu.Lock()
	if b.rec.theirs {
		b.rec.Ends, b.rec.end = b.h.now().Add(left), time.Now().Add(left)
	}
	b.mu.Unlock()
	return max(left, 0) + lookAgain
}

// clear removes an expired sandbox through its tenant's driver, so that the driver knows of
// the removal. Otherwise its terms would remove it.
func (h *Handler) clear(ctx context.Context, rec record) {
	d, err := h.o.Tenant(ctx, rec.Tenant)
	var sb paddock.Sandbox
	if err == nil {
		sb, err = d.Open(ctx, rec.name())
	}
	if err == nil {
		err = sb.Remove(ctx)
	}
	if err != nil && !errors.Is(err, paddock.NotFound) {
		h.log.Warn("e2b: an expired sandbox was not removed, its terms will remove it", "id", rec.ID, "error", err)
	}
}

// rest notes that the sandbox was paused at its end.
func (b *box) rest(ctx context.Context) {
	select {
	case b.turn <- struct{}{}:
	default:
		return // the holder of the turn rings afterwards
	}
	defer b.leave()
	rec, ok := b.record()
	if !ok || rec.Paused || !rec.theirs && !rec.over() {
		return
	}
	b.cut()
	if err := b.change(ctx, func(r *record) { r.Paused = true }); err != nil {
		b.h.log.Warn("e2b: a pause was not stored", "id", rec.ID, "error", err)
		b.mu.Lock()
		b.rec.Paused = true
		b.mu.Unlock()
	}
	b.note("the sandbox was paused at its end")
}

// secret returns a token of n random bytes.
func secret(n int) string {
	data := make([]byte, n)
	_, _ = rand.Read(data) // it never fails
	return hex.EncodeToString(data)
}
