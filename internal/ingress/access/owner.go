package access

import (
	"context"
	"crypto/hmac"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/ingress"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// How long signed URLs hold.
const (
	usualLife   = time.Hour
	longestLife = 7 * 24 * time.Hour
)

// mine finds a tenant's own sandbox; any other is not there.
func (c *Control) mine(ctx context.Context, tenant string, id paddock.ID) (store.Sandbox, error) {
	b, err := c.o.Store.Sandbox(ctx, tenant, id)
	if err == nil && b.State == store.Making {
		err = fmt.Errorf("sandbox %s: %w", id, paddock.NotFound)
	}
	return b, err
}

// Port tells how a port of a tenant's sandbox is reached.
func (c *Control) Port(ctx context.Context, tenant string, id paddock.ID, port int) (api.Port, error) {
	b, err := c.mine(ctx, tenant, id)
	if err != nil {
		return api.Port{}, err
	}
	said, err := c.o.Store.Port(ctx, b.Token, port)
	if err != nil {
		return api.Port{}, err
	}
	answer := api.Port{Port: port, Public: said.Public}
	if base, err := c.base(id, port); err == nil {
		answer.URL = base + "/"
	}
	return answer, nil
}

// SetPublic lets anyone reach a port, or nobody but who has a key: then what was signed for it before ends, and so does
// what is under way. With [store.EveryPort] it is about all ports at once, and what was signed for one of them stays.
func (c *Control) SetPublic(ctx context.Context, tenant string, id paddock.ID, port int, public bool) (api.Port, error) {
	b, err := c.mine(ctx, tenant, id)
	if err != nil {
		return api.Port{}, err
	}
	if err := c.o.Store.SetPort(ctx, b.Token, port, public); err != nil {
		return api.Port{}, err
	}
	if !public {
		c.proxy.Cut(id, port)
	}
	return c.Port(ctx, tenant, id, port)
}

// Link signs a URL with the right of a key, whose ID is given: it ends with the key.
func (c *Control) Link(ctx context.Context, tenant, key string, id paddock.ID, port int, ask api.Link) (api.Linked, error) {
	base, err := c.base(id, port)
	if err != nil {
		return api.Linked{}, err
	}
	text, expires, err := c.Sign(ctx, tenant, key, id, port, ask)
	if err != nil {
		return api.Linked{}, err
	}
	to := ask.Path
	if to == "" {
		to = "/"
	}
	return api.Linked{URL: base + to + "?" + Parameter + "=" + text, Expires: expires}, nil
}

// Sign is Link without a URL: it returns the signed text, which also counts in a header, and at the server's own host.
func (c *Control) Sign(ctx context.Context, tenant, key string, id paddock.ID, port int, ask api.Link) (text string, expires time.Time, err error) {
	switch {
	case ask.Lifetime == 0:
		ask.Lifetime = usualLife
	case ask.Lifetime < time.Second || ask.Lifetime > longestLife:
		return "", time.Time{}, fmt.Errorf("a signed URL holds for a second or more, and at most for %v: %w", longestLife, paddock.Invalid)
	}
	if !goodKey(key) {
		return "", time.Time{}, fmt.Errorf("a URL is signed for who shows a key: %w", paddock.Denied)
	}
	if ask.Path != "" && !goodPrefix(ask.Path) {
		return "", time.Time{}, fmt.Errorf("path %.100q: it begins with a slash, has no empty names, steps or escapes, and at most %d bytes: %w", ask.Path, longestPath, paddock.Invalid)
	}
	b, err := c.mine(ctx, tenant, id)
	if err != nil {
		return "", time.Time{}, err
	}
	if err := c.o.Store.NamePort(ctx, b.Token, port); err != nil {
		return "", time.Time{}, err
	}
	said, err := c.o.Store.Port(ctx, b.Token, port)
	if err != nil {
		return "", time.Time{}, err
	}
	p := pass{expires: c.o.Now().Add(ask.Lifetime).Truncate(time.Second).Add(time.Second), key: key, path: ask.Path}
	return seal(c.o.Key, claim{id: id, token: b.Token, epoch: said.Epoch, port: port}, p), p.expires.UTC(), nil
}

// End ends a signed text of a port before its time, and what is under way to that port. One that has expired has ended.
func (c *Control) End(ctx context.Context, tenant string, id paddock.ID, port int, text string) error {
	b, err := c.mine(ctx, tenant, id)
	if err != nil {
		return err
	}
	said, err := c.o.Store.Port(ctx, b.Token, port)
	if err != nil {
		return err
	}
	now := c.o.Now()
	at := claim{id: id, token: b.Token, epoch: said.Epoch, port: port}
	p, mac, ok := parse(text)
	if !ok || !hmac.Equal(mac, sum(c.o.Key, at, p)) {
		return fmt.Errorf("that is no signature for port %d of sandbox %s: %w", port, id, paddock.NotFound)
	}
	if !now.Before(p.expires) {
		return nil
	}
	if err := c.o.Store.EndLink(ctx, b.Token, mark(text), p.expires, now); err != nil {
		return err
	}
	c.proxy.Cut(id, port)
	return nil
}

// base is where a browser finds a port.
func (c *Control) base(id paddock.ID, port int) (string, error) {
	if c.domain == "" {
		return "", fmt.Errorf("this server has no domain for ports: start it with --domain, or reach the port with a key and the headers %s and %s: %w", SandboxHeader, PortHeader, paddock.Unsupported)
	}
	host, ok := ingress.Host(id, port, c.domain)
	if !ok {
		return "", fmt.Errorf("sandbox %s: %d-%s is too long for the name of a host, which has at most 63 characters; give sandboxes shorter IDs: %w", id, port, id, paddock.Unsupported)
	}
	return c.scheme + "://" + host, nil
}

// Certifiable tells whether a host may have a certificate of its own: one of a port that
// its owner made public or signed a URL for.
func (c *Control) Certifiable(ctx context.Context, host string) error {
	id, port, ok := ingress.Split(host, c.domain)
	if !ok {
		return fmt.Errorf("host %q is not of this server: %w", host, paddock.Denied)
	}
	b, err := c.o.Store.Owned(ctx, id)
	if err != nil {
		return err
	}
	said, err := c.o.Store.Port(ctx, b.Token, port)
	if err == nil && !said.Named {
		err = fmt.Errorf("port %d of sandbox %s was given to nobody: %w", port, id, paddock.Denied)
	}
	return err
}
