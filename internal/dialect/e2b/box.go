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
	"github.com/paddock-sandbox/paddock/internal/wrap/lease"
)

// Inside is what is told to those who answer for a sandbox.
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

// A Port answers for one port of a sandbox, from outside.
type Port interface {
	http.Handler
	Close() error
}

// A record is what is kept of a sandbox over restarts.
type record struct {
	ID       paddock.ID        `json:"id"`
	Box      paddock.ID        `json:"box,omitempty"` // its name for drivers; empty is the same
	Tenant   string            `json:"tenant"`
	Template string            `json:"template"`
	Alias    string            `json:"alias,omitempty"`
	Tier     paddock.Tier      `json:"tier"`
	Limits   paddock.Limits    `json:"limits"`
	User     string            `json:"user"`
	Dir      string            `json:"dir"`
	Image    string            `json:"image,omitempty"` // that its root stands on
	Sudo     bool              `json:"sudo,omitempty"`
	Token    string            `json:"token"`
	Traffic  string            `json:"traffic,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`
	Started  time.Time         `json:"started"`
	Ends     time.Time         `json:"ends,omitzero"` // by the wall clock of when that was set; zero while it is paused by request
	Paused   bool              `json:"paused,omitempty"`
	// Cold is the snapshot that a sandbox goes on from whose pause kept files alone:
	// there is no sandbox until then. Empty is one that is there.
	Cold paddock.SnapshotID `json:"cold,omitempty"`

	AutoPause  bool            `json:"auto_pause,omitempty"`
	AutoResume bool            `json:"auto_resume,omitempty"`
	Internet   *bool           `json:"internet,omitempty"`
	Network    *network        `json:"network,omitempty"`
	MCP        json.RawMessage `json:"mcp,omitempty"`

	// Not written down is the end on the monotonic clock, which alone counts, and
	// whether it is the terms' to say: of what an earlier server has made, whose clock
	// nobody knows.
	end    time.Time
	life   time.Duration // that was asked for
	theirs bool
}

// lasts gives the sandbox an end.
func (h *Handler) lasts(r *record, life time.Duration) {
	r.end, r.life, r.theirs, r.Ends = time.Now().Add(life), life, false, h.now().Add(life)
}

// endless takes it away.
func (r *record) endless() { r.end, r.theirs, r.Ends = time.Time{}, false, time.Time{} }

// over tells whether the sandbox has come to its end.
func (r record) over() bool { return !r.theirs && !r.end.IsZero() && !r.end.After(time.Now()) }

// now is by the wall clock alone.
func (h *Handler) now() time.Time { return h.o.Wall().Round(0).UTC() }

// leap is how far an end may be from where it was written down before the wall clock
// has jumped.
const leap = 2 * time.Second

// endAt is the end as the wall clock has it now.
func (h *Handler) endAt(r record) time.Time {
	if r.end.IsZero() {
		return r.Ends
	}
	if at := h.now().Add(time.Until(r.end)); at.Sub(r.Ends).Abs() >= leap {
		return at
	}
	return r.Ends
}

// name is what drivers call the sandbox: one that was made before it was asked for has
// a name already.
func (r record) name() paddock.ID { return cmp.Or(r.Box, r.ID) }

// A box is a sandbox that was made by way of this dialect.
type box struct {
	h    *Handler
	id   paddock.ID
	turn chan struct{} // who holds it changes the box's state

	mu      sync.Mutex
	rec     record    // guarded by mu; its maps are never changed
	in      *inside   // guarded by mu; nil is not opened, or cut
	gone    bool      // guarded by mu; nothing answers any more
	metrics []metric  // guarded by mu; oldest first
	used    usage     // guarded by mu; at the last sample
	look    time.Time // guarded by mu; when its terms are to be asked again, of an end that is theirs to say
	looking bool      // guarded by mu
	log     []logEntry
}

// inside is an opened sandbox with what answers for it.
type inside struct {
	sb         paddock.Sandbox
	envd, code Port
	ctx        context.Context // ends when the box is cut
	cancel     context.CancelFunc
}

func (h *Handler) newBox(rec record) *box {
	return &box{h: h, id: rec.ID, rec: rec, turn: make(chan struct{}, 1)}
}

// kinds of what is kept.
const (
	kindSandbox  = "sandbox"
	kindTemplate = "template"
	kindLoose    = "snapshot" // that nothing refers to, or may not in a moment
)

