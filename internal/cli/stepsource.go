package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// stepFlags say whose steps are meant: those of the working directory in the caller's own journal, or those of a sandbox
// of a server, which is asked for them.
type stepFlags struct {
	RemoteFlags
	sandbox string

	here bool // the caller's own journal has them, unless another server is named
	all  bool // in that journal those of all directories
}

func (f *stepFlags) register(fs *pflag.FlagSet) {
	fs.StringVarP(&f.sandbox, "sandbox", "s", "", "the steps of the sandbox with this `ID`; paths are then those inside it")
	f.RemoteFlags.register(fs)
}

// A stepSource has the steps that a command is about.
type stepSource interface {
	// list lists them, the oldest first, at most the newest last if that is not zero.
	list(ctx context.Context, last int) ([]step.Record, error)
	// latest returns the newest one that fits.
	latest(ctx context.Context, fits func(*step.Record) bool) (*step.Record, error)
	read(ctx context.Context, n int64) (*step.Record, error)
	diff(ctx context.Context, first, last int64, paths []string) ([]step.Difference, error)
	// undo also returns how many more paths came back or were left alone than the result has.
	undo(ctx context.Context, q step.Request) (r *step.Result, more int, err error)
	// paths returns paths as the source knows them.
	paths(args []string) ([]string, error)
	// flag is the flag that names the source to another command, after a space.
	flag() string
}

// steps calls do with the steps that flags mean.
func (a *App) steps(ctx context.Context, f *stepFlags, do func(context.Context, stepSource) error) error {
	_, named, err := a.site(&f.RemoteFlags)
	if err != nil {
		return err
	}
	switch {
	case f.Server != "" && f.sandbox == "":
		return WithHint(fmt.Errorf("--server without a sandbox of it: %w", paddock.Invalid), "name the sandbox: paddock steps ID, or --sandbox ID for the other commands; `paddock ls` lists them")
	case f.sandbox == "" || f.here && !named:
		j, err := a.journal(ctx)
		if err != nil {
			return err
		}
		defer j.Close()
		return do(ctx, &ownSteps{a: a, j: j, sandbox: f.sandbox, all: f.all})
	}
	return a.With(ctx, &f.RemoteFlags, func(ctx context.Context, r *Remote) error {
		sb, err := r.Open(ctx, paddock.ID(f.sandbox))
		if errors.Is(err, paddock.NotFound) {
			if j, past := paddock.PastJournal(ctx, r.Driver, paddock.ID(f.sandbox)); past == nil {
				return do(ctx, &serverSteps{j: j, id: paddock.ID(f.sandbox)}) // its directory is not known, so paths begin at /
			} else if !errors.Is(past, paddock.NotFound) && !errors.Is(past, paddock.Unsupported) {
				return past
			}
		}
		if err != nil {
			return err
		}
		st, err := sb.Status(ctx)
		if err != nil {
			return err
		}
		j, err := paddock.JournalOf(sb)
		if err == nil && st.Undo == nil {
			err = fmt.Errorf("sandbox %s records no steps: %w", sb.ID(), paddock.Unsupported)
		}
		if err != nil {
			return Otherwise(err, "paddock create --undo on makes sandboxes that record them")
		}
		return do(ctx, &serverSteps{j: j, id: sb.ID(), tier: st.Tier, dir: st.Dir})
	})
}

// ownSteps are in the caller's own journal.
type ownSteps struct {
	a       *App
	j       *step.Journal
	sandbox string // only its own; empty are those of the working directory
	all     bool
}

func (s *ownSteps) filter() (step.Filter, error) {
	switch {
	case s.sandbox != "":
		return step.Filter{Sandbox: s.sandbox}, nil
	case s.all:
		return step.Filter{}, nil
	}
	dir, err := s.a.Dir()
	if err != nil {
		return step.Filter{}, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return step.Filter{}, err
	}
	return step.Filter{Directory: real}, nil
}

func (s *ownSteps) list(ctx context.Context, last int) ([]step.Record, error) {
	f, err := s.filter()
	if err != nil {
		return nil, err
	}
	f.Last = last
	list, err := s.j.List(ctx, f)
	if err != nil {
		s.a.complain(fmt.Errorf("the journal of steps: %w", err))
	}
	return list, nil
}

func (s *ownSteps) latest(ctx context.Context, fits func(*step.Record) bool) (*step.Record, error) {
	list, err := s.list(ctx, 0)
	if err != nil {
		return nil, err
	}
	if r := newest(list, fits); r != nil {
		return r, nil
	}
	f, err := s.filter()
	if err != nil {
		return nil, err
	}
	return nil, WithHint(fmt.Errorf("no step in the journal changed %s: %w", f.Directory, paddock.NotFound),
		"`paddock steps --all` lists the steps of all directories; those of a sandbox of another server are there: --sandbox ID")
}

func (*ownSteps) flag() string { return "" }

func (s *serverSteps) flag() string { return " --sandbox " + string(s.id) }

