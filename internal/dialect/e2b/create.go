package e2b

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/lease"
)

// Times of sandboxes, in seconds.
const (
	oldTimeout = 15
	newTimeout = 300
	maxTimeout = 366 * 24 * 3600
)

// createOld makes a sandbox for clients up to 2.50: POST /sandboxes.
func (c *call) createOld() error { return c.creates(oldTimeout) }

// create makes one for newer clients: POST /v2/sandboxes.
func (c *call) create() error { return c.creates(newTimeout) }

func (c *call) creates(usual int64) error {
	var q newSandbox
	if err := c.body(&q, false); err != nil {
		return err
	}
	rec, err := c.plan(q, usual)
	if err != nil {
		return err
	}
	root, err := c.h.resolve(c.caller.Tenant, q.TemplateID)
	if err != nil {
		return err
	}
	name := c.Header.Get("Idempotency-Key")
	if rec.ID, err = c.h.sandboxID(c.caller.Tenant, name); err != nil {
		return err
	}
	if b, ok := c.h.find(string(rec.ID)); ok && name != "" {
		return c.json(http.StatusCreated, b.answer())
	}
	b, err := c.build(rec, root, name == "")
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, b.answer())
}

// sandboxID makes a name, or the one that a repeated request has. Nobody guesses it
// who knows tenant and key: where a port is public it is all that keeps strangers out.
func (h *Handler) sandboxID(tenant, key string) (paddock.ID, error) {
	if len(key) > 255 {
		return "", invalid("the Idempotency-Key is longer than 255 characters")
	}
	text := secret(20)
	if key != "" {
		text = tenant + "\x00" + key
	}
	m := hmac.New(sha256.New, h.secret)
	_, _ = m.Write([]byte(text)) // it never fails
	return paddock.ID("i" + strings.ToLower(base32.StdEncoding.EncodeToString(m.Sum(nil)))[:20]), nil
}

// plan checks a request, and gives what is known of the sandbox beforehand.
func (c *call) plan(q newSandbox, usual int64) (record, error) {
	seconds := usual
	if q.Timeout != nil {
		seconds = *q.Timeout
	}
	life, err := timeout(seconds)
	if err != nil {
		return record{}, err
	}
	if q.TemplateID == "" {
		return record{}, invalid("templateID is missing")
	}
	for _, x := range []struct {
		asked bool
		words string
	}{
		{len(q.VolumeMounts) > 0, "volumeMounts: volumes are not offered by this server"},
		{len(q.IAM) > 0 && string(q.IAM) != "null", "iam: workload identities are not offered by this server"},
		{q.AutoPauseMemory != nil && !*q.AutoPauseMemory, "autoPauseMemory false: a pause at the end keeps memory here; a pause on request may keep files alone"},
	} {
		if x.asked {
			return record{}, cannot("%s", x.words)
		}
	}
	if err := environment(q.EnvVars); err != nil {
		return record{}, err
	}
	if _, err := policy(q.Network, q.AllowInternetAccess); err != nil {
		return record{}, err
	}
	rec := record{
		Tenant: c.caller.Tenant, Token: "ea_" + secret(20), Env: q.EnvVars, Metadata: q.Metadata, AutoPause: q.AutoPause,
		AutoResume: q.AutoResume != nil && q.AutoResume.Enabled, Internet: q.AllowInternetAccess, Network: q.Network, MCP: q.MCP,
		Started: c.h.now(),
	}
	c.h.lasts(&rec, life)
	if n := q.Network; n != nil && n.AllowPublicTraffic != nil && !*n.AllowPublicTraffic {
		if q.Secure != nil && !*q.Secure {
			return record{}, invalid("allowPublicTraffic false needs secure")
		}
		rec.Traffic = "ta_" + secret(20)
	}
	return rec, nil
}

// timeout checks a time in seconds.
func timeout(seconds int64) (time.Duration, error) {
	switch {
	case seconds <= 0:
		return 0, invalid("Timeout must be greater than 0")
	case seconds > maxTimeout:
		return 0, invalid("Timeout cannot be greater than %d hours", maxTimeout/3600)
	}
	return time.Duration(seconds) * time.Second, nil
}

