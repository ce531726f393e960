package daytona

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A record is what is kept of a sandbox beside what its driver knows.
type record struct {
	ID       paddock.ID        `json:"id"`
	Tenant   string            `json:"tenant"`
	Name     string            `json:"name"`
	Labels   map[string]string `json:"labels,omitempty"`
	Env      map[string]string `json:"env,omitempty"`
	User     string            `json:"user"`
	Home     string            `json:"home"`
	Dir      string            `json:"dir"`
	Tier     paddock.Tier      `json:"tier"`
	Limits   paddock.Limits    `json:"limits"`
	Sudo     bool              `json:"sudo,omitempty"`
	Snapshot string            `json:"snapshot,omitempty"` // as it was asked for
	Public   bool              `json:"public,omitempty"`
	Network  network           `json:"network,omitzero"`
	Signers  []signer          `json:"signers,omitempty"`

	Stopped bool `json:"stopped,omitempty"` // by request; a sandbox that is paused by request has Paused
	Paused  bool `json:"paused,omitempty"`

	// Intervals in minutes.
	AutoStop    int `json:"auto_stop"`    // 0 is never
	AutoPause   int `json:"auto_pause"`   // 0 is never
	AutoArchive int `json:"auto_archive"` // kept and told alone: stopped sandboxes are not moved
	AutoDelete  int `json:"auto_delete"`  // after the stop; -1 is never
	TTL         int `json:"ttl,omitempty"`

	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// terms returns the lease terms of the record's intervals. With both, the sandbox is paused after the shorter.
func (r record) terms() lifetime.Terms {
	var t lifetime.Terms
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	stop := r.AutoStop
	if r.AutoPause > 0 && (stop == 0 || r.AutoPause < stop) {
		stop = r.AutoPause
	}
	switch {
	case stop > 0 && r.AutoDelete == 0:
		t.IdleRemove = minutes(stop)
	case stop > 0:
		t.IdlePause = minutes(stop)
		if r.AutoDelete > 0 {
			t.IdleRemove = minutes(stop + r.AutoDelete)
		}
	}
	if r.TTL > 0 {
		t.Lifetime = minutes(r.TTL)
	}
	return t
}

// A box is a sandbox that was made through this API.
type box struct {
	turn chan struct{} // its holder may change the record

	mu    sync.Mutex
	rec   record                   // guarded by mu; its maps are immutable
	gone  bool                     // guarded by mu
	cells *interpreter.Interpreter // guarded by mu; nil until it is used
}

const kindSandbox = "sandbox"

func newBox(rec record) *box { return &box{rec: rec, turn: make(chan struct{}, 1)} }

func (b *box) record() (record, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rec, !b.gone
}

// load reads the stored records.
func (h *Handler) load(ctx context.Context) error {
	err := h.o.Store.Each(ctx, kindSandbox, func(tenant, _, data string) error {
		var rec record
		if err := json.Unmarshal([]byte(data), &rec); err != nil || rec.Tenant != tenant {
			return fmt.Errorf("a sandbox of tenant %s is kept in a form that this program cannot read: %w", tenant, paddock.Internal)
		}
		h.boxes[rec.ID] = newBox(rec)
		return nil
	})
	if err != nil {
		return fmt.Errorf("daytona: %w", err)
	}
	return nil
}

func (h *Handler) keep(ctx context.Context, rec record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("keep sandbox %s: %w", rec.ID, err)
	}
	return h.o.Store.Keep(ctx, kindSandbox, rec.Tenant, string(rec.ID), string(data))
}

// find returns the caller's sandbox by its ID or name.
func (c *call) find(text string) (*box, record, error) {
	c.h.mu.Lock()
	var list []*box
	if b, ok := c.h.boxes[paddock.ID(text)]; ok {
		list = append(list, b)
	} else {
		for _, b := range c.h.boxes {
			list = append(list, b)
		}
	}
	c.h.mu.Unlock()
	for _, b := range list {
		if rec, ok := b.record(); ok && rec.Tenant == c.caller.Tenant && (string(rec.ID) == text || rec.Name == text) {
			return b, rec, nil
		}
	}
	return nil, record{}, noSandbox(text)
}

