package e2b

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// A snapshotAnswer describes a snapshot to clients.
type snapshotAnswer struct {
	SnapshotID string   `json:"snapshotID"`
	Names      []string `json:"names"`
}

// told describes a template's tag as a snapshot.
func (t *template) told(tag string) snapshotAnswer {
	if t.Name == "" {
		return snapshotAnswer{t.ID + ":" + tag, []string{}}
	}
	full := t.Tenant + "/" + t.Name + ":" + tag
	return snapshotAnswer{full, []string{full}}
}

// keepAs takes a snapshot, with memory or with files only. It is loose until settle or
// discard.
func (c *call) keepAs(b *box, rec record, memory bool) (paddock.SnapshotID, error) {
	sb, err := c.caller.Driver.Open(c.ctx, rec.name())
	if err != nil {
		return "", b.lost(c.ctx, err)
	}
	id, err := sb.Snapshot(c.ctx, paddock.SnapshotOptions{Memory: memory})
	if errors.Is(err, paddock.Unsupported) {
		return "", cannot("the tier %s cannot take this snapshot: %v", rec.Tier, err)
	}
	if err != nil {
		return "", err
	}
	ctx := context.WithoutCancel(c.ctx)
	if err := c.h.loosen(ctx, rec.Tenant, id); err != nil {
		return "", errors.Join(err, c.caller.Driver.RemoveSnapshot(ctx, id))
	}
	return id, nil
}

// snapshot handles POST /sandboxes/{id}/snapshots. It keeps a sandbox as a template.
func (c *call) snapshot() error {
	var q struct {
		Name   string `json:"name"`
		Memory *bool  `json:"memory"`
	}
	if err := c.body(&q, true); err != nil {
		return err
	}
	var n name
	if q.Name != "" {
		var ok bool
		if n, ok = parseName(q.Name); !ok || n.space != "" && n.space != c.caller.Tenant {
			return invalid("name: %q is not of the form name or name:tag, in lower case", dialect.Printable(q.Name))
		}
		if slices.Contains(base(), n.name) {
			return invalid("name: %q is a template of the server's", dialect.Printable(n.name))
		}
	}
	tag := cmp.Or(n.tag, usualTag)
	memory := q.Memory == nil || *q.Memory
	return c.with(func(b *box, rec record) error {
		if rec.Cold != "" {
			return refuse(409, paddock.Conflict, "Sandbox \"%s\" is paused without its memory: connect to it first", rec.ID)
		}
		id, err := c.keepAs(b, rec, memory)
		if err != nil {
			return err
		}
		now := time.Now().UTC()
		kept := built{
			ID: uuid(), Status: ready, Snapshot: id, Tier: rec.Tier, Whole: memory, Limits: rec.Limits, Env: rec.Env, User: rec.User, Dir: rec.Dir, Image: rec.Image, Sudo: rec.Sudo,
			Created: now, Finished: now,
		}
		t, err := c.add(n.name, rec.ID, kept, tag)
		if err != nil {
			return errors.Join(err, c.h.discard(context.WithoutCancel(c.ctx), c.caller.Driver, rec.Tenant, id))
		}
		c.h.settle(context.WithoutCancel(c.ctx), rec.Tenant, id)
		b.note("a snapshot was taken")
		return c.json(http.StatusCreated, t.told(tag))
	})
}

// add adds a build to the template of a name, or to a new template, and points the tag at
// it.
func (c *call) add(called string, of paddock.ID, made built, tag string) (*template, error) {
	t := c.template(called, of)
	t.Builds = append(t.Builds, made)
	t.Tags[tag] = made.ID
	t.Updated = made.Created
	return t, c.h.save(c.ctx, t)
}

// template returns a copy of the caller's template of a name, or a new one.
func (c *call) template(called string, of paddock.ID) *template {
	if called != "" {
		t, _, err := c.h.lookup(c.caller.Tenant, called)
		if err == nil {
			return t.clone()
		}
	}
	return &template{ID: "t" + secret(10), Tenant: c.caller.Tenant, Name: called, Created: time.Now().UTC(), Tags: map[string]string{}, Sandbox: of}
}

