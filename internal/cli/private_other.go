//go:build !linux

package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/paddock-sandbox/paddock"
)

func nowhere() error {
	return WithHint(fmt.Errorf("a server of your own needs Linux: %w", paddock.Unsupported), "use one of another machine: --server, PADDOCK_SERVER, paddock login")
}

func (a *App) runningPrivate() (string, error)              { return "", nowhere() }
func (a *App) startPrivate(context.Context) (string, error) { return "", nowhere() }

func ListenPrivate(context.Context, func(string) (string, bool)) (net.Listener, func(), error) {
	return nil, nil, nowhere()
}

func ListenUnix(string) (net.Listener, error) { return nil, nowhere() }

// A SmallLog writes to a file.
type SmallLog struct{ File *os.File }

func (l SmallLog) Write(p []byte) (int, error) { return l.File.Write(p) }

var _ io.Writer = SmallLog{}
