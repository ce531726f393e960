package e2b

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// A template is what sandboxes are made from. A template in the handler's map is immutable:
// a change replaces it by another one.
type template struct {
	ID      string            `json:"id"`
	Tenant  string            `json:"tenant"`
	Name    string            `json:"name,omitempty"`
	Created time.Time         `json:"created"`
	Updated time.Time         `json:"updated"`
	Builds  []built           `json:"builds"` // oldest first
	Tags    map[string]string `json:"tags"`   // to the ID of a build
	// Sandbox is the source of a snapshot.
	Sandbox paddock.ID `json:"sandbox,omitempty"`
	Spawned time.Time  `json:"spawned,omitzero"`
	Count   int64      `json:"count,omitempty"`
}

// A built is one build of a template.
type built struct {
	ID       string             `json:"id"`
	Status   string             `json:"status"`
	Snapshot paddock.SnapshotID `json:"snapshot,omitempty"`
	Tier     paddock.Tier       `json:"tier,omitempty"`
	Whole    bool               `json:"whole,omitempty"` // the snapshot includes memory
	Limits   paddock.Limits     `json:"limits,omitzero"`
	Image    string             `json:"image,omitempty"` // image of the snapshot's root
	Env      map[string]string  `json:"env,omitempty"`
	User     string             `json:"user,omitempty"`
	Dir      string             `json:"dir,omitempty"`
	Sudo     bool               `json:"sudo,omitempty"` // the source of the snapshot had sudo
	Created  time.Time          `json:"created"`
	Finished time.Time          `json:"finished,omitzero"`
	Reason   string             `json:"reason,omitempty"`
	Step     string             `json:"step,omitempty"`
	Wanted   []string           `json:"wanted,omitempty"` // tags that will point to it
}

// States of builds.
const (
	waiting  = "waiting"
	building = "building"
	ready    = "ready"
	failed   = "error"
)

// usualTag is the tag of a name without one.
const usualTag = "default"

// base returns the templates that always exist: this machine's system, or an image for the
// first. E2B's clients use the gateway's template when they are asked for MCP servers. They
// start the program mcp-gateway in it, which the machine may or may not have.
func base() []string { return []string{"base", interpreter, gateway} }

const (
	interpreter = "code-interpreter-v1"
	gateway     = "mcp-gateway"
)

// A rooted is the root that a sandbox is made from, with its settings.
type rooted struct {
	template, alias string
	tier            paddock.Tier
	root            paddock.Root
	limits          paddock.Limits
	env             map[string]string
	user, dir       string // from the build, if it set them
	image           string // image of the root
	pull            *Pull  // an image that is still to be pulled
	own             bool   // the handler chose the root, not the caller
	sudo            bool   // the source of the snapshot had sudo
}

// named returns the part of a spec that the caller asked for. The directory of an image is
// not part of it.
func (r rooted) named(spec paddock.Spec) paddock.Spec {
	if r.own {
		spec.Root = paddock.Root{}
	}
	return spec
}

// loadTemplate loads a stored template.
func (h *Handler) loadTemplate(tenant, _, data string) error {
	t := &template{}
	if err := json.Unmarshal([]byte(data), t); err != nil || t.Tenant != tenant {
		return fmt.Errorf("a template of tenant %s is kept in a form that this program cannot read: %w", tenant, paddock.Internal)
	}
	for i, b := range t.Builds {
		if b.Status == waiting || b.Status == building {
			t.Builds[i].Status, t.Builds[i].Reason = failed, "the server ended before the build did"
		}
		if err := fits(b.Env); err != nil { // kept by an earlier version
			t.Builds[i].Status, t.Builds[i].Reason, t.Builds[i].Env = failed, err.Error(), nil
			h.log.Warn("e2b: a build of a template cannot be used", "template", t.ID, "build", b.ID, "error", err)
		}
	}
	h.templates[t.ID] = t
	return nil
}

// clone copies a template, to be changed.
func (t *template) clone() *template {
	c := *t
	c.Builds, c.Tags = slices.Clone(t.Builds), maps.Clone(t.Tags)
	if c.Tags == nil {
		c.Tags = map[string]string{}
	}
	return &c
}

// build returns a build by its ID.
func (t *template) build(id string) (built, bool) {
	i := slices.IndexFunc(t.Builds, func(b built) bool { return b.ID == id })
	if i < 0 {
		return built{}, false
	}
	return t.Builds[i], true
}

