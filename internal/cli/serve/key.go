package serve

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/key"
	"github.com/paddock-sandbox/paddock/internal/store"
)

func keyCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Keep the keys that callers of a server show",
		Long: `Keep the keys that callers of a server show. A key is written once, when it is made: the
server keeps a hash of it. Works on the server's database, on its machine, also while
the server runs; or with --server on a server, for the tenant of your own key, which is to
have the scope admin.`,
	}
	c.AddCommand(keyCreateCommand(a), keyListCommand(a), keyRevokeCommand(a))
	return c
}

func keyCreateCommand(a *cli.App) *cobra.Command {
	var where keyPlace
	var name string
	var scopes []string
	var lasts cli.TimeFlag
	var asJSON, forE2B bool
	c := &cobra.Command{
		Use:   "create [TENANT] [flags]",
		Short: "Make a key, and write it",
		Long: `Make a key of a tenant and write it: it cannot be had again. Scopes are

  read   see sandboxes, processes, files and events
  write  make, change, use and remove sandboxes and snapshots as well
  admin  all of it, and name what is the server's machine's: its files, its network

Exit status: 0, or 125 if there is no such tenant or Paddock itself failed.`,
		Example: `  paddock key create acme --expires 720h | paddock login https://server --key-stdin
  paddock key create --server https://server --scope read
  paddock key create acme --scope read --name dashboard
  E2B_API_KEY=$(paddock key create acme --e2b)`,
		Args: where.args(),
		RunE: func(c *cobra.Command, args []string) error {
			if forE2B && where.remote.Server != "" {
				return cli.WithHint(fmt.Errorf("--e2b over --server: %w", paddock.Unsupported), "make it on the server's machine: paddock key create TENANT --e2b")
			}
			return where.with(c.Context(), a, args, func(ctx context.Context, keys keyring, _ []string) error {
				g := key.Grant{Name: name, E2B: forE2B}
				for _, text := range scopes {
					g.Scopes = append(g.Scopes, key.Scope(text))
				}
				if lasts > 0 {
					g.Expires = time.Now().Add(time.Duration(lasts))
				}
				text, k, err := keys.make(ctx, g)
				if err != nil {
					return err
				}
				if asJSON {
					return cli.PrintJSON(a.Stdout, struct {
						store.Key
						Text string `json:"key"`
					}{k, text})
				}
				return a.Say("%s\n", text)
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&name, "name", "", "`words` for people")
	fs.StringSliceVar(&scopes, "scope", []string{string(key.Read), string(key.Write)}, "what it allows: `scopes`, with commas")
	fs.Var(&lasts, "expires", "end it after this `time` (default never)")
	fs.BoolVar(&forE2B, "e2b", false, "write it as E2B's clients want theirs: e2b_ and digits")
	fs.BoolVar(&asJSON, "json", false, "answer with one JSON object")
	where.register(c)
	return c
}

func keyListCommand(a *cli.App) *cobra.Command {
	var where keyPlace
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls [TENANT]",
		Short: "List a tenant's keys",
		Long: `List a tenant's keys, oldest first, with those that ended.

Exit status: 0, or 125 if Paddock itself failed.`,
		Args: where.args(),
		RunE: func(c *cobra.Command, args []string) error {
			return where.with(c.Context(), a, args, func(ctx context.Context, keys keyring, _ []string) error {
				list, err := keys.list(ctx)
				if err != nil {
					return err
				}
				if asJSON {
					return cli.PrintJSON(a.Stdout, append([]store.Key{}, list...))
				}
				w := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "ID\tSCOPES\tCREATED\tLAST USED\tENDS\tNAME")
				for _, k := range list {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, cli.Join(k.Scopes), day(k.Created, ""), day(k.Used, "never"), ends(k), cli.OneLine(k.Name))
				}
				return w.Flush()
			})
		},
	}
	where.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON list")
	return c
}

// day writes a moment for people; zero has a word of its own.
func day(t time.Time, none string) string {
	if t.IsZero() {
		return none
	}
	return t.Local().Format(time.DateTime)
}

// ends tells when a key ends or ended.
func ends(k store.Key) string {
	if !k.Revoked.IsZero() {
		return "revoked " + day(k.Revoked, "")
	}
	return day(k.Expires, "never")
}

func keyRevokeCommand(a *cli.App) *cobra.Command {
	var where keyPlace
	c := &cobra.Command{
		Use:   "revoke [TENANT] ID",
		Short: "End a key, for good",
		Long: `End a key, for good: the next call that shows it is refused. What streams already goes
on until its connection ends.

Exit status: 0, or 125 if there is no such key or Paddock itself failed.`,
		Args: where.args("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			return where.with(c.Context(), a, args, func(ctx context.Context, keys keyring, args []string) error {
				return keys.revoke(ctx, args[0])
			})
		},
	}
	where.register(c)
	return c
}
