package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
)

func readyCommand() *cobra.Command {
	within := cli.TimeFlag(5 * time.Second)
	c := &cobra.Command{
		Use:   "ready [flags] ADDRESS",
		Short: "Ask a server whether it takes calls",
		Long: `Ask a server whether it takes calls, without a key: for probes of what keeps it
running, where there may be no other program to ask with. ADDRESS is unix:/path or
http://HOST:PORT, that of --listen or of --metrics, or https:// with a certificate that this
machine trusts.

Exit status: 0 if it does, 125 if it does not, or cannot be asked.`,
		Example: `  paddock serve ready http://127.0.0.1:9464`,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return ready(c.Context(), args[0], time.Duration(within))
		},
	}
	c.Flags().Var(&within, "within", "wait this `time` for the answer")
	return c
}

// ready asks for /readyz.
func ready(ctx context.Context, address string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 16 << 10}
	defer transport.CloseIdleConnections()
	target := strings.TrimSuffix(address, "/") + "/readyz"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		target = "http://paddock/readyz"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}
	} else if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return cli.WithHint(fmt.Errorf("%q is no address of a server: %w", address, paddock.Invalid), "write unix:/path or http://HOST:PORT")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		kind := paddock.Unavailable
		if errors.Is(err, context.DeadlineExceeded) {
			kind = paddock.Timeout
		}
		return cli.WithHint(fmt.Errorf("ask %s: %w: %w", address, err, kind), "is it there, and is the address right?")
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 1024))
	if res.StatusCode == http.StatusOK {
		return nil
	}
	return errors.Join(cli.WithHint(fmt.Errorf("%s answers %d: %s: %w", address, res.StatusCode, strings.TrimSpace(string(text)), paddock.Unavailable), "it is starting or ending"), err)
}
