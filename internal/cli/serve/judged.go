package serve

import (
	"context"
	"fmt"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
)

// checkMonitor refuses a value of --monitor that is none.
func (f *accountFlags) checkMonitor() error {
	switch f.monitor {
	case "", "off", "rules":
		return nil
	}
	return cli.WithHint(fmt.Errorf("--monitor %s: sandboxes of a server are judged by the built-in rules alone: %w", f.monitor, paddock.Unsupported), "it is rules or off")
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
