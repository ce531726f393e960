package boxinit

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Rules by which a watch is refused, as people see them.
const (
	watchesFull   = "of changes on the host only so many watches are told at a time"
	watchesDenied = "the host lets this user have no more watches of inotify"
)

// A HostWatch tells a guest kernel what others than its own commands change in mounts. A kernel of the
// box's own learns nothing of changes that are made past it. So it reports which directories its commands
// watch, and gets the host's events for them. Nothing else is watched, and nothing before a command asks.
//
// The box's init does this, because no process of a guest kernel may add a watch on the host (see package
// seccomp). It opens each path below the mount, without following a link. So a guest kernel that was taken
// over learns only when files change that it can read anyway.
type HostWatch struct {
	channel *sys.Channel
	peer    *os.File
	trees   []watchTree
	refuse  func(op, target, rule string)
	quieted chan struct{} // an element for each answer to WatchBeQuiet

	mu       sync.Mutex
	awake    *sync.Cond // of quiet
	quiet    bool
	notifier *sys.Notifier      // nil until the first watch
	watches  map[uint32]int32   // by the guest kernel's ID
	ids      map[int32][]uint32 // by watch; a file may be seen at several paths
}

// A watchTree is a mount.
type watchTree struct {
	target string
	dir    *os.File // opened as a path
	file   bool
}

// watchHost makes the watcher for the mounts that the caller named. Without such a mount it is nil.
func (p *initProcess) watchHost() (*HostWatch, error) {
	binds := p.config.GuestKernel.Binds
	if len(binds) == 0 {
		return nil, nil
	}
	w, err := newHostWatch(binds, p.broker.refuse)
	if err != nil {
		return nil, err
	}
	go w.serve() // ends with the guest kernel
	return w, nil
}

func newHostWatch(binds []Bind, refuse func(op, target, rule string)) (*HostWatch, error) {
	w := &HostWatch{refuse: refuse, quieted: make(chan struct{}, 1), watches: map[uint32]int32{}, ids: map[int32][]uint32{}}
	w.awake = sync.NewCond(&w.mu)
	for _, b := range binds {
		if err := w.mount(b.Target, Root+b.Target, b.IsFile); err != nil {
			return nil, err
		}
	}
	var err error
	w.channel, w.peer, err = sys.NewChannelPair()
	return w, err
}

// mount adds a mount. Its place is one in the box.
func (w *HostWatch) mount(target, place string, file bool) error {
	fd, err := sys.ResolvePlain(place)
	if err != nil {
		return fmt.Errorf("watch %s: %w", target, err)
	}
	w.trees = append(w.trees, watchTree{target, os.NewFile(uintptr(fd), target), file})
	return nil
}

// Peer is the guest kernel's end. The caller closes it.
func (w *HostWatch) Peer() *os.File { return w.peer }

// serve carries out requests until the guest kernel has closed its end, or sends what it should not.
func (w *HostWatch) serve() {
	defer w.end()
	for {
		data, files, err := w.channel.Receive()
		for _, f := range files {
			f.Close()
		}
		if err != nil || len(files) > 0 {
			return
		}
		r, err := ParseWatchRequest(data)
		if err != nil {
			return
		}
		switch r.Kind {
		case WatchAdd:
			answer := WatchReport{Kind: WatchAdded, ID: r.ID}
			if !w.add(r.ID, r.Path) {
				answer.Kind = WatchRefused
			}
			if w.channel.Send(answer.Bytes()) != nil {
				return
			}
		case WatchDrop:
			w.drop(r.ID)
		case WatchQuiet:
			select {
			case w.quieted <- struct{}{}:
			default: // nobody asked
			}
		}
	}
}

func (w *HostWatch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.channel.Close()
	if w.notifier != nil {
		w.notifier.Close()
	}
	w.quiet = false
	w.awake.Broadcast()
}

