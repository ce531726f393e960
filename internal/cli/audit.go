package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
)

// auditFlags say what is recorded of a run, and where.
type auditFlags struct {
	file  string
	kinds []string

	steps bool // set by begin: steps are asked for by name
}

func (f *auditFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "audit", "", "record what commands do in this new `FILE`, as signed lines of JSON, on a tier that can; docs/security/audit.md describes them")
	fs.StringSliceVar(&f.kinds, "audit-kinds", nil, "record these `kinds` of events too: "+Join(recordable())+" (default exec, or those of the policy); steps are recorded with --undo anyway")
}

// recordable lists the kinds that can be asked for.
func recordable() []audit.Kind { return append(paddock.AuditKinds(), audit.Stepped) }

// A record is a file in which events are written while a sandbox runs. A nil
// one records nothing.
type record struct {
	name  string // as the caller wrote it
	path  string
	file  *os.File
	lines *audit.Lines
	chain *chain.Writer // what lines writes to
	plan  *plan
	build chan audit.Build // receives once

	over chan struct{} // closed when nobody watches any more
	wg   sync.WaitGroup
}

// begin puts what is to be recorded into the plan, and opens the file before
// anything runs. It gives nil where nothing is to be recorded.
func (f *auditFlags) begin(a *App, p *plan, changed func(string) bool) (*record, error) {
	kinds := &p.spec.Policy.Audit
	switch {
	case !changed("audit") && changed("audit-kinds"):
		return nil, WithHint(fmt.Errorf("--audit-kinds without a file to record them in: %w", paddock.Invalid), "add --audit FILE")
	case !changed("audit") && len(*kinds) > 0:
		return nil, WithHint(fmt.Errorf("%s: audit: there is no file to record events in: %w", p.file.Where("audit"), paddock.Invalid), "add --audit FILE")
	case !changed("audit"):
		return nil, nil
	case f.file == "":
		return nil, WithHint(fmt.Errorf("--audit is empty: %w", paddock.Invalid), "leave the flag out to record nothing")
	case f.file == "-":
		return nil, WithHint(fmt.Errorf("--audit -: events are not mixed with the command's output: %w", paddock.Invalid), "name a file; one that is called so is ./-")
	}
	for _, text := range f.kinds {
		k := paddock.AuditKind(text)
		switch {
		case k == audit.Stepped: // of the journal, not of the policy
			f.steps = true
			continue
		case !slices.Contains(paddock.AuditKinds(), k):
			return nil, WithHint(fmt.Errorf("--audit-kinds %s: there is no such kind of event: %w", text, paddock.Invalid), "kinds are %s", Join(recordable()))
		}
		if !slices.Contains(*kinds, k) {
			*kinds = append(slices.Clip(*kinds), k)
		}
	}
	if len(*kinds) == 0 && !f.steps {
		*kinds = []paddock.AuditKind{paddock.AuditExec}
	}
	r, err := a.openRecord(f.file, p)
	if err != nil {
		return nil, err
	}
	p.audit = r.lines
	return r, nil
}

// stepless refuses --audit-kinds step for a run without a journal.
func (f *auditFlags) stepless(p *plan, undo string) error {
	if !f.steps || p.steps != nil {
		return nil
	}
	hint := "only --tier jail, gvisor and microvm record steps, of a directory that the sandbox may write, such as --workspace ."
	if undo == "" || undo == "off" {
		hint = "add --undo on"
	}
	return WithHint(fmt.Errorf("--audit-kinds %s: this run records no steps: %w", audit.Stepped, paddock.Invalid), "%s", hint)
}

