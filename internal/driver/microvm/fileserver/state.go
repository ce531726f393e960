package fileserver

import (
	"fmt"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// The format of a State, with little-endian numbers: stateMark, the counts, the nodes, each
// after that of its directory, further names, and the handles.
const (
	stateMark  = "paddock share 1\n"
	countsSize = 4 + 8 + 4 + 4 + 4
	nodeSize   = 8 + 8 + 8 + 4 + 4 + 8 + 8 + 8 + 4 + 2
	nameSize   = 8 + 8 + 2
	handleSize = 8 + 8 + 4
	lastMax    = 1 << 62
)

type savedNode struct {
	id, parent uint64 // parent is 0 without a name
	lookups    uint64
	kind       uint32
	opened     bool
	ino, size  uint64
	sec        uint64
	nsec       uint32
	name       string
}

type savedName struct {
	node, parent uint64
	name         string
}

type savedHandle struct {
	id, node uint64
	flags    uint32
}

type savedState struct {
	begun   bool
	last    uint64
	nodes   []savedNode
	names   []savedName
	handles []savedHandle
}

func (s *savedState) bytes() []byte {
	w := writer{append(make([]byte, 0, len(stateMark)+countsSize+len(s.nodes)*(nodeSize+16)+len(s.handles)*handleSize), stateMark...)}
	w.u32(number(s.begun))
	w.u64(s.last)
	w.u32(uint32(len(s.nodes)))
	w.u32(uint32(len(s.names)))
	w.u32(uint32(len(s.handles)))
	for i := range s.nodes {
		n := &s.nodes[i]
		w.u64(n.id)
		w.u64(n.parent)
		w.u64(n.lookups)
		w.u32(n.kind)
		w.u32(number(n.opened))
		w.u64(n.ino)
		w.u64(n.size)
		w.u64(n.sec)
		w.u32(n.nsec)
		w.u16(uint16(len(n.name)))
		w.data = append(w.data, n.name...)
	}
	for _, n := range s.names {
		w.u64(n.node)
		w.u64(n.parent)
		w.u16(uint16(len(n.name)))
		w.data = append(w.data, n.name...)
	}
	for _, h := range s.handles {
		w.u64(h.id)
		w.u64(h.node)
		w.u32(h.flags)
	}
	return w.data
}

func number(yes bool) uint32 {
	if yes {
		return 1
	}
	return 0
}

// readState parses a state. It trusts nothing but the length of data.
func readState(data []byte) (*savedState, error) {
	wrong := func(what string) error { return fmt.Errorf("a share's state: %s: %w", what, paddock.Invalid) }
	b := body{data: data}
	if string(b.take(min(len(stateMark), len(data)))) != stateMark {
		return nil, wrong("no mark")
	}
	s := &savedState{begun: b.u32() == 1, last: b.u64()}
	nodes, more, handles := b.u32(), b.u32(), b.u32()
	if b.short || nodes > nodeLimit || more > nodeLimit || handles > handleLimit ||
		uint64(nodes)*nodeSize+uint64(more)*nameSize+uint64(handles)*handleSize > uint64(len(b.data)) {
		return nil, wrong("its counts")
	}
	if s.last < rootID || s.last > lastMax {
		return nil, wrong("its last number")
	}
	s.nodes = make([]savedNode, 0, nodes)
	kinds := map[uint64]uint32{rootID: syscall.S_IFDIR}
	for range nodes {
		n := savedNode{
			id: b.u64(), parent: b.u64(), lookups: b.u64(), kind: b.u32(), opened: b.u32() == 1,
			ino: b.u64(), size: b.u64(), sec: b.u64(), nsec: b.u32(),
		}
		n.name = string(b.take(int(b.u16())))
		if err := n.check(kinds, s.last); err != nil || b.short {
			return nil, wrong("a node")
		}
		kinds[n.id] = n.kind
		s.nodes = append(s.nodes, n)
	}
	for range more {
		n := savedName{node: b.u64(), parent: b.u64()}
		n.name = string(b.take(int(b.u16())))
		if b.short || kinds[n.node] != syscall.S_IFREG || kinds[n.parent] != syscall.S_IFDIR || checkName(n.name) != nil {
			return nil, wrong("a name")
		}
		s.names = append(s.names, n)
	}
	seen := map[uint64]bool{}
	for range handles {
		h := savedHandle{b.u64(), b.u64(), b.u32()}
		kind := kinds[h.node]
		if b.short || h.id <= rootID || h.id > s.last || seen[h.id] || kind != syscall.S_IFREG && kind != syscall.S_IFDIR {
			return nil, wrong("a handle")
		}
		seen[h.id] = true
		s.handles = append(s.handles, h)
	}
	if b.end() != nil {
		return nil, wrong("its end")
	}
	return s, nil
}

func (n *savedNode) check(kinds map[uint64]uint32, last uint64) error {
	if n.id <= rootID || n.id > last || n.nsec >= 1e9 || kinds[n.id] != 0 {
		return syscall.EINVAL
	}
	switch n.kind {
	case syscall.S_IFREG, syscall.S_IFDIR, syscall.S_IFLNK, syscall.S_IFIFO, syscall.S_IFSOCK, syscall.S_IFCHR, syscall.S_IFBLK:
	default:
		return syscall.EINVAL
	}
	if n.parent == 0 {
		if n.name != "" {
			return syscall.EINVAL
		}
		return nil
	}
	if kinds[n.parent] != syscall.S_IFDIR {
		return syscall.ENOTDIR
	}
	return checkName(n.name)
}
