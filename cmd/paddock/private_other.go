//go:build !linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/paddock-sandbox/paddock"
)

func nowhere() error {
	return withHint(fmt.Errorf("a server of your own needs Linux: %w", paddock.Unsupported), "use one of another machine: --server, PADDOCK_SERVER, paddock login")
}

func (a *app) runningPrivate() (string, error)              { return "", nowhere() }
func (a *app) startPrivate(context.Context) (string, error) { return "", nowhere() }

func listenPrivate(context.Context, func(string) (string, bool)) (net.Listener, func(), error) {
	return nil, nil, nowhere()
}

func listenUnix(string) (net.Listener, error) { return nil, nowhere() }

// A smallLog is a file.
type smallLog struct{ file *os.File }

func (l smallLog) Write(p []byte) (int, error) { return l.file.Write(p) }

var _ io.Writer = smallLog{}
