package step

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Reviews keeps proposals: what commands would have changed, if their changes had not gone to layers over directories of
// the host. A proposal is a record in a journal of its own, in which Before is what a path is to become and After is what
// it was when the command ran, so that [Journal.Apply] is an undo of it.
type Reviews struct {
	*Journal
	dir string

	space func(string) (free, total int64, err error) // of the disk of a path
}

const (
	dirLayers    = "layer"
	fileAbout    = "about"    // a header in JSON, of a layer
	fileProposed = "proposed" // the number of the proposal that is made of a layer
	fileHeld     = "lock"     // locked while the command may run
	fileFailed   = "failed"   // there is no proposal because of an error
	goneLayer    = "gone-"    // begins the name of one that is being removed
	kindReview   = "review"
	kindApply    = "apply"
)

// OpenReviews opens the proposals in a directory, which is like that of a journal. Zero options have larger defaults than
// those of a journal, because what is not kept of a proposal is lost.
func OpenReviews(dir string, o Options) (*Reviews, error) {
	o.Size = cmp.Or(o.Size, 16<<30)
	o.File = cmp.Or(o.File, 4<<30)
	o.Step = cmp.Or(o.Step, 8<<30)
	o.Changes = cmp.Or(o.Changes, 400_000)
	j, err := Open(dir, o)
	if err != nil {
		return nil, err
	}
	if err := j.root.Mkdir(dirLayers, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, errors.Join(err, j.Close())
	}
	return &Reviews{j, dir, sys.Space}, nil
}

// Layers take what one command changes in directories of the host. Propose or Abandon must be called.
type Layers struct {
	v    *Reviews
	name string
	lock *os.File
	head header

	mu    sync.Mutex
	bases *bases // guarded by mu
}

// layerPath is a path of the directory of layers of one command.
func layerPath(name string, more ...string) string {
	return path.Join(append([]string{dirLayers, name}, more...)...)
}

// Begin makes an empty layer for each root. What somebody changes below a root from now on is not taken for its base.
func (v *Reviews) Begin(ctx context.Context, a About) (_ *Layers, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("begin a review: %w", err)
		}
	}()
	if len(a.Roots) == 0 || len(a.Roots) > maxRoots {
		return nil, fmt.Errorf("%d directories; a review has 1 to %d: %w", len(a.Roots), maxRoots, paddock.Invalid)
	}
	if len(a.Monitor) > maxMonitor || len(a.Monitor) > 0 && !json.Valid(a.Monitor) {
		return nil, fmt.Errorf("what is to be kept of the monitor is no JSON, or has %d bytes, and %d are allowed: %w", len(a.Monitor), maxMonitor, paddock.Invalid)
	}
	// What was changed a moment ago is told from what changes while the command runs.
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-time.After(tick + tick/4):
	}
	l := &Layers{v: v, name: strings.ToLower(rand.Text()), head: header{Version: logVersion, Number: 1, Kind: kindReview, Command: command(a.Command), Protect: a.Protect, Monitor: a.Monitor, Start: time.Now().Round(0)}}
	if err := v.root.Mkdir(layerPath(l.name), 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Abandon())
		}
	}()
	if l.lock, err = v.root.OpenFile(layerPath(l.name, fileHeld), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return nil, err
	}
	if err := awaitLock(ctx, l.lock); err != nil {
		return nil, err
	}
	for i, root := range a.Roots {
		t, err := openTree(string(root.Path))
		if err != nil {
			return nil, err
		}
		l.head.Roots = append(l.head.Roots, Root{Path: root.Path, Target: root.Target, Ino: t.ino, Dev: t.dev})
		t.close()
		if err := furnish(filepath.Join(v.dir, layerPath(l.name, strconv.Itoa(i))), string(root.Path)); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(&l.head)
	if err != nil {
		return nil, err
	}
	return l, v.root.WriteFile(layerPath(l.name, fileAbout), text, 0o600)
}

