package auxiliary

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/image/build"
	"github.com/paddock-sandbox/paddock/internal/image/dockerfile"
	"github.com/paddock-sandbox/paddock/internal/image/shelf"
	"github.com/paddock-sandbox/paddock/internal/image/store"
	"github.com/paddock-sandbox/paddock/internal/private"
)

type buildFlags struct {
	tag, file, target, tier, pull, output string
	args, secrets, allow, deny            []string
	memory, disk                          cli.SizeFlag
	cpus                                  cli.ProcessorsFlag
	noCache, json                         bool
}

func buildCommand(a *cli.App) *cobra.Command {
	var f buildFlags
	c := &cobra.Command{
		Use:   "build [flags] DIR",
		Short: "Build an image by a Dockerfile, in sandboxes",
		Long: `Build an image by a Dockerfile, and keep it with the other images of this machine.
There is no daemon: each RUN runs in a sandbox of its own, which begins with what
the instructions before have made. paddock run --image NAME then begins with it.

A RUN has no network. --allow lets it reach a host, or a group of hosts, as for
paddock run. It runs as the image's user, root if there is none, on a kernel of the
sandbox's own. The images of FROM and of COPY --from are those that are here, or are
pulled as by paddock image pull.

A step that was done before is not done again: RUN if its text, its variables and all
files are the same, COPY and ADD if what they copy is. paddock image prune forgets
what was done.

RUN --mount=type=secret,id=NAME sees a value that --secret gave, as a file at
/run/secrets/NAME or as a variable. It is part of no layer, unless the command itself
copies it. RUN --mount=type=cache,target=DIR sees a volume that stays between builds;
paddock volume ls lists it.

What is refused, in words: ADD of an address, ONBUILD, HEALTHCHECK and the other
kinds of RUN --mount. docs/use/build.md tells all.

Exit status: 0, or 125 if the image was not made.`,
		Example: `  paddock build -t tool:1 .
  paddock build -t tool:1 --allow group:debian --build-arg VERSION=2 .
  paddock build -t tool:1 --secret id=token,src=token.txt -f build/Dockerfile --target test .
  paddock build -t tool:1 --output tool.tar .`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return runBuild(c.Context(), a, &f, args[0]) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.tag, "tag", "t", "", "call the image by this `reference` (needed)")
	fs.StringVarP(&f.file, "file", "f", "", "read this `file` in place of DIR/Dockerfile; - is standard input")
	fs.StringVar(&f.target, "target", "", "stop after this `stage`, by its name or number")
	fs.StringArrayVar(&f.args, "build-arg", nil, "give an ARG a value, or pass on your own variable by its name: `NAME[=VALUE]` (repeatable)")
	fs.StringArrayVar(&f.secrets, "secret", nil, "let steps that ask for it see a value: `id=NAME,src=FILE` or id=NAME,env=VARIABLE (repeatable)")
	fs.StringArrayVar(&f.allow, "allow", nil, "let RUN reach a `host`, as paddock run --allow (repeatable; commas between several)")
	fs.StringArrayVar(&f.deny, "deny", nil, "never let RUN reach a `host`, whatever allows it (as --allow)")
	fs.StringVar(&f.tier, "tier", string(paddock.GVisor), "`tier` of the sandboxes, which is gvisor")
	fs.StringVar(&f.pull, "pull", "missing", "`when` to ask the registry for images: missing (if one is not here), always, or never")
	fs.Var(&f.memory, "memory", "limit of memory of a RUN, such as 4G")
	fs.Var(&f.cpus, "cpus", "`number` of processors' worth of time of a RUN at most, such as 1.5")
	fs.Var(&f.disk, "disk", "limit of the files that a step writes, such as 8G")
	fs.BoolVar(&f.noCache, "no-cache", false, "do each step again")
	fs.StringVarP(&f.output, "output", "o", "", "write the image to this `file` too, as paddock image save does")
	fs.BoolVar(&f.json, "json", false, "answer with one JSON object, also if the build fails")
	return c
}

// A buildAnswer is what --json answers.
type buildAnswer struct {
	Version   int          `json:"version"`
	Reference string       `json:"reference"`
	Digest    string       `json:"digest,omitempty"`
	Size      int64        `json:"size,omitempty"`
	Layers    int          `json:"layers,omitempty"`
	Steps     []buildStep  `json:"steps"`
	Warnings  []string     `json:"warnings"`
	Error     *buildFailed `json:"error,omitempty"`
}