// add watches a path, and reports whether it does.
func (w *HostWatch) add(id uint32, path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, taken := w.watches[id]; taken {
		return false
	}
	if len(w.watches) >= HostWatchMax {
		w.refuse("watch", path, watchesFull)
		return false
	}
	f, done, err := w.open(path)
	if err != nil {
		return false // no mount, or gone, or replaced by a link
	}
	defer done()
	if w.notifier == nil {
		n, err := sys.NewNotifier()
		if err != nil {
			w.refuse("watch", path, watchesDenied)
			return false
		}
		w.notifier = n
		go w.run(n) // ends with the notifier
	}
	watch, err := w.notifier.Add(f)
	if errors.Is(err, syscall.ENOSPC) {
		w.refuse("watch", path, watchesDenied)
	}
	if err != nil {
		return false
	}
	w.watches[id] = watch
	w.ids[watch] = append(w.ids[watch], id)
	return true
}

// open opens a path below the innermost mount that holds it.
func (w *HostWatch) open(path string) (f *os.File, done func(), err error) {
	var in *watchTree
	for i := range w.trees {
		if t := &w.trees[i]; below(path, t.target) && (in == nil || len(t.target) > len(in.target)) {
			in = t
		}
	}
	if in == nil {
		return nil, nil, syscall.EACCES
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(path, in.target), "/")
	switch {
	case rest != "" && in.file:
		return nil, nil, syscall.ENOTDIR
	case rest == "":
		return in.dir, func() {}, nil
	}
	f, err = sys.OpenPath(in.dir, rest, true)
	return f, func() { f.Close() }, err
}

func (w *HostWatch) drop(id uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	watch, ok := w.watches[id]
	if !ok {
		return
	}
	delete(w.watches, id)
	left := w.ids[watch][:0]
	for _, other := range w.ids[watch] {
		if other != id {
			left = append(left, other)
		}
	}
	if len(left) > 0 {
		w.ids[watch] = left
		return
	}
	delete(w.ids, watch)
	_ = w.notifier.Remove(watch) // the kernel may have done so, with the file
}

// run reports changes. If the guest kernel does not read them, the kernel's queue of changes runs full,
// which is reported later.
func (w *HostWatch) run(n *sys.Notifier) {
	buf := make([]byte, 64<<10)
	for {
		list, err := n.Read(buf)
		if err != nil {
			return
		}
		for _, c := range list {
			ids, ok := w.told(c)
			if !ok {
				return
			}
			for _, id := range ids {
				if w.channel.Send(WatchReport{Kind: WatchChange, ID: id, Mask: c.Mask, Cookie: c.Cookie, Name: c.Name}.Bytes()) != nil {
					return
				}
			}
			if c.Mask&sys.ChangeLost != 0 && w.channel.Send(WatchReport{Kind: WatchLost}.Bytes()) != nil {
				return
			}
		}
	}
}

// told waits until changes may be reported, and returns the IDs that a change is reported for.
func (w *HostWatch) told(c sys.Change) (ids []uint32, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.quiet {
		w.awake.Wait()
	}
	ids = append(ids, w.ids[c.Watch]...)
	if c.Mask&sys.ChangeEnds != 0 {
		for _, id := range ids {
			delete(w.watches, id)
		}
		delete(w.ids, c.Watch)
	}
	return ids, true
}

// quietTime bounds how long a guest kernel may take to be quiet.
const quietTime = 10 * time.Second

// Quiet makes the guest kernel carry out nothing of the watcher's until Wake, because its memory is saved.
func (w *HostWatch) Quiet() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	w.quiet = true
	w.mu.Unlock()
	sent := make(chan error, 1)
	go func() { sent <- w.channel.Send(WatchReport{Kind: WatchBeQuiet}.Bytes()) }() // ends with the channel at the latest
	late := time.NewTimer(quietTime)
	defer late.Stop()
	for {
		select {
		case err := <-sent:
			if err != nil {
				w.Wake()
				return fmt.Errorf("have the kernel's watches rest: %w", err)
			}
		case <-w.quieted:
			return nil
		case <-late.C:
			w.Wake()
			return fmt.Errorf("the kernel's watches do not come to rest: %w", os.ErrDeadlineExceeded)
		}
	}
}

// Wake undoes Quiet.
func (w *HostWatch) Wake() {
	if w == nil {
		return
	}
	_ = w.channel.Send(WatchReport{Kind: WatchWake}.Bytes()) // a kernel that is gone needs none
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quiet = false
	w.awake.Broadcast()
}
