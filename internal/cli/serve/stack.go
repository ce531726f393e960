package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/wrap/actionlog"
	"github.com/paddock-sandbox/paddock/internal/wrap/admission"
	"github.com/paddock-sandbox/paddock/internal/wrap/auto"
	"github.com/paddock-sandbox/paddock/internal/wrap/infocache"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
	"github.com/paddock-sandbox/paddock/internal/wrap/observe"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
)

// This file lists the drivers of a server, innermost first. A call passes through
// them from the bottom of the list to the top.
//
//	tier       makes sandboxes: microvm, gvisor, jail or sim      one per tier
//	infocache  asks the tier once for all who ask what it can do  one per tier; openTiers
//	observe    reports each call to metrics and traces            one per tier
//	auto       chooses the tier of a spec                         one; openTiers
//	verdict    records and tells what monitors decide             one; sharedLayers
//	monitor    has rules judge each sandbox (--monitor)            one; sharedLayers
//	pool       keeps sandboxes ready (--warm)                     one; sharedLayers
//	admission  refuses what the machine has no room for           one; sharedLayers
//	metric     measures how long a creation waits for its tier    one; sharedLayers
//	lease      ends, pauses and wakes sandboxes by their terms    one; sharedLayers
//	tenant     shows a tenant its own sandboxes, within its quota one per tenant; tenantLayers
//	actionlog  records who did what (--audit)                     one per tenant; tenantLayers
//
// A server on a Unix socket has one caller, its own user. It has no pool, admission and metric: ownerLayers.

// A layer is a driver around another. Its wrap function returns the driver that it
// was given where the server's flags do not ask for the layer.
type layer struct {
	name string
	wrap func(ctx context.Context, inner paddock.Driver) (paddock.Driver, error)
}

// wrapAll puts layers around a driver, the first one innermost. After an error it
// returns the driver that was reached, so that the caller can close it.
func wrapAll(ctx context.Context, d paddock.Driver, layers []layer) (paddock.Driver, error) {
	for _, l := range layers {
		outer, err := l.wrap(ctx, d)
		if err != nil {
			return d, err
		}
		d = outer
	}
	return d, nil
}

// openTiers opens the named tiers, or all of this version, and joins them to one
// driver.
func openTiers(a *cli.App, g cli.Gear, names []string, o *operation) (paddock.Driver, error) {
	if err := checkTiers(a, names); err != nil {
		return nil, err
	}
	var list []auto.Tier
	for _, t := range a.Tiers {
		if t.Open == nil || len(names) > 0 && !slices.Contains(names, string(t.Name)) {
			continue
		}
		d, err := t.Open(g)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("tier %s: %w", t.Name, err), auto.New(list...).Close())
		}
		list = append(list, auto.Tier{Candidate: t.Candidate(), Driver: o.driver(infocache.New(d, t.Name), t.Name)})
	}
	return auto.New(list...), nil
}

// checkTiers refuses names that are no tier's.
func checkTiers(a *cli.App, names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(a.Tiers, func(t cli.Tier) bool { return string(t.Name) == name && t.Open != nil }) {
			return cli.WithHint(fmt.Errorf("--tiers %s: there is no such tier: %w", name, paddock.Invalid), "`paddock doctor` lists them")
		}
	}
	return nil
}

// driver reports the calls of a tier's driver to metrics and traces.
func (o *operation) driver(d paddock.Driver, tier paddock.Tier) paddock.Driver {
	var observers []observe.Observer
	if o.trace != nil {
		observers = append(observers, o.trace.Observe)
	}
	if o.set != nil {
		observers = append(observers, o.set.Observe)
	}
	if len(observers) == 0 {
		return d
	}
	return observe.New(d, tier, observers...)
}