type buildStep struct {
	build.Step
	Cached bool `json:"cached,omitempty"`
}

type buildFailed struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Line    int    `json:"line,omitempty"`
	Log     string `json:"log,omitempty"` // the end of what the step wrote
}

// A buildReport tells how a build goes on.
type buildReport struct {
	a      *cli.App
	out    io.Writer // what commands write; it is a stranger's
	answer *buildAnswer
	many   bool // there are several stages
	open   bool // what a command wrote does not end with a line
}

// Step implements [build.Report].
func (r *buildReport) Step(s build.Step, cached bool) {
	r.answer.Steps = append(r.answer.Steps, buildStep{s, cached})
	where, note := fmt.Sprintf("line %d", s.Line), ""
	if r.many {
		where = s.Stage + ", " + where
	}
	if cached {
		note = " (done before)"
	}
	r.line()
	fmt.Fprintf(r.a.Stderr, "paddock: %s: %s%s\n", cli.OneLine(where), cli.OneLine(s.Text), note)
}

// Write implements [build.Report].
func (r *buildReport) Write(p []byte) (int, error) {
	if len(p) > 0 {
		r.open = p[len(p)-1] != '\n'
	}
	return r.out.Write(p)
}

// line ends the line of a command that has not ended it.
func (r *buildReport) line() {
	if r.open {
		fmt.Fprintln(r.a.Stderr)
		r.open = false
	}
}

func runBuild(ctx context.Context, a *cli.App, f *buildFlags, dir string) error {
	answer := &buildAnswer{Version: 1, Reference: f.tag, Steps: []buildStep{}, Warnings: []string{}}
	ctx, stop := a.Interruptible(ctx)
	defer stop()
	err := buildImage(ctx, a, f, dir, answer)
	if err != nil {
		err = cli.Because(ctx, err)
	}
	if !f.json {
		if err != nil {
			return err
		}
		return a.Say("%s\n", answer.Digest)
	}
	if err == nil {
		return cli.PrintJSON(a.Stdout, answer)
	}
	answer.Error = &buildFailed{Kind: paddock.KindOf(err).Error(), Message: err.Error(), Hint: cli.HintFor(err)}
	var failed *build.StepError
	if errors.As(err, &failed) {
		answer.Error.Line, answer.Error.Log = failed.Step.Line, failed.Tail
	}
	return errors.Join(err, cli.PrintJSON(a.Stdout, answer))
}

