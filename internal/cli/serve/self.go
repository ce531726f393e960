package serve

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/key"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/usage"
	"github.com/paddock-sandbox/paddock/internal/wrap/actionlog"
)

// sumsAtOnce is how many sums of use are made at once, whoever asks: each reads
// many records.
const sumsAtOnce = 2

// used gives what adds up the use of one tenant.
func (c *accounts) used(tenant string) func(context.Context, api.UsageQuery) ([]api.UsageLine, error) {
	return func(ctx context.Context, q api.UsageQuery) ([]api.UsageLine, error) {
		leave, err := c.sumTurn(ctx, tenant)
		if err != nil {
			return nil, err
		}
		defer leave()
		if c.own { // of many tenants one must not have all sandboxes looked at
			if err := c.meter.Sample(ctx); err != nil {
				c.log.Warn("usage could not be counted now", "error", err.Error())
			}
		}
		list, err := usage.Summarize(ctx, c.store, usage.Query{Tenant: tenant, From: q.Since, To: q.Until, By: q.By, Where: q.Label, Each: q.Each})
		if err != nil {
			return nil, err
		}
		lines := make([]api.UsageLine, len(list))
		for i := range list {
			l := &list[i]
			lines[i] = api.UsageLine{
				Sandbox: string(l.Sandbox), Label: l.Label, Sandboxes: l.Sandboxes, Unmeasured: l.Unmeasured,
				Wall: &l.Wall, Paused: &l.Paused, CPU: &l.CPU, Memory: &l.Memory,
				CPUAsked: &l.CPUAsked, MemoryAsked: &l.MemoryAsked, DiskAsked: &l.DiskAsked, NetIn: &l.NetIn, NetOut: &l.NetOut,
			}
		}
		return lines, nil
	}
}

// sumTurn waits for the turn of a sum. Of each tenant one request is in the line, so that those of one tenant, however
// many, delay another's by one sum.
func (c *accounts) sumTurn(ctx context.Context, tenant string) (leave func(), err error) {
	c.mu.Lock()
	own := c.summing[tenant]
	if own == nil {
		own = make(chan struct{}, 1)
		if c.summing == nil {
			c.summing = map[string]chan struct{}{}
		}
		c.summing[tenant] = own
	}
	c.mu.Unlock()
	for _, turn := range []chan struct{}{own, c.sums} {
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			if turn != own {
				<-own
			}
			return nil, fmt.Errorf("wait for others who ask for usage: %w", paddock.Canceled)
		}
	}
	return func() { <-c.sums; <-own }, nil
}

// ownKeys are the keys of a caller's tenant, for that caller.
type ownKeys struct {
	c   *accounts
	who key.Principal
}

func (k ownKeys) List(ctx context.Context) ([]api.Key, error) {
	all, err := k.c.ring.List(ctx, k.who.Tenant)
	list := make([]api.Key, len(all))
	for i, one := range all {
		list[i] = wireKey(one)
	}
	return list, err
}

func (k ownKeys) Make(ctx context.Context, asked api.NewKey) (made api.Key, err error) {
	err = k.do(ctx, "key.create", func() (string, error) {
		g := key.Grant{Tenant: k.who.Tenant, Name: asked.Name, Expires: asked.Expires}
		if len(asked.Scopes) == 0 {
			return "", fmt.Errorf("a key without scopes allows nothing: %w", paddock.Invalid)
		}
		for _, text := range asked.Scopes {
			s := key.Scope(text)
			if slices.Contains(key.Scopes(), s) && !k.who.May(s) {
				return "", fmt.Errorf("key %s has not the scope %s itself: %w", k.who.Key, s, paddock.Denied)
			}
			g.Scopes = append(g.Scopes, s)
		}
		text, row, err := k.c.ring.Make(ctx, g)
		made = wireKey(row)
		made.Text = text
		return row.ID, err
	})
	return made, err
}

func (k ownKeys) Revoke(ctx context.Context, id string) error {
	return k.do(ctx, "key.revoke", func() (string, error) { return id, k.c.ring.Revoke(ctx, k.who.Tenant, id) })
}

// do changes keys, and records it. What could not be recorded is not done.
func (k ownKeys) do(ctx context.Context, what string, call func() (id string, err error)) error {
	if k.c.record != nil {
		select {
		case <-k.c.record.lines.Failed():
			return fmt.Errorf("actions cannot be recorded any more, so none is done: %w", paddock.Unavailable)
		default:
		}
	}
	id, err := call()
	if d, failed := k.c.driver(k.who.Tenant); failed == nil {
		if r, ok := paddock.As[actionlog.Recorder](d); ok {
			r.Record(ctx, "", what, id, err)
		}
	}
	return err
}

func wireKey(k store.Key) api.Key {
	return api.Key{
		ID: k.ID, Name: k.Name, Scopes: append([]string{}, k.Scopes...),
		Created: k.Created, Expires: k.Expires, Used: k.Used, Revoked: k.Revoked,
	}
}

