package e2b

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// templateTable returns every route of templates.
func templateTable() []route {
	const builds = "/templates/{id}/builds/{build}"
	return []route{
		{"POST /v3/templates", (*call).newTemplate},
		{"GET /templates", (*call).templates},
		{"GET /v2/templates", (*call).templatePage},
		{"GET /default-templates", (*call).none},
		{"GET /templates/{id}", (*call).getTemplate},
		{"DELETE /templates/{id}", (*call).removeTemplate},
		{"PATCH /templates/{id}", (*call).patchTemplate},
		{"PATCH /v2/templates/{id}", (*call).patchTemplate},
		{"GET /templates/{id}/{what}", (*call).about}, // /templates/aliases/{alias} and /templates/{id}/tags
		{"POST /templates/tags", (*call).tag},
		{"DELETE /templates/tags", (*call).untag},
		{"GET /templates/{id}/files/{hash}", (*call).uploadLink},
		{"POST /v2" + builds, (*call).startBuild},
		{"GET " + builds + "/status", (*call).buildStatus},
		{"GET " + builds + "/logs", (*call).buildLogs},
	}
}

// uuid returns a UUID of version 4.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// A templateAnswer describes a template to clients.
type templateAnswer struct {
	TemplateID    string        `json:"templateID"`
	BuildID       string        `json:"buildID"`
	CPUCount      int           `json:"cpuCount"`
	MemoryMB      int64         `json:"memoryMB"`
	DiskSizeMB    int64         `json:"diskSizeMB"`
	Public        bool          `json:"public"`
	Aliases       []string      `json:"aliases"`
	Names         []string      `json:"names"`
	CreatedAt     time.Time     `json:"createdAt"`
	UpdatedAt     time.Time     `json:"updatedAt"`
	CreatedBy     *struct{}     `json:"createdBy"`
	LastSpawnedAt *time.Time    `json:"lastSpawnedAt"`
	SpawnCount    int64         `json:"spawnCount"`
	BuildCount    int           `json:"buildCount"`
	EnvdVersion   string        `json:"envdVersion"`
	BuildStatus   string        `json:"buildStatus"`
	Builds        []buildAnswer `json:"builds,omitempty"`
}

type buildAnswer struct {
	BuildID    string     `json:"buildID"`
	Status     string     `json:"status"`
	CreatedAt  time.Time  `json:"createdAt"`
	UpdatedAt  time.Time  `json:"updatedAt"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	CPUCount   int        `json:"cpuCount"`
	MemoryMB   int64      `json:"memoryMB"`
}

func (t *template) answer() templateAnswer {
	a := templateAnswer{
		TemplateID: t.ID, Aliases: []string{}, Names: []string{}, CreatedAt: t.Created, UpdatedAt: t.Updated,
		SpawnCount: t.Count, BuildCount: len(t.Builds), EnvdVersion: Version, CPUCount: 1, MemoryMB: 128,
	}
	if t.Name != "" {
		a.Aliases, a.Names = []string{t.Name}, []string{t.Tenant + "/" + t.Name}
	}
	if !t.Spawned.IsZero() {
		a.LastSpawnedAt = &t.Spawned
	}
	if len(t.Builds) > 0 {
		b := t.Builds[len(t.Builds)-1]
		a.BuildID, a.BuildStatus = b.ID, b.Status
		a.CPUCount, a.MemoryMB, a.DiskSizeMB = cpus(b.Limits), max(b.Limits.Memory>>20, 128), b.Limits.Disk>>20
	}
	return a
}

func (t *template) detail() templateAnswer {
	a := t.answer()
	for _, b := range t.Builds {
		one := buildAnswer{BuildID: b.ID, Status: b.Status, CreatedAt: b.Created, UpdatedAt: b.Created, CPUCount: cpus(b.Limits), MemoryMB: max(b.Limits.Memory>>20, 128)}
		if !b.Finished.IsZero() {
			one.FinishedAt, one.UpdatedAt = &b.Finished, b.Finished
		}
		a.Builds = append(a.Builds, one)
	}
	return a
}

// listing returns the caller's templates, without snapshots, which have a list of their
// own.
func (c *call) listing() []templateAnswer {
	list := []templateAnswer{}
	for _, t := range c.own() {
		if t.Sandbox == "" {
			list = append(list, t.answer())
		}
	}
	return list
}

func (c *call) templates() error { return c.json(http.StatusOK, c.listing()) }

func (c *call) templatePage() error {
	limit, err := page(c.URL.Query())
	if err != nil {
		return err
	}
	from := 0
	if text := c.URL.Query().Get("nextToken"); text != "" {
		if from, err = strconv.Atoi(text); err != nil || from < 0 {
			return invalid("nextToken: not a token of this server")
		}
	}
	list := c.listing()
	list = list[min(from, len(list)):]
	if len(list) > limit {
		list = list[:limit]
		c.w.Header().Set("X-Next-Token", strconv.Itoa(from+limit))
	}
	return c.json(http.StatusOK, list)
}

// found returns the template that the path names.
func (c *call) found() (*template, name, error) {
	return c.h.lookup(c.caller.Tenant, c.PathValue("id"))
}

func (c *call) getTemplate() error {
	t, _, err := c.found()
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, t.detail())
}

// about handles two routes with one pattern: whether an alias is taken, and the tags of a
// template.
func (c *call) about() error {
	switch {
	case c.PathValue("id") == "aliases":
		alias := c.PathValue("what")
		if slices.Contains(base(), alias) {
			return c.json(http.StatusOK, map[string]any{"templateID": alias, "public": true})
		}
		t, _, err := c.h.lookup(c.caller.Tenant, alias)
		if err != nil {
			return err
		}
		return c.json(http.StatusOK, map[string]any{"templateID": t.ID, "public": false})
	case c.PathValue("what") == "tags":
		return c.tags()
	}
	return refuse(404, paddock.NotFound, "there is no such path")
}

// patchTemplate refuses to make a template public, because it belongs to its tenant.
func (c *call) patchTemplate() error {
	var q struct {
		Public *bool `json:"public"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	t, _, err := c.found()
	if err != nil {
		return err
	}
	if q.Public != nil && *q.Public {
		return cannot("public: a template here is its tenant's alone")
	}
	return c.json(http.StatusOK, map[string]any{"names": t.answer().Names})
}