// environment refuses variables that no process could have.
func environment(vars map[string]string) error {
	for name, value := range vars {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return invalid("envVars: %q is no variable", printable(name))
		}
	}
	return nil
}

// The user whose sandboxes E2B's are, and where it is at home.
const (
	user = "user"
	home = "/home/user"
)

// Ready is the spec of a sandbox that is made of the template base on a tier where
// nothing else is asked for: one that a pool keeps has exactly this. Sudo says whether
// the tier, or of paddock.Auto the one that a sandbox gets, has it.
func Ready(tier paddock.Tier, sudo bool) paddock.Spec {
	p, err := policy(nil, nil)
	if err != nil {
		panic(err) // nothing can be wrong with nothing
	}
	return paddock.Spec{Tier: tier, User: user, Policy: paddock.Policy{Network: p}, Sudo: sudo}
}

// ready leaves out of a spec what a sandbox that was made before does not have, where
// such ones are kept and there is no other difference: the name, which the record has,
// and variables, which commands get from the dialect.
func (h *Handler) ready(spec paddock.Spec) paddock.Spec {
	bare := spec
	bare.ID, bare.Env, bare.Labels = "", nil, nil
	bare.Sudo = false // createWith says
	if !slices.Contains(h.o.Ready, spec.Tier) || !reflect.DeepEqual(bare, Ready(spec.Tier, false)) {
		return spec
	}
	bare.Labels = spec.Labels
	bare.Labels["e2b.sandbox"] = string(spec.ID)
	return bare
}

// build makes a planned sandbox from a root, and maybe by taking one that is ready.
// After an error nothing is left of it.
func (c *call) build(rec record, root rooted, ready bool) (*box, error) {
	ctx := c.ctx
	p, err := policy(rec.Network, rec.Internet)
	if err != nil {
		return nil, err
	}
	spec := paddock.Spec{
		ID: rec.ID, Tier: root.tier, Root: root.root, Limits: root.limits, Policy: paddock.Policy{Network: p},
		Labels: labels(rec.Metadata, root.template),
	}
	if root.root.Kind != paddock.RootSnapshot {
		spec.User, spec.Env = user, rec.Env
	}
	if ready {
		spec = c.h.ready(spec)
	}
	if c.caller.Check != nil {
		if err := c.caller.Check(root.named(spec)); err != nil {
			return nil, err
		}
	}
	sb, err := createWith(ctx, c.caller.Driver, &spec, root, rec.terms())
	if errors.Is(err, paddock.Exhausted) {
		c.w.Header().Set("Retry-After", "1")
	}
	if err != nil {
		return nil, err
	}
	if sb.ID() != rec.ID {
		rec.Box = sb.ID()
	}
	st, err := paddock.FirstStatus(ctx, sb)
	if err == nil {
		rec.Template, rec.Alias, rec.Tier, rec.Limits, rec.User, rec.Dir = root.template, root.alias, st.Tier, st.Limits, st.User, st.Dir
		rec.Image = root.image
		maps.Copy(root.env, rec.Env)
		rec.Env, rec.Sudo = root.env, spec.Sudo
		if root.user != "" {
			rec.User, rec.Dir = root.user, root.dir
		}
		err = c.h.keep(ctx, rec)
	}
	b := c.h.newBox(rec)
	if err == nil {
		_, err = b.open(sb)
	}
	if err != nil {
		return nil, errors.Join(err, sb.Remove(c.h.ctx), c.h.o.Store.Forget(c.h.ctx, kindSandbox, rec.Tenant, string(rec.ID)))
	}
	b.first(st)
	c.h.mu.Lock()
	c.h.boxes[rec.ID] = b
	c.h.mu.Unlock()
	c.h.spawned(rec.Template)
	c.h.ring()
	b.note(fmt.Sprintf("the sandbox was made from %s on the tier %s", rec.Template, rec.Tier))
	return b, nil
}

