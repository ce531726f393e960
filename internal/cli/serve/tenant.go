package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// withStore runs f on the store of a server, which may run meanwhile.
func withStore(ctx context.Context, a *cli.App, where *storeFlags, f func(*store.Store) error) error {
	s, err := where.open(ctx, a)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.Close())
}

// quotaFlags bound what a tenant may have.
type quotaFlags struct {
	sandboxes, snapshots, pids, rate boundFlag
	processors                       cli.ProcessorsFlag
	memory, disk                     cli.SizeFlag
}

// A boundFlag is a number from 0 on, or "unlimited".
type boundFlag int64

func (b *boundFlag) Type() string { return "number" }

func (b *boundFlag) String() string {
	if *b == store.Unbounded {
		return "unlimited"
	}
	return strconv.FormatInt(int64(*b), 10)
}

func (b *boundFlag) Set(text string) error {
	if text == "unlimited" {
		*b = store.Unbounded
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return errors.New(`neither a whole number from 0 on, nor "unlimited"`)
	}
	*b = boundFlag(n)
	return nil
}

func (q *quotaFlags) register(fs *pflag.FlagSet) {
	q.sandboxes, q.snapshots, q.pids, q.rate = 100, 100, store.Unbounded, 600
	fs.Var(&q.sandboxes, "sandboxes", "how many sandboxes at once")
	fs.Var(&q.snapshots, "snapshots", "how many snapshots")
	fs.Var(&q.rate, "rate", "how many sandboxes made in a minute")
	fs.Var(&q.pids, "pids", "how many processes and threads, by the limits of all sandboxes")
	fs.Var(&q.processors, "cpus", "how many processors, likewise (default unlimited)")
	fs.Var(&q.memory, "memory", "how much memory, likewise, such as 64G (default unlimited)")
	fs.Var(&q.disk, "disk", "how much disk, likewise (default unlimited)")
}

func (q *quotaFlags) quota() store.Quota {
	unless := func(n int64) int64 {
		if n == 0 {
			return store.Unbounded
		}
		return n
	}
	return store.Quota{
		Sandboxes: int64(q.sandboxes), Snapshots: int64(q.snapshots), PIDs: int64(q.pids), Rate: int64(q.rate),
		CPU: unless(int64(math.Ceil(float64(q.processors) * 1000))), Memory: unless(int64(q.memory)), Disk: unless(int64(q.disk)),
	}
}

func tenantCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "tenant",
		Short: "Keep the tenants of a server",
		Long: `Keep the tenants of a server: who has sandboxes, and sees nobody else's. What a
tenant may have is bounded by its quota, in sum: the limits of its sandboxes count, not
what they use at the moment. Works on the server's database, on its machine, also
while the server runs. paddock key gives a tenant keys.`,
	}
	c.AddCommand(tenantCreateCommand(a), tenantSetCommand(a), tenantListCommand(a), tenantRemoveCommand(a))
	return c
}

func tenantCreateCommand(a *cli.App) *cobra.Command {
	var where storeFlags
	var quota quotaFlags
	var name string
	c := &cobra.Command{
		Use:   "create ID [flags]",
		Short: "Make a tenant",
		Long: `Make a tenant. Its ID has lower-case letters, digits and dashes.

Exit status: 0, or 125 if there is one already or Paddock itself failed.`,
		Example: "  paddock tenant create acme --sandboxes 20 --memory 16G --state /var/lib/paddock",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withStore(c.Context(), a, &where, func(s *store.Store) error {
				if err := s.AddTenant(c.Context(), store.Tenant{ID: args[0], Name: name, Quota: quota.quota(), Created: time.Now()}); err != nil {
					return err
				}
				return a.Say("%s\n", args[0])
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&name, "name", "", "`words` for people")
	quota.register(fs)
	where.register(fs)
	return c
}

func tenantSetCommand(a *cli.App) *cobra.Command {
	var where storeFlags
	var quota quotaFlags
	var name string
	c := &cobra.Command{
		Use:   "set ID [flags]",
		Short: "Change a tenant's quota and name",
		Long: `Change a tenant's quota and name, all of both: what is not given is as for create.
What the tenant has already stays, also where it is more.

Exit status: 0, or 125 if there is no such tenant or Paddock itself failed.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withStore(c.Context(), a, &where, func(s *store.Store) error {
				return s.SetTenant(c.Context(), args[0], name, quota.quota())
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&name, "name", "", "`words` for people")
	quota.register(fs)
	where.register(fs)
	return c
}

func tenantListCommand(a *cli.App) *cobra.Command {
	var where storeFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls [flags]",
		Short: "List the tenants of a server",
		Long: `List the tenants of a server, with their quotas.

Exit status: 0, or 125 if Paddock itself failed.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return withStore(c.Context(), a, &where, func(s *store.Store) error {
				list, err := s.Tenants(c.Context())
				if err != nil {
					return err
				}
				if asJSON {
					return cli.PrintJSON(a.Stdout, append([]store.Tenant{}, list...))
				}
				w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "ID\tSANDBOXES\tRATE\tCPUS\tMEMORY\tDISK\tNAME")
				for _, t := range list {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.ID, bound(t.Quota.Sandboxes, count), bound(t.Quota.Rate, count),
						bound(t.Quota.CPU, func(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'g', -1, 64) }),
						bound(t.Quota.Memory, cli.BytesInWords), bound(t.Quota.Disk, cli.BytesInWords), cli.OneLine(t.Name))
				}
				return w.Flush()
			})
		},
	}
	where.register(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON list")
	return c
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

// bound writes one for people.
func bound(n int64, words func(int64) string) string {
	if n == store.Unbounded {
		return "unlimited"
	}
	return words(n)
}

func tenantRemoveCommand(a *cli.App) *cobra.Command {
	var where storeFlags
	c := &cobra.Command{
		Use:   "rm ID",
		Short: "Forget a tenant",
		Long: `Forget a tenant, with its keys, and remove its images from this machine. One that
still has sandboxes or snapshots is refused; what it used stays on record.

Exit status: 0, or 125 if it cannot be or Paddock itself failed.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withStore(c.Context(), a, &where, func(s *store.Store) error {
				err := s.RemoveTenant(c.Context(), args[0])
				if errors.Is(err, paddock.Conflict) {
					return cli.WithHint(err, "paddock rm removes its sandboxes, with one of its keys")
				}
				if err != nil {
					return err
				}
				return emptyImages(c.Context(), a, &where, args[0])
			})
		},
	}
	where.register(c.Flags())
	return c
}