// Dirs returns the directory of each layer by the root that it is for. In each are upper and work, of an overlay.
func (l *Layers) Dirs() map[string]string {
	dirs := map[string]string{}
	for i, root := range l.head.Roots {
		dirs[string(root.Path)] = filepath.Join(l.v.dir, layerPath(l.name, strconv.Itoa(i)))
	}
	return dirs
}

// Abandon removes the layers. It does nothing after Propose.
func (l *Layers) Abandon() error {
	if l.name == "" {
		return nil
	}
	err := l.v.drop(l.name)
	return errors.Join(err, l.close())
}

// Leave leaves the layers as they are, for [Reviews.Salvage]. It does nothing after Propose.
func (l *Layers) Leave() error { return l.close() }

func (l *Layers) close() (err error) {
	l.bases.close()
	if l.lock != nil {
		err = l.lock.Close()
	}
	l.name, l.lock = "", nil
	return err
}

// A Proposer is what is known at the end of a command.
type Proposer struct {
	Sandbox string
	Tier    paddock.Tier
	Exit    int
}

// Propose makes a proposal of what is in the layers, when no process of the sandbox is left, and removes them. It is nil if
// nothing changed. After an error the layers stay, and [Reviews.Salvage] tries again.
func (l *Layers) Propose(ctx context.Context, p Proposer) (*Record, error) {
	l.head.Sandbox, l.head.Tier = cut(p.Sandbox), p.Tier
	l.mu.Lock()
	defer l.mu.Unlock()
	rec, err := l.v.propose(ctx, l.name, &l.head, Outcome{Exit: p.Exit}, false, l.bases)
	if err != nil {
		err = fmt.Errorf("make a proposal of %s: %w", filepath.Join(l.v.dir, layerPath(l.name)), err)
	}
	return rec, errors.Join(err, l.close())
}