// sharedLayers are the layers that all tenants share, innermost first.
func (c *accounts) sharedLayers() []layer {
	return []layer{
		{"verdict", c.verdictLayer},
		{"monitor", c.monitorLayer},
		{"pool", c.poolLayer},
		{"admission", c.admissionLayer},
		{"metric", c.metricLayer},
		{"lease", c.leaseLayer},
	}
}

// tenantLayers are the layers of one tenant, innermost first. They stand around the
// driver that all tenants share, which the tenant cannot reach by any other way.
func (c *accounts) tenantLayers(id string) []layer {
	return []layer{
		{"tenant", func(context.Context, paddock.Driver) (paddock.Driver, error) { return c.tenants.Driver(id), nil }},
		{"actionlog", func(_ context.Context, d paddock.Driver) (paddock.Driver, error) { return c.actionlogLayer(d, id) }},
	}
}

// ownerLayers are the layers below those of the tenant on a socket.
func (c *accounts) ownerLayers() []layer {
	return []layer{{"verdict", c.verdictLayer}, {"monitor", c.monitorLayer}, {"lease", c.leaseLayer}}
}

func (c *accounts) poolLayer(ctx context.Context, d paddock.Driver) (paddock.Driver, error) {
	p, err := warm(ctx, d, c.shelves, c.store.ID()+"."+c.host, c.log)
	if err != nil || p == nil {
		return d, err
	}
	c.pool, c.watch.from.Pools = p, p.Counts
	return p, nil
}

func (c *accounts) admissionLayer(ctx context.Context, d paddock.Driver) (paddock.Driver, error) {
	f := &c.flags.account
	o := admission.Options{Sandboxes: int(f.most), Overcommit: float64(cmp.Or(f.overcommit, usualOvercommit)), Key: whose}
	if c.pool != nil {
		o.Besides = c.pool.Ready
	}
	full, err := admission.New(ctx, d, o)
	if err != nil {
		return nil, err
	}
	c.watch.from.Load = full.Load
	return full, nil
}

// whose returns the tenant whose turn it is where sandboxes wait to be made, asked, paused or ended.
func whose(ctx context.Context, _ paddock.Spec) string { return tenant.Of(ctx) }

func (c *accounts) metricLayer(_ context.Context, d paddock.Driver) (paddock.Driver, error) {
	if c.watch.set == nil {
		return d, nil
	}
	return c.watch.set.Arrive(d), nil
}

func (c *accounts) leaseLayer(ctx context.Context, d paddock.Driver) (paddock.Driver, error) {
	f := &c.flags.account
	o := lifetime.Options{
		Store: store.LeasesOf[lifetime.Record](c.store, c.host), Of: tenant.Marked(c.store.ID()),
		Default: f.terms(), Longest: time.Duration(f.longest),
		Log: c.log, Ended: c.watch.ended, Wall: c.app.Wall,
	}
	if !c.own { // else there is one caller
		o.Key = whose
	}
	leased, err := lifetime.New(ctx, d, o)
	if err != nil {
		return nil, err
	}
	return leased, nil
}

func (c *accounts) actionlogLayer(d paddock.Driver, tenant string) (paddock.Driver, error) {
	if c.record == nil {
		return d, nil
	}
	recorded, err := actionlog.New(d, actionlog.Options{
		Sink: c.record.lines, Failed: c.record.lines.Failed(), Build: c.record.build, Image: imageOf(c.app, c.flags),
		Caller: func(ctx context.Context) actionlog.Caller {
			q, _ := server.RequestOf(ctx)
			return actionlog.Caller{Who: q.Caller.Who, Tenant: tenant, From: q.From, Request: q.ID, Rule: ruleOf(q.Caller.Who)}
		},
	})
	if err != nil {
		return nil, err
	}
	return recorded, nil
}

// ruleOf is what let somebody in: a key, but for the owner of a socket, and for those that the ways to ports name.
func ruleOf(who string) string {
	switch who {
	case owner:
		return "socket"
	case "sandbox-token", "traffic-token", "public", "signed URL":
		return who
	}
	return "key"
}
