package auxiliary

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/bootfiles"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

func vmCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "vm",
		Short: "Prepare what the tier microvm does not carry",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(vmSetupCommand(a), vmStatusCommand(a))
	return c
}

func vmSetupCommand(a *cli.App) *cobra.Command {
	var o bootfiles.Options
	c := &cobra.Command{
		Use:   "setup",
		Short: "Get the kernel that machines of the tier microvm run",
		Long: `Get the kernel that machines of the tier microvm run. It runs in them alone; this
machine's own stays what it is, and nothing is installed.

Without a flag it is Debian's kernel for virtual machines, which the package
client of this machine (apt) fetches from where it is set up to, and vouches
for. Elsewhere download the package, or name any kernel of this machine. What
machines need of it is unpacked in Paddock's data directory: that of the caller,
or, for the superuser, one that all users' machines take it from.

Exit status: 0, or 125 if there is no such kernel or it cannot be used.`,
		Example: `  paddock vm setup
  paddock vm setup --package linux-image-cloud-amd64.deb --sum SHA256
  paddock vm setup --kernel /boot/vmlinuz-6.1.0-56-amd64`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return vmSetup(c.Context(), a, o) },
	}
	c.Flags().SortFlags = false
	c.Flags().StringVar(&o.Package, "package", "", "take it from this `file`, a package of Debian's (linux-image-….deb)")
	c.Flags().StringVar(&o.Sum, "sum", "", "the package's SHA-256, in hexadecimal `digits`; another one is refused")
	c.Flags().StringVar(&o.Path, "kernel", "", "take this kernel, vmlinuz or vmlinux at `path`, with its modules beside it or in /lib/modules")
	return c
}

func vmSetup(ctx context.Context, a *cli.App, o bootfiles.Options) (err error) {
	if o.Data, err = vmData(a); err != nil {
		return err
	}
	if o.Sum != "" && o.Package == "" {
		return cli.WithHint(fmt.Errorf("--sum is of a package, and none is named: %w", paddock.Invalid), "name it: --package FILE")
	}
	k, err := bootfiles.Setup(ctx, o)
	if err != nil {
		return cli.NotMade{Err: err} // it says in words what is wrong
	}
	_, err = fmt.Fprintf(a.Stdout, "Linux %s is set up for machines in %s\n", cli.OneLine(k.Release), cli.OneLine(o.Data))
	return err
}

func vmStatusCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Tell what machines of the tier microvm would run with",
		Long: `Tell what machines of the tier microvm would run with here: QEMU, a kernel, and
either KVM or emulation, which is slower by far and as strong a wall. What is
missing is told with what to do about it. No machine is started; paddock doctor
starts one.

Exit status: 0 if nothing is missing, 1 if something is, 125 if Paddock itself
failed.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := vmData(a)
			if err != nil {
				return err
			}
			engine, _ := a.Lookup(cli.EngineVariable)
			return vmStatus(a.Stdout, engine, bootfiles.Options{Data: dir})
		},
	}
}

// tellMemory tells what becomes of memory that machines with this kernel have no use
// for.
func tellMemory(tell func(name, what string, err error) error, k bootfiles.Kernel) error {
	gives, err := k.GivesBack()
	what := "what machines have no use for goes back to this one"
	if err == nil && !gives {
		what = "what machines have touched is theirs until they end, as this kernel has no virtio_balloon; run `paddock vm setup` again"
	}
	return tell("memory", what, err)
}

// vmStatus tells one thing on a line.
func vmStatus(w io.Writer, program string, o bootfiles.Options) error {
	lacks := false
	tell := func(name, what string, err error) error {
		var missing *paddock.MissingError
		switch {
		case err == nil:
			fmt.Fprintf(w, "%-10s %s\n", name+":", cli.OneLine(what))
		case errors.As(err, &missing):
			lacks = true
			fmt.Fprintf(w, "%-10s %s\n", name+":", cli.OneLineOf(missing.Finding.Cause, cli.Paragraph))
			fmt.Fprintf(w, "%-10s remedy: %s\n", "", cli.OneLineOf(missing.Finding.Remedy, cli.Paragraph))
		default:
			return err
		}
		return nil
	}
	engine, err := bootfiles.FindEngine(program)
	if err := tell("engine", fmt.Sprintf("QEMU %s, %s", engine.Version, engine.Path), err); err != nil {
		return err
	}
	k, err := bootfiles.Find(o)
	if err := tell("kernel", fmt.Sprintf("Linux %s, %s", k.Release, k.Path), err); err != nil {
		return err
	}
	if err == nil {
		modules, missing := k.Modules()
		err := tell("modules", fmt.Sprintf("%d, of %s", len(modules), k.Directory), missing)
		if err == nil && missing == nil {
			err = tellMemory(tell, k)
		}
		if err != nil {
			return err
		}
	}
	accel, reason := bootfiles.Probe()
	how := "KVM"
	if accel != protocol.KVM {
		how = "emulation, without KVM: " + reason
	}
	if err := tell("processor", how, nil); err != nil {
		return err
	}
	if lacks {
		return cli.ExitStatus(1)
	}
	return nil
}
