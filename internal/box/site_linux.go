package box

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/program"
)

// A Site has the driver's environment on this host: directories, open programs, and
// background jobs. The driver's Close ends it.
type Site struct {
	o     Options
	env   environ
	state string

	// Data is the directory of saved boxes of this tier. Hidden is the same or a directory
	// above, which no sandbox can see. Cache is the directory of program files, or empty.
	Data, Hidden, Cache string

	// Files is the directory of snapshots of files, which may be that of all tiers.
	Files string

	agents string // the directory of agents' files, if it is not in Hidden

	installed []string // paths of the program that runs, and of that which contains the others

	host func() *cgroup.Host // determined once, when first needed

	running context.Context // ends when the driver is closed
	cancel  context.CancelFunc
	jobs    sync.WaitGroup // Add only with mu held, before stopped

	mu       sync.Mutex
	stopped  bool        // guarded by mu
	programs []io.Closer // guarded by mu: what Open and OpenToMount have opened
}

// NewSite determines the directories of a driver. It changes nothing on the host.
func NewSite(tier paddock.Tier, o Options) (*Site, error) {
	s := &Site{o: o, env: newEnviron(o.Environ), state: o.State, Cache: o.Cache, host: sync.OnceValue(func() *cgroup.Host { return cgroup.Settle(o.Scope) })}
	if s.state == "" {
		s.state = filepath.Join(defaultState(s.env), string(tier))
	}
	if !filepath.IsAbs(s.state) {
		return nil, fmt.Errorf("state directory %q is not absolute: %w", s.state, paddock.Invalid)
	}
	if s.Cache == "" {
		s.Cache = program.Cache(s.env.lookup)
	}
	if s.Data, s.Hidden = o.Data, o.Data; s.Data == "" {
		s.Hidden = defaultData(s.env, s.state) // that of all tiers
		s.Data = filepath.Join(s.Hidden, string(tier))
	} else if at := filepath.Join(private.RealPath(defaultData(s.env, s.state)), "agents"); !hostroot.Within(at, s.Hidden) {
		s.agents = at
	}
	if s.Files = o.Snapshots; s.Files == "" {
		s.Files = filepath.Join(s.Hidden, "files")
	}
	if !filepath.IsAbs(s.Files) {
		return nil, fmt.Errorf("directory of snapshots %q is not absolute: %w", s.Files, paddock.Invalid)
	}
	if !filepath.IsAbs(s.Data) {
		return nil, fmt.Errorf("data directory %q is not absolute: %w", s.Data, paddock.Invalid)
	}
	// They are found out now: an upgrade puts another file there, which is as precious.
	for _, link := range []string{"/proc/self/exe", o.Guest.Carrier()} {
		if path := installedAt(link); path != "" {
			s.installed = append(s.installed, path)
		}
	}
	s.running, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Audit reports whether there is a sink for events of ephemeral sandboxes.
func (s *Site) Audit() bool { return s.o.Audit != nil }

// Open returns a function that opens a program each time that it is executed. The caller closes what it
// opens, the site the rest.
func (s *Site) Open(p program.Program) func() (*os.File, error) {
	source := p.Source(s.Cache)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.programs = append(s.programs, source)
	return source.Open
}

// OpenToMount returns a function that opens a program once, when it is first needed. The program is only
// mounted, read-only. If the calling program's own file still exists, it may be used. The site closes it.
func (s *Site) OpenToMount(p program.Program) func() (*os.File, error) {
	return sync.OnceValues(func() (*os.File, error) {
		f, err := p.OpenToMount(s.Cache)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.programs = append(s.programs, f)
		return f, nil
	})
}

// Go runs a job in the background, unless the driver is closed. Close cancels its context
// and waits for it.
func (s *Site) Go(job func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.jobs.Go(func() { job(s.running) })
	return true
}

// stop prevents new jobs, and cancels running ones.
func (s *Site) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.cancel()
}

// close waits for all jobs, and closes the programs.
func (s *Site) close() error {
	s.jobs.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.programs {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// own returns the real paths of the files of which this driver's sandboxes are made.
func (s *Site) own() []string {
	list := slices.Clone(s.installed)
	for _, path := range []string{s.Cache, s.state} {
		if filepath.IsAbs(path) {
			list = append(list, private.RealPath(path))
		}
	}
	return list
}

// builds returns the directory of caches of build tools.
func (s *Site) builds() string {
	if dir := program.Builds(s.Cache); filepath.IsAbs(dir) {
		return private.RealPath(dir)
	}
	return ""
}

// kept returns the directory of snapshots, if it is not in Hidden.
func (s *Site) kept() string {
	if at := private.RealPath(s.Files); !hostroot.Within(at, private.RealPath(s.Hidden)) {
		return at
	}
	return ""
}

// images returns the directory of the caller's images, beside the data directory. Internal/cli knows this place, too. The
// last element is where the directory really is. If its name is a link, that comes first, because who replaces the link
// chooses the images.
func (s *Site) images() []string {
	dir := defaultData(s.env, s.state)
	if !filepath.IsAbs(dir) {
		return nil
	}
	named := filepath.Join(private.RealPath(filepath.Dir(dir)), filepath.Base(dir)+"-images")
	return slices.Compact([]string{named, private.Images(dir)})
}

// volumes returns the directory of the caller's volumes, beside the data directory. Internal/cli knows this place, too.
func (s *Site) volumes() string {
	if dir := defaultData(s.env, s.state); filepath.IsAbs(dir) {
		return private.RealPath(dir) + "-volumes"
	}
	return ""
}

// installedAt returns where the program was that a link of /proc leads to, though another
// version may have taken its place since. It is empty for a program in memory.
func installedAt(link string) string {
	path, err := os.Readlink(link)
	if err != nil || strings.HasPrefix(path, "/memfd:") || !filepath.IsAbs(path) {
		return ""
	}
	return private.RealPath(strings.TrimSuffix(path, " (deleted)"))
}

// Bare returns the plan of a box for internal use: for a trial, or for a template. The
// caller closes its files.
func (s *Site) Bare(ctx context.Context, t *Tier, draft Draft, limits paddock.Limits) (*Plan, error) {
	spec := paddock.Spec{ID: newID(), Ephemeral: true}
	id, err := identify(&spec, s.env)
	if err != nil {
		return nil, err
	}
	l, err := newLayout(&spec, limits, id, s, t)
	if err != nil {
		return nil, err
	}
	p := &Plan{Name: string(spec.ID), Layout: l, Limits: limits, Runtime: t.Runtime, executed: []executed{{FileInit, t.Init}}, host: s.host()}
	err = draft.supply(ctx, p)
	if err == nil {
		err = l.finish(&spec, limits, nil)
	}
	if err == nil {
		err = draft.finish(l, limits)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (d *Draft) supply(ctx context.Context, p *Plan) error {
	if d.Supply == nil {
		return nil
	}
	return d.Supply(ctx, p)
}

func (d *Draft) finish(l *Layout, limits paddock.Limits) error {
	if d.Finish == nil {
		return nil
	}
	return d.Finish(l, limits)
}

// Close closes the files that are the plan's own.
func (p *Plan) Close() {
	for _, t := range []*boxinit.Files{&p.Files, &p.First} {
		t.Close()
	}
}
