package hostwatch

import (
	"bytes"
	"encoding/binary"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/abi/linux"
	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/vfs"
	"gvisor.dev/gvisor/pkg/usermem"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	// content are the events of changed files. Equal ones that follow each other may be told as one.
	content = linux.IN_MODIFY | linux.IN_ATTRIB | linux.IN_CLOSE_WRITE
	// names are the events of changed names, each of which is told.
	names = linux.IN_CREATE | linux.IN_DELETE | linux.IN_MOVED_FROM | linux.IN_MOVED_TO | linux.IN_MOVE_SELF

	// remembered is for how long a change is, which is much longer than the host takes to report one. gVisor closes a
	// file of the host only when it needs it no more, so that the end of writing may be reported much later.
	remembered = 5 * time.Second
	// logMax is how many files or names are remembered at least.
	logMax = 4096
)

// A record knows which changes commands have made lately, from a watch of its own.
type record struct {
	// The instance is only changed while the sink's mutex is held.
	file    *vfs.FileDescription
	inotify *vfs.Inotify

	mu      sync.Mutex // a leaf: it is taken while gVisor holds locks of a file's watches
	ctx     context.Context
	buf     []byte
	entries map[int32]*entry // by watch
	watches map[*entry]int32 // the same
	// touched is when commands last changed a file, and told how often they changed a name. When a generation is full,
	// it becomes the old one. They outlive a save of the memory.
	touched, touchedOld map[place]touch
	told, toldOld       map[deed]*count
	expected            map[deed]int // events that the sink itself is making
}

// A place is a file in a watched directory, or the watched file itself.
type place struct {
	id   uint32
	name string
}

// A deed is a change of a name.
type deed struct {
	place
	mask uint32
}

// contentKinds are the events in content.
var contentKinds = [...]uint32{linux.IN_MODIFY, linux.IN_ATTRIB, linux.IN_CLOSE_WRITE}

// A touch is when commands last changed a file in any way, and in each way.
type touch struct {
	last  time.Time
	kinds [len(contentKinds)]time.Time
}

// of reports whether commands may have made an event of some kinds that the host has reported, and not others alone.
func (t touch) of(mask uint32, reported time.Time) bool {
	for i, kind := range contentKinds {
		if mask&kind == 0 {
			continue
		}
		if when := t.kinds[i]; when.IsZero() || kind != linux.IN_CLOSE_WRITE && reported.Sub(when) > remembered {
			return false
		}
	}
	return mask&content != 0
}

type count struct {
	n    int
	last time.Time
}

// watch adds a watch of the record's own to a file. The caller holds a reference on it.
func (l *record) watch(k *kernel.Kernel, e *entry) {
	if l.inotify == nil && !l.begin(k) {
		return // then a command's own changes are told twice
	}
	wd := l.inotify.AddWatch(e.dentry, content|names|linux.IN_DELETE_SELF)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries[wd], l.watches[e] = e, wd
}

func (l *record) begin(k *kernel.Kernel) bool {
	ctx := k.SupervisorContext()
	file, err := vfs.NewInotifyFD(ctx, k.VFS(), linux.O_NONBLOCK)
	if err != nil {
		return false
	}
	inotify, ok := file.Impl().(*vfs.Inotify)
	if !ok {
		file.DecRef(ctx)
		return false
	}
	l.mu.Lock()
	l.ctx, l.buf = ctx, make([]byte, 16<<10)
	l.entries, l.watches = map[int32]*entry{}, map[*entry]int32{}
	if l.expected == nil {
		l.touched, l.told, l.expected = map[place]touch{}, map[deed]*count{}, map[deed]int{}
	}
	l.mu.Unlock()
	entry := waiter.NewFunctionEntry(waiter.ReadableEvents, func(waiter.EventMask) { l.read(inotify) })
	if err := inotify.EventRegister(&entry); err != nil {
		file.DecRef(ctx)
		return false
	}
	l.file, l.inotify = file, inotify
	return true
}

// end takes all watches away.
func (l *record) end(k *kernel.Kernel) {
	if l.inotify == nil {
		return
	}
	l.file.DecRef(k.SupervisorContext())
	l.file, l.inotify = nil, nil
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.entries)
	clear(l.watches)
}

// own returns how many watches of a file are the record's own.
func (l *record) own(e *entry) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.watches[e]; ok {
		return 1
	}
	return 0
}

