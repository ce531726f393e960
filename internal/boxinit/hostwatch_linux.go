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

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Rules by which a watch is refused, as people see them.
const (
	watchesFull   = "only so many files and directories can be watched on the host"
	watchesDenied = "the host lets this user have no more watches of inotify"
	watchesEnded  = "changes of the host are no longer reported, because the sandbox's kernel did not take them"
	watchesFailed = "the host cannot watch a file: " // and why
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
	devices map[uint64]bool     // numbers of file systems of devices
	refuse  func(op, target, rule string)

	patience time.Duration // quietTime, except in tests
	quieted  chan struct{} // has an element when the guest kernel has answered the last WatchBeQuiet

	mu       sync.Mutex // never held over a call that a file system answers
	awake    *sync.Cond // of quiet
	quiet    bool
	ended    bool               // nothing is told any more
	busy     bool               // the notifier is in use
	gone     []int32            // watches that ended meanwhile
	round    uint32             // ID of the last WatchBeQuiet
	notifier *sys.Notifier      // nil until the first watch
	watches  map[uint32]int32   // by the guest kernel's ID
	ids      map[int32][]uint32 // by watch; a file may be seen at several paths
	hides    map[int32][]string // by watch: names of which nothing is told

	// Of run only. The host counts renames for the whole machine; the guest kernel learns numbers of the box's own.
	cookies map[uint32]uint32
	cookie  uint32
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
	if err := w.leaveOut(covered(binds, p.config.Mounts)); err != nil {
		_ = w.channel.Close()
		_ = w.peer.Close()
		return nil, err
	}
	go w.serve() // ends with the guest kernel
	return w, nil
}

