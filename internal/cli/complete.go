package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// texts converts words to strings.
func texts[T ~string](words []T) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = string(w)
	}
	return list
}

// tierWords are the values of --tier.
func tierWords() []string {
	return append([]string{"auto"}, texts([]paddock.Tier{paddock.Sim, paddock.Jail, paddock.GVisor, paddock.MicroVM})...)
}

// stateWords are the states of a sandbox.
func stateWords() []string {
	return texts([]paddock.State{paddock.Ready, paddock.Paused, paddock.Dead})
}

// valuesOf lists the values of flags, by their names, that a shell completes. A value that ends with
// ":" or "=" is a beginning.
func valuesOf() map[string][]string {
	var names, groups []string
	for _, n := range protect.Names() {
		names = append(names, n.Text)
	}
	for _, g := range policy.Groups() {
		groups = append(groups, "group:"+g)
	}
	return map[string][]string{
		"tier":          tierWords(),
		"state":         stateWords(),
		"mode":          policy.Modes(),
		"root":          {"host", "dir:", "snapshot:"},
		"at-end":        {"remove", "pause"},
		"undo":          undoModes(),
		"budget":        {"cpu=", "network=", "cost="},
		"unprotect":     names,
		"allow":         groups,
		"deny":          groups,
		"lang":          {"python", "javascript", "typescript", "bash", "r", "java"},
		"scope":         {"read", "write", "admin"},
		"log-level":     {"debug", "info", "warn", "error"},
		"allow-missing": texts(controls()),
	}
}

// completeValues has the flags of all commands below c complete their values.
func completeValues(c *cobra.Command) {
	values := valuesOf()
	var each func(*cobra.Command)
	each = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			list, ok := values[f.Name]
			if !ok || f.NoOptDefVal != "" {
				return
			}
			// A flag has no other completion, so this cannot fail.
			_ = c.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
				directive := cobra.ShellCompDirectiveNoFileComp
				var fit []string
				for _, v := range list {
					if strings.HasPrefix(v, typed) {
						fit = append(fit, v)
					}
				}
				if len(fit) == 1 && strings.ContainsAny(fit[0][len(fit[0])-1:], ":=") {
					directive |= cobra.ShellCompDirectiveNoSpace
				}
				return fit, directive
			})
		})
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each(c)
}
