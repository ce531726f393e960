package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/language"
	"github.com/paddock-sandbox/paddock/internal/packageregistry"
)

// languageFlags ask for a program that is one file of source, and for the files that a command leaves.
type languageFlags struct {
	lang      string
	with      listFlag
	artifacts string
}

func (f *languageFlags) registerLanguage(fs *pflag.FlagSet) {
	fs.StringVar(&f.lang, "lang", "", "run a program that is one file of this machine, in this `language`: "+strings.Join(language.Names(), ", "))
	fs.Var(&f.with, "with", "install this `package` for the program, from the registry that your package client uses (repeatable; with --lang)")
	fs.StringVar(&f.artifacts, "artifacts", "", "copy to this `directory` what the command leaves in $"+language.ArtifactsVariable+", such as plots")
}

// A langProgram is what --lang runs.
type langProgram struct {
	*language.Language
	packages []string
	text     []byte
	source   string // inside
	args     []string
	after    *paddock.Policy // of the time after the installation; nil where it stays
}

// maxErrors is how much of what a failed installation says is shown.
const maxErrors = 8 << 10

// program reads what --lang runs: the first argument, or standard input.
func (f *runFlags) program(a *App, args []string, changed func(string) bool) (*langProgram, error) {
	if f.lang == "" {
		for _, name := range []string{"lang", "with"} {
			if changed(name) {
				return nil, WithHint(fmt.Errorf("--%s names no language to run: %w", name, paddock.Invalid), "--lang LANGUAGE, one of %s", strings.Join(language.Names(), ", "))
			}
		}
		return nil, nil
	}
	l, err := language.Parse(f.lang)
	if err != nil {
		return nil, fmt.Errorf("--lang: %w", err)
	}
	if err := l.CheckPackages(f.with); err != nil {
		return nil, fmt.Errorf("--with: %w", err)
	}
	p := &langProgram{Language: l, packages: f.with}
	switch {
	case changed("file"):
		return nil, WithHint(fmt.Errorf("--lang and -f name two scripts: %w", paddock.Invalid), "paddock run --lang %s %s", l.Name, OneLine(f.file))
	case changed("command"):
		p.text, p.source, p.args = []byte(f.script), l.Source(""), args
		return p, nil
	case len(args) == 0 && (isTerminal(a.Stdin) || isEmpty(a.Stdin)):
		return nil, WithHint(fmt.Errorf("--lang %s: there is no program: %w", l.Name, paddock.Invalid), "paddock run --lang %s FILE [ARGUMENT…]; standard input and -c have one too", l.Name)
	case len(args) == 0 || args[0] == "-":
		p.text, err = io.ReadAll(io.LimitReader(a.Stdin, maxScript+1))
		p.source, p.args = l.Source(""), args[min(1, len(args)):]
	default:
		p.text, err = readScript(args[0])
		p.source, p.args = l.Source(args[0]), args[1:]
	}
	switch {
	case len(p.text) > maxScript:
		return nil, fmt.Errorf("--lang: the program is larger than %s: %w", BytesInWords(maxScript), paddock.Invalid)
	case errors.Is(err, os.ErrNotExist):
		return nil, WithHint(fmt.Errorf("--lang: %s: there is no such file on this machine: %w", args[0], paddock.NotFound), "a program inside is a command: paddock run -- COMMAND")
	case err != nil:
		return nil, fmt.Errorf("--lang: %w: %w", err, paddock.Denied)
	}
	return p, nil
}

// amend changes a plan so that the program finds what it needs: tools, and the registry while packages are installed.
func (p *langProgram) amend(a *App, to *plan, f *runFlags) error {
	if f.artifacts != "" {
		env := map[string]string{language.ArtifactsVariable: language.Artifacts}
		if p != nil {
			maps.Copy(env, p.Env())
			if to.workspace != "" || to.spec.Dir != "" || len(to.spec.Mounts) > 0 {
				env[language.StaysVariable] = "1"
			}
		}
		maps.Copy(env, to.spec.Env)
		to.spec.Env = env
	}
	if p == nil {
		return nil
	}
	if to.spec.Tier == paddock.Sim {
		return WithHint(fmt.Errorf("--lang: the tier sim has no programs of this machine: %w", paddock.Unsupported), "--tier jail, or none")
	}
	if to.spec.Root.Kind == "" || to.spec.Root.Kind == paddock.RootHost {
		if lacks := p.lacks(a); lacks != "" {
			fmt.Fprintf(a.Stderr, "paddock: this machine has no %s that a sandbox sees, so %s runs in the image %s\n", lacks, p.Name, p.Image)
			to.spec.Root = paddock.Root{Kind: paddock.RootImage, Image: p.Image}
			to.images = a.imagesOf()
		}
	}
	if len(p.packages) == 0 {
		return nil
	}
	return p.reach(to)
}

// lacks returns a tool that the host's system lacks, as sandboxes see it.
func (p *langProgram) lacks(a *App) string {
	for _, tool := range p.Tools {
		if !slices.ContainsFunc(filepath.SplitList(a.pathVariable()), func(dir string) bool { return seenInside(filepath.Join(dir, tool)) }) {
			return tool
		}
	}
	return ""
}

func (a *App) pathVariable() string {
	value, _ := a.Lookup("PATH")
	return value
}

// seenInside reports whether a path leads to a program of the host's system.
func seenInside(name string) bool {
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return false
	}
	info, err := os.Stat(real)
	within := func(name string) bool {
		return slices.ContainsFunc(hostroot.SystemDirs(), func(dir string) bool { return hostroot.Within(name, dir) })
	}
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && within(name) && within(real)
}

