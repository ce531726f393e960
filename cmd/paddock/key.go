package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock/internal/key"
	"github.com/paddock-sandbox/paddock/internal/store"
)

func (a *app) keyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Keep the keys that callers of a server show",
		Long: `Keep the keys that callers of a server show. A key is written once, when it is made: the
server keeps a hash of it. Works on the server's database, on its machine, also while
the server runs.`,
	}
	c.AddCommand(a.keyCreateCommand(), a.keyListCommand(), a.keyRevokeCommand())
	return c
}

func (a *app) keyCreateCommand() *cobra.Command {
	var where storeFlags
	var name string
	var scopes []string
	var lasts timeFlag
	var asJSON bool
	c := &cobra.Command{
		Use:   "create TENANT [flags]",
		Short: "Make a key, and write it",
		Long: `Make a key of a tenant and write it: it cannot be had again. Scopes are

  read   see sandboxes, processes, files and events
  write  make, change, use and remove sandboxes and snapshots as well
  admin  all of it, and name what is the server's machine's: its files, its network

Exit status: 0, or 125 if there is no such tenant or Paddock itself failed.`,
		Example: `  paddock key create acme --expires 720h | paddock login https://server --key-stdin
  paddock key create acme --scope read --name dashboard`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withStore(c.Context(), &where, func(s *store.Store) error {
				g := key.Grant{Tenant: args[0], Name: name}
				for _, text := range scopes {
					g.Scopes = append(g.Scopes, key.Scope(text))
				}
				if lasts > 0 {
					g.Expires = time.Now().Add(time.Duration(lasts))
				}
				text, k, err := key.New(s, nil).Make(c.Context(), g)
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(a.stdout, struct {
						store.Key
						Text string `json:"key"`
					}{k, text})
				}
				return a.say("%s\n", text)
			})
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&name, "name", "", "`words` for people")
	fs.StringSliceVar(&scopes, "scope", []string{string(key.Read), string(key.Write)}, "what it allows: `scopes`, with commas")
	fs.Var(&lasts, "expires", "end it after this `time` (default never)")
	fs.BoolVar(&asJSON, "json", false, "answer with one JSON object")
	where.register(fs)
	return c
}

func (a *app) keyListCommand() *cobra.Command {
	var where storeFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls TENANT",
		Short: "List a tenant's keys",
		Long: `List a tenant's keys, oldest first, with those that ended.

Exit status: 0, or 125 if Paddock itself failed.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withStore(c.Context(), &where, func(s *store.Store) error {
				if _, err := s.Tenant(c.Context(), args[0]); err != nil {
					return err
				}
				list, err := key.New(s, nil).List(c.Context(), args[0])
				if err != nil {
					return err
				}
				if asJSON {
					return printJSON(a.stdout, append([]store.Key{}, list...))
				}
				w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
				fmt.Fprintln(w, "ID\tSCOPES\tCREATED\tLAST USED\tENDS\tNAME")
				for _, k := range list {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, join(k.Scopes), day(k.Created, ""), day(k.Used, "never"), ends(k), oneLine(k.Name))
				}
				return w.Flush()
			})
		},
	}
	where.register(c.Flags())
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

func (a *app) keyRevokeCommand() *cobra.Command {
	var where storeFlags
	c := &cobra.Command{
		Use:   "revoke TENANT ID",
		Short: "End a key, for good",
		Long: `End a key, for good: the next call that shows it is refused. What streams already goes
on until its connection ends.

Exit status: 0, or 125 if there is no such key or Paddock itself failed.`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withStore(c.Context(), &where, func(s *store.Store) error {
				return key.New(s, nil).Revoke(c.Context(), args[0], args[1])
			})
		},
	}
	where.register(c.Flags())
	return c
}
