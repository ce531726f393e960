package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
)

func (a *App) forwardCommand() *cobra.Command {
	var f RemoteFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "forward [flags] ID PORT[:LOCAL]",
		Short: "Reach a port of a sandbox at this machine's loopback",
		Long: `Listen at a port of this machine's loopback, and join each connection to a port that
listens in the sandbox. Without LOCAL it is the same number; with 0 a free one. The
address is written to standard output when it can be connected to. It goes on until
a signal ends it.

Exit status: 128+n when signal n ended it, 125 if Paddock itself failed.`,
		Example: `  paddock forward "$id" 8080
  paddock forward "$id" 80:8000`,
		Args:                  cobra.ExactArgs(2),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeIDs(1),
		RunE: func(c *cobra.Command, args []string) error {
			port, local, err := parsePorts(args[1])
			if err != nil {
				return err
			}
			return a.With(c.Context(), &f, func(ctx context.Context, r *Remote) error {
				sb, err := r.Open(ctx, paddock.ID(args[0]))
				if err != nil {
					return err
				}
				return a.forward(ctx, sb, port, local, asJSON)
			})
		},
	}
	f.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "write the address as one JSON object")
	return c
}

// parsePorts reads PORT[:LOCAL].
func parsePorts(text string) (port, local int, err error) {
	first, second, two := strings.Cut(text, ":")
	if !two {
		second = first
	}
	port, bad := strconv.Atoi(first)
	local, worse := strconv.Atoi(second)
	if bad != nil || worse != nil || port < 1 || port > 65535 || local < 0 || local > 65535 {
		return 0, 0, WithHint(fmt.Errorf("%q is no port: %w", text, paddock.Invalid), "write PORT or PORT:LOCAL, with numbers up to 65535")
	}
	return port, local, nil
}

// forward joins connections until ctx ends, and waits for all of them.
func (a *App) forward(ctx context.Context, sb paddock.Sandbox, port, local int, asJSON bool) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(local)))
	if err != nil {
		return WithHint(fmt.Errorf("%w: %w", err, paddock.Conflict), "for a free port: %d:0", port)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	defer l.Close()
	if asJSON {
		err = PrintJSON(a.Stdout, map[string]string{"address": l.Addr().String()})
	} else {
		err = a.Say("%s\n", l.Addr())
	}
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("listen: %w", err)
		}
		wg.Go(func() {
			if err := connectPort(ctx, conn, sb, port); err != nil && ctx.Err() == nil {
				a.complain(fmt.Errorf("port %d: %w", port, err))
			}
		})
	}
}

// connectPort copies between a connection and a port of the sandbox until both have
// ended. The end of one direction is passed on, and the other goes on.
func connectPort(ctx context.Context, conn net.Conn, sb paddock.Sandbox, port int) error {
	there, err := sb.Dial(ctx, port)
	if err != nil {
		conn.Close()
		return err
	}
	joinPort(ctx, conn, there)
	return nil
}

// joinPort copies between two connections until both have ended, and closes them.
func joinPort(ctx context.Context, conn, there net.Conn) {
	defer conn.Close()
	defer there.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close(); there.Close() })
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { pour(there, conn) })
	pour(conn, there)
	wg.Wait()
}

// pour copies one direction, and passes its end on.
func pour(to, from net.Conn) {
	_, err := io.Copy(to, from) // a connection that breaks is for its two ends to tell
	half, ok := to.(interface{ CloseWrite() error })
	if !ok || err != nil || errors.Is(half.CloseWrite(), net.ErrClosed) {
		to.Close()
		if err != nil {
			from.Close()
		}
	}
}