// reach lets the package client reach its registry until its packages are there.
func (p *langProgram) reach(to *plan) error {
	n := &to.spec.Policy.Network
	if n.Mode != paddock.NetworkNone && n.Mode != paddock.NetworkList && n.Mode != "" {
		return nil
	}
	after := to.spec.Policy
	if after.Network.Mode == "" {
		after.Network.Mode = paddock.NetworkNone
	}
	var hosts []string
	host := to.host
	for _, g := range packageregistry.Read(packageregistry.Machine{Home: host.Home, Dir: host.Dir, Env: host.Env, Files: host.Files}) {
		if g.Name == p.Client && !g.Project {
			hosts = append(hosts, g.Hosts...)
		}
	}
	if len(hosts) == 0 && n.Mode != paddock.NetworkList {
		return WithHint(fmt.Errorf("--with: Paddock knows no registry itself, and none is configured on this machine for %s: %w", p.Name, paddock.Invalid),
			"name the hosts that the packages come from with --allow HOST; `paddock policy learn` finds them out")
	}
	rules := slices.Clone(n.Rules)
	for _, h := range hosts {
		more, err := destinations(h, false, to.file)
		if err != nil {
			return fmt.Errorf("--with: the registry %s: %w", OneLine(h), err)
		}
		rules = append(rules, more...)
	}
	n.Mode, n.Rules, p.after = paddock.NetworkList, rules, &after
	return nil
}

// place puts the program into its sandbox, installs its packages, and ends the way to the registry.
func (p *langProgram) place(ctx context.Context, a *App, b *oneShot, artifacts bool) error {
	files := b.FS()
	if artifacts {
		if err := files.Mkdir(ctx, language.Artifacts, paddock.MkdirOptions{Parents: true, Mode: 0o755}); err != nil {
			return fmt.Errorf("make %s inside: %w", language.Artifacts, err)
		}
	}
	if p == nil {
		return nil
	}
	for _, dir := range []string{path.Dir(p.source), language.Top + "/libs"} {
		if err := files.Mkdir(ctx, dir, paddock.MkdirOptions{Parents: true, Mode: 0o755}); err != nil {
			return fmt.Errorf("put the program into the sandbox: %w", err)
		}
	}
	more, err := p.Files(artifacts)
	if err != nil {
		return err
	}
	for _, f := range append(more, language.File{Path: p.source, Text: string(p.text)}) {
		if err := put(ctx, files, f.Path, f.Text); err != nil {
			return fmt.Errorf("put the program into the sandbox: %w", err)
		}
	}
	if len(p.packages) == 0 {
		return nil
	}
	if err := p.install(ctx, a, b); err != nil {
		return err
	}
	if p.after == nil {
		return nil
	}
	if err := b.Update(ctx, paddock.Update{Policy: p.after}); err != nil {
		return fmt.Errorf("end the way to the registry: %w", err)
	}
	return nil
}

func (p *langProgram) install(ctx context.Context, a *App, b *oneShot) error {
	args, err := p.Install(p.packages)
	if err != nil {
		return err
	}
	said := &tail{most: maxErrors}
	c, err := b.Start(ctx, paddock.Cmd{Args: args, Output: paddock.Output{Stdout: said, Stderr: said}})
	if err != nil {
		return fmt.Errorf("install %s: %w", OneLine(strings.Join(p.packages, " ")), err)
	}
	exit, err := c.Wait(ctx)
	if err != nil {
		return err
	}
	if exit.Code == 0 {
		return nil
	}
	said.show(a.Stderr)
	err = fmt.Errorf("install %s: it ended with %d: %w", OneLine(strings.Join(p.packages, " ")), exit.Code, paddock.Unavailable)
	return WithHint(err, "if a host was refused, --allow HOST lets it be reached; `paddock run --help` tells more")
}

// A tail keeps the last bytes that were written to it.
type tail struct {
	most int
	kept bytes.Buffer
}

func (t *tail) Write(b []byte) (int, error) {
	t.kept.Write(b)
	if over := t.kept.Len() - t.most; over > 0 {
		t.kept.Next(over)
	}
	return len(b), nil
}

// lines returns what was kept, fit for a terminal.
func (t *tail) lines() (list []string) {
	for line := range strings.Lines(t.kept.String()) {
		list = append(list, OneLine(strings.TrimRight(line, "\r\n")))
	}
	return list
}

// show writes what was kept for a person.
func (t *tail) show(to io.Writer) {
	for _, line := range t.lines() {
		fmt.Fprintf(to, "  %s\n", line)
	}
}

// takeArtifacts copies what a command left to the caller's directory, and tells what.
func (f *runFlags) takeArtifacts(ctx context.Context, a *App, b *oneShot, r *result) error {
	if f.artifacts == "" {
		return nil
	}
	dir, err := a.Dir()
	if err != nil {
		return err
	}
	to := Absolute(f.artifacts, dir)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("--artifacts: %w: %w", err, paddock.Denied)
	}
	c := &copying{files: b.FS(), a: a}
	names, err := c.contents(ctx, language.Artifacts, to)
	for _, name := range names {
		r.Artifacts = append(r.Artifacts, filepath.Join(to, name))
	}
	for _, name := range r.Artifacts {
		fmt.Fprintf(a.Stderr, "paddock: artifact %s\n", OneLine(name))
	}
	if err != nil {
		return fmt.Errorf("--artifacts: %w", err)
	}
	return nil
}
