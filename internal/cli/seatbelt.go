package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/seatbelt"
)

// seatbeltFlags lists the flags of run that a profile of Seatbelt can keep.
func seatbeltFlags() []string {
	return []string{"workspace", "read", "write", "deny-read", "deny-write", "unprotect"}
}

func (a *App) policySeatbeltCommand() *cobra.Command {
	f := &specFlags{look: true}
	var proxy uint16
	var temp string
	c := &cobra.Command{
		Use:   "seatbelt [flags]",
		Short: "Print a profile for sandbox-exec of macOS (never run by us)",
		Long: `Print a profile for sandbox-exec of macOS. It shows the directories that the
flags name and programs of the system, and has the protected names of paddock
run. Nothing is run.

It was never run by us: Paddock's makers have no Mac. It has no limits and no
undo, and hosts are decided by a proxy that you have to bring: the sandbox
connects to its port of loopback and to nothing else. What else it lacks is told
on standard error. docs/use/macos.md tells how it can be tried.

Exit status: 0, or 125 if there can be no such profile.`,
		Example: "  paddock policy seatbelt --workspace . >project.sb\n  paddock policy seatbelt -w . --read ~/tool --temp /tmp/box --proxy 8080",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := f.plan(a, c.Flags().Changed)
			if err != nil {
				return err
			}
			plan := seatbelt.Plan{Spec: p.spec, Proxy: proxy}
			if c.Flags().Changed("proxy") && proxy == 0 {
				return WithHint(fmt.Errorf("--proxy 0: there is no such port: %w", paddock.Invalid), "name the port at which your proxy listens, or leave --proxy out for no network")
			}
			if err := realPaths(&plan, p.host, temp); err != nil {
				return err
			}
			text, err := seatbelt.Compile(plan)
			if err != nil {
				return WithHint(err, "name a directory of a project; the example is `paddock policy seatbelt --workspace .`")
			}
			fmt.Fprintf(a.Stderr, "paddock: note: %s\n", seatbelt.Untried)
			for _, n := range seatbelt.Notes() {
				fmt.Fprintf(a.Stderr, "paddock: note: %s\n", n)
			}
			_, err = fmt.Fprint(a.Stdout, text)
			return err
		},
	}
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(all)
	fs := c.Flags()
	fs.SortFlags = false
	for _, name := range seatbeltFlags() {
		fs.AddFlag(all.Lookup(name))
	}
	fs.StringVar(&temp, "temp", "", "`directory` for temporary files, which can be written")
	fs.Uint16Var(&proxy, "proxy", 0, "let it connect to this `port` of loopback (default: no network)")
	return c
}

// seatbeltWords is what doctor and agent say of macOS. It is empty on other systems.
func seatbeltWords(system string) string {
	if system != "darwin" {
		return ""
	}
	return "`paddock policy seatbelt` prints a profile for sandbox-exec; " + seatbelt.Untried
}

// realPaths resolves the links of a plan's paths, as Seatbelt compares them. What is denied by the name of a link is
// denied by both names.
func realPaths(p *seatbelt.Plan, host policy.Host, temp string) error {
	var wrong []error
	resolve := func(name string) string {
		actual, err := filepath.EvalSymlinks(name)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w: %w", name, err, paddock.NotFound))
		}
		return actual
	}
	if host.Home == "" {
		return WithHint(fmt.Errorf("there is no home to hide: %w", paddock.Invalid), "set HOME")
	}
	p.Home = resolve(host.Home)
	if temp != "" {
		p.Temp = resolve(Absolute(temp, host.Dir))
	}
	p.Spec.Mounts = slices.Clone(p.Spec.Mounts)
	for i, m := range p.Spec.Mounts {
		if target(m) == m.Source {
			p.Spec.Mounts[i].Target = ""
		}
		p.Spec.Mounts[i].Source = resolve(m.Source)
	}
	files := &p.Spec.Policy.Files
	for _, list := range []*[]string{&files.DenyRead, &files.DenyWrite} {
		var names []string
		for _, name := range *list {
			name = filepath.Clean(name)
			names = append(names, filepath.Join(private.RealPath(filepath.Dir(name)), filepath.Base(name)), private.RealPath(name))
		}
		slices.Sort(names)
		*list = slices.Compact(names)
	}
	return errors.Join(wrong...)
}