// load reads what is kept.
func (h *Handler) load(ctx context.Context) error {
	err := h.o.Store.Each(ctx, kindSandbox, func(tenant, _, data string) error {
		var rec record
		if err := json.Unmarshal([]byte(data), &rec); err != nil || rec.Tenant != tenant {
			return fmt.Errorf("a sandbox of tenant %s is kept in a form that this program cannot read: %w", tenant, paddock.Internal)
		}
		rec.theirs = !rec.Ends.IsZero()
		h.boxes[rec.ID] = h.newBox(rec)
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

// keep writes a record down.
func (h *Handler) keep(ctx context.Context, rec record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("keep sandbox %s: %w", rec.ID, err)
	}
	return h.o.Store.Keep(ctx, kindSandbox, rec.Tenant, string(rec.ID), string(data))
}

// find gives a box by the ID that a caller writes: the part before a dash, which
// older clients append a name to.
func (h *Handler) find(id string) (*box, bool) {
	id, _, _ = strings.Cut(id, "-")
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.boxes[paddock.ID(id)]
	return b, ok
}

// all gives every box.
func (h *Handler) all() []*box {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*box, 0, len(h.boxes))
	for _, b := range h.boxes {
		list = append(list, b)
	}
	return list
}

// record gives a copy of what is known, and whether the box is still there.
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

// change changes the record, and writes it down. The turn is held.
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

// cut ends every stream of the box, abruptly. A later call opens it again, unless
// it is gone.
func (b *box) cut() {
	b.mu.Lock()
	in := b.in
	b.in = nil
	b.mu.Unlock()
	if in != nil {
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
			log.Warn("e2b: a box did not close", "error", err)
		}
	}
}

// end has the box answer nothing any more, and forgets it.
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

// open makes what answers for a sandbox that is at hand. The turn is held.
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

// enter gives the opened sandbox, opening it where nobody has.
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

// expire cuts what has come to its end, and tells how long there is to the next.
// What is to be paused is paused by its terms.
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
			b.rest(ctx)
			continue
		}
		b.note("the sandbox reached its end")
		if err := b.end(ctx); err != nil {
			h.log.Warn("e2b: a sandbox that ended is not forgotten", "id", rec.ID, "error", err)
		}
		h.wg.Go(func() { h.clear(ctx, rec) })
	}
	return next
}

// lookAt has the terms of a sandbox asked for its end where that is due, and tells how
// long there is to the next time.
func (b *box) lookAt(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looking {
		return time.Hour // who looks rings
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

// lookAgain is how long after its end a sandbox is looked at that its terms are to
// end, or that could not be asked.
const lookAgain = time.Second

// looks asks the terms for the end of a sandbox that an earlier server has made, and
// does what follows. It tells when to ask again.
func (b *box) looks(ctx context.Context) time.Duration {
	rec, ok := b.record()
	if !ok || !rec.theirs {
		return lookAgain
	}
	d, err := b.h.o.Tenant(ctx, rec.Tenant)
	var l lease.Lease
	if err == nil {
		l, err = d.Terms(ctx, rec.name())
	}
	switch {
	case errors.Is(err, paddock.NotFound):
		if now, ok := b.record(); ok && now.theirs { // it was not started anew meanwhile
			b.note("the sandbox reached its end")
			if err := b.end(ctx); err != nil {
				b.h.log.Warn("e2b: a sandbox that ended is not forgotten", "id", rec.ID, "error", err)
			}
		}
		return lookAgain
	case err != nil:
		b.h.log.Warn("e2b: when a sandbox ends is not known yet", "id", rec.ID, "error", err)
		return 10 * lookAgain
	case l.Paused == lease.ByDeadline:
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

// clear removes a sandbox whose time is over, through its tenant's driver, so that it
// is known to be gone. Its terms would do it too.
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
		h.log.Warn("e2b: a sandbox whose time is over is left to its terms", "id", rec.ID, "error", err)
	}
}

// rest notes that the sandbox was paused at its end.
func (b *box) rest(ctx context.Context) {
	select {
	case b.turn <- struct{}{}:
	default:
		return // somebody changes it, and rings when that is done
	}
	defer b.leave()
	rec, ok := b.record()
	if !ok || rec.Paused || !rec.theirs && !rec.over() {
		return
	}
	b.cut()
	if err := b.change(ctx, func(r *record) { r.Paused = true }); err != nil {
		b.h.log.Warn("e2b: a pause is not written down", "id", rec.ID, "error", err)
		b.mu.Lock()
		b.rec.Paused = true
		b.mu.Unlock()
	}
	b.note("the sandbox was paused at its end")
}

// secret makes a token of n random bytes.
func secret(n int) string {
	data := make([]byte, n)
	_, _ = rand.Read(data) // it never fails
	return hex.EncodeToString(data)
}
