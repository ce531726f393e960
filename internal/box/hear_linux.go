package box

import (
	"os"
	"time"

	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Listen returns the end of a socket on which the runtime reports events, and records them.
// If the events of a box cannot be received or written any more, the box ends.
func (b *Box) Listen() (theirs *os.File, err error) {
	ours, theirs, err := sys.EventPair()
	if err != nil {
		return nil, err
	}
	s := &b.plan
	sink := s.Audit
	if sink == nil {
		sink = nothing{} // the kernel reports some events without request
	}
	b.events, b.heard = ours, make(chan struct{})
	b.wg.Go(func() {
		err := s.Runtime.Receive(ours, s.Name, sink)
		close(b.heard)
		select {
		case <-b.ended:
		case <-time.After(endTime):
			b.unheard(err)
		}
	})
	return theirs, nil
}

// endTime is how long a box may take to end after its kernel stopped reporting.
const endTime = 5 * time.Second

// unheard ends a box whose events nobody records any more.
func (b *Box) unheard(err error) {
	why := "what its commands do could not be recorded any more, and the sandbox was ended"
	if err != nil {
		why += ": " + err.Error()
	}
	b.finishWith(why)
}

// finishWith ends a box, and says why unless something else has ended it before.
func (b *Box) finishWith(why string) {
	b.mu.Lock()
	if b.why == "" {
		b.why = why
	}
	b.mu.Unlock()
	b.kill()
}

type nothing struct{}

func (nothing) Record(audit.Event) {}