// drop removes the watch of a file.
func (l *record) drop(k *kernel.Kernel, e *entry) {
	l.mu.Lock()
	wd, ok := l.watches[e]
	delete(l.watches, e)
	delete(l.entries, wd)
	l.mu.Unlock()
	if ok && l.inotify != nil {
		_ = l.inotify.RmWatch(k.SupervisorContext(), wd) // it may have ended with the file
	}
}

// read is called by the thread that makes an event, which may hold locks of gVisor.
func (l *record) read(inotify *vfs.Inotify) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		n, err := inotify.Read(l.ctx, usermem.BytesIOSequence(l.buf), vfs.ReadOptions{})
		if err != nil || n == 0 {
			return
		}
		for data := l.buf[:n]; len(data) >= 16; {
			end := 16 + int(binary.NativeEndian.Uint32(data[12:]))
			if end > len(data) {
				return
			}
			name, _, _ := bytes.Cut(data[16:end], []byte{0})
			l.note(now, int32(binary.NativeEndian.Uint32(data)), binary.NativeEndian.Uint32(data[4:]), string(name))
			data = data[end:]
		}
	}
}

// note notes an event. l.mu is held.
func (l *record) note(now time.Time, wd int32, mask uint32, name string) {
	e := l.entries[wd]
	if e == nil {
		return
	}
	if mask&linux.IN_IGNORED != 0 {
		e.ended.Store(true)
		delete(l.entries, wd)
		delete(l.watches, e)
		return
	}
	at := place{e.id, name}
	if key := (deed{at, mask & linux.IN_ALL_EVENTS}); l.expected[key] > 0 {
		if l.expected[key]--; l.expected[key] == 0 {
			delete(l.expected, key)
		}
		return
	}
	if mask&names != 0 {
		key := deed{at, mask & names}
		c := l.told[key]
		if c == nil {
			if len(l.told) >= logMax {
				l.toldOld, l.told = l.told, map[deed]*count{}
			}
			c = &count{}
			l.told[key] = c
		}
		if now.Sub(c.last) > remembered {
			c.n = 0
		}
		c.n, c.last = c.n+1, now
	}
	kinds := mask & content
	if mask&(linux.IN_CREATE|linux.IN_MOVED_TO|linux.IN_MOVE_SELF) != 0 {
		kinds = content // what has a new name has a new time of change, too
	}
	if kinds == 0 {
		return
	}
	t, ok := l.touched[at]
	if !ok {
		if t = l.touchedOld[at]; len(l.touched) >= logMax {
			l.touchedOld, l.touched = l.touched, map[place]touch{}
		}
	}
	t.last = now
	for i, kind := range contentKinds {
		if kinds&kind != 0 {
			t.kinds[i] = now
		}
	}
	l.touched[at] = t
}

// clear forgets which names commands have changed.
func (l *record) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.told)
	l.toldOld = nil
}

// expect announces an event of the sink's own, until the returned function is called.
func (l *record) expect(e *entry, name string, mask uint32) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.expected == nil {
		return func() {}
	}
	key := deed{place{e.id, name}, mask & linux.IN_ALL_EVENTS}
	l.expected[key]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.expected, key)
	}
}

// made reports whether commands have made a change that the host has reported, and know of it. changed returns when
// the file was last changed; ok is false if it is not found. It asks the gofer.
func (l *record) made(e *entry, r arrival, changed func() (when time.Time, ok bool)) bool {
	at, mask := place{e.id, r.Name}, r.Mask
	l.mu.Lock()
	if mask&names != 0 {
		defer l.mu.Unlock()
		for _, generation := range []map[deed]*count{l.told, l.toldOld} {
			if c := generation[deed{at, mask & names}]; c != nil && c.n > 0 && r.at.Sub(c.last) <= remembered {
				c.n--
				return true
			}
		}
		return false
	}
	touched, ok := l.touched[at]
	if !ok {
		touched = l.touchedOld[at]
	}
	l.mu.Unlock()
	if !touched.of(mask, r.at) {
		return false
	}
	// An event of a command that came after the last change tells the same: look again. So does one after the report. A
	// command that writes all the time has no gofer asked.
	if !r.at.After(touched.last) {
		return true
	}
	when, ok := changed()
	return ok && !when.After(touched.last) // rather twice than never
}