// save stores a template and replaces the one with its ID.
func (h *Handler) save(ctx context.Context, t *template) error {
	data, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("keep template %s: %w", t.ID, err)
	}
	if err := h.o.Store.Keep(ctx, kindTemplate, t.Tenant, t.ID, string(data)); err != nil {
		return err
	}
	h.mu.Lock()
	h.templates[t.ID] = t
	h.mu.Unlock()
	return nil
}

// spawned counts a sandbox of a template. The count is stored with the next change.
func (h *Handler) spawned(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.templates[id]; t != nil {
		t = t.clone()
		t.Count++
		t.Spawned = time.Now().UTC()
		h.templates[id] = t
	}
}

// A name is a template's name: [NAMESPACE/]NAME[:TAG].
type name struct{ space, name, tag string }

func (n name) String() string { return n.name + ":" + n.tag }

// parseName parses a name in lower case. The tag is empty if there is none.
func parseName(text string) (name, bool) {
	var n name
	text = strings.ToLower(text)
	text, n.tag, _ = strings.Cut(text, ":")
	if space, rest, ok := strings.Cut(text, "/"); ok {
		n.space, text = space, rest
		if !word(space, "") {
			return n, false
		}
	}
	n.name = text
	return n, word(text, "") && (n.tag == "" || word(n.tag, "."))
}

// word reports whether a text is a name. more lists further characters that it may have.
func word(text, more string) bool {
	return text != "" && len(text) <= 128 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-_"+more) == ""
}

func noTemplate(text string) error {
	return refuse(404, paddock.NotFound, "template '%s' not found", dialect.Printable(text))
}

func noTag(tag, text string) error {
	return refuse(404, paddock.NotFound, "tag '%s' does not exist for template '%s'", dialect.Printable(tag), dialect.Printable(text))
}

// lookup returns a tenant's template by ID or name. Another tenant's is not found.
func (h *Handler) lookup(tenant, text string) (*template, name, error) {
	n, ok := parseName(text)
	if !ok || n.space != "" && n.space != tenant {
		return nil, n, noTemplate(text)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.templates[n.name]; t != nil && t.Tenant == tenant {
		return t, n, nil
	}
	for _, t := range h.templates {
		if t.Tenant == tenant && t.Name == n.name {
			return t, n, nil
		}
	}
	return nil, n, noTemplate(text)
}

// resolve returns the root for a template name. The tag of a built-in template is a tier.
func (h *Handler) resolve(tenant, text string) (rooted, error) {
	t, n, err := h.lookup(tenant, text)
	if err != nil {
		if n.space == "" && slices.Contains(base(), n.name) {
			return h.builtIn(n)
		}
		return rooted{}, err
	}
	tag := n.tag
	if tag == "" {
		tag = usualTag
	}
	id, ok := t.Tags[tag]
	if !ok {
		return rooted{}, noTag(tag, n.name)
	}
	b, ok := t.build(id)
	if !ok || b.Status != ready {
		return rooted{}, refuse(400, paddock.Conflict, "template '%s' is not ready: its build is %s", n.name, b.Status)
	}
	env := maps.Clone(b.Env)
	if env == nil {
		env = map[string]string{}
	}
	r := rooted{
		template: t.ID, alias: t.Name, tier: b.Tier, root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: b.Snapshot},
		env: env, user: b.User, dir: b.Dir, image: b.Image, sudo: b.Sudo,
	}
	switch { // a snapshot with memory keeps its limits, a machine also its processors and memory
	case !b.Whole:
		r.limits = b.Limits
	case b.Tier != paddock.MicroVM:
		r.limits = paddock.Limits{CPUs: b.Limits.CPUs, Memory: b.Limits.Memory}
	}
	return r, nil
}

func (h *Handler) builtIn(n name) (rooted, error) {
	r := rooted{template: n.name, alias: n.name, env: map[string]string{}, limits: paddock.Limits{Disk: h.o.Disk}}
	if img := h.o.Base; img != nil && n.name == base()[0] {
		r.root, r.env, r.own = paddock.Root{Kind: paddock.RootDir, Path: img.Dir}, img.environment(), true
		r.image = shared + img.ID
	}
	switch tier := paddock.Tier(n.tag); tier {
	case "", usualTag:
	case paddock.Sim, paddock.Jail, paddock.GVisor, paddock.MicroVM:
		r.tier = tier
	default:
		return r, noTag(n.tag, n.name)
	}
	return r, nil
}