// snapshots handles GET /snapshots. It lists them, newest first.
func (c *call) snapshots() error {
	q := c.URL.Query()
	limit, err := page(q)
	if err != nil {
		return err
	}
	from, err := parseCursor(q.Get("nextToken"))
	if err != nil {
		return err
	}
	var want name
	if text := q.Get("name"); text != "" {
		want, _ = parseName(text)
	}
	type row struct {
		at  time.Time
		id  string
		say snapshotAnswer
	}
	var rows []row
	for _, t := range c.own() {
		if t.Sandbox == "" || q.Get("sandboxID") != "" && string(t.Sandbox) != q.Get("sandboxID") || q.Get("name") != "" && t.Name != want.name {
			continue
		}
		for tag, id := range t.Tags {
			if b, ok := t.build(id); ok && b.Status == ready && (want.tag == "" || want.tag == tag) {
				rows = append(rows, row{b.Created, b.ID + tag, t.told(tag)})
			}
		}
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.id, a.id)) })
	list := []snapshotAnswer{}
	for i, r := range rows {
		if from.id != "" && cmp.Or(r.at.Compare(from.at), cmp.Compare(r.id, from.id)) >= 0 {
			continue
		}
		if list = append(list, r.say); len(list) == limit && i+1 < len(rows) {
			c.w.Header().Set("X-Next-Token", cursor{r.at, r.id}.String())
			break
		}
	}
	return c.json(http.StatusOK, list)
}

// own returns the caller's templates in the order of creation.
func (c *call) own() []*template {
	var list []*template
	c.h.mu.Lock()
	for _, t := range c.h.templates {
		if t.Tenant == c.caller.Tenant {
			list = append(list, t)
		}
	}
	c.h.mu.Unlock()
	slices.SortFunc(list, func(a, b *template) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return list
}

// A forked is one result of a fork.
type forked struct {
	Sandbox *sandboxAnswer `json:"sandbox,omitempty"`
	Error   *fault         `json:"error,omitempty"`
}

// fork handles POST …/fork. It makes copies of a sandbox, with its memory.
func (c *call) fork() error {
	var q struct {
		Timeout *int64 `json:"timeout"`
		Count   *int   `json:"count"`
	}
	if err := c.body(&q, true); err != nil {
		return err
	}
	seconds, count := int64(oldTimeout), 1
	if q.Timeout != nil {
		seconds = *q.Timeout
	}
	if q.Count != nil {
		count = *q.Count
	}
	life, err := timeout(seconds)
	if err != nil {
		return err
	}
	if count < 1 || count > 100 {
		return invalid("count: %d is not a number from 1 to 100", count)
	}
	return c.with(func(b *box, rec record) error {
		if rec.Paused {
			return refuse(409, paddock.Conflict, "Sandbox \"%s\" is paused", rec.ID)
		}
		id, err := c.keepAs(b, rec, true)
		if err != nil {
			return err
		}
		list := make([]forked, 0, count)
		for range count {
			list = append(list, c.forks(rec, id, life))
		}
		if err := c.h.discard(context.WithoutCancel(c.ctx), c.caller.Driver, rec.Tenant, id); err != nil {
			c.h.log.Warn("e2b: a snapshot of a fork is left", "snapshot", id, "error", err)
		}
		return c.json(http.StatusCreated, list)
	})
}

// forks makes one copy.
func (c *call) forks(rec record, id paddock.SnapshotID, life time.Duration) forked {
	root := rooted{
		template: rec.Template, alias: rec.Alias, tier: rec.Tier, root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id},
		env: maps.Clone(rec.Env), user: rec.User, dir: rec.Dir, image: rec.Image, sudo: rec.Sudo,
	}
	if root.env == nil {
		root.env = map[string]string{}
	}
	var err error
	if rec.ID, err = c.h.sandboxID("", ""); err == nil {
		rec.Box, rec.Token, rec.Started = "", "ea_"+secret(20), c.h.now()
		if rec.Traffic != "" {
			rec.Traffic = "ta_" + secret(20)
		}
		c.h.lasts(&rec, life)
		var b *box
		if b, err = c.build(rec, root, false); err == nil {
			a := b.answer()
			return forked{Sandbox: &a}
		}
	}
	f := faultOf(err)
	return forked{Error: &f}
}
