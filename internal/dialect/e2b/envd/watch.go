package envd

import (
	"context"
	"crypto/rand"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// Bounds of what is watched for who fetches events.
const (
	maxWatchers = 256
	maxEvents   = 10_000           // kept of one watcher, the newest
	maxKept     = 8 << 20          // bytes of events, of all watchers of a Box
	keptCost    = 512              // bytes of an event beside its message, about
	watchIdle   = 10 * time.Minute // a watcher that nobody asks for so long ends
)

// A change is fetched at once where it was made before: an event needs a moment on
// its way. A fetch waits until none came for quiet, and at most settle.
const (
	quiet  = 20 * time.Millisecond
	settle = 200 * time.Millisecond
)

// A watch is one directory that is watched.
type watch struct {
	b       *Box
	root    string // where it really is
	entries bool   // events describe their files
	w       paddock.Watcher
}

// A watchRequest is what both ways of watching ask for.
type watchRequest interface {
	GetPath() string
	GetRecursive() bool
	GetIncludeEntry() bool
}

// open begins to watch.
func (b *Box) open(ctx context.Context, name string, m watchRequest) (*watch, error) {
	root, err := b.walker().directory(ctx, name)
	if err != nil {
		return nil, err
	}
	w, err := b.files(ctx).Watch(ctx, root, paddock.WatchOptions{Recursive: m.GetRecursive()})
	if err != nil {
		return nil, notThere(err, name)
	}
	return &watch{b: b, root: root, entries: m.GetIncludeEntry(), w: w}, nil
}

// next waits for an event.
func (w *watch) next(ctx context.Context) (*envdpb.FilesystemEvent, error) {
	for {
		e, err := w.w.Next(ctx)
		if err != nil {
			return nil, err
		}
		if e.Lost {
			w.b.o.Log.WarnContext(ctx, "events of a watch were lost", "sandbox", w.b.o.SandboxID)
		}
		if kind := kindOf(e.Op); kind != envdpb.EventType_EVENT_TYPE_UNSPECIFIED {
			return w.say(ctx, e, kind), nil
		}
	}
}

func (w *watch) say(ctx context.Context, e paddock.Event, kind envdpb.EventType) *envdpb.FilesystemEvent {
	name := "."
	if rest, ok := strings.CutPrefix(e.Name, strings.TrimSuffix(w.root, "/")+"/"); ok {
		name = rest
	} else if e.Name != w.root {
		name = path.Base(e.Name)
	}
	out := &envdpb.FilesystemEvent{Name: clean(name), Type: kind}
	if w.entries && kind != envdpb.EventType_EVENT_TYPE_REMOVE && kind != envdpb.EventType_EVENT_TYPE_RENAME {
		if entry, err := w.b.described(ctx, e.Name); err == nil { // else it has gone already
			out.Entry = entry
		}
	}
	return out
}

func kindOf(op paddock.EventOp) envdpb.EventType {
	switch op {
	case paddock.EventCreate:
		return envdpb.EventType_EVENT_TYPE_CREATE
	case paddock.EventWrite:
		return envdpb.EventType_EVENT_TYPE_WRITE
	case paddock.EventRemove:
		return envdpb.EventType_EVENT_TYPE_REMOVE
	case paddock.EventRename:
		return envdpb.EventType_EVENT_TYPE_RENAME
	case paddock.EventChmod:
		return envdpb.EventType_EVENT_TYPE_CHMOD
	}
	return envdpb.EventType_EVENT_TYPE_UNSPECIFIED
}

// WatchDir tells what changes in a directory until the client goes.
func (s fileService) WatchDir(ctx context.Context, r *connect.Request[envdpb.WatchDirRequest], out *connect.ServerStream[envdpb.WatchDirResponse]) error {
	ctx, name, err := s.b.named(ctx, r.Header(), r.Msg.GetPath())
	if err != nil {
		s.b.alive(ctx, err)
		return rpcError(err)
	}
	w, err := s.b.open(ctx, name, r.Msg)
	if err != nil {
		s.b.alive(ctx, err)
		return rpcError(err)
	}
	defer w.w.Close()
	if err := out.Send(&envdpb.WatchDirResponse{Event: &envdpb.WatchDirResponse_Start_{Start: &envdpb.WatchDirResponse_Start{}}}); err != nil {
		return err
	}
	return w.tell(ctx, pings(r.Header()), out)
}

// tell sends events. Silence is told on time though the sandbox is silent, so the
// events come from a goroutine, which ends before tell does.
func (w *watch) tell(ctx context.Context, every time.Duration, out *connect.ServerStream[envdpb.WatchDirResponse]) error {
	events, failed := make(chan *envdpb.FilesystemEvent), make(chan error, 1)
	inner, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		for {
			e, err := w.next(inner)
			if err != nil {
				failed <- err
				return
			}
			select {
			case events <- e:
			case <-inner.Done():
				return
			}
		}
	})
	alive := time.NewTicker(every)
	defer alive.Stop()
	for {
		var m envdpb.WatchDirResponse
		select {
		case e := <-events:
			m.Event = &envdpb.WatchDirResponse_Filesystem{Filesystem: e}
			alive.Reset(every)
		case <-alive.C:
			m.Event = &envdpb.WatchDirResponse_Keepalive{Keepalive: &envdpb.WatchDirResponse_KeepAlive{}}
		case err := <-failed:
			if ctx.Err() != nil {
				return w.b.over(ctx)
			}
			w.b.alive(ctx, err)
			return rpcError(err)
		case <-ctx.Done():
			return w.b.over(ctx)
		}
		if err := out.Send(&m); err != nil {
			return err
		}
	}
}

