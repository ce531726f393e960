package serve

import (
	"context"
	"log/slog"

	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/dialect/daytona"
	"github.com/paddock-sandbox/paddock/internal/server"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// openDaytona speaks Daytona's API to the sandboxes of the accounts.
func openDaytona(ctx context.Context, a *cli.App, c *accounts, f *serveFlags, log *slog.Logger, api *server.Server) (*daytona.Handler, error) {
	return daytona.New(ctx, daytona.Options{
		Caller: c.dialectCaller, Mark: c.mark, Store: store.NotesOf(c.store, c.host, "daytona"), Disk: int64(f.disk), Wall: a.Wall, Log: log,
		Enter: func(ctx context.Context, tenant string) (dialect.Place, error) {
			place, err := api.Enter(ctx, tenant)
			if err != nil {
				return nil, err
			}
			return place, nil
		},
		Buffer: api.FileBuffer, Room: api.ResultRoom,
	})
}