// openRecord makes the file, which must not be there yet: neither an earlier
// record nor what a link leads to is ever changed.
func (a *App) openRecord(name string, p *plan) (*record, error) {
	path := Absolute(name, p.host.Dir)
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return nil, WithHint(fmt.Errorf("--audit %s: %w: %w", name, err, paddock.NotFound), "the directory must exist")
	}
	if m, inside := writable(dir, p.spec.Mounts); inside {
		return nil, WithHint(fmt.Errorf("--audit %s: it is in %s, where commands could rewrite it: %w", name, m.Source, paddock.Denied),
			"record outside of what the sandbox may write")
	}
	key, err := a.AuditKey(chain.MakeKey)
	if err != nil {
		return nil, fmt.Errorf("--audit %s: %w", name, err)
	}
	f, err := openIn(dir, filepath.Base(path), os.O_EXCL)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, WithHint(fmt.Errorf("--audit %s: it is there already: %w", name, paddock.Exists), "every run is recorded in a file of its own: choose another name")
	case err != nil:
		return nil, WithHint(fmt.Errorf("--audit %s: %w: %w", name, err, paddock.Denied), "is the directory writable?")
	}
	r := &record{name: name, path: filepath.Join(dir, filepath.Base(path)), file: f, plan: p, build: make(chan audit.Build, 1), over: make(chan struct{})}
	if r.chain, err = chain.NewWriter(f, key); err != nil {
		err = errors.Join(err, f.Close(), os.Remove(r.path))
		return nil, WithHint(fmt.Errorf("--audit %s: %w: %w", name, err, paddock.Exhausted), "is the disk full?")
	}
	r.lines = audit.NewLines(r.chain)
	r.wg.Go(func() { r.build <- a.BuildOf() }) // while the sandbox is made
	return r, nil
}

// start records how the sandbox began, before its first command. A sandbox that cannot say so gets no such event, and
// `paddock audit attest` then refuses the record.
func (r *record) start(ctx context.Context, b *oneShot) {
	asked, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	st, err := paddock.FirstStatus(asked, b)
	if err != nil {
		return
	}
	e := audit.StartOf(st, r.plan.spec, <-r.build)
	if r.plan.file != nil {
		e.Start.PolicyFile = r.plan.file.Digest
	}
	e.Time = time.Now()
	_ = r.lines.Keep(ctx, e) // it fails only with the record, and then the sandbox is ended
}

// writable tells the mount through which the sandbox can write below dir, by
// whatever name the mount is known on this machine.
func writable(dir string, mounts []paddock.Mount) (paddock.Mount, bool) {
	for {
		at, err := os.Stat(dir)
		for _, m := range mounts {
			if !m.Write || err != nil {
				continue
			}
			if source, err := os.Stat(m.Source); err == nil && os.SameFile(at, source) {
				return m, true
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return paddock.Mount{}, false
		}
		dir = parent
	}
}

// watch records how the sandbox began, and ends it when its events cannot be written any more.
func (r *record) watch(ctx context.Context, b *oneShot) {
	if r == nil {
		return
	}
	r.start(ctx, b)
	r.wg.Go(func() {
		select {
		case <-r.lines.Failed():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 6*Patience)
			defer cancel()
			_ = b.Remove(ctx) // close tells the reason; what is left the removal at the end
		case <-r.over:
		}
	})
}

// close writes what is still to be written, when the sandbox is gone. A file
// without an event goes if there was no sandbox.
func (r *record) close(made bool) error {
	if r == nil {
		return nil
	}
	close(r.over)
	r.wg.Wait()
	err := r.lines.Close()
	if err == nil {
		err = r.chain.Close()
	}
	err = errors.Join(err, r.file.Close())
	if !made && r.chain.Events() == 0 {
		err = errors.Join(err, os.Remove(r.path))
	}
	if err == nil {
		return nil
	}
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	return WithHint(fmt.Errorf("--audit %s: %s: %w", r.name, text, paddock.Exhausted), "the sandbox was ended, because what it did could not be recorded")
}

// AuditKey opens the caller's key for signing records. The function open gets the directory of the
// key.
func (a *App) AuditKey(open func(dir string) (*chain.Key, error)) (*chain.Key, error) {
	data, err := a.Data()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(data, "audit")
	key, err := open(dir)
	if err != nil {
		return nil, WithHint(fmt.Errorf("the key that signs records: %w", err),
			"it is %s, its owner's alone (chmod 600), in directories that nobody else may write to; if it is damaged, move it away and a new one is made", filepath.Join(dir, chain.KeyName))
	}
	return key, nil
}