// billed gives a line of a server's as one of the database's.
func billed(l client.UsageLine) *usage.Line {
	line := &usage.Line{Label: l.Label, Sandbox: l.Sandbox, Sum: usage.Sum{Sandboxes: l.Sandboxes, Unmeasured: l.Unmeasured}}
	for _, part := range []struct{ to, from *big.Int }{
		{&line.Wall, l.Wall}, {&line.Paused, l.Paused}, {&line.CPU, l.CPU}, {&line.Memory, l.Memory},
		{&line.CPUAsked, l.CPUAsked}, {&line.MemoryAsked, l.MemoryAsked}, {&line.DiskAsked, l.DiskAsked}, {&line.NetIn, l.NetIn}, {&line.NetOut, l.NetOut},
	} {
		if part.from != nil {
			part.to.Set(part.from)
		}
	}
	return line
}

// An account is what a server tells a tenant of itself.
type account interface {
	Usage(ctx context.Context, q client.UsageQuery) (client.Usage, error)
	Keys(ctx context.Context) ([]client.Key, error)
	MakeKey(ctx context.Context, k client.NewKey) (text string, made client.Key, err error)
	RevokeKey(ctx context.Context, id string) error
}

// accountOf gives the server as one.
func accountOf(r *cli.Remote) (account, error) {
	if d, ok := r.Driver.(account); ok {
		return d, nil
	}
	return nil, fmt.Errorf("server %s: it keeps no accounts: %w", r.At.Address, paddock.Unsupported)
}

// keyring is where a tenant's keys are: in a database, or at a server.
type keyring interface {
	list(ctx context.Context) ([]store.Key, error)
	make(ctx context.Context, g key.Grant) (text string, k store.Key, err error)
	revoke(ctx context.Context, id string) error
}

// A keyPlace says where keys are, on the command line.
type keyPlace struct {
	where  storeFlags
	remote cli.RemoteFlags
}

func (p *keyPlace) register(c *cobra.Command) {
	c.Flags().StringVar(&p.remote.Server, "server", "", "ask the server at this `address`, rather than a database: keys of your own tenant, with a key of the scope admin")
	p.where.register(c.Flags())
	c.MarkFlagsMutuallyExclusive("server", "database")
	c.MarkFlagsMutuallyExclusive("server", "state")
}

// args wants the tenant's name where a database is asked, and others behind it.
func (p *keyPlace) args(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		want := names
		if p.remote.Server == "" {
			want = append([]string{"TENANT"}, names...)
		}
		if len(args) == len(want) {
			return nil
		}
		if len(want) == 0 {
			return cli.WithHint(fmt.Errorf("%s with --server takes no argument, and got %d: %w", c.CommandPath(), len(args), paddock.Invalid), "the tenant is that of your key")
		}
		return cli.WithHint(fmt.Errorf("%s takes %s, and got %d: %w", c.CommandPath(), cli.Plural(len(want), "argument", "arguments"), len(args), paddock.Invalid), "%s %s", c.CommandPath(), strings.Join(want, " "))
	}
}

// with does something with the keys of the tenant that is named, or of the caller's.
func (p *keyPlace) with(ctx context.Context, a *cli.App, args []string, do func(context.Context, keyring, []string) error) error {
	if p.remote.Server == "" {
		return withStore(ctx, a, &p.where, func(s *store.Store) error {
			return do(ctx, storedKeys{s, args[0]}, args[1:])
		})
	}
	return a.With(ctx, &p.remote, func(ctx context.Context, r *cli.Remote) error {
		d, err := accountOf(r)
		if err != nil {
			return err
		}
		return do(ctx, serverKeys{d}, args)
	})
}

type storedKeys struct {
	s      *store.Store
	tenant string
}

func (k storedKeys) list(ctx context.Context) ([]store.Key, error) {
	if _, err := k.s.Tenant(ctx, k.tenant); err != nil {
		return nil, err
	}
	return key.New(k.s, nil).List(ctx, k.tenant)
}

func (k storedKeys) make(ctx context.Context, g key.Grant) (string, store.Key, error) {
	g.Tenant = k.tenant
	return key.New(k.s, nil).Make(ctx, g)
}

func (k storedKeys) revoke(ctx context.Context, id string) error {
	return key.New(k.s, nil).Revoke(ctx, k.tenant, id)
}

type serverKeys struct{ d account }

func (k serverKeys) list(ctx context.Context) ([]store.Key, error) {
	all, err := k.d.Keys(ctx)
	list := make([]store.Key, len(all))
	for i, one := range all {
		list[i] = keyTold(one)
	}
	return list, err
}

func (k serverKeys) make(ctx context.Context, g key.Grant) (string, store.Key, error) {
	asked := client.NewKey{Name: g.Name, Expires: g.Expires}
	for _, s := range g.Scopes {
		asked.Scopes = append(asked.Scopes, string(s))
	}
	text, made, err := k.d.MakeKey(ctx, asked)
	return text, keyTold(made), err
}

func (k serverKeys) revoke(ctx context.Context, id string) error { return k.d.RevokeKey(ctx, id) }

// keyTold is what a server tells of a key.
func keyTold(k client.Key) store.Key {
	return store.Key{ID: k.ID, Name: k.Name, Scopes: k.Scopes, Created: k.Created, Expires: k.Expires, Used: k.Used, Revoked: k.Revoked}
}
