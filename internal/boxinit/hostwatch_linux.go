package boxinit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
// seccomp). It opens each path below the mount, without following a link, and leaves out names that are hidden
// there. So a guest kernel that was taken over learns only when files change that it can read anyway.
type HostWatch struct {
	channel *sys.Channel
	peer    *os.File
	trees   []watchTree
	hidden  map[fileID][]string // names, by the directory that has them
	refuse  func(op, target, rule string)

	patience time.Duration // quietTime, except in tests
	quieted  chan struct{} // has an element when the guest kernel has answered the last WatchBeQuiet

	mu       sync.Mutex
	awake    *sync.Cond // of quiet
	quiet    bool
	round    uint32             // ID of the last WatchBeQuiet
	notifier *sys.Notifier      // nil until the first watch
	watches  map[uint32]int32   // by the guest kernel's ID
	ids      map[int32][]uint32 // by watch; a file may be seen at several paths
	hides    map[int32][]string // by watch: names of which nothing is told
}

// A fileID is the number of a file on this machine.
type fileID struct{ dev, ino uint64 }

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
	for _, m := range p.config.Mounts {
		if m.Kind == MountMask {
			w.hide(m.Target)
		}
	}
	go w.serve() // ends with the guest kernel
	return w, nil
}

func newHostWatch(binds []Bind, refuse func(op, target, rule string)) (*HostWatch, error) {
	w := &HostWatch{
		refuse: refuse, patience: quietTime, quieted: make(chan struct{}, 1), hidden: map[fileID][]string{},
		watches: map[uint32]int32{}, ids: map[int32][]uint32{}, hides: map[int32][]string{},
	}
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

// hide has nothing told of what is at a place in the box, which a mask covers. The host's watch of the directory
// would tell of it.
func (w *HostWatch) hide(place string) {
	fd, err := sys.ResolvePlain(filepath.Dir(place))
	if err != nil {
		return // then there is nothing to hide
	}
	defer sys.Close(fd)
	if st, err := sys.StatAt(fd, ""); err == nil {
		dir := fileID{st.Dev, st.Ino}
		w.hidden[dir] = append(w.hidden[dir], filepath.Base(place))
	}
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
		answer, err := w.carryOut(data)
		if err != nil {
			return
		}
		if answer != nil && w.channel.Send(answer.Bytes()) != nil {
			return
		}
	}
}

// carryOut carries out a request, and returns the answer if there is one.
func (w *HostWatch) carryOut(data []byte) (*WatchReport, error) {
	r, err := ParseWatchRequest(data)
	if err != nil {
		return nil, err
	}
	switch r.Kind {
	case WatchAdd:
		if !w.add(r.ID, r.Path) {
			return &WatchReport{Kind: WatchRefused, ID: r.ID}, nil
		}
		return &WatchReport{Kind: WatchAdded, ID: r.ID}, nil
	case WatchDrop:
		w.drop(r.ID)
	case WatchQuiet:
		w.answered(r.ID)
	}
	return nil, nil
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
	in := w.tree(path)
	if in == nil {
		return false
	}
	// The mount is named and not the path, because a tool that watches too much would fill the list of refusals.
	if len(w.watches) >= HostWatchMax {
		w.refuse("watch", in.target, watchesFull)
		return false
	}
	f, done, err := in.open(path)
	if err != nil {
		return false // gone, or replaced by a link
	}
	defer done()
	fd, err := sys.Descriptor(f)
	if err != nil {
		return false
	}
	st, err := sys.StatAt(fd, "")
	if kind := st.Mode & sys.TypeMask; err != nil || kind == sys.TypeChar || kind == sys.TypeBlock {
		return false // a watch of a device tells how others use it
	}
	if w.notifier == nil {
		n, err := sys.NewNotifier()
		if err != nil {
			w.refuse("watch", in.target, watchesDenied)
			return false
		}
		w.notifier = n
		go w.run(n) // ends with the notifier
	}
	watch, err := w.notifier.Add(f)
	if errors.Is(err, syscall.ENOSPC) {
		w.refuse("watch", in.target, watchesDenied)
	}
	if err != nil {
		return false
	}
	w.watches[id] = watch
	w.ids[watch] = append(w.ids[watch], id)
	if names := w.hidden[fileID{st.Dev, st.Ino}]; len(names) > 0 {
		w.hides[watch] = names
	}
	return true
}

// tree returns the innermost mount that holds a path, or nil.
func (w *HostWatch) tree(path string) (in *watchTree) {
	for i := range w.trees {
		if t := &w.trees[i]; below(path, t.target) && (in == nil || len(t.target) > len(in.target)) {
			in = t
		}
	}
	return in
}

// open opens a path in a mount.
func (t *watchTree) open(path string) (f *os.File, done func(), err error) {
	rest := strings.TrimPrefix(strings.TrimPrefix(path, t.target), "/")
	switch {
	case rest != "" && t.file:
		return nil, nil, syscall.ENOTDIR
	case rest == "":
		return t.dir, func() {}, nil
	}
	f, err = sys.OpenPath(t.dir, rest, true)
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
	delete(w.hides, watch)
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
	// A few file systems have names that are longer than those of a guest kernel.
	if len(c.Name) > watchNameMax || c.Name != "" && slices.Contains(w.hides[c.Watch], c.Name) {
		return nil, true
	}
	ids = append(ids, w.ids[c.Watch]...)
	if c.Mask&sys.ChangeEnds != 0 {
		for _, id := range ids {
			delete(w.watches, id)
		}
		delete(w.ids, c.Watch)
		delete(w.hides, c.Watch)
	}
	return ids, true
}

// quietTime bounds how long a guest kernel may take to be quiet, and to take a report that says so.
const quietTime = 30 * time.Second

// Quiet makes the guest kernel carry out nothing of the watcher's until Wake, because its memory is saved.
func (w *HostWatch) Quiet() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	w.quiet = true
	w.round++
	round := w.round
	select {
	case <-w.quieted: // too late for an earlier round
	default:
	}
	w.mu.Unlock()
	late := time.NewTimer(w.patience)
	defer late.Stop()
	err := w.say(WatchReport{Kind: WatchBeQuiet, ID: round})
	if err == nil {
		select {
		case <-w.quieted:
			return nil
		case <-late.C:
			err = os.ErrDeadlineExceeded
		}
	}
	w.Wake()
	return fmt.Errorf("have the kernel's watches rest: %w", err)
}

// answered takes the answer to a WatchBeQuiet. One that comes too late is for an earlier round, and says nothing.
func (w *HostWatch) answered(round uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if round != w.round {
		return
	}
	select {
	case w.quieted <- struct{}{}:
	default: // it has answered before
	}
}

// Wake undoes Quiet.
func (w *HostWatch) Wake() {
	if w == nil {
		return
	}
	_ = w.say(WatchReport{Kind: WatchWake}) // a kernel that is gone needs none
	w.mu.Lock()
	defer w.mu.Unlock()
	w.quiet = false
	w.awake.Broadcast()
}

// say sends a report. A guest kernel that does not take it is told nothing any more, so that nobody waits for it.
func (w *HostWatch) say(r WatchReport) error {
	sent := make(chan error, 1)
	go func() { sent <- w.channel.Send(r.Bytes()) }() // ends with the channel at the latest
	late := time.NewTimer(w.patience)
	defer late.Stop()
	select {
	case err := <-sent:
		return err
	case <-late.C:
		w.end()
		return os.ErrDeadlineExceeded
	}
}
