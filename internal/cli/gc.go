package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock/internal/box"
)

// collected is something that nobody owned.
type collected struct {
	What    string `json:"what"` // untrusted, because names of sandboxes are in it
	Removed bool   `json:"removed"`
}

func (a *App) gcCommand() *cobra.Command {
	var dry, asJSON bool
	c := &cobra.Command{
		Use:   "gc [flags]",
		Short: "Remove what is left of sandboxes that nobody owns any more",
		Long: `Remove what is left of sandboxes that no state directory leads to any more: a
keeper that did not end when the directory of its sandbox was removed, with the
sandbox, and control groups whose owner is dead. Each is written before it is
removed. The kernel removes mounts and processes with the keeper, and systemd a
scope without a process. A sandbox of another user stays, also when root calls, and
so does one that a state directory leads to, whoever made it: paddock rm removes
that.

Exit status: 0, or 125 if something could not be removed.`,
		Example: `  paddock gc --dry-run
  paddock gc`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := a.Interruptible(c.Context())
			defer stop()
			list, err := a.unowned()
			errs := []error{err}
			answer := []collected{}
			for _, u := range list {
				what := "removing"
				if dry {
					what = "nobody owns"
				}
				if !asJSON {
					if err := a.Say("%s: %s\n", what, OneLineOf(u.What, Paragraph)); err != nil {
						return err
					}
				}
				one := collected{What: u.What}
				if !dry {
					bounded, cancel := context.WithTimeout(ctx, Patience)
					err := u.Remove(bounded)
					cancel()
					one.Removed = err == nil
					errs = append(errs, err)
				}
				answer = append(answer, one)
			}
			if asJSON {
				if err := PrintJSON(a.Stdout, answer); err != nil {
					return err
				}
			}
			if err := errors.Join(errs...); err != nil {
				return Because(ctx, fmt.Errorf("not everything could be removed: %w", err))
			}
			return nil
		},
	}
	c.Flags().SortFlags = false
	c.Flags().BoolVar(&asJSON, "json", false, "answer with a JSON array: what was found, and whether it is removed")
	c.Flags().BoolVar(&dry, "dry-run", false, "write what would be removed, and remove nothing")
	return c
}

// unowned lists what nobody owns. The state directories that this user usually has are known.
func (a *App) unowned() ([]box.Unowned, error) {
	var environ []string
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "PADDOCK_STATE"} {
		if value, ok := a.Lookup(name); ok {
			environ = append(environ, name+"="+value)
		}
	}
	find := a.Unowned
	if find == nil {
		find = box.FindUnowned
	}
	return find(box.StatesOf(environ)...)
}
