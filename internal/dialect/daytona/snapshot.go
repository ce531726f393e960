package daytona

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

const kindSnapshot = "snapshot"

// maxSnapshots bounds those of a tenant.
const maxSnapshots = 1000

// A snapshot is what is kept of one, beside what its driver knows.
type snapshot struct {
	ID      paddock.SnapshotID `json:"id"`
	Tenant  string             `json:"tenant"`
	Name    string             `json:"name"`
	Source  paddock.ID         `json:"source"` // the sandbox
	Memory  bool               `json:"memory,omitempty"`
	Tier    paddock.Tier       `json:"tier"`
	Limits  paddock.Limits     `json:"limits"`
	User    string             `json:"user"`
	Home    string             `json:"home"`
	Dir     string             `json:"dir"`
	Sudo    bool               `json:"sudo,omitempty"`
	Env     map[string]string  `json:"env,omitempty"`
	Created time.Time          `json:"created"`
}

// A toldSnapshot is a snapshot as clients see it, with every field that some client requires.
type toldSnapshot struct {
	ID              string    `json:"id"`
	OrganizationID  string    `json:"organizationId"`
	General         bool      `json:"general"`
	Name            string    `json:"name"`
	ImageName       string    `json:"imageName"`
	State           string    `json:"state"`
	Size            *float64  `json:"size"`
	Entrypoint      []string  `json:"entrypoint"`
	CPU             int       `json:"cpu"`
	GPU             int       `json:"gpu"`
	Mem             int64     `json:"mem"`
	Disk            int64     `json:"disk"`
	ErrorReason     *string   `json:"errorReason"`
	CreatedAt       time.Time `json:"createdAt"`
	UpdatedAt       time.Time `json:"updatedAt"`
	LastUsedAt      time.Time `json:"lastUsedAt"`
	SourceSandboxID string    `json:"sourceSandboxId"`
}

func (c *call) tellSnapshot(s snapshot) toldSnapshot {
	a := c.answerOf(record{Limits: s.Limits}, "")
	return toldSnapshot{
		ID: string(s.ID), OrganizationID: s.Tenant, Name: s.Name, State: "active", Entrypoint: []string{}, CPU: a.CPU, Mem: a.Memory, Disk: a.Disk,
		CreatedAt: s.Created, UpdatedAt: s.Created, LastUsedAt: s.Created, SourceSandboxID: string(s.Source),
	}
}

// snapshots returns the caller's snapshots, oldest first.
func (c *call) snapshotsOf() ([]snapshot, error) {
	var list []snapshot
	err := c.h.o.Store.Each(c.ctx, kindSnapshot, func(tenant, _, data string) error {
		if tenant != c.caller.Tenant {
			return nil
		}
		var s snapshot
		if err := json.Unmarshal([]byte(data), &s); err != nil {
			return fmt.Errorf("a snapshot is kept in a form that this program cannot read: %w", paddock.Internal)
		}
		list = append(list, s)
		return nil
	})
	slices.SortFunc(list, func(a, b snapshot) int { return a.Created.Compare(b.Created) })
	return list, err
}

// snapshot returns the caller's snapshot of an ID or a name.
func (c *call) snapshot(text string) (snapshot, error) {
	list, err := c.snapshotsOf()
	if err != nil {
		return snapshot{}, err
	}
	for _, s := range list {
		if string(s.ID) == text || s.Name == text {
			return s, nil
		}
	}
	return snapshot{}, refuse(404, paddock.NotFound, "Snapshot %s not found", dialect.Printable(text))
}

// usual reports whether a snapshot is one of Daytona's own, for which the server's system stands.
func usual(name string) bool {
	return name == "" || name == "default" || strings.HasPrefix(name, "daytona-") || strings.HasPrefix(name, "daytonaio/sandbox")
}

func (c *call) listSnapshots() error {
	q := c.URL.Query()
	limit, err := number("limit", q.Get("limit"), usualPage, 1, maxPage)
	if err != nil {
		return err
	}
	page, err := number("page", q.Get("page"), 1, 1, 1<<20)
	if err != nil {
		return err
	}
	list, err := c.snapshotsOf()
	if err != nil {
		return err
	}
	if source := q.Get("sourceSandboxId"); source != "" {
		list = slices.DeleteFunc(list, func(s snapshot) bool { return string(s.Source) != source })
	}
	total := len(list)
	from := min((page-1)*limit, total)
	items := []toldSnapshot{}
	for _, s := range list[from:min(from+limit, total)] {
		items = append(items, c.tellSnapshot(s))
	}
	return c.json(http.StatusOK, map[string]any{"items": items, "total": total, "page": page, "totalPages": (total + limit - 1) / limit})
}

