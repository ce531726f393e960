package fileserver

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// State returns the input of Restore. No request may be in progress.
func (s *Server) State() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := savedState{begun: s.begun, last: s.last}
	below := map[*node][]*node{}
	var next []*node
	for _, n := range s.nodes {
		if n.parent == nil {
			next = append(next, n)
		} else {
			below[n.parent] = append(below[n.parent], n)
		}
	}
	for len(next) > 0 {
		n := next[len(next)-1]
		next = append(next[:len(next)-1], below[n]...)
		if n == s.root {
			continue
		}
		one := savedNode{
			id: n.id, lookups: n.lookups, kind: n.kind, opened: n.opened, name: n.name,
			ino: n.ino, size: n.seen.size, sec: uint64(n.seen.mod.Sec), nsec: n.seen.mod.Nsec,
		}
		if n.parent != nil {
			one.parent = n.parent.id
		}
		saved.nodes = append(saved.nodes, one)
		for _, p := range n.more {
			saved.names = append(saved.names, savedName{n.id, p.parent.id, p.name})
		}
	}
	if len(saved.nodes)+1 != len(s.nodes) {
		return nil, fmt.Errorf("keep a share: %d nodes of %d: %w", len(saved.nodes), len(s.nodes)-1, paddock.Internal)
	}
	for _, h := range s.handles {
		saved.handles = append(saved.handles, savedHandle{h.id, h.node.id, uint32(h.flags)})
	}
	return saved.bytes(), nil
}

// Restore makes a server for a restored machine. data is the State of its former server.
// Files are opened again at their next use. A file that does not exist any more is ESTALE
// to the machine.
func Restore(o Options, data []byte) (*Server, error) {
	saved, err := readState(data)
	if err != nil {
		return nil, err
	}
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	if err := s.restore(saved); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) restore(saved *savedState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun, s.last = s.begun || saved.begun, saved.last
	nowhere := regionsOf(nil)
	for i := range saved.nodes {
		one := &saved.nodes[i]
		n := &node{
			id: one.id, kind: one.kind, lookups: one.lookups, opened: one.opened, ino: one.ino, region: nowhere,
			seen: stamp{size: one.size, mod: sys.Time{Sec: int64(one.sec), Nsec: one.nsec}},
		}
		s.nodes[n.id] = n
		if one.parent == 0 {
			continue
		}
		parent := s.nodes[one.parent]
		n.region = parent.region.in(one.name)
		if err := s.restoreName(n, parent, one.name); err != nil {
			return err
		}
	}
	for _, one := range saved.names {
		if err := s.restoreName(s.nodes[one.node], s.nodes[one.parent], one.name); err != nil {
			return err
		}
	}
	if len(saved.handles) > s.handleMax {
		return fmt.Errorf("a share's state: %d handles, and there may be %d: %w", len(saved.handles), s.handleMax, paddock.Exhausted)
	}
	for _, one := range saved.handles {
		n := s.nodes[one.node]
		h := &handle{id: one.id, node: n, flags: int(one.flags) & permanent, dir: n.kind == sys.TypeDir}
		s.handles[h.id] = h
		s.keep(h)
	}
	for _, n := range s.nodes { // the machine knows every restored node
		s.drop(n)
	}
	return nil
}

// restoreName gives a node a name. mu is held.
func (s *Server) restoreName(n, parent *node, name string) error {
	if s.names[entry{parent.id, name}] != nil || s.nameBytes+len(name) > s.nameMax {
		return fmt.Errorf("a share's state: two of a name, or too many: %w", paddock.Invalid)
	}
	s.attach(n, parent, name)
	return nil
}