func buildImage(ctx context.Context, a *cli.App, f *buildFlags, dir string, answer *buildAnswer) (err error) {
	tier, err := f.check(a)
	if err != nil {
		return err
	}
	if answer.Reference, err = store.NameOf(f.tag); err != nil {
		return cli.WithHint(fmt.Errorf("--tag: %w", err), "such as --tag tool:1")
	}
	o := build.Options{
		Name: f.tag, Tier: tier.Name, Fresh: f.noCache, Cache: buildCaches(a),
		Limits: paddock.Limits{Memory: int64(f.memory), CPUs: float64(f.cpus), Disk: int64(f.disk)},
	}
	if o.Network, err = f.network(); err != nil {
		return err
	}
	if o.Secrets, err = f.secretValues(a); err != nil {
		return err
	}
	if o.Context, err = openContext(a, dir); err != nil {
		return err
	}
	defer o.Context.Close()
	text, ignore, err := f.read(a, o.Context)
	if err != nil {
		return err
	}
	o.Ignore = ignore
	args, err := f.arguments(a)
	if err != nil {
		return err
	}
	if o.File, err = dockerfile.Parse(text, dockerfile.Options{Args: args, Target: f.target}); err != nil {
		return cli.NotMade{Err: fmt.Errorf("the Dockerfile: %w", err)}
	}
	for _, w := range o.File.Warnings {
		answer.Warnings = append(answer.Warnings, w)
		fmt.Fprintf(a.Stderr, "paddock: note: %s\n", cli.OneLine(w))
	}
	if o.Store, err = images(a); err != nil {
		return err
	}
	o.Base = func(ctx context.Context, reference string) (string, error) {
		return digestFor(ctx, a, o.Store, reference, f.pull)
	}
	report := &buildReport{a: a, out: cli.Plain(a.Stderr), answer: answer, many: len(o.File.Stages) > 1}
	defer report.line()
	o.Report = report
	work, done, err := workDir(a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	o.Dir = work
	driver, err := tier.Open(cli.Gear{State: work, Images: o.Store})
	if err != nil {
		return fmt.Errorf("tier %s: %w", tier.Name, err)
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	var ok bool
	if o.Driver, ok = driver.(build.Driver); !ok {
		return fmt.Errorf("the tier %s cannot tell what a step changed: %w", tier.Name, paddock.Unsupported)
	}
	result, err := build.Run(ctx, o)
	if err != nil {
		return buildHint(err)
	}
	answer.Digest, answer.Size, answer.Layers = result.Image.Digest, result.Image.Size, len(result.Image.Layers)
	if f.output == "" {
		return nil
	}
	return saveFile(ctx, a, o.Store, f.output, []string{answer.Reference})
}

func buildHint(err error) error {
	var failed *build.StepError
	switch {
	case errors.As(err, &failed):
		return cli.WithHint(err, "what it wrote stands above; a step reaches no network but with --allow HOST")
	case errors.Is(err, paddock.Exhausted):
		return cli.WithHint(err, "--disk and --memory give a step more; `paddock image prune` makes room")
	}
	return cli.NotMade{Err: err}
}

// check finds what is wrong with the flags alone, and the tier.
func (f *buildFlags) check(a *cli.App) (cli.Tier, error) {
	switch {
	case f.tag == "":
		return cli.Tier{}, cli.WithHint(fmt.Errorf("the image has no name: %w", paddock.Invalid), "give it one: --tag NAME")
	case !slices.Contains([]string{"missing", "always", "never"}, f.pull):
		return cli.Tier{}, cli.WithHint(fmt.Errorf("--pull %s: there is no such time: %w", f.pull, paddock.Invalid), "times are missing, always, never")
	}
	name := paddock.Tier(f.tier)
	if name != paddock.GVisor {
		return cli.Tier{}, cli.WithHint(fmt.Errorf("--tier %s: builds run on gvisor, where root is root and a step's changes are a layer: %w", f.tier, paddock.Unsupported), "leave --tier out")
	}
	i := slices.IndexFunc(a.Tiers, func(t cli.Tier) bool { return t.Name == name && t.Open != nil })
	if i < 0 {
		return cli.Tier{}, cli.WithHint(fmt.Errorf("tier %s is not in this version: %w", name, paddock.Unsupported), "`paddock doctor` tells which tiers there are")
	}
	return a.Tiers[i], nil
}

// openContext opens the directory beside a Dockerfile. From here on nothing outside of it is read.
func openContext(a *cli.App, dir string) (*os.Root, error) {
	root, err := os.OpenRoot(absolute(a, dir))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, cli.WithHint(fmt.Errorf("%s: there is no such directory: %w", dir, paddock.NotFound), "DIR is the directory with the Dockerfile and the files that COPY names")
	case err != nil:
		return nil, cli.WithHint(fmt.Errorf("%s: it cannot be read as a directory: %w", dir, paddock.Invalid), "DIR is the directory with the Dockerfile and the files that COPY names")
	}
	return root, nil
}

// workDir makes a directory for one build, and removes those that builds left which were killed.
func workDir(a *cli.App) (dir string, done func() error, err error) {
	data, err := a.Data()
	if err != nil {
		return "", nil, err
	}
	all := private.RealPath(data) + "-builds"
	if err := os.MkdirAll(all, 0o700); err != nil {
		return "", nil, fmt.Errorf("builds: %w: %w", err, paddock.Denied)
	}
	list, err := os.ReadDir(all)
	if err != nil {
		return "", nil, fmt.Errorf("builds: %w: %w", err, paddock.Denied)
	}
	for _, e := range list {
		name := filepath.Join(all, e.Name())
		if lock, err := shelf.Claim(name, os.O_RDONLY); err == nil {
			if err := errors.Join(os.RemoveAll(name), lock.Close()); err != nil {
				return "", nil, fmt.Errorf("builds: %w: %w", err, paddock.Internal)
			}
		}
	}
	const tries = 100
	for range tries {
		if dir, err = os.MkdirTemp(all, "b-"); err != nil {
			return "", nil, fmt.Errorf("builds: %w: %w", err, paddock.Denied)
		}
		lock, err := shelf.Claim(dir, os.O_RDONLY)
		if err == nil {
			return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Close()) }, nil
		}
		if !errors.Is(err, shelf.ErrBusy) && !errors.Is(err, os.ErrNotExist) {
			return "", nil, err
		}
	}
	return "", nil, fmt.Errorf("builds: what is made in %s is removed at once: %w", all, paddock.Internal)
}
