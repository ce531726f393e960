package e2b

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// A login has the credentials for a registry. It is used while its build runs, and never
// stored.
type login struct {
	Type     string `json:"type"`
	Username string `json:"username"`
	Password string `json:"password"`
}

// String hides the credentials from logs.
func (login) String() string { return "credentials of a registry" }

// GoString returns the same as String.
func (l login) GoString() string { return l.String() }

// Bounds of a login.
const (
	maxUsername = 1024
	maxPassword = 16 << 10
)

// sweepAfter is how long an image is unused before it is removed, because a sandbox from a
// template may be about to use it.
const sweepAfter = 10 * time.Minute

const sweepEvery = 5 * time.Second

// shared is the prefix of the ID of base's image, which belongs to no tenant.
const shared = "base:"

// fromImage returns a root whose image is still to be pulled.
func (c *call) fromImage(q buildRequest) (rooted, error) {
	if c.h.o.Images == nil {
		return rooted{}, cannot("fromImage: this server has no images; start from the template base")
	}
	if len(q.FromImage) > 1024 {
		return rooted{}, invalid("fromImage: it is longer than 1,024 characters")
	}
	p := &Pull{Tenant: c.caller.Tenant, Image: q.FromImage, Private: c.caller.Private}
	if l := q.FromImageRegistry; l != nil {
		switch {
		case l.Type == "aws" || l.Type == "gcp":
			return rooted{}, cannot("fromImageRegistry: this server does not support credentials of the type %s; use the type registry, with a user and a token of the registry", l.Type)
		case l.Type != "registry":
			return rooted{}, invalid("fromImageRegistry: the type %q is not registry", dialect.Printable(l.Type))
		case l.Username == "" || l.Password == "" || len(l.Username) > maxUsername || len(l.Password) > maxPassword:
			return rooted{}, invalid("fromImageRegistry: a username and a password are needed, of %d and %d characters at most", maxUsername, maxPassword)
		}
		p.Username, p.Password = l.Username, l.Password
	}
	return rooted{template: "the image " + dialect.Printable(q.FromImage), env: map[string]string{}, pull: p}, nil
}

// environment returns an image's variables, without those that no process could have.
func (i Image) environment() map[string]string {
	vars := map[string]string{}
	for _, text := range i.Env {
		name, value, _ := strings.Cut(text, "=")
		if environment(map[string]string{name: value}) == nil {
			vars[name] = value
		}
	}
	return vars
}

// pull pulls an image for a build, and protects it from sweeping.
func (h *Handler) pull(ctx context.Context, b *build, p Pull) (Image, error) {
	p.Say = func(text string) { b.say("info", "base", text) }
	b.mu.Lock()
	b.pulls = true
	b.mu.Unlock()
	img, err := h.o.Images.Pull(ctx, p)
	b.mu.Lock()
	b.image, b.pulls = img.ID, false
	b.mu.Unlock()
	return img, err
}

// holds reports whether a build in progress uses a tenant's image, or may use it.
func (h *Handler) holds(tenant, id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, b := range h.builds {
		b.mu.Lock()
		held := (b.status == building || b.status == waiting) && (b.caller.Tenant == tenant && (b.pulls || b.image == id) || tenant == "" && b.image == shared+id)
		b.mu.Unlock()
		if held {
			return true
		}
	}
	return false
}

// sweepImages removes images that no template, sandbox or build has used for some time.
func (h *Handler) sweepImages(now time.Time) {
	if h.o.Images == nil {
		return
	}
	used, tenants := map[string]bool{}, map[string]bool{}
	mark := func(tenant, id string) {
		if name, ok := strings.CutPrefix(id, shared); ok {
			tenant, id = "", name
		}
		tenants[tenant] = true
		if id != "" {
			used[tenant+"\x00"+id] = true
		}
	}
	mark("", "") // also if base has no image any more
	if h.o.Base != nil {
		mark("", h.o.Base.ID)
	}
	h.mu.Lock()
	for _, t := range h.templates {
		for _, b := range t.Builds {
			mark(t.Tenant, b.Image)
		}
	}
	boxes := make([]*box, 0, len(h.boxes))
	for _, b := range h.boxes {
		boxes = append(boxes, b)
	}
	for _, b := range h.builds {
		b.mu.Lock()
		if b.status == building || b.status == waiting {
			mark(b.caller.Tenant, b.image)
		} else {
			mark(b.caller.Tenant, "")
		}
		b.mu.Unlock()
	}
	h.mu.Unlock()
	for _, b := range boxes {
		rec, _ := b.record()
		mark(rec.Tenant, rec.Image)
	}
	h.mu.Lock()
	idle := maps.Clone(h.idle)
	for name := range idle { // including tenants that have nothing else left
		if tenant, _, ok := strings.Cut(name, "\x00"); ok {
			tenants[tenant] = true
		}
	}
	h.mu.Unlock()
	next := map[string]time.Time{}
	for tenant := range tenants {
		err := h.o.Images.Sweep(tenant, func(id string) bool {
			name := tenant + "\x00" + id
			if used[name] || h.holds(tenant, id) { // check again
				return true
			}
			since, ok := idle[name]
			if !ok {
				since = now
			}
			if now.Sub(since) < sweepAfter {
				next[name] = since
				return true
			}
			return false
		})
		if err != nil {
			h.log.Warn("e2b: unused images were not removed", "error", err)
		}
	}
	h.mu.Lock()
	h.idle = next
	h.mu.Unlock()
}
