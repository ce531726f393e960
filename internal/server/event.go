package server

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// keptNews is the number of events kept for later requests.
const keptNews = 1000

// news holds the events of a caller's sandboxes. The zero value is ready to use.
type news struct {
	mu   sync.Mutex
	kept []api.News    // guarded by mu; the newest, at most keptNews
	last int64         // guarded by mu; number of the newest
	more chan struct{} // guarded by mu; closed at the next event; nil if nothing waits
}

func (n *news) tell(what api.NewsKind, id paddock.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last++
	if len(n.kept) == keptNews {
		n.kept = append(n.kept[:0], n.kept[1:]...)
	}
	n.kept = append(n.kept, api.News{Number: n.last, Time: time.Now(), What: what, Sandbox: id})
	if n.more != nil {
		close(n.more)
		n.more = nil
	}
}

// after returns the events after a number. If there is none, the channel is closed at the
// next event.
func (n *news) after(number int64) ([]api.News, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if number >= n.last {
		if n.more == nil {
			n.more = make(chan struct{})
		}
		return nil, n.more
	}
	have := n.kept[max(0, len(n.kept)-int(n.last-number)):]
	out := append([]api.News(nil), have...)
	out[0].Lost = out[0].Number > number+1
	return out, nil
}

func (n *news) newest() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

// events handles GET /v1/events.
func (q *request) events() error {
	n := &q.account.news
	at := n.newest()
	if text := q.URL.Query().Get("after"); text != "" {
		after, err := strconv.ParseInt(text, 10, 64)
		if err != nil || after < 0 {
			return fmt.Errorf("after: %q is not the number of an event: %w", text, paddock.Invalid)
		}
		at = min(at, after)
	}
	out := q.lines()
	if err := out.send(api.Line{Alive: true}); err != nil {
		return nil //nolint:nilerr // the client has gone
	}
	for {
		list, more := n.after(at)
		for i := range list {
			at = list[i].Number
			if !q.visible(list[i].Sandbox) {
				continue
			}
			if err := out.send(api.Line{Event: &list[i]}); err != nil {
				return nil //nolint:nilerr // the client has gone
			}
		}
		if list != nil {
			continue
		}
		select {
		case <-more:
		case <-time.After(aliveEvery):
			if err := out.send(api.Line{Alive: true}); err != nil {
				return nil //nolint:nilerr // the client has gone
			}
		case <-q.Context().Done():
			return nil
		case <-q.s.ctx.Done():
			return out.end(nil)
		}
	}
}