// leaveOut has nothing told of devices, and of places in the box where mounts cover files.
func (w *HostWatch) leaveOut(places []string) error {
	for _, place := range places {
		if err := w.hide(place); err != nil {
			return fmt.Errorf("hide changes of %s: %w", place, err)
		}
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	w.devices = deviceNumbers(string(table))
	return err
}

// covered returns the places in the box at which commands see another file than the mount of the caller has there.
func covered(binds []Bind, mounts []Mount) (places []string) {
	for _, m := range mounts {
		switch m.Kind {
		case MountDir, MountLink, MountPrivate, MountPin, MountLock:
			continue // they cover nothing, or show the same file
		}
		if slices.ContainsFunc(binds, func(b Bind) bool { return below(filepath.Dir(m.Target), Root+b.Target) }) {
			places = append(places, m.Target)
		}
	}
	return places
}

// deviceNumbers returns the numbers of file systems that hold devices, from the table of mounts.
func deviceNumbers(mountinfo string) map[uint64]bool {
	list := map[uint64]bool{}
	for line := range strings.Lines(mountinfo) {
		place, kind, _ := strings.Cut(line, " - ")
		fields := strings.Fields(place)
		if len(fields) < 3 || !strings.HasPrefix(kind, "devtmpfs ") && !strings.HasPrefix(kind, "devpts ") {
			continue
		}
		var major, minor uint32
		if n, err := fmt.Sscanf(fields[2], "%d:%d", &major, &minor); n == 2 && err == nil {
			list[sys.DeviceNumber(major, minor)] = true
		}
	}
	return list
}

func newHostWatch(binds []Bind, refuse func(op, target, rule string)) (*HostWatch, error) {
	w := &HostWatch{
		refuse: refuse, patience: quietTime, quieted: make(chan struct{}, 1), hidden: map[fileID][]string{},
		watches: map[uint32]int32{}, ids: map[int32][]uint32{}, hides: map[int32][]string{}, cookies: map[uint32]uint32{},
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

// hide has nothing told of a file in a mount that another mount covers at a place in the box. The host's watch of the
// directory would tell of it.
func (w *HostWatch) hide(place string) error {
	fd, err := sys.ResolvePlain(filepath.Dir(place))
	if errors.Is(err, os.ErrNotExist) {
		return nil // then there is nothing to hide
	}
	if err != nil {
		return err
	}
	defer sys.Close(fd)
	st, err := sys.StatAt(fd, "")
	if err != nil {
		return err
	}
	if st.Mode&sys.TypeMask != sys.TypeDir { // it may be a link
		return syscall.ENOTDIR
	}
	dir := fileID{st.Dev, st.Ino}
	w.hidden[dir] = append(w.hidden[dir], filepath.Base(place))
	return nil
}

// Peer is the guest kernel's end. The caller closes it.
func (w *HostWatch) Peer() *os.File { return w.peer }

// serve carries out requests until the guest kernel has closed its end, or sends what it should not.
func (w *HostWatch) serve() {
	for {
		data, files, err := w.channel.Receive()
		for _, f := range files {
			f.Close()
		}
		if err != nil {
			w.end() // as at the end of the box
			return
		}
		var answer *WatchReport
		if err = fmt.Errorf("a request with files: %w", paddock.Invalid); len(files) == 0 {
			answer, err = w.carryOut(data)
		}
		if err != nil {
			w.cutOff()
			return
		}
		if answer != nil && w.channel.Send(answer.Bytes()) != nil {
			w.end()
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

// end tells nothing any more. A second call does nothing.
func (w *HostWatch) end() {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return
	}
	n := w.notifier
	if w.busy {
		n = nil // closed afterwards
	}
	w.ended, w.quiet = true, false
	w.awake.Broadcast()
	select {
	case w.quieted <- struct{}{}: // Quiet waits for no answer any more
	default:
	}
	w.mu.Unlock()
	_ = w.channel.Close()
	if n != nil {
		_ = n.Close()
	}
}

// cutOff ends the watcher of a guest kernel that does not do what it should, and says so.
func (w *HostWatch) cutOff() {
	w.end()
	for _, t := range w.trees {
		w.refuse("watch", t.target, watchesEnded)
	}
}

// add watches a path, and reports whether it does. Only serve calls it.
func (w *HostWatch) add(id uint32, path string) bool {
	in := w.tree(path)
	if in == nil {
		return false
	}
	// The mount is named and not the path, because a tool that watches too much would fill the list of refusals.
	refuse := func(rule string) bool {
		w.refuse("watch", in.target, rule)
		return false
	}
	w.mu.Lock()
	_, taken := w.watches[id]
	n, watches := w.notifier, len(w.watches)
	w.mu.Unlock()
	switch {
	case taken:
		return false
	case watches >= HostWatchMax:
		return refuse(watchesFull)
	}
	failed := func(err error) bool {
		var number syscall.Errno
		if !errors.As(err, &number) {
			return false
		}
		switch number {
		case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP:
			return false // gone, or replaced by a link
		case syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE:
			return refuse(watchesDenied)
		}
		return refuse(watchesFailed + number.Error())
	}
	f, done, err := in.open(path)
	if err != nil {
		return failed(err)
	}
	defer done()
	st, ok, err := w.mayWatch(f)
	if err != nil {
		return failed(err)
	}
	if !ok {
		return false
	}
	if n == nil {
		if n, err = sys.NewNotifier(); err != nil {
			return failed(err)
		}
	}
	if !w.begin(n) {
		return false
	}
	defer w.free()
	watch, err := n.Add(f)
	if err != nil {
		return failed(err)
	}
	return w.added(id, watch, w.hidden[fileID{st.Dev, st.Ino}])
}

// mayWatch reports whether a file may be watched. A watch of a device, or of a directory of devices, tells how others
// use them.
func (w *HostWatch) mayWatch(f *os.File) (st sys.FileStat, ok bool, err error) {
	fd, err := sys.Descriptor(f)
	if err != nil {
		return st, false, err
	}
	if st, err = sys.StatAt(fd, ""); err != nil {
		return st, false, err
	}
	kind := st.Mode & sys.TypeMask
	return st, kind != sys.TypeChar && kind != sys.TypeBlock && !w.devices[st.Dev], nil
}

// begin reserves the notifier for a call that no mutex is held over, so that nobody closes it. A new one is used from
// now on.
func (w *HostWatch) begin(n *sys.Notifier) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		if w.notifier == nil {
			_ = n.Close()
		}
		return false
	}
	if w.notifier == nil {
		w.notifier = n
		go w.run(n) // ends with the notifier
	}
	w.busy, w.gone = true, nil
	return true
}

// free undoes begin.
func (w *HostWatch) free() {
	w.mu.Lock()
	w.busy = false
	ended := w.ended
	w.mu.Unlock()
	if ended {
		_ = w.notifier.Close()
	}
}

// added reports whether changes are told from now on by a watch, which was added since begin.
func (w *HostWatch) added(id uint32, watch int32, hidden []string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || slices.Contains(w.gone, watch) {
		return false
	}
	w.watches[id] = watch
	w.ids[watch] = append(w.ids[watch], id)
	if len(hidden) > 0 {
		w.hides[watch] = hidden
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

// drop ends a watch. Only serve calls it.
func (w *HostWatch) drop(id uint32) {
	if watch, ok := w.dropped(id); ok && w.begin(w.notifier) {
		defer w.free()
		_ = w.notifier.Remove(watch) // the kernel may have done so, with the file
	}
}

// dropped takes an ID, and reports whether it was the last of a watch.
func (w *HostWatch) dropped(id uint32) (watch int32, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	watch, ok := w.watches[id]
	if !ok {
		return 0, false
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
		return watch, false
	}
	delete(w.ids, watch)
	delete(w.hides, watch)
	return watch, true
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
				r := WatchReport{Kind: WatchChange, ID: id, Mask: c.Mask, Cookie: w.own(c.Cookie), Name: c.Name}
				if w.channel.Send(r.Bytes()) != nil {
					return
				}
			}
			if c.Mask&sys.ChangeLost != 0 && w.channel.Send(WatchReport{Kind: WatchLost}.Bytes()) != nil {
				return
			}
		}
	}
}

// cookiesMax is how many renames may be reported between the two events of one.
const cookiesMax = 1024

// own returns the box's number for the host's number of a rename.
func (w *HostWatch) own(cookie uint32) uint32 {
	if cookie == 0 {
		return 0 // no rename
	}
	own, ok := w.cookies[cookie]
	if !ok {
		if len(w.cookies) >= cookiesMax {
			clear(w.cookies)
		}
		w.cookie = max(w.cookie+1, 1)
		own = w.cookie
		w.cookies[cookie] = own
	}
	return own
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
		if w.busy {
			w.gone = append(w.gone, c.Watch)
		}
	}
	return ids, !w.ended
}

// quietTime bounds how long a guest kernel may take to be quiet, and to take a report that says so.
const quietTime = 30 * time.Second

// Quiet makes the guest kernel carry out nothing of the watcher's until Wake, because its memory is saved. If the
// watcher has ended, the guest kernel has nothing to carry out.
func (w *HostWatch) Quiet() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return nil
	}
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
	w.mu.Lock()
	ended := w.ended
	w.mu.Unlock()
	if ended {
		return nil
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
		go w.cutOff() // ends when the host has ended the watches; a file system may hang
		return os.ErrDeadlineExceeded
	}
}