func (c *call) box() (*box, record, error) { return c.find(c.PathValue("id")) }

// change changes and stores the record of the sandbox that the path names, after do did with the sandbox what the
// change is about.
func (c *call) change(do func(rec *record) error) (record, error) {
	b, _, err := c.box()
	if err != nil {
		return record{}, err
	}
	select {
	case b.turn <- struct{}{}:
	case <-c.ctx.Done():
		return record{}, fmt.Errorf("the sandbox is being changed: %w", paddock.Canceled)
	}
	defer func() { <-b.turn }()
	rec, ok := b.record()
	if !ok {
		return rec, noSandbox(string(rec.ID))
	}
	if err := do(&rec); err != nil {
		return rec, c.lost(b, rec, err)
	}
	rec.Updated = c.h.now()
	if err := c.h.keep(context.WithoutCancel(c.ctx), rec); err != nil {
		return rec, err
	}
	b.mu.Lock()
	b.rec = rec
	b.mu.Unlock()
	return rec, nil
}

// lost forgets a sandbox that its driver does not have any more.
func (c *call) lost(b *box, rec record, err error) error {
	var r *dialect.Refusal
	if !errors.Is(err, paddock.NotFound) || errors.As(err, &r) {
		return err
	}
	if _, still := c.caller.Driver.Open(c.ctx, rec.ID); !errors.Is(still, paddock.NotFound) {
		return err // it is something in the sandbox
	}
	c.h.forget(b, rec)
	return noSandbox(string(rec.ID))
}

// forget ends the record of a sandbox that is gone.
func (h *Handler) forget(b *box, rec record) {
	b.mu.Lock()
	b.gone = true
	b.mu.Unlock()
	h.mu.Lock()
	if h.boxes[rec.ID] == b {
		delete(h.boxes, rec.ID)
	}
	h.mu.Unlock()
	h.endPTYs(rec.ID)
	if err := b.leave(); err != nil {
		h.log.Warn("daytona: an interpreter did not close", "id", rec.ID, "error", err)
	}
	if err := h.o.Store.Forget(h.ctx, kindSandbox, rec.Tenant, string(rec.ID)); err != nil {
		h.log.Warn("daytona: the record of a removed sandbox was not deleted", "id", rec.ID, "error", err)
	}
}

// opened returns the sandbox that the path names. With running, one that is stopped or paused is refused in Daytona's words.
func (c *call) opened(running bool) (paddock.Sandbox, record, error) {
	b, rec, err := c.box()
	if err != nil {
		return nil, rec, err
	}
	if running && (rec.Stopped || rec.Paused) {
		return nil, rec, refuse(http.StatusConflict, paddock.Conflict, "Sandbox %s is not running: it is %s; start it first", rec.ID, rec.state(paddock.Paused))
	}
	sb, err := c.caller.Driver.Open(c.ctx, rec.ID)
	if err != nil {
		return nil, rec, c.lost(b, rec, err)
	}
	return sb, rec, nil
}

// state names the state of a sandbox.
func (r record) state(s paddock.State) string {
	switch {
	case r.Stopped:
		return "stopped"
	case r.Paused:
		return "paused"
	case s == paddock.Paused && r.AutoPause > 0 && (r.AutoStop == 0 || r.AutoPause < r.AutoStop):
		return "paused"
	case s == paddock.Paused:
		return "stopped"
	}
	return "started"
}

