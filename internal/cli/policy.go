package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/wrap/auto"
)

func (a *App) policyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "policy",
		Short: "Check policy files, and explain what they allow",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.policyCheckCommand(), a.policyExplainCommand(), a.policyLearnCommand(), a.policyGroupsCommand(), a.policySeatbeltCommand())
	return c
}

func (a *App) policyCheckCommand() *cobra.Command {
	var want string
	var srt bool
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Tell everything that is wrong with a policy file",
		Long: `Tell everything that is wrong with a policy file, each with its line: unknown
keys, values that make no sense, and what the tier cannot enforce on this
machine. Nothing is run.

Exit status: 0 if the file can be used here, 1 if not, 125 if it cannot be read.`,
		Args: OneArgument("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			err := a.checkPolicy(c, args[0], srt, want)
			var wrong *policy.Error
			if errors.As(err, &wrong) {
				problems(a.Stderr, wrong)
				return ExitStatus(1)
			}
			return err
		},
	}
	c.Flags().StringVar(&want, "tier", "auto", "the `tier` that is to enforce it")
	c.Flags().BoolVar(&srt, "srt-settings", false, "FILE is a settings file of Anthropic's sandbox-runtime")
	return c
}

func (a *App) checkPolicy(c *cobra.Command, name string, srt bool, want string) error {
	asked, err := parseTier(want)
	if err != nil {
		return err
	}
	host, err := a.host()
	if err != nil && (srt || !filepath.IsAbs(name)) {
		return err
	}
	var f *policy.File
	if srt {
		f, err = readSRT(name, host)
	} else {
		f, err = readPolicy(name)
	}
	if err != nil {
		return err
	}
	host.WithoutSecrets = true
	var spec paddock.Spec
	if err := f.Apply(&spec, host); err != nil {
		return err
	}
	if asked == paddock.Auto {
		asked = spec.Tier
	}
	for _, n := range f.Notes {
		fmt.Fprintf(a.Stderr, "paddock: note: %s\n", OneLine(n.In(f.Name)))
	}
	check := func(tier paddock.Tier) (paddock.Tier, error) {
		t, err := a.tier(tier)
		if err != nil {
			return tier, err
		}
		d := t.examine(c.Context(), a.looking())
		if d.Info == nil {
			return tier, fmt.Errorf("tier %s: %s: %w", tier, d.Cause, paddock.Unavailable)
		}
		return tier, policy.Refuse(f.Name, policy.Check(f, *d.Info))
	}
	if asked == paddock.Auto {
		asked, _, err = auto.Choose(candidates(a.Tiers), check)
	} else {
		_, err = check(asked)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "%s: good, for tier %s\n", OneLine(name), asked)
	return nil
}

func (a *App) policyExplainCommand() *cobra.Command {
	f := &specFlags{look: true}
	var asJSON bool
	var method string
	c := &cobra.Command{
		Use:   "explain [flags] read|write|connect|env SUBJECT, or a URL",
		Short: "Tell whether something would be allowed, and by which rule",
		Long: `Tell whether a command that is run with the same flags could read or write a
path, connect to a host or URL, or see a variable; which rule decides, and how
to change that. Of a URL it is told too whether TLS is looked into, and which
secrets the request could use. Nothing is run, and nobody is asked.

Exit status: 0 if it is allowed, 1 if it is refused, 125 if the question or a
file is wrong.`,
		Example: `  paddock policy explain --workspace . write .git/hooks/pre-commit
  paddock policy explain --policy agent.yaml connect api.example.com:443
  paddock policy explain --policy agent.yaml --method POST https://api.example.com/v1/jobs
  paddock policy explain env AWS_SECRET_ACCESS_KEY`,
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			p, err := f.plan(a, c.Flags().Changed)
			if err != nil {
				return err
			}
			q, err := policy.ParseQuestion(args, p.host)
			if err != nil {
				return WithHint(err, "ask: paddock policy explain read PATH, write PATH, connect HOST:PORT or env NAME, or a URL")
			}
			q.Method = strings.ToUpper(method)
			if method != "" && (q.Verb != "connect" || !strings.Contains(q.Object, "://")) {
				return WithHint(fmt.Errorf("--method %s: there is no URL that it is about: %w", method, paddock.Invalid), "ask: paddock policy explain --method %s https://HOST/PATH", method)
			}
			answer, err := policy.Explain(p.spec, p.file, p.host, q)
			if err != nil {
				return err
			}
			if asJSON {
				err = PrintJSON(a.Stdout, answer)
			} else {
				a.explain(q, answer)
			}
			if err == nil && !answer.Allowed {
				return ExitStatus(1)
			}
			return err
		},
	}
	c.Flags().SortFlags = false
	f.register(c.Flags())
	c.Flags().StringVar(&method, "method", "", "`method` of the request to a URL (default GET)")
	c.Flags().BoolVar(&asJSON, "json", false, "answer with one JSON object")
	return c
}

func (a *App) explain(q policy.Question, answer policy.Answer) {
	verdict := "refused"
	if answer.Allowed {
		verdict = "allowed"
	}
	fmt.Fprintf(a.Stdout, "%s %s: %s\n", q.Verb, OneLine(q.Object), verdict)
	fmt.Fprintf(a.Stdout, "  rule:   %s\n", OneLine(answer.Rule))
	if answer.Where != "" {
		fmt.Fprintf(a.Stdout, "  where:  %s\n", OneLine(answer.Where))
	}
	if answer.Change != "" {
		fmt.Fprintf(a.Stdout, "  change: %s\n", OneLine(answer.Change))
	}
	if answer.Inspected {
		fmt.Fprintln(a.Stdout, "  tls:    looked into, with a certificate that only the sandbox trusts")
	}
	if len(answer.Secrets) > 0 {
		fmt.Fprintf(a.Stdout, "  secret: %s\n", OneLine(strings.Join(answer.Secrets, ", ")))
	}
	for _, n := range answer.Notes {
		fmt.Fprintf(a.Stdout, "  note:   %s\n", OneLine(n))
	}
}

// OneArgument accepts exactly one argument. The name stands for the argument in error messages.
func OneArgument(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return WithHint(fmt.Errorf("%s takes one %s, and got %d: %w", c.CommandPath(), name, len(args), paddock.Invalid), "%s", c.UseLine())
		}
		return nil
	}
}
