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
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// Times of sandboxes, in seconds.
const (
	oldTimeout = 15
	newTimeout = 300
	maxTimeout = 366 * 24 * 3600
)

// createOld handles POST /sandboxes, for clients up to 2.50.
func (c *call) createOld() error { return c.creates(oldTimeout) }

// create handles POST /v2/sandboxes, for newer clients.
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
	size, err := disk("diskSizeMB", q.DiskSizeMB)
	if err != nil {
		return err
	}
	if size > 0 {
		root.limits.Disk = size
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

// sandboxID returns a new ID, or the same ID for a repeated request. Knowing tenant and key
// is not enough to guess it. The ID must stay secret, because nothing else protects a
// public port.
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

// plan checks a request and returns the record that is known before the creation.
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
	if err := q.tooLong(); err != nil {
		return record{}, err
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

// Bounds of what a sandbox's record keeps of a request, in bytes. Lists repeat the metadata.
const (
	maxMetadata = 64 << 10
	maxMCP      = 64 << 10
)

// tooLong refuses a request whose record would be too large.
func (q newSandbox) tooLong() error {
	for _, x := range []struct {
		field     string
		size, max int
	}{
		{"metadata", sizeOf(q.Metadata), maxMetadata}, {"envVars", sizeOf(q.EnvVars), paddock.MaxEnv}, {"mcp", len(q.MCP), maxMCP},
	} {
		if x.size > x.max {
			return invalid("%s has %d bytes, and the maximum is %d", x.field, x.size, x.max)
		}
	}
	return nil
}

// sizeOf returns the bytes of all names and values.
func sizeOf(list map[string]string) (n int) {
	for name, value := range list {
		n += len(name) + len(value)
	}
	return n
}

// fits refuses an environment that is too large. A template's variables and a request's are
// one environment, which a snapshot keeps for the next template.
func fits(env map[string]string) error {
	if n := sizeOf(env); n > paddock.MaxEnv {
		return invalid("the environment has %d bytes with the variables of the template, and the maximum is %d", n, paddock.MaxEnv)
	}
	return nil
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
			return invalid("envVars: %q is not a variable name", dialect.Printable(name))
		}
	}
	return nil
}

// The user of sandboxes for E2B's clients, and its home directory.
const (
	user = "user"
	home = "/home/user"
)

// Ready returns the spec of a sandbox from the template base with no options, on one tier.
// The sandboxes of a pool have exactly this spec, with Options.Disk. sudo reports whether the tier has it; for
// paddock.Auto, the tier that is chosen.
func Ready(tier paddock.Tier, sudo bool) paddock.Spec {
	p, err := policy(nil, nil)
	if err != nil {
		panic(err) // the zero request is always valid
	}
	return paddock.Spec{Tier: tier, User: user, Policy: paddock.Policy{Network: p}, Sudo: sudo}
}

// ready makes a spec equal to that of a pool's sandboxes, if a pool keeps them and the only
// differences are the name and the variables. The record keeps the name, and commands get
// the variables from this package.
func (h *Handler) ready(spec paddock.Spec) paddock.Spec {
	bare := spec
	bare.ID, bare.Env, bare.Labels = "", nil, nil
	bare.Sudo = false // createWith sets it
	want := Ready(spec.Tier, false)
	want.Limits.Disk = h.o.Disk
	if !slices.Contains(h.o.Ready, spec.Tier) || !reflect.DeepEqual(bare, want) {
		return spec
	}
	bare.Labels = spec.Labels
	bare.Labels["e2b.sandbox"] = string(spec.ID)
	return bare
}

// build makes a planned sandbox from a root. With ready, it may take a sandbox from the
// pool. After an error, nothing of it is left.
func (c *call) build(rec record, root rooted, ready bool) (*box, error) {
	ctx := c.ctx
	p, err := policy(rec.Network, rec.Internet)
	if err != nil {
		return nil, err
	}
	env := maps.Clone(root.env)
	maps.Copy(env, rec.Env)
	if err := fits(env); err != nil {
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
		rec.Env, rec.Sudo = env, spec.Sudo
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

// createWith makes a sandbox. If the network has no rules and this host cannot give a
// sandbox any network, the sandbox has none, and an update of its network is refused.
func createWith(ctx context.Context, d lifetime.Lessor, spec *paddock.Spec, root rooted, t lifetime.Terms) (paddock.Sandbox, error) {
	sb, err := createSudo(ctx, d, spec, root, t)
	if n := &spec.Policy.Network; errors.Is(err, paddock.Unsupported) && n.Mode == paddock.NetworkList && len(n.Rules) == 0 {
		n.Mode = paddock.NetworkNone
		if sb, none := createSudo(ctx, d, spec, root, t); none == nil {
			return sb, nil
		}
	}
	return sb, err
}

// createSudo makes a sandbox with sudo if the tier has it, because E2B's sandboxes have it.
// A sandbox from a snapshot has sudo if the source had it, because the memory image depends
// on it. After the call, spec.Sudo has the choice.
func createSudo(ctx context.Context, d lifetime.Lessor, spec *paddock.Spec, root rooted, t lifetime.Terms) (paddock.Sandbox, error) {
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

// terms returns the lease terms that end or pause the sandbox after its lifetime, counted
// from when they are set.
func (r record) terms() lifetime.Terms {
	t := lifetime.Terms{Timeout: r.life}
	if r.AutoPause {
		t.OnEnd = lifetime.Pause
	}
	return t
}

// Bounds of labels, as paddock has them.
const (
	mostLabels = 48
	longLabel  = 120
	longValue  = 1000
	longLabels = 12 << 10
)

// labels shows the metadata as labels in paddock's lists, as far as it fits. Only the
// record counts.
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

// answer describes a sandbox to a client that may use it.
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

// listed describes a sandbox in a list.
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

// cpus returns a number of processors in E2B's form: a whole number of at least one.
func cpus(l paddock.Limits) int { return max(int(math.Ceil(l.CPUs)), 1) }

// detail returns the full description.
func (b *box) detail(rec record, state string) detail {
	d := detail{listed: b.h.listed(rec, state), EnvdAccessToken: rec.Token, AllowInternetAccess: rec.Internet, Domain: b.h.domain(), Network: shown(rec.Network)}
	d.Lifecycle = lifecycle{AutoResume: rec.AutoResume, OnTimeout: "kill"}
	if rec.AutoPause {
		d.Lifecycle.OnTimeout = "pause"
	}
	return d
}

// shown returns a network object without its secrets.
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

// plain returns a network object without the headers that its rules set.
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
