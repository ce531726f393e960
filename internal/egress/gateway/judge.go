package gateway

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// Bounds on questions to the judge, because a guest can cause any number, and each may cost time and money.
const (
	judgedAtOnce    = 8
	judgedPerMinute = 60
	judgedMax       = 4096 // answers that are remembered
)

// A judge asks the owner about what is allowed: once for each host and port, and once for each secret there. Allowances are
// remembered as long as the gateway lives, denials for a while. A nil judge allows everything.
type judge struct {
	g     *Gateway
	room  bucket
	slots chan struct{} // holds an element for each question

	mu      sync.Mutex
	allowed map[gatewayclient.Question]bool      // guarded by mu
	denied  map[gatewayclient.Question]judgement // guarded by mu
	pending map[gatewayclient.Question]chan struct{}
}

type judgement struct {
	until  time.Time
	reason string
}

func newJudge(g *Gateway) *judge {
	if g.o.Judge == nil {
		return nil
	}
	return &judge{
		g: g, room: bucket{rate: judgedPerMinute / 60.0, room: judgedPerMinute}, slots: make(chan struct{}, judgedAtOnce),
		allowed: map[gatewayclient.Question]bool{}, denied: map[gatewayclient.Question]judgement{}, pending: map[gatewayclient.Question]chan struct{}{},
	}
}

// flow returns why a connection is denied, or nothing. rule says that a rule allows it.
func (j *judge) flow(ctx context.Context, f decide.Flow, rule bool) (reason string) {
	if j == nil {
		return ""
	}
	return j.ask(ctx, gatewayclient.Question{Sandbox: j.g.o.Sandbox, Host: f.Host.String(), Port: f.Port, UDP: f.UDP, Judge: true, Rule: rule})
}

// secret returns why a secret is not put into requests to a host, or nothing.
func (j *judge) secret(ctx context.Context, f decide.Flow, name string) (reason string) {
	return j.ask(ctx, gatewayclient.Question{Sandbox: j.g.o.Sandbox, Host: f.Host.String(), Port: f.Port, Judge: true, Rule: true, Secret: name})
}

// ask asks unless the answer is known. Further callers with the same question wait for its answer.
func (j *judge) ask(ctx context.Context, q gatewayclient.Question) (reason string) {
	key := q
	key.Rule = false
	for {
		wait, reason, known := j.begin(key)
		switch {
		case known:
			return reason
		case wait == nil:
			return j.put(ctx, q, key)
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return "the monitor had not answered while it waited"
		}
	}
}

// begin returns a known answer, or what to wait for, or neither: then the caller must put the question.
func (j *judge) begin(key gatewayclient.Question) (wait <-chan struct{}, reason string, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.allowed[key] {
		return nil, "", true
	}
	if d, ok := j.denied[key]; ok && time.Now().Before(d.until) {
		return nil, d.reason, true
	}
	if w := j.pending[key]; w != nil {
		return w, "", false
	}
	if !j.room.take(time.Now()) {
		return nil, "the monitor is not asked about more than 60 new destinations a minute", true
	}
	j.pending[key] = make(chan struct{})
	return nil, "", false
}

// put asks the owner. Without an answer it is denied, and nothing is remembered.
func (j *judge) put(ctx context.Context, q, key gatewayclient.Question) (reason string) {
	var answer gatewayclient.Judgement
	asked := false
	select {
	case j.slots <- struct{}{}:
		answer, asked = j.g.o.Judge(ctx, q), true
		<-j.slots
	case <-ctx.Done():
	}
	asked = asked && ctx.Err() == nil
	if !answer.Allow {
		reason = cmp.Or(answer.Reason, "the monitor denied it")
	}
	if !asked {
		reason = "the monitor had not answered while it waited"
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.pending[key])
	delete(j.pending, key)
	switch {
	case !asked:
	case answer.Allow && len(j.allowed) < judgedMax:
		j.allowed[key] = true
	case !answer.Allow:
		if len(j.denied) >= judgedMax {
			clear(j.denied)
		}
		j.denied[key] = judgement{time.Now().Add(remembered), reason}
	}
	return reason
}
