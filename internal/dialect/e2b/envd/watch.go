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

// Bounds of watchers whose events are fetched.
const (
	maxWatchers = 256
	maxEvents   = 10_000           // of one watcher; the newest are kept
	maxKept     = 8 << 20          // bytes of events, for all watchers of a Box
	keptCost    = 512              // estimated overhead of an event in bytes
	watchIdle   = 10 * time.Minute // a watcher without a request for this long ends
)

// An event arrives shortly after its change. A fetch waits until none has come for quiet,
// and at most for settle, so that it includes changes made before it.
const (
	quiet  = 20 * time.Millisecond
	settle = 200 * time.Millisecond
)

// A watch watches one directory.
type watch struct {
	b       *Box
	root    string // the resolved path
	entries bool   // include a description of the file in each event
	w       paddock.Watcher
	lost    bool // a loss was logged; only next uses it
}

// A watchRequest is the common part of both kinds of requests.
type watchRequest interface {
	GetPath() string
	GetRecursive() bool
	GetIncludeEntry() bool
}

// open starts the watch.
func (b *Box) open(ctx context.Context, name string, m watchRequest) (*watch, error) {
	root, err := b.walker().directory(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := b.take(watchCost); err != nil {
		return nil, err
	}
	w, err := b.files(ctx).Watch(ctx, root, paddock.WatchOptions{Recursive: m.GetRecursive()})
	if err != nil {
		b.give(watchCost)
		return nil, notThere(err, name)
	}
	return &watch{b: b, root: root, entries: m.GetIncludeEntry(), w: &countedWatcher{Watcher: w, b: b}}, nil
}

// next waits for an event.
func (w *watch) next(ctx context.Context) (*envdpb.FilesystemEvent, error) {
	for {
		e, err := w.w.Next(ctx)
		if err != nil {
			return nil, err
		}
		if e.Lost && !w.lost { // once, because the guest says how often
			w.lost = true
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
		if entry, err := w.b.described(ctx, e.Name); err == nil { // otherwise it was removed already
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

// WatchDir streams the changes in a directory until the client goes.
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

// tell sends events and keepalives. A goroutine reads the events, so that keepalives are
// sent on time. It ends before tell returns.
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

// watchers has the watchers whose events are fetched.
type watchers struct {
	idle time.Duration // watchIdle, except in tests

	mu   sync.Mutex
	byID map[string]*fetched // guarded by mu
	kept int                 // guarded by mu; bytes of all events
}

// fetched has the events of a watcher since the last fetch.
type fetched struct {
	all    *watchers
	cancel context.CancelFunc
	some   chan struct{} // has an element when an event came
	alone  *time.Timer   // ends the watcher if it is idle

	// all.mu guards these.
	events []*envdpb.FilesystemEvent
	kept   int   // bytes
	gone   bool  // the watcher was removed
	err    error // why no more events come
}

func (w *watchers) init() { w.byID, w.idle = map[string]*fetched{}, watchIdle }

func (w *watchers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.byID {
		w.drop(id)
	}
}

// drop ends a watcher and discards its events. mu is held.
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

// keep adds an event. Beyond the bounds it drops the oldest event of the largest watcher.
// mu is held.
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

// forget drops the oldest event. mu is held.
func (w *watchers) forget(f *fetched) {
	n := weight(f.events[0])
	f.events[0] = nil // the array stays in use
	f.events = f.events[1:]
	f.kept -= n
	w.kept -= n
}

// weight returns the estimated memory of an event.
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

// follow collects events until there are no more.
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

// drain returns the collected events, and those that are about to arrive.
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
	if err := answering(ctx).hold(f.kept); err != nil { // before they are taken, so that none is lost
		return nil, err
	}
	events := f.events
	f.all.kept -= f.kept
	f.events, f.kept = nil, 0
	if len(events) == 0 && f.err != nil {
		return nil, f.err
	}
	return events, nil
}

// CreateWatcher starts to collect events.
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
		_ = b.watchers.remove(id) // it may have ended with the Box
		err = errLetGo
	}
	if err != nil {
		cancel()
		_ = w.w.Close() // it reported nothing yet
		return "", err
	}
	go func() {
		defer b.tasks.end()
		defer cancel()
		f.follow(following, w)
	}()
	return id, nil
}

// GetWatcherEvents returns and removes the collected events.
func (s fileService) GetWatcherEvents(ctx context.Context, r *connect.Request[envdpb.GetWatcherEventsRequest]) (*connect.Response[envdpb.GetWatcherEventsResponse], error) {
	var events []*envdpb.FilesystemEvent
	f, err := s.b.watchers.get(r.Msg.GetWatcherId())
	if err == nil {
		events, err = f.drain(ctx)
	}
	return answered(ctx, s.b, &envdpb.GetWatcherEventsResponse{Events: events}, err)
}

// RemoveWatcher removes a watcher.
func (s fileService) RemoveWatcher(ctx context.Context, r *connect.Request[envdpb.RemoveWatcherRequest]) (*connect.Response[envdpb.RemoveWatcherResponse], error) {
	err := s.b.watchers.remove(r.Msg.GetWatcherId())
	return answered(ctx, s.b, &envdpb.RemoveWatcherResponse{}, err)
}
