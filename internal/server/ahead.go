package server

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of the memory for what sandboxes send ahead of what clients take, beside the output in
// backlogs. A hostile sandbox sends as much ahead as it can. So each stream counts with the most that
// it can take, from its beginning.
const (
	followCost = 192 << 10 // of the output of a process: the window of the stream, and one message
	watchCost  = 384 << 10 // of a watch, whose messages may be longer
	maxAhead   = 1024 * followCost
	allAhead   = 1 << 30
	minAhead   = 64 * followCost // the floor of one caller
)

// ahead counts a stream of a sandbox until done is called.
func (a *account) ahead(cost int64) (done func(), err error) {
	room := &Room{&a.sentAhead}
	if !room.Take(cost) {
		return nil, fmt.Errorf("too many processes and directories are followed at the same time, by this caller (%d processes is the maximum) or in total; detach from some: %w",
			maxAhead/followCost, paddock.Exhausted)
	}
	return func() { room.Give(cost) }, nil
}

// AheadRoom returns the room for what the caller's sandboxes send ahead of what clients take.
func (s *Server) AheadRoom(caller string) *Room { return &Room{&s.accountOf(caller).sentAhead} }