// newest returns the last record of a list that fits.
func newest(list []step.Record, fits func(*step.Record) bool) *step.Record {
	for i := len(list) - 1; i >= 0; i-- {
		if fits(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

func (s *ownSteps) read(ctx context.Context, n int64) (*step.Record, error) { return s.j.Read(ctx, n) }

func (s *ownSteps) diff(ctx context.Context, first, last int64, paths []string) ([]step.Difference, error) {
	return s.j.Diff(ctx, first, last, paths)
}

func (s *ownSteps) undo(ctx context.Context, q step.Request) (r *step.Result, more int, err error) {
	if q.To != 0 {
		if q.Only, err = s.filter(); err != nil {
			return nil, 0, err
		}
	}
	r, err = s.j.Undo(ctx, q)
	return r, 0, err
}

func (s *ownSteps) paths(args []string) ([]string, error) { return s.a.absolute(args) }

// absolute returns paths of arguments without links, but for the last name, which may be gone.
func (a *App) absolute(args []string) ([]string, error) {
	dir, err := a.Dir()
	if err != nil {
		return nil, err
	}
	var list []string
	for _, p := range args {
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		p = filepath.Clean(p)
		for above, rest := filepath.Dir(p), filepath.Base(p); ; above, rest = filepath.Dir(above), filepath.Join(filepath.Base(above), rest) {
			real, err := filepath.EvalSymlinks(above)
			if err == nil {
				p = filepath.Join(real, rest)
				break
			}
			if above == "/" {
				break
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// serverSteps are those of a sandbox, in the journal of its server. They are shown as records with one root: that of the
// sandbox.
type serverSteps struct {
	j    paddock.Journal
	id   paddock.ID
	tier paddock.Tier
	dir  string
}

func (s *serverSteps) list(ctx context.Context, last int) ([]step.Record, error) {
	all, err := s.j.Steps(ctx, paddock.StepFilter{Last: last})
	if err != nil {
		return nil, err
	}
	list := make([]step.Record, len(all))
	for i := range all {
		list[i] = *s.record(&all[i])
	}
	return list, nil
}

func (s *serverSteps) latest(ctx context.Context, fits func(*step.Record) bool) (*step.Record, error) {
	list, err := s.list(ctx, 0)
	if err != nil {
		return nil, err
	}
	if r := newest(list, fits); r != nil {
		return r, nil
	}
	return nil, WithHint(fmt.Errorf("no step of sandbox %s is meant: %w", s.id, paddock.NotFound), "`paddock steps %s` lists them", s.id)
}

func (s *serverSteps) read(ctx context.Context, n int64) (*step.Record, error) {
	one, err := s.j.Step(ctx, n)
	if err != nil {
		return nil, err
	}
	return s.record(&one), nil
}

// below returns a path below the root of the sandbox.
func below(p string) step.Text { return step.Text(strings.TrimPrefix(p, "/")) }

// record returns a step as a record with one root.
func (s *serverSteps) record(x *paddock.Step) *step.Record {
	r := &step.Record{
		Number: x.Number, Sandbox: string(s.id), Tier: s.tier, Kind: x.Kind, Begin: x.Begin, End: x.End, Exit: x.Exit, Undoes: x.Undoes,
		Incomplete: x.Incomplete, Changed: x.Changed, Missed: x.Missed, Hosts: x.Hosts, Secrets: x.Secrets, Digest: x.Digest, Roots: []step.Root{{Path: "/"}},
		Use: x.Use,
	}
	for _, word := range x.Command {
		r.Command = append(r.Command, step.Text(word))
	}
	for _, why := range x.Refused {
		r.Refused = append(r.Refused, step.Refusal{Operation: why})
	}
	there := step.State{Kind: step.File} // of what kind it is, is not told
	for _, c := range x.Changes {
		change := step.Change{Path: below(c.Path), Before: there, After: there, Why: c.Why}
		switch c.What {
		case "created":
			change.Before = step.State{}
		case "removed":
			change.After = step.State{}
		case "moved":
			change.Moved, change.From = true, below(c.From)
		}
		r.Changes = append(r.Changes, change)
	}
	for _, l := range x.Left {
		r.Left = append(r.Left, step.Left{Path: below(l.Path), Why: l.Why})
	}
	return r
}

func (s *serverSteps) diff(ctx context.Context, first, last int64, paths []string) ([]step.Difference, error) {
	all, err := s.j.Diff(ctx, first, last, paths)
	if err != nil {
		return nil, err
	}
	list := make([]step.Difference, len(all))
	for i, d := range all {
		list[i] = step.Difference{
			Root: "/", Path: below(d.Path), Binary: d.Binary, Text: d.Text, Why: d.Why,
			Before: step.State{Mode: d.BeforeMode}, After: step.State{Mode: d.AfterMode},
		}
		if d.From != "" {
			list[i].FromRoot, list[i].From = "/", below(d.From)
		}
		for _, k := range d.Kinds {
			list[i].Kinds = append(list[i].Kinds, step.Verb(k))
		}
	}
	return list, nil
}

func (s *serverSteps) undo(ctx context.Context, q step.Request) (r *step.Result, more int, err error) {
	done, err := s.j.Undo(ctx, paddock.Undo{Steps: q.Steps, To: q.To, Paths: q.Paths})
	if err != nil {
		return nil, 0, err
	}
	r = &step.Result{Step: done.Step}
	for _, p := range done.Restored {
		r.Restored = append(r.Restored, step.Restored{Place: step.Place{Step: p.Step, Root: "/", Path: below(p.Path)}, Note: p.Note})
	}
	for _, p := range done.Conflicts {
		r.Conflicts = append(r.Conflicts, step.Conflict{Place: step.Place{Step: p.Step, Root: "/", Path: below(p.Path)}, Why: p.Why, Remedy: p.Remedy})
	}
	return r, done.More, nil
}

// paths takes paths that are not absolute as those in the directory of the sandbox.
func (s *serverSteps) paths(args []string) ([]string, error) {
	var list []string
	for _, p := range args {
		if !path.IsAbs(p) {
			p = path.Join(cmp.Or(s.dir, "/"), p)
		}
		list = append(list, path.Clean(p))
	}
	return list, nil
}