// watchers are those whose events are fetched.
type watchers struct {
	idle time.Duration // watchIdle, but in tests

	mu   sync.Mutex
	byID map[string]*fetched // guarded by mu
	kept int                 // guarded by mu; bytes of all their events
}

// fetched is what a watcher saw since it was last asked.
type fetched struct {
	all    *watchers
	cancel context.CancelFunc
	some   chan struct{} // has one when an event came
	alone  *time.Timer   // ends it when nobody asks

	// These are guarded by all.mu.
	events []*envdpb.FilesystemEvent
	kept   int   // bytes
	gone   bool  // nobody can ask any more
	err    error // why no more come
}

func (w *watchers) init() { w.byID, w.idle = map[string]*fetched{}, watchIdle }

func (w *watchers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.byID {
		w.drop(id)
	}
}

// drop ends a watcher and forgets what it saw. It needs mu.
func (w *watchers) drop(id string) {
	f := w.byID[id]
	if f == nil {
		return
	}
	delete(w.byID, id)
	w.kept -= f.kept
	f.events, f.kept, f.gone = nil, 0, true
	f.alone.Stop()
	f.cancel()
}

// keep needs mu. Beyond the bounds it drops the oldest event of who holds most.
func (w *watchers) keep(f *fetched, e *envdpb.FilesystemEvent) {
	if f.gone {
		return
	}
	f.events = append(f.events, e)
	f.kept += weight(e)
	w.kept += weight(e)
	if len(f.events) > maxEvents {
		w.forget(f)
	}
	for w.kept > maxKept {
		most := f
		for _, other := range w.byID {
			if other.kept > most.kept {
				most = other
			}
		}
		w.forget(most)
	}
}

// forget drops the oldest event. It needs mu.
func (w *watchers) forget(f *fetched) {
	n := weight(f.events[0])
	f.events[0] = nil // the array lives on
	f.events = f.events[1:]
	f.kept -= n
	w.kept -= n
}

// weight is what the host holds of an event.
func weight(e *envdpb.FilesystemEvent) int { return proto.Size(e) + keptCost }