// drop removes a layer, so that what is left of it if this is cut off is not taken for one.
func (v *Reviews) drop(name string) error {
	gone := name
	if !strings.HasPrefix(name, goneLayer) {
		gone = goneLayer + name
		if err := v.root.Rename(layerPath(name), layerPath(gone)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for try := 0; ; try++ { // another process may help
		err := removeLayer(v.root, layerPath(gone))
		if try == dropTries || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

const dropTries = 100

// Salvage makes proposals of what the commands left whose paddock was killed. They are Incomplete. Layers of which it was
// tried before, and not finished, are tried again only if again says so, because it may take long and fail again.
func (v *Reviews) Salvage(ctx context.Context, again bool) (list []Record, err error) {
	d, err := v.root.Open(dirLayers)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		rec, err := v.salvage(ctx, name, again)
		if err != nil && context.Cause(ctx) == nil {
			_ = v.root.WriteFile(layerPath(name, fileFailed), nil, 0o600) // without it, it is tried again
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("make a proposal of %s: %w", filepath.Join(v.dir, layerPath(name)), err))
		} else if rec != nil {
			list = append(list, *rec)
		}
	}
	return list, errors.Join(append(errs, v.expire(ctx))...)
}

func (v *Reviews) salvage(ctx context.Context, name string, again bool) (*Record, error) {
	if strings.HasPrefix(name, goneLayer) {
		return nil, v.drop(name)
	}
	if _, err := v.root.Lstat(layerPath(name, fileFailed)); err == nil && !again {
		return nil, nil
	}
	lock, err := v.root.OpenFile(layerPath(name, fileHeld), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it is being made or removed
	}
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if held, err := tryLock(lock); err != nil || !held {
		return nil, err // its command may run
	}
	head, err := v.about(name)
	if cut := (&json.SyntaxError{}); errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &cut) {
		if v.unused(name) { // it was killed before a sandbox could have it
			return nil, v.drop(name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("it cannot be read, or another version of Paddock made it: %w", err)
	}
	if n := v.proposed(name); n > 0 {
		if _, err := v.read(n, false); err == nil {
			return nil, v.drop(name)
		}
	}
	// What ends before the proposal is there leaves this, so that other commands do not wait for it again.
	if err := v.root.WriteFile(layerPath(name, fileFailed), nil, 0o600); err != nil {
		return nil, err
	}
	return v.propose(ctx, name, head, Outcome{Exit: -1}, true, nil)
}

// unused reports whether nothing is in a layer, as before a sandbox has it.
func (v *Reviews) unused(name string) bool {
	for i := range maxRoots {
		d, err := v.root.Open(layerPath(name, strconv.Itoa(i), "upper"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false
		}
		_, err = d.Readdirnames(1)
		d.Close()
		if !errors.Is(err, io.EOF) {
			return false
		}
	}
	return true
}

// about reads what a layer is of.
func (v *Reviews) about(name string) (*header, error) {
	text, err := v.root.ReadFile(layerPath(name, fileAbout))
	if err != nil {
		return nil, err
	}
	h := &header{}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(h); err != nil {
		return nil, err
	}
	if h.Version != logVersion || len(h.Roots) == 0 || len(h.Roots) > maxRoots {
		return nil, fmt.Errorf("a layer of version %d with %d roots: %w", h.Version, len(h.Roots), paddock.Invalid)
	}
	return h, nil
}

// proposed returns the number of the proposal that is being made of a layer.
func (v *Reviews) proposed(name string) int64 {
	text, err := v.root.ReadFile(layerPath(name, fileProposed))
	n, bad := strconv.ParseInt(string(text), 10, 64)
	if err != nil || bad != nil {
		return 0
	}
	return n
}

// expire removes proposals that are too old, and what killed writers left of unfinished ones.
func (v *Reviews) expire(ctx context.Context) error {
	logs, err := v.numbers(dirLogs)
	for _, n := range logs {
		if r, broken := v.resume(ctx, n); r != nil {
			err = errors.Join(err, r.Abandon())
		} else {
			err = errors.Join(err, broken)
		}
	}
	list, broken := v.List(ctx, Filter{})
	limit, gone := time.Now().Add(-v.opts.Age), false
	for i := range list {
		if list[i].End.Before(limit) {
			gone = true
			err = errors.Join(err, v.remove(ctx, list[i].Number))
		}
	}
	if gone {
		err = errors.Join(err, v.collect(ctx))
	}
	return errors.Join(err, broken)
}

// collect frees what no proposal has any more.
func (v *Reviews) collect(ctx context.Context) error {
	if _, err := v.store.Collect(ctx); err != nil {
		return err
	}
	used, err := v.usage(ctx)
	if err != nil {
		return err
	}
	return v.alone(ctx, func() error { return v.setCount(fileUsage, used) })
}

// Discard removes proposals, and frees what only they had.
func (v *Reviews) Discard(ctx context.Context, numbers ...int64) error {
	if err := v.Remove(ctx, numbers...); err != nil {
		return err
	}
	return v.collect(ctx)
}

// Layered lists the directories of layers of which no proposal could be made yet and whose command does not run.
func (v *Reviews) Layered() (list []string, err error) {
	d, err := v.root.Open(dirLayers)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	for _, name := range names {
		if strings.HasPrefix(name, goneLayer) {
			continue
		}
		f, err := v.root.OpenFile(layerPath(name, fileHeld), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if held, err := tryLock(f); held && err == nil {
			list = append(list, name)
		}
		f.Close()
	}
	return list, err
}

// DiscardLayer removes what Layered lists.
func (v *Reviews) DiscardLayer(name string) error {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return fmt.Errorf("%.40q is not the name of a layer: %w", name, paddock.Invalid)
	}
	f, err := v.root.OpenFile(layerPath(name, fileHeld), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("discard the layer %s: %w", name, err)
	}
	defer f.Close()
	if held, err := tryLock(f); err != nil || !held {
		return errors.Join(err, fmt.Errorf("the command of the layer %s may run: %w", name, paddock.Conflict))
	}
	return v.drop(name)
}
