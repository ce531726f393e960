package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// createKept makes a sandbox that a keeper owns.
func (d *Driver) createKept(ctx context.Context, spec *paddock.Spec) (_ *newborn, err error) {
	p, err := d.prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	s := &p.plan
	defer s.Close()
	if err := s.finish(); err != nil {
		return nil, err
	}
	d.found.Do(func() { _, _ = d.findPaused(ctx) }) // their names are taken; List tells of the others
	dir, err := d.claim(spec.ID)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, forgetDir(dir))
		}
	}()
	lock, err := sys.LockDir(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("remember the sandbox: %w: %w", err, EndKind(err))
	}
	defer lock.Close()
	o := OrderOf(s)
	o.Tier, o.Files = d.tier.Name, d.site.Files
	o.ID, o.Dir, o.Data, o.About = spec.ID, dir, d.site.Data, about{
		User: s.Layout.Config.User.Name, Dir: s.Layout.Config.Dir, Labels: spec.Labels, Enforced: p.findings,
		Lifetime: s.Limits.Lifetime, Network: s.Gateway != nil, Keys: len(spec.Policy.KeyAgents) > 0, Undo: d.recording(spec), Monitor: d.monitored(spec),
	}
	if s.Gateway != nil {
		o.Gateway = s.Gateway.Saved(true)
	}
	programs, opened, err := withExecuted(s.executed, &s.Programs)
	if err != nil {
		return nil, err
	}
	defer CloseAll(opened)
	var files []*os.File
	o.Tables, files = tablesOf(&programs, &s.Files, &s.First)
	if t, ok := ctx.Deadline(); ok {
		o.Deadline = t
	}
	r, way, err := d.employ(ctx, o, append(files, lock)...)
	if err != nil {
		return nil, err
	}
	sb := d.adopt(spec.ID, dir, *r.About)
	// The answer comes with a connection to the agent. Without one it is made when needed.
	if conn, board, err := connected(way); err == nil && sb.attach(conn, board, r.About.Lifetime) == nil {
		sb.warm()
		d.recents.use(sb)
	}
	n := &newborn{Sandbox: sb}
	if r.Measure != nil && r.Egress != nil {
		st := sb.tell(*r.Measure)
		sb.tellEgress(&st, *r.Egress)
		n.born = &st
	}
	return n, nil
}

// born returns what the host knows of a sandbox that this process owns. One that began with a snapshot of memory has
// run hostile code already, which cannot delay it.
func (s *Sandbox) born(l *Life) paddock.Status {
	m := l.Box().Measure()
	m.Usage.Wall, m.Traffic = time.Since(l.made), l.traffic()
	st := s.tell(m)
	if l.plan.Gateway != nil {
		s.tellEgress(&st, l.plan.Gateway.State())
	}
	return st
}

// A newborn is a sandbox that was just made, whose keeper has reported its status, or whose owner is this process.
type newborn struct {
	*Sandbox

	born *paddock.Status // nil if it has not
}

func (n *newborn) Born() (paddock.Status, bool) {
	if n.born == nil {
		return paddock.Status{}, false
	}
	return n.born.Clone(), true
}

// Born returns false for a sandbox that was opened. Its status must be queried.
func (*Sandbox) Born() (paddock.Status, bool) { return paddock.Status{}, false }

// abandonTime is how long a keeper whose sandbox is no longer wanted may take to end. Until then it
// may make files in the directory of the sandbox.
const abandonTime = 5 * time.Second

// employ makes a keeper create a sandbox, and waits until the sandbox is ready. It also
// returns the arguments of connected.
func (d *Driver) employ(ctx context.Context, o *Order, files ...*os.File) (_ *response, way []*os.File, err error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, nil, err
	}
	if len(data) > sys.PacketMax && o.Spec != nil { // it only tells later how the sandbox was made
		o.Spec = nil
		if data, err = json.Marshal(o); err != nil {
			return nil, nil, err
		}
	}
	if len(data) > sys.PacketMax {
		return nil, nil, fmt.Errorf("environment and mounts take %d KiB, at most %d: %w", len(data)>>10, sys.PacketMax>>10, paddock.Invalid)
	}
	mine, data, files, err := d.instruct(ctx, data, files)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = mine.Finish(abandonTime)
			CloseAll(files)
			return
		}
		_ = mine.Close()
	}()
	var r response
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, nil, fmt.Errorf("the keeper's answer: %w", err)
	}
	if r.Error != "" || r.About == nil {
		return nil, nil, r.err()
	}
	if e := ctx.Err(); e != nil {
		return nil, nil, fmt.Errorf("%w: %w", e, EndKind(e))
	}
	if err := mine.Send([]byte{1}); err != nil {
		return nil, nil, fmt.Errorf("accept the sandbox: %w", err)
	}
	return &r, files, nil
}

// instruct sends a keeper its order, and waits for its answer. A spare keeper may have
// ended, or be about to end, without reading its order. Then the next one is used.
func (d *Driver) instruct(ctx context.Context, data []byte, files []*os.File) (c *sys.Channel, answer []byte, way []*os.File, err error) {
	for {
		c, spare, err := d.spares.take()
		if err != nil {
			return nil, nil, nil, err
		}
		stop := c.Until(ctx)
		err = c.Send(data, files...)
		unread := err != nil
		if err == nil {
			answer, way, err = c.Receive()
			unread = errors.Is(err, syscall.ECONNRESET) // by a keeper that read nothing
		}
		if stop() && err == nil {
			return c, answer, way, nil
		}
		_ = c.Finish(abandonTime) // it has no order, or ends without our answer
		CloseAll(way)
		switch e := ctx.Err(); {
		case e != nil:
			return nil, nil, nil, fmt.Errorf("%w: %w", e, EndKind(e))
		case !unread:
			return nil, nil, nil, fmt.Errorf("the keeper ended before the sandbox was ready: %w: %w", err, paddock.Internal)
		case !spare:
			return nil, nil, nil, fmt.Errorf("instruct the keeper: %w", err)
		}
	}
}