func (w *watchers) add(f *fetched) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.byID) >= maxWatchers {
		return "", fmt.Errorf("more than %d watchers of one sandbox: %w", maxWatchers, paddock.Exhausted)
	}
	id := "w" + strings.ToLower(rand.Text())
	w.byID[id] = f
	f.alone = time.AfterFunc(w.idle, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.drop(id)
	})
	return id, nil
}

func (w *watchers) get(id string) (*fetched, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.byID[id]
	if f == nil {
		return nil, missing(fmt.Sprintf("watcher with id %s not found", clean(id)))
	}
	f.alone.Reset(w.idle)
	return f, nil
}

func (w *watchers) remove(id string) error {
	if _, err := w.get(id); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(id)
	return nil
}

// follow keeps events until there are no more.
func (f *fetched) follow(ctx context.Context, w *watch) {
	defer w.w.Close()
	for {
		e, err := w.next(ctx)
		f.all.mu.Lock()
		if err != nil {
			f.err = err
		} else {
			f.all.keep(f, e)
		}
		f.all.mu.Unlock()
		select {
		case f.some <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// drain takes what came, and what is just coming.
func (f *fetched) drain(ctx context.Context) ([]*envdpb.FilesystemEvent, error) {
	latest := time.NewTimer(settle)
	defer latest.Stop()
	for waiting := true; waiting; {
		none := time.NewTimer(quiet)
		select {
		case <-f.some:
		case <-none.C:
			waiting = false
		case <-latest.C:
			waiting = false
		case <-ctx.Done():
			waiting = false
		}
		none.Stop()
	}
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	events := f.events
	f.all.kept -= f.kept
	f.events, f.kept = nil, 0
	if len(events) == 0 && f.err != nil {
		return nil, f.err
	}
	return events, nil
}

// CreateWatcher begins to keep events for who fetches them.
func (s fileService) CreateWatcher(ctx context.Context, r *connect.Request[envdpb.CreateWatcherRequest]) (*connect.Response[envdpb.CreateWatcherResponse], error) {
	var id string
	ctx, name, err := s.b.named(ctx, r.Header(), r.Msg.GetPath())
	if err == nil {
		id, err = s.b.keep(ctx, name, r.Msg)
	}
	return answered(ctx, s.b, &envdpb.CreateWatcherResponse{WatcherId: id}, err)
}

func (b *Box) keep(ctx context.Context, name string, m watchRequest) (string, error) {
	w, err := b.open(ctx, name, m)
	if err != nil {
		return "", err
	}
	following, cancel := context.WithCancel(b.ctx)
	f := &fetched{all: &b.watchers, cancel: cancel, some: make(chan struct{}, 1)}
	id, err := b.watchers.add(f)
	if err == nil && !b.tasks.begin() {
		_ = b.watchers.remove(id) // it may have gone with the Box
		err = errLetGo
	}
	if err != nil {
		cancel()
		_ = w.w.Close() // it told nobody anything
		return "", err
	}
	go func() {
		defer b.tasks.end()
		defer cancel()
		f.follow(following, w)
	}()
	return id, nil
}

// GetWatcherEvents fetches what was kept.
func (s fileService) GetWatcherEvents(ctx context.Context, r *connect.Request[envdpb.GetWatcherEventsRequest]) (*connect.Response[envdpb.GetWatcherEventsResponse], error) {
	var events []*envdpb.FilesystemEvent
	f, err := s.b.watchers.get(r.Msg.GetWatcherId())
	if err == nil {
		events, err = f.drain(ctx)
	}
	return answered(ctx, s.b, &envdpb.GetWatcherEventsResponse{Events: events}, err)
}

// RemoveWatcher ends one.
func (s fileService) RemoveWatcher(ctx context.Context, r *connect.Request[envdpb.RemoveWatcherRequest]) (*connect.Response[envdpb.RemoveWatcherResponse], error) {
	err := s.b.watchers.remove(r.Msg.GetWatcherId())
	return answered(ctx, s.b, &envdpb.RemoveWatcherResponse{}, err)
}