func (c *call) getSnapshot() error {
	s, err := c.snapshot(c.PathValue("id"))
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.tellSnapshot(s))
}

func (c *call) removeSnapshot() error {
	s, err := c.snapshot(c.PathValue("id"))
	if err != nil {
		return err
	}
	if err := c.caller.Driver.RemoveSnapshot(c.ctx, s.ID); err != nil && !errors.Is(err, paddock.NotFound) {
		return err
	}
	if err := c.h.o.Store.Forget(context.WithoutCancel(c.ctx), kindSnapshot, s.Tenant, string(s.ID)); err != nil {
		return err
	}
	return c.json(http.StatusOK, c.tellSnapshot(s))
}

// makeSnapshot handles POST …/snapshot: the files of a sandbox, and its memory if asked, under a name.
func (c *call) makeSnapshot() error {
	var q struct {
		Name   string `json:"name"`
		Memory bool   `json:"includeMemory"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if q.Name == "" || len(q.Name) > maxName || usual(q.Name) {
		return invalid("name: a snapshot has a name of up to %d characters, and not one of Daytona's own", maxName)
	}
	count, release, err := c.h.reserve(named{"Snapshot", c.caller.Tenant, q.Name})
	if err != nil {
		return err
	}
	defer release()
	list, err := c.snapshotsOf()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(s snapshot) bool { return s.Name == q.Name }) {
		return refuse(http.StatusConflict, paddock.Exists, "Snapshot with name %s already exists", dialect.Printable(q.Name))
	}
	if len(list)+count > maxSnapshots {
		return refuse(http.StatusConflict, paddock.Exhausted, "there are %d snapshots: remove one", len(list))
	}
	_, rec, err := c.box()
	if err != nil {
		return err
	}
	s, err := c.taken(q.Memory)
	if err != nil {
		return err
	}
	s.Name = q.Name
	data, err := json.Marshal(s)
	if err == nil {
		err = c.h.o.Store.Keep(context.WithoutCancel(c.ctx), kindSnapshot, s.Tenant, string(s.ID), string(data))
	}
	if err != nil {
		return errors.Join(err, c.caller.Driver.RemoveSnapshot(context.WithoutCancel(c.ctx), s.ID))
	}
	return c.told(rec, nil)
}

// taken takes a snapshot of the sandbox that the path names.
func (c *call) taken(memory bool) (snapshot, error) {
	sb, rec, err := c.opened(false)
	if err != nil {
		return snapshot{}, err
	}
	id, err := sb.Snapshot(c.ctx, paddock.SnapshotOptions{Memory: memory})
	if errors.Is(err, paddock.Unsupported) {
		return snapshot{}, cannot("sandboxes of the tier %s have no snapshots here: %v", rec.Tier, err)
	}
	if err != nil {
		return snapshot{}, err
	}
	return snapshot{
		ID: id, Tenant: rec.Tenant, Source: rec.ID, Memory: memory, Tier: rec.Tier, Limits: rec.Limits, User: rec.User, Home: rec.Home, Dir: rec.Dir, Sudo: rec.Sudo, Env: rec.Env, Created: c.h.now(),
	}, nil
}

// fork handles POST …/fork: a sandbox that goes on from where this one is, with its memory where the tier can.
func (c *call) fork() error {
	var q struct {
		Name string `json:"name"`
	}
	if err := c.body(&q, true); err != nil {
		return err
	}
	_, from, err := c.box()
	if err != nil {
		return err
	}
	s, err := c.taken(true)
	if errors.Is(err, paddock.Unsupported) {
		s, err = c.taken(false)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err := c.caller.Driver.RemoveSnapshot(context.WithoutCancel(c.ctx), s.ID); err != nil {
			c.h.log.Warn("daytona: the snapshot of a fork was not removed", "id", s.ID, "error", err)
		}
	}()
	rec := from
	rec.ID, rec.Name, rec.Stopped, rec.Paused, rec.Created = newID(), q.Name, false, false, c.h.now()
	rec.Updated = rec.Created
	rec.Public, rec.Signers = false, nil // nobody asked for it
	if err := c.named(&rec); err != nil {
		return err
	}
	return c.begun(rec, &s)
}
