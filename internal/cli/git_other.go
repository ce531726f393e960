//go:build !linux

package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/paddock-sandbox/paddock"
)

type gitUse struct{}

func (p *plan) useGit(context.Context, *App, []paddock.Mount, bool) error {
	return WithHint(fmt.Errorf("--git on this system: %w", paddock.Unsupported), "run Paddock on Linux, such as in a virtual machine")
}

func (*gitUse) words() string { return "" }

func (*gitUse) failed(io.Writer) {}

func (*gitUse) close() {}
