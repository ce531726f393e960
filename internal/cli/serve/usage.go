package serve

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/usage"
)

// usageFlags say what of the use is added up, and what it costs.
type usageFlags struct {
	where    storeFlags
	tenant   string
	from, to string
	by       string
	labels   []string
	prices   string
	model    string
	json     bool
	each     bool
	remote   cli.RemoteFlags
}

func usageCommand(a *cli.App) *cobra.Command {
	f := &usageFlags{}
	c := &cobra.Command{
		Use:   "usage [flags]",
		Short: "Tell what sandboxes of a server used, and what that costs",
		Long: `Tell what sandboxes of a server used, by tenant and label, and what that costs. Works on
the server's database, on its machine, also while the server runs; with --server it asks a
server, which tells of its caller's own. Without --database, sandboxes of your own servers
on sockets are among them, as those of the tenant "owner". Living sandboxes are counted up
to ten seconds ago, or up to now by a server on a socket that is asked and by the one that
was started for you. Use is counted in full hours of the clock, and what
is older than 35 days (paddock serve --keep-usage-hours) in full days, UTC, of which --each tells of sandboxes
that were short as one line, "(others)". What a tier cannot measure is told as not measured; what has a
price and was not measured has no cost.

The model alive charges for what is reserved: sandboxes while they exist, processors and
memory while they are not paused. The model busy charges for what was used.

Exit status: 0, or 125 if Paddock itself failed.`,
		Example: `  paddock usage --from 2026-11-01 --to 2026-12-01 --by team
  paddock usage --prices prices.yaml --model busy --json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			q, err := f.query(time.Now())
			if err != nil {
				return err
			}
			prices, err := f.readPrices()
			if err != nil {
				return err
			}
			if f.remote.Server != "" {
				return usageOf(c.Context(), a, f, q, prices)
			}
			f.refresh(c.Context(), a, q)
			return f.where.withUsage(c.Context(), a, func(stores []*store.Store) error {
				list, err := usage.SummarizeAll(c.Context(), stores, q)
				if err != nil {
					return err
				}
				lines := make([]*usage.Line, len(list))
				for i := range list {
					lines[i] = &list[i]
				}
				return bills(a, lines, f, prices)
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.tenant, "tenant", "", "only of this `tenant`")
	fs.StringVar(&f.from, "from", "", "from this `day` or full hour on: 2026-11-01 or 2026-11-01T13:00:00Z (default: the first of this month, UTC)")
	fs.StringVar(&f.to, "to", "", "until this `day` or full hour (default: the end of this hour)")
	fs.StringVar(&f.by, "by", "", "one line for each value of this `label`")
	fs.StringArrayVarP(&f.labels, "label", "l", nil, "only of sandboxes with this label: `NAME=VALUE` (repeatable)")
	fs.StringVar(&f.prices, "prices", "", "`file` of prices; docs/reference/price.schema.json describes it")
	fs.StringVar(&f.model, "model", string(usage.Busy), "charge by this `model`: alive or busy")
	fs.BoolVar(&f.json, "json", false, "answer with a JSON list")
	fs.BoolVar(&f.each, "each", false, "one line for each sandbox, as far as they are told apart")
	fs.StringVar(&f.remote.Server, "server", "", "ask the server at this `address`, rather than a database")
	f.where.register(fs)
	c.MarkFlagsMutuallyExclusive("server", "tenant")
	c.MarkFlagsMutuallyExclusive("server", "database")
	c.MarkFlagsMutuallyExclusive("server", "state")
	c.MarkFlagsMutuallyExclusive("each", "by")
	return c
}

// refresh has the caller's own server count up to now, if one runs. Otherwise what is told is up
// to ten seconds old.
func (f *usageFlags) refresh(ctx context.Context, a *cli.App, q usage.Query) {
	ctx, cancel := context.WithTimeout(ctx, cli.Patience)
	defer cancel()
	_ = a.WithRunning(ctx, func(ctx context.Context, r *cli.Remote) error {
		d, err := accountOf(r)
		if err == nil {
			_, err = d.Usage(ctx, client.UsageQuery{Since: q.From, Until: q.To})
		}
		return err
	})
}

// usageOf asks a server.
func usageOf(ctx context.Context, a *cli.App, f *usageFlags, q usage.Query, prices *usage.Prices) error {
	return a.With(ctx, &f.remote, func(ctx context.Context, r *cli.Remote) error {
		d, err := accountOf(r)
		if err != nil {
			return err
		}
		u, err := d.Usage(ctx, client.UsageQuery{Since: q.From, Until: q.To, Label: q.Where, By: q.By, Each: q.Each})
		if err != nil {
			return cli.Otherwise(err, "paddock serve of this version counts it")
		}
		lines := make([]*usage.Line, len(u.Lines))
		for i, l := range u.Lines {
			lines[i] = billed(l)
		}
		return bills(a, lines, f, prices)
	})
}

// eachColumn heads the names of sandboxes.
const eachColumn = "SANDBOX"

// bills writes sums, with what they cost where there are prices.
func bills(a *cli.App, lines []*usage.Line, f *usageFlags, prices *usage.Prices) error {
	bills := make([]bill, len(lines))
	for i, l := range lines {
		bills[i].Line = l
		if prices == nil {
			continue
		}
		cost, err := prices.Cost(usage.Model(f.model), &l.Sum)
		if err != nil {
			return err
		}
		bills[i].Cost = &cost
	}
	if f.json {
		return cli.PrintJSON(a.Stdout, bills)
	}
	by := f.by
	if f.each {
		by = eachColumn
	}
	return printBill(a, bills, by)
}

// A bill is a sum and its cost.
type bill struct {
	*usage.Line
	Cost *usage.Amount `json:"cost,omitempty"`
}

func (f *usageFlags) query(now time.Time) (usage.Query, error) {
	now = now.UTC()
	q := usage.Query{Tenant: f.tenant, By: f.by, Each: f.each, From: time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC), To: now.Truncate(time.Hour).Add(time.Hour)}
	var err error
	if q.Where, err = cli.ParseLabels(f.labels); err != nil {
		return q, err
	}
	for _, part := range []struct {
		name, text string
		to         *time.Time
	}{{"--from", f.from, &q.From}, {"--to", f.to, &q.To}} {
		if part.text == "" {
			continue
		}
		t, err := time.Parse(time.DateOnly, part.text)
		if err != nil {
			t, err = time.Parse(time.RFC3339, part.text)
		}
		if err != nil {
			return q, cli.WithHint(fmt.Errorf("%s %s: no day and no time: %w", part.name, part.text, paddock.Invalid), "write 2026-11-01 or 2026-11-01T13:00:00Z")
		}
		*part.to = t
	}
	return q, nil
}

func (f *usageFlags) readPrices() (*usage.Prices, error) {
	if f.prices == "" {
		return nil, nil
	}
	data, err := readSmall(f.prices)
	if err != nil {
		return nil, fmt.Errorf("--prices: %w: %w", err, paddock.NotFound)
	}
	return usage.ReadPrices(data)
}

// printBill writes sums for people.
func printBill(a *cli.App, list []bill, by string) error {
	w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "TENANT\t")
	if by != "" {
		fmt.Fprintf(w, "%s\t", cli.OneLine(by))
	}
	fmt.Fprintln(w, "SANDBOXES\tHOURS\tPAUSED\tCPU HOURS\tGIB HOURS\tGIB IN\tGIB OUT\tCOST\tNOT MEASURED")
	for _, b := range list {
		fmt.Fprintf(w, "%s\t", b.Tenant)
		if by != "" {
			name := cli.OneLine(cmp.Or(b.Label, string(b.Sandbox)))
			if by == eachColumn && name == "" {
				name = "(others)"
			}
			fmt.Fprintf(w, "%s\t", name)
		}
		cost := "-"
		if b.Cost != nil {
			cost = b.Cost.String()
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", b.Sandboxes, hours(&b.Wall, hourNS), hours(&b.Paused, hourNS), hours(&b.CPU, hourNS), hours(&b.Memory, 3600<<30), hours(&b.NetIn, 1<<30), hours(&b.NetOut, 1<<30), cost, cli.Join(b.Unmeasured))
	}
	return w.Flush()
}

const hourNS = 3600 * 1e9

// hours divides, for people.
func hours(n *big.Int, unit int64) string {
	return new(big.Rat).SetFrac(n, big.NewInt(unit)).FloatString(3)
}
