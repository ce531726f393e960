package serve

import (
	"context"
	"fmt"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/monitor"
	"github.com/paddock-sandbox/paddock/internal/wrap/tenant"
	"github.com/paddock-sandbox/paddock/internal/wrap/verdict"
)

// checkMonitor refuses a value of --monitor that is none.
func (f *accountFlags) checkMonitor() error {
	switch f.monitor {
	case "", "off", "rules":
		return nil
	}
	return cli.WithHint(fmt.Errorf("--monitor %s: sandboxes of a server are judged by the built-in rules alone: %w", f.monitor, paddock.Unsupported), "it is rules or off")
}

// verdictLayer follows the monitors of sandboxes.
func (c *accounts) verdictLayer(ctx context.Context, d paddock.Driver) (paddock.Driver, error) {
	return verdict.New(ctx, d, verdict.Options{Of: tenant.Marked(c.store.ID()), Tell: c.decided, Log: c.log})
}

// decided records what a monitor decided, and tells its tenant where it asks something.
func (c *accounts) decided(e audit.Event) {
	if c.record != nil {
		// It waits for the disk, as actions do, so that no flood hides a verdict. It fails only with the record.
		_ = c.record.lines.Keep(context.Background(), e)
	}
	j, asked := e.Judgement, c.asked.Load()
	if j == nil || asked == nil || j.Answered != "" || j.Verdict != string(monitor.Ask) && j.Verdict != string(monitor.Pause) {
		return
	}
	id := paddock.ID(e.Sandbox)
	if b, err := c.store.Owned(context.Background(), id); err == nil { // or it is gone
		(*asked)(b.Tenant, id)
	}
}

// monitorLayer has built-in rules judge each sandbox whose maker names no monitor.
func (c *accounts) monitorLayer(_ context.Context, d paddock.Driver) (paddock.Driver, error) {
	if c.flags.account.monitor != "rules" {
		return d, nil
	}
	return judged{d}, nil
}

// A judged is a driver that makes no sandbox without a monitor.
type judged struct{ paddock.Driver }

// Unwrap returns the driver that makes the sandboxes.
func (d judged) Unwrap() paddock.Driver { return d.Driver }

// Create implements paddock.Driver.
func (d judged) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	if spec.Monitor == nil {
		spec.Monitor = &paddock.Monitor{}
	}
	return d.Driver.Create(ctx, spec)
}