// createWith makes a sandbox, with sudo where its tier can: E2B's have it. What goes
// on from a snapshot has it if what that was taken of had, since memory is of one or
// the other. The spec then says which it was.
func createWith(ctx context.Context, d lease.Lessor, spec *paddock.Spec, root rooted, t lease.Terms) (paddock.Sandbox, error) {
	spec.Sudo = root.sudo
	if root.root.Kind == paddock.RootSnapshot {
		return d.CreateWith(ctx, *spec, t)
	}
	if spec.Tier != paddock.Jail && spec.Tier != paddock.Sim {
		spec.Sudo = true
		if sb, err := d.CreateWith(ctx, *spec, t); !errors.Is(err, paddock.Unsupported) {
			return sb, err
		}
	}
	spec.Sudo = false
	return d.CreateWith(ctx, *spec, t)
}

// terms are those that end or pause the sandbox by themselves, as long from when they
// are given as was asked for.
func (r record) terms() lease.Terms {
	t := lease.Terms{Timeout: r.life}
	if r.AutoPause {
		t.OnEnd = lease.Pause
	}
	return t
}

// Bounds of labels, which paddock's tenants have too.
const (
	mostLabels = 48
	longLabel  = 120
	longValue  = 1000
	longLabels = 12 << 10
)

// labels shows metadata to those who list sandboxes with paddock, as far as it fits:
// what counts is the record.
func labels(metadata map[string]string, template string) map[string]string {
	list, sum := map[string]string{"e2b.template": template}, 0
	for name, value := range metadata {
		if name == "" || len(name) > longLabel || len(value) > longValue || strings.HasPrefix(name, "paddock.") || strings.HasPrefix(name, "e2b.") {
			continue
		}
		if sum += len(name) + len(value); len(list) == mostLabels || sum > longLabels {
			break
		}
		list[name] = value
	}
	return list
}

// answer is what clients are told of a sandbox that they may use.
func (b *box) answer() sandboxAnswer {
	rec, _ := b.record()
	a := sandboxAnswer{
		TemplateID: rec.Template, SandboxID: string(rec.ID), ClientID: "paddock", EnvdVersion: Version, Alias: rec.Alias,
		EnvdAccessToken: rec.Token, Domain: b.h.domain(),
	}
	if traffic := rec.traffic(); b.h.o.Code != nil || rec.Traffic != "" {
		a.TrafficAccessToken = &traffic
	}
	return a
}

func (h *Handler) domain() *string {
	if h.o.Domain == "" {
		return nil
	}
	return &h.o.Domain
}

// listed is what a list tells.
func (h *Handler) listed(r record, state string) listed {
	l := listed{
		TemplateID: r.Template, Alias: r.Alias, SandboxID: string(r.ID), ClientID: "paddock", StartedAt: r.Started, EndAt: h.endAt(r),
		CPUCount: cpus(r.Limits), MemoryMB: max(r.Limits.Memory>>20, 128), DiskSizeMB: r.Limits.Disk >> 20,
		Metadata: r.Metadata, State: state, EnvdVersion: Version, VolumeMounts: []struct{}{},
	}
	if l.EndAt.IsZero() {
		l.EndAt = r.Started
	}
	if l.Metadata == nil {
		l.Metadata = map[string]string{}
	}
	return l
}

// cpus is a number of processors as E2B has it: whole, and one at least.
func cpus(l paddock.Limits) int { return max(int(math.Ceil(l.CPUs)), 1) }

// detail is all that is told.
func (b *box) detail(rec record, state string) detail {
	d := detail{listed: b.h.listed(rec, state), EnvdAccessToken: rec.Token, AllowInternetAccess: rec.Internet, Domain: b.h.domain(), Network: shown(rec.Network)}
	d.Lifecycle = lifecycle{AutoResume: rec.AutoResume, OnTimeout: "kill"}
	if rec.AutoPause {
		d.Lifecycle.OnTimeout = "pause"
	}
	return d
}

// shown is a network object without what is secret in it.
func shown(n *network) *network {
	if n == nil || n.EgressProxy == nil {
		return n
	}
	open := *n
	proxy := *n.EgressProxy
	proxy.Password, proxy.TLS = "", json.RawMessage(nil)
	open.EgressProxy = &proxy
	return &open
}

// plain is a network object without what its rules put into requests.
func plain(n *network) *network {
	if n == nil || len(n.Rules) == 0 {
		return n
	}
	open := *n
	open.Rules = make(map[string][]rule, len(n.Rules))
	for host := range n.Rules {
		open.Rules[host] = []rule{}
	}
	return &open
}
