package box

import (
	"context"

	"github.com/paddock-sandbox/paddock"
)

// A preparation is the state that the stages before making a box share.
type preparation struct {
	d        *Driver
	draft    Draft
	id       Identity
	plan     Plan
	findings []paddock.Finding
}

// prepare computes everything that can be known before a process is made. The caller closes
// the files of the plan.
func (d *Driver) prepare(ctx context.Context, spec *paddock.Spec) (*preparation, error) {
	asked := *spec
	draft, err := d.draft(spec)
	if err != nil {
		return nil, err
	}
	spec = draft.Spec
	p := &preparation{d: d, draft: draft}
	p.plan = Plan{Name: string(spec.ID), Spec: &asked, Root: spec.Root, User: spec.User, Policy: spec.Policy, Runtime: d.tier.Runtime, executed: []executed{{FileInit, d.tier.Init}}, Audit: d.site.o.Audit, host: d.site.host()}
	p.plan.Policy.Network = paddock.NetworkPolicy{Mode: spec.Policy.Network.Mode} // the gateway has the rest
	for _, stage := range []func(context.Context) error{p.image, p.bound, p.lay, p.gateway, p.supply} {
		if err := stage(ctx); err != nil {
			p.plan.Close()
			return nil, err
		}
	}
	p.plan.finish = p.finish
	return p, nil
}

// image takes the image with which the sandbox begins.
func (p *preparation) image(ctx context.Context) error {
	hold, err := p.d.takeImage(ctx, p.draft.Spec)
	if hold != nil {
		p.plan.Files.Add(FileImageLock, hold)
		p.plan.Root = p.draft.Spec.Root
	}
	return err
}

// bound sets the limits.
func (p *preparation) bound(context.Context) (err error) {
	if p.plan.Limits, p.plan.Groups, p.findings, err = p.d.bounds(p.draft.Spec); err != nil {
		return err
	}
	return p.d.checkHalt(p.draft.Spec, p.plan.Groups)
}

// lay begins the layout.
func (p *preparation) lay(context.Context) (err error) {
	if p.id, err = identify(p.draft.Spec, p.d.site.env); err != nil {
		return err
	}
	p.plan.Layout, err = newLayout(p.draft.Spec, p.plan.Limits, p.id, p.d.site, &p.d.tier)
	return err
}

// gateway makes the gateway, but does not start it.
func (p *preparation) gateway(context.Context) (err error) {
	if p.draft.Spec.Policy.Network.Mode != paddock.NetworkList {
		return nil
	}
	if p.plan.Gateway, err = p.d.newGateway(p.draft.Spec, p.id, p.draft.Gateway); err != nil {
		return err
	}
	p.plan.executed = append(p.plan.executed, executed{fileGateway, p.d.gateway})
	return nil
}

// supply adds the tier's files. It is the last stage, because other sandboxes may wait for
// its result.
func (p *preparation) supply(ctx context.Context) error { return p.draft.supply(ctx, &p.plan) }

// finish completes the layout, which requires reading the host's file tree.
func (p *preparation) finish() error {
	if err := p.plan.Layout.finish(p.draft.Spec, p.plan.Limits, p.plan.Gateway); err != nil {
		return err
	}
	return p.draft.finish(p.plan.Layout, p.plan.Limits)
}
