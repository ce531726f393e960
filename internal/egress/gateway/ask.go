package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// Bounds on questions, because a guest can cause any number, and a person answers few.
const (
	questionsMax = 8                // at once
	perMinute    = 20               // in one minute
	remembered   = 10 * time.Second // how long a refusal stays valid
	refusalsMax  = 1024
)

// An asker asks one question at a time for a host and port. Further callers wait for the
// same answer.
type asker struct {
	g    *Gateway
	room bucket

	mu      sync.Mutex
	pending map[gatewayclient.Question]*question // guarded by mu
	refused map[gatewayclient.Question]time.Time // guarded by mu; end of each refusal
}

type question struct {
	waiting int // guarded by the asker's mu
	cancel  context.CancelFunc
	done    chan struct{}
	answer  gatewayclient.Answer // set before done is closed
}

func newAsker(g *Gateway) *asker {
	return &asker{g: g, room: bucket{rate: perMinute / 60.0, room: perMinute}, pending: map[gatewayclient.Question]*question{}, refused: map[gatewayclient.Question]time.Time{}}
}

// can reports whether somebody can be asked.
func (a *asker) can() bool { return a.g.o.Ask != nil }

// ask reports whether a person allows f this time. Otherwise reason says why not.
func (a *asker) ask(ctx context.Context, f decide.Flow) (allowed bool, reason string) {
	key := gatewayclient.Question{Sandbox: a.g.o.Sandbox, Host: f.Host.String(), Port: f.Port, UDP: f.UDP}
	q, reason := a.join(key, time.Now())
	if q == nil {
		return false, reason
	}
	select {
	case <-q.done:
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	q.waiting--
	if q.waiting == 0 {
		q.cancel()
	}
	select {
	case <-q.done:
	default:
		return false, "nobody answered while it waited"
	}
	if q.answer == gatewayclient.AnswerOnce || q.answer == gatewayclient.AnswerAlways {
		return true, ""
	}
	return false, fmt.Sprintf("a person was asked for %s and said no", f.Host)
}

// join returns the pending question, or why none is asked.
func (a *asker) join(key gatewayclient.Question, now time.Time) (*question, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.pending[key]; q != nil {
		q.waiting++
		return q, ""
	}
	if until, ok := a.refused[key]; ok && now.Before(until) {
		return nil, "a person was asked a moment ago and said no"
	}
	if len(a.pending) >= questionsMax {
		return nil, fmt.Sprintf("no rule allows it, and %d other questions wait for a person", questionsMax)
	}
	if !a.room.take(now) {
		return nil, fmt.Sprintf("no rule allows it, and a person is not asked more than %d times a minute", perMinute)
	}
	ctx, cancel := context.WithCancel(a.g.ctx)
	q := &question{waiting: 1, cancel: cancel, done: make(chan struct{})}
	a.pending[key] = q
	a.g.wg.Go(func() {
		answer := a.g.o.Ask(ctx, key)
		if answer == gatewayclient.AnswerAlways && a.g.allowAlways(key) != nil {
			answer = gatewayclient.AnswerOnce // it is valid once all the same
		}
		a.settle(key, q, answer)
	})
	return q, ""
}

func (a *asker) settle(key gatewayclient.Question, q *question, answer gatewayclient.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.pending, key)
	now := time.Now()
	if answer == gatewayclient.AnswerDeny && q.waiting > 0 {
		for k, until := range a.refused {
			if len(a.refused) >= refusalsMax || now.After(until) {
				delete(a.refused, k)
			}
		}
		a.refused[key] = now.Add(remembered)
	}
	q.answer = answer
	close(q.done)
	q.cancel()
}
