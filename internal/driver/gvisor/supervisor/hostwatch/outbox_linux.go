package hostwatch

import (
	"errors"
	"sync"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// An outbox sends requests in their order. It never keeps its user waiting: the box's init may wait for its reports
// to be taken before it takes a request. It holds one request at most for each watch.
type outbox struct {
	fd int

	mu    sync.Mutex
	some  *sync.Cond // of list and ended
	list  []boxinit.WatchRequest
	ended bool
}

func newOutbox(fd int) *outbox {
	o := &outbox{fd: fd}
	o.some = sync.NewCond(&o.mu)
	go o.run() // ends with end, or with the socket
	return o
}

// put sends a request later, and reports whether anybody takes requests.
func (o *outbox) put(r boxinit.WatchRequest) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return false
	}
	o.list = append(o.list, r)
	o.some.Signal()
	return true
}

func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.some.Signal()
}

func (o *outbox) take() (list []boxinit.WatchRequest, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.list) == 0 && !o.ended {
		o.some.Wait()
	}
	list, o.list = o.list, nil
	return list, !o.ended
}

func (o *outbox) run() {
	for {
		list, ok := o.take()
		if !ok {
			return
		}
		for _, r := range list {
			_, err := syscall.Write(o.fd, r.Bytes())
			for errors.Is(err, syscall.EINTR) {
				_, err = syscall.Write(o.fd, r.Bytes())
			}
			if err != nil {
				o.end()
				return
			}
		}
	}
}