// A ToldError is an error that another process reports, with its kind.
type ToldError struct {
	Text string
	Kind paddock.Kind
}

func (e *ToldError) Error() string { return e.Text }
func (e *ToldError) Unwrap() error { return e.Kind }

func (r *response) err() error {
	if r.Missing != nil {
		return &paddock.MissingError{Finding: *r.Missing}
	}
	err := error(&ToldError{r.Error, r.Kind})
	if r.Host {
		return HostFault(err)
	}
	return err
}

// claim makes the directory that represents a sandbox.
func (d *Driver) claim(id paddock.ID) (string, error) {
	if err := OwnDirectory(d.site.state); err != nil {
		return "", err
	}
	dir := filepath.Join(d.site.state, string(id))
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("sandbox %s: %w", id, paddock.Exists)
		}
		return "", fmt.Errorf("remember the sandbox: %w", err)
	}
	return dir, nil
}

// OwnDirectory makes a directory that nobody else may enter. It refuses a directory that
// another user has prepared.
func OwnDirectory(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("a directory of Paddock's own cannot be made: %w: %w", err, paddock.Unavailable)
	}
	return CheckOwn(path)
}

// CheckOwn refuses a directory that another user could have prepared, or that is reached
// through one. A missing directory passes.
func CheckOwn(path string) error {
	for dir := path; ; dir = filepath.Dir(dir) {
		switch st, err := os.Lstat(dir); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("a directory of Paddock's own: %w", err)
		case !st.IsDir() || !sys.Owned(st, 0o022):
			return fmt.Errorf("%s is not a directory that only the calling user may write to: %w", dir, paddock.Denied)
		}
		// A directory in one that everybody may write to is checked, too.
		if filepath.Base(filepath.Dir(dir)) != fmt.Sprintf("paddock-%d", os.Geteuid()) {
			return nil
		}
	}
}

// forgetDir removes what represents a sandbox, but nothing else that somebody put there. If it is
// cut off, the description is still there, and the sandbox can be removed again.
func forgetDir(dir string) error {
	for _, name := range []string{socketName, aboutName + ".new", auditName, auditName + auditOlder, aboutName} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget the sandbox: %w", err)
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the sandbox: %w", err)
	}
	return nil
}

// keptIDs lists the sandboxes that outlive their maker. lost are those that cannot be opened.
func (d *Driver) keptIDs(ctx context.Context) (ids []paddock.ID, lost []paddock.Status, err error) {
	if lost, err = d.findPaused(ctx); err != nil {
		return nil, nil, err
	}
	ids, err = d.rememberedIDs()
	return ids, lost, err
}

// rememberedIDs lists the sandboxes in the state directory.
func (d *Driver) rememberedIDs() ([]paddock.ID, error) {
	if err := CheckOwn(d.site.state); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(d.site.state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ids []paddock.ID
	for _, e := range entries {
		if id := paddock.ID(e.Name()); e.IsDir() && id.Valid() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// keeps reports whether the sandbox of a control group is stored in the state directory.
func (d *Driver) keeps(name string) bool {
	_, err := os.Lstat(filepath.Join(d.site.state, name))
	return err == nil
}

// openKept opens a sandbox that a keeper owns. If the sandbox was used recently and its
// keeper shows that it runs, it returns the same one again.
func (d *Driver) openKept(ctx context.Context, id paddock.ID) (*Sandbox, error) {
	have := d.recents.find(id)
	if have != nil && have.shown() && have.stands() {
		return have, nil
	}
	sb, err := d.look(ctx, id)
	switch {
	case err != nil:
		if have != nil {
			d.recents.drop(have)
		}
		return nil, err
	case have != nil && have.same(sb):
		return have, nil // it may be paused
	}
	return sb, nil
}

// look opens a sandbox that a keeper owns, or owned.
func (d *Driver) look(ctx context.Context, id paddock.ID) (*Sandbox, error) {
	dir := filepath.Join(d.site.state, string(id))
	if _, err := os.Lstat(dir); err != nil {
		lost, err := d.findPaused(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := os.Lstat(dir); err != nil {
			for _, st := range lost {
				if st.ID == id {
					return nil, fmt.Errorf("%s: %w", st.Reason, paddock.Conflict)
				}
			}
			return nil, fmt.Errorf("%w", paddock.NotFound)
		}
	}
	if err := errors.Join(CheckOwn(d.site.state), CheckOwn(dir)); err != nil {
		return nil, err
	}
	r := remoteOwner{dir: dir, driver: d, group: noGroup}
	got, err := r.ask(ctx, request{Op: "measure"})
	if err != nil && !errors.Is(err, paddock.Unavailable) {
		return nil, err
	}
	if err == nil && got.About != nil {
		return d.adopt(id, dir, *got.About), nil
	}
	a, err := r.read()
	if err != nil {
		return nil, err
	}
	return d.adopt(id, dir, a), nil
}

func (d *Driver) adopt(id paddock.ID, dir string, a about) *Sandbox {
	group := noGroup
	if len(a.Groups) > 0 {
		group = sync.OnceValues(func() (*cgroup.Group, error) { return d.site.host().Open(string(id), a.Groups...) })
	}
	return &Sandbox{
		id: id, driver: d, owner: remoteOwner{dir: dir, driver: d, group: group, made: a.Created}, about: a,
		dialing: make(chan struct{}, 1), lately: true,
	}
}

// noGroup is for a box without a control group, or one that nobody needs.
func noGroup() (*cgroup.Group, error) { return nil, paddock.NotFound }
