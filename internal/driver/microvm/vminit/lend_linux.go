package vminit

import (
	"encoding/binary"
	"slices"
	"syscall"
	"time"
)

// Each program that starts opens and closes files of the host's system: itself, its linker,
// its libraries. Each open and close is a request through the port. In emulation these take
// several milliseconds of a short command. So files that the host has opened are kept for a
// time, and lent to the next open for reading.
// file to read it.
//
// Only files are kept for which the host permits caching (FOPEN_KEEP_CACHE) and sets no
// other flag. For files that may change while they are served, the host never sets that
// flag alone.
const (
	lendTime = 30 * time.Second // since the host opened it; names are cached much longer
	lendMost = 128              // maximum of idle files
)

// Requests on open files, and their formats; see linux/fuse.h.
const (
	opOpen    = 14
	opRelease = 18

	openLength    = inHeader + 8   // struct fuse_open_in: flags, …
	openedLength  = outHeader + 16 // struct fuse_open_out: fh, open_flags, …
	releaseLength = inHeader + 24  // struct fuse_release_in: fh, flags, …

	keepCache = 1 << 1
)

// ours marks the numbers of the pump's own requests. The kernel counts its own from 2.
const ours = 1 << 63

// A loan is a file that the host has opened.
type loan struct {
	handle, node uint64
	uses         int       // number of opens; 0 is idle
	until        time.Time // not lent after this time
}

// A lender tracks the files open at the host. Its pump's mu guards it.
type lender struct {
	asked    map[uint64]uint64 // nodes with an open in progress, by request
	byHandle map[uint64]*loan
	byNode   map[uint64]*loan // files that may be lent
	idle     []*loan          // longest idle first
	number   uint64           // number of the last own request
	timed    bool             // a timer is set for the next late file
}

func newLender() lender {
	return lender{asked: map[uint64]uint64{}, byHandle: map[uint64]*loan{}, byNode: map[uint64]*loan{}}
}

// open answers a request to open a file, or returns nil if the host has to.
func (l *lender) open(request []byte, now time.Time) []byte {
	if len(request) != openLength {
		return nil
	}
	flags := int(binary.NativeEndian.Uint32(request[inHeader:]))
	if flags&(syscall.O_ACCMODE|syscall.O_TRUNC|syscall.O_SYNC) != syscall.O_RDONLY {
		return nil
	}
	node := binary.NativeEndian.Uint64(request[16:])
	one := l.byNode[node]
	if one == nil || !now.Before(one.until) {
		l.asked[uniqueOf(request)] = node
		return nil
	}
	if one.uses++; one.uses == 1 {
		l.idle = slices.DeleteFunc(l.idle, func(i *loan) bool { return i == one })
	}
	answer := make([]byte, openedLength)
	putAnswer(answer, uniqueOf(request))
	binary.NativeEndian.PutUint64(answer[outHeader:], one.handle)
	binary.NativeEndian.PutUint32(answer[outHeader+8:], keepCache)
	return answer
}

// opened notes the host's answer, if it is to an open.
func (l *lender) opened(answer []byte, now time.Time) {
	unique := binary.NativeEndian.Uint64(answer[8:])
	node, ok := l.asked[unique]
	if !ok {
		return
	}
	delete(l.asked, unique)
	if len(answer) != openedLength || binary.NativeEndian.Uint32(answer[4:]) != 0 ||
		binary.NativeEndian.Uint32(answer[outHeader+8:]) != keepCache {
		return
	}
	one := &loan{handle: binary.NativeEndian.Uint64(answer[outHeader:]), node: node, uses: 1, until: now.Add(lendTime)}
	if l.byHandle[one.handle] != nil {
		return // an invalid answer
	}
	l.byHandle[one.handle], l.byNode[node] = one, one
}

// release answers a request to close a file that is still in use or is kept. It returns nil
// if the host has to close it.
func (l *lender) release(request []byte, now time.Time) []byte {
	if len(request) != releaseLength {
		return nil
	}
	one := l.byHandle[binary.NativeEndian.Uint64(request[inHeader:])]
	if one == nil || one.uses == 0 {
		return nil // the host knows this handle
	}
	if one.uses--; one.uses == 0 {
		if l.byNode[one.node] != one || !now.Before(one.until) || len(l.idle) >= lendMost {
			l.forget(one)
			return nil
		}
		l.idle = append(l.idle, one)
	}
	answer := make([]byte, outHeader)
	putAnswer(answer, uniqueOf(request))
	return answer
}

func (l *lender) forget(one *loan) {
	delete(l.byHandle, one.handle)
	if l.byNode[one.node] == one {
		delete(l.byNode, one.node)
	}
}

// end stops lending all open files, including those being opened.
func (l *lender) end() {
	for _, one := range l.byHandle {
		one.until = time.Time{}
	}
	clear(l.asked)
}

// late returns a request to close a file that was idle for too long, or nil.
func (l *lender) late(now time.Time) []byte {
	i := slices.IndexFunc(l.idle, func(one *loan) bool { return !now.Before(one.until) })
	if i < 0 {
		return nil
	}
	one := l.idle[i]
	l.idle = slices.Delete(l.idle, i, i+1)
	l.forget(one)
	l.number++
	request := make([]byte, releaseLength)
	binary.NativeEndian.PutUint32(request, releaseLength)
	binary.NativeEndian.PutUint32(request[4:], opRelease)
	binary.NativeEndian.PutUint64(request[8:], ours|l.number)
	binary.NativeEndian.PutUint64(request[16:], one.node)
	binary.NativeEndian.PutUint64(request[inHeader:], one.handle)
	return request
}

// next returns when the next idle file is late. It reports false if none is idle.
func (l *lender) next() (at time.Time, ok bool) {
	for _, one := range l.idle {
		if !ok || one.until.Before(at) {
			at, ok = one.until, true
		}
	}
	return at, ok
}

func uniqueOf(request []byte) uint64 { return binary.NativeEndian.Uint64(request[8:]) }

// putAnswer writes the header of a successful answer.
func putAnswer(answer []byte, unique uint64) {
	binary.NativeEndian.PutUint32(answer, uint32(len(answer)))
	binary.NativeEndian.PutUint32(answer[4:], 0)
	binary.NativeEndian.PutUint64(answer[8:], unique)
}