// An answer describes a sandbox. Every field that some client requires is always there.
type answer struct {
	ID                  string            `json:"id"`
	OrganizationID      string            `json:"organizationId"`
	Name                string            `json:"name"`
	Snapshot            *string           `json:"snapshot"`
	User                string            `json:"user"`
	Env                 map[string]string `json:"env"`
	Labels              map[string]string `json:"labels"`
	Public              bool              `json:"public"`
	NetworkBlockAll     bool              `json:"networkBlockAll"`
	NetworkAllowList    string            `json:"networkAllowList,omitempty"`
	DomainAllowList     string            `json:"domainAllowList,omitempty"`
	KVM                 bool              `json:"kvm"`
	Spot                bool              `json:"spot"`
	Target              string            `json:"target"`
	CPU                 int               `json:"cpu"`
	GPU                 int               `json:"gpu"`
	Memory              int64             `json:"memory"` // GiB
	Disk                int64             `json:"disk"`   // GiB
	State               string            `json:"state"`
	DesiredState        string            `json:"desiredState"`
	ErrorReason         *string           `json:"errorReason"`
	Recoverable         bool              `json:"recoverable"`
	BackupState         string            `json:"backupState"`
	AutoStopInterval    int               `json:"autoStopInterval"`
	AutoPauseInterval   int               `json:"autoPauseInterval"`
	AutoArchiveInterval int               `json:"autoArchiveInterval"`
	AutoDeleteInterval  int               `json:"autoDeleteInterval"`
	AutoDestroyAt       *time.Time        `json:"autoDestroyAt,omitempty"`
	Volumes             []struct{}        `json:"volumes"`
	CreatedAt           time.Time         `json:"createdAt"`
	UpdatedAt           time.Time         `json:"updatedAt"`
	LastActivityAt      time.Time         `json:"lastActivityAt"`
	Class               string            `json:"class"`
	SandboxClass        string            `json:"sandboxClass"`
	DaemonVersion       string            `json:"daemonVersion"`
	ToolboxProxyURL     string            `json:"toolboxProxyUrl"`
}

const gib = 1 << 30

// answerOf describes a sandbox by its record and its state.
func (c *call) answerOf(rec record, s paddock.State) answer {
	state := rec.state(s)
	a := answer{
		ID: string(rec.ID), OrganizationID: rec.Tenant, Name: rec.Name, User: rec.User, Env: rec.Env, Labels: rec.Labels, Public: rec.Public,
		NetworkBlockAll: rec.Network.BlockAll, NetworkAllowList: rec.Network.Ranges, DomainAllowList: rec.Network.Domains,
		Target: string(rec.Tier), CPU: max(int(math.Ceil(rec.Limits.CPUs)), 1), Memory: max((rec.Limits.Memory+gib-1)/gib, 1), Disk: max((rec.Limits.Disk+gib-1)/gib, 1),
		State: state, DesiredState: state, BackupState: "None",
		AutoStopInterval: rec.AutoStop, AutoPauseInterval: rec.AutoPause, AutoArchiveInterval: rec.AutoArchive, AutoDeleteInterval: rec.AutoDelete,
		Volumes: []struct{}{}, CreatedAt: rec.Created, UpdatedAt: rec.Updated, LastActivityAt: rec.Updated,
		Class: "small", SandboxClass: "container", DaemonVersion: Version, ToolboxProxyURL: c.toolboxBase(),
	}
	if rec.Snapshot != "" {
		a.Snapshot = &rec.Snapshot
	}
	if rec.TTL > 0 {
		at := rec.Created.Add(time.Duration(rec.TTL) * time.Minute)
		a.AutoDestroyAt = &at
	}
	if a.Env == nil {
		a.Env = map[string]string{}
	}
	if a.Labels == nil {
		a.Labels = map[string]string{}
	}
	return a
}

// told answers with a sandbox.
func (c *call) told(rec record, err error) error {
	if err != nil {
		return err
	}
	state := paddock.State("")
	if sb, err := c.caller.Driver.Open(c.ctx, rec.ID); err == nil {
		if st, err := sb.Status(c.ctx); err == nil {
			state = st.State
		}
	}
	return c.json(http.StatusOK, c.answerOf(rec, state))
}
