package vminit

import (
	"encoding/binary"
	"slices"
	"syscall"
	"time"
)

// Files of the host's system are opened and closed again by each program that starts:
// itself, its linker, its libraries. Each of that is a request and an answer, by way of
// the port: where the machine is emulated, several of a short command's milliseconds.
// So what the host has opened is kept for a while, and lent to whoever opens the same
// file to read it.
//
// Only that is kept of which the host said that the machine may keep what it has read
// (FOPEN_KEEP_CACHE), and nothing else. Of files that change while they are served it
// never says that alone.
const (
	lendTime = 30 * time.Second // from when the host has opened it; its names are believed much longer
	lendMost = 128              // that nobody uses
)

// Requests about open files, and what is in them, as linux/fuse.h has it.
const (
	opOpen    = 14
	opRelease = 18

	openLength    = inHeader + 8   // struct fuse_open_in: flags, …
	openedLength  = outHeader + 16 // struct fuse_open_out: fh, open_flags, …
	releaseLength = inHeader + 24  // struct fuse_release_in: fh, flags, …

	keepCache = 1 << 1
)

// ours marks the numbers of requests that the pump makes by itself. The kernel counts
// its own from 2.
const ours = 1 << 63

// A loan is a file that the host has opened.
type loan struct {
	handle, node uint64
	uses         int       // by who has it open; 0 is idle
	until        time.Time // it is lent to nobody from then on
}

// A lender knows what is open at the host. It is guarded by its pump's mu.
type lender struct {
	asked    map[uint64]uint64 // nodes of which an open is under way, by the request
	byHandle map[uint64]*loan
	byNode   map[uint64]*loan // those that are lent
	idle     []*loan          // longest idle first
	number   uint64           // of the pump's own requests
	timed    bool             // somebody comes back when what is idle is late
}

func newLender() lender {
	return lender{asked: map[uint64]uint64{}, byHandle: map[uint64]*loan{}, byNode: map[uint64]*loan{}}
}

// open answers a request to open a file, where it can: nil is that the host has to.
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

// opened takes note of the host's answer to a request, which may be one for open.
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
		return // a host that makes no sense
	}
	l.byHandle[one.handle], l.byNode[node] = one, one
}

// release answers a request to close a file, where somebody else still has it open or
// it is to be kept: nil is that the host has to.
func (l *lender) release(request []byte, now time.Time) []byte {
	if len(request) != releaseLength {
		return nil
	}
	one := l.byHandle[binary.NativeEndian.Uint64(request[inHeader:])]
	if one == nil || one.uses == 0 {
		return nil // the host knows
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

// end has all that is open lent to nobody any more, and what is about to be.
func (l *lender) end() {
	for _, one := range l.byHandle {
		one.until = time.Time{}
	}
	clear(l.asked)
}

// late gives a request for the host to close what has been idle until its time; nil is
// that there is none.
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

// next tells when something idle is late; false is that nothing is idle.
func (l *lender) next() (at time.Time, ok bool) {
	for _, one := range l.idle {
		if !ok || one.until.Before(at) {
			at, ok = one.until, true
		}
	}
	return at, ok
}

func uniqueOf(request []byte) uint64 { return binary.NativeEndian.Uint64(request[8:]) }

// putAnswer writes the head of an answer that is no error.
func putAnswer(answer []byte, unique uint64) {
	binary.NativeEndian.PutUint32(answer, uint32(len(answer)))
	binary.NativeEndian.PutUint32(answer[4:], 0)
	binary.NativeEndian.PutUint64(answer[8:], unique)
}