// removeTemplate deletes a template or one of its tags, with the snapshots that become
// unreferenced. Sandboxes made from it stay.
func (c *call) removeTemplate() error {
	t, n, err := c.found()
	if err != nil {
		return err
	}
	t = t.clone()
	if n.tag == "" {
		clear(t.Tags)
	} else if _, ok := t.Tags[n.tag]; !ok {
		return noTag(n.tag, n.name)
	}
	delete(t.Tags, n.tag)
	if err := c.prune(t, false); err != nil {
		return err
	}
	if len(t.Tags) > 0 {
		if err := c.h.save(c.ctx, t); err != nil {
			return err
		}
		return c.nothing()
	}
	if err := c.h.o.Store.Forget(c.ctx, kindTemplate, t.Tenant, t.ID); err != nil {
		return err
	}
	c.h.mu.Lock()
	delete(c.h.templates, t.ID)
	c.h.mu.Unlock()
	return c.nothing()
}

// prune removes builds without a tag, and their snapshots. With newest it keeps the newest
// build, because it may still get a tag.
func (c *call) prune(t *template, newest bool) error {
	return c.h.prune(c.ctx, c.caller, t, newest)
}

func (h *Handler) prune(ctx context.Context, caller dialect.Caller, t *template, newest bool) error {
	var kept []built
	var errs []error
	for i, b := range t.Builds {
		led := false
		for _, id := range t.Tags {
			led = led || id == b.ID
		}
		if led || b.Status == waiting || b.Status == building || newest && i == len(t.Builds)-1 {
			kept = append(kept, b)
			continue
		}
		if b.Snapshot != "" {
			if err := caller.Driver.RemoveSnapshot(ctx, b.Snapshot); err != nil {
				errs = append(errs, err)
				kept = append(kept, b)
			}
		}
	}
	t.Builds = kept
	return errors.Join(errs...)
}

// started removes the oldest waiting builds, so that at most stay of them remain.
func started(list []built, stay int) []built {
	over := -stay
	for _, b := range list {
		if b.Status == waiting {
			over++
		}
	}
	return slices.DeleteFunc(slices.Clone(list), func(b built) bool {
		if b.Status != waiting || over <= 0 {
			return false
		}
		over--
		return true
	})
}

// tags lists the tags of a template.
func (c *call) tags() error {
	t, _, err := c.found()
	if err != nil {
		return err
	}
	type row struct {
		Tag       string    `json:"tag"`
		BuildID   string    `json:"buildID"`
		CreatedAt time.Time `json:"createdAt"`
	}
	list := []row{}
	for tag, id := range t.Tags {
		b, _ := t.build(id)
		list = append(list, row{tag, id, b.Created})
	}
	slices.SortFunc(list, func(a, b row) int { return cmp.Compare(a.Tag, b.Tag) })
	return c.json(http.StatusOK, list)
}

// tag handles POST /templates/tags. It points tags at the build of another tag.
func (c *call) tag() error {
	var q struct {
		Target string   `json:"target"`
		Tags   []string `json:"tags"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	n, ok := parseName(q.Target)
	if !ok || n.tag == "" {
		return invalid("target: %q is not name:tag", dialect.Printable(q.Target))
	}
	if err := goodTags(q.Tags); err != nil {
		return err
	}
	t, _, err := c.h.lookup(c.caller.Tenant, q.Target)
	if err != nil {
		return err
	}
	id, ok := t.Tags[n.tag]
	if !ok {
		return noTag(n.tag, n.name)
	}
	t = t.clone()
	before := len(t.Tags)
	for _, tag := range q.Tags {
		t.Tags[tag] = id
	}
	if n := len(t.Tags); n > before && n > maxTags {
		return refuse(429, paddock.Exhausted, "the template would have %d tags, and the maximum is %d; remove some", n, maxTags)
	}
	if err := c.prune(t, true); err != nil {
		return err
	}
	if err := c.h.save(c.ctx, t); err != nil {
		return err
	}
	return c.json(http.StatusCreated, map[string]any{"tags": q.Tags, "buildID": id})
}

func goodTags(tags []string) error {
	if len(tags) == 0 || len(tags) > 100 {
		return invalid("tags: %d of them; one to 100 are needed", len(tags))
	}
	for _, tag := range tags {
		if !word(tag, ".") {
			return invalid("tags: %q is not of lower-case letters, digits, dashes, dots and underscores", dialect.Printable(tag))
		}
	}
	return nil
}

// untag handles DELETE /templates/tags.
func (c *call) untag() error {
	var q struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if err := goodTags(q.Tags); err != nil {
		return err
	}
	t, n, err := c.h.lookup(c.caller.Tenant, q.Name)
	if err != nil {
		return err
	}
	t = t.clone()
	for _, tag := range q.Tags {
		if _, ok := t.Tags[tag]; !ok {
			return noTag(tag, n.name)
		}
		delete(t.Tags, tag)
	}
	if err := c.prune(t, true); err != nil {
		return err
	}
	if err := c.h.save(c.ctx, t); err != nil {
		return err
	}
	return c.nothing()
}
