package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/netstack"
)

// judging answers by host, and counts.
type judging struct {
	mu    sync.Mutex
	asked map[gatewayclient.Question]int
	deny  string // this host
}

func (j *judging) judge(_ context.Context, q gatewayclient.Question) gatewayclient.Judgement {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.asked == nil {
		j.asked = map[gatewayclient.Question]int{}
	}
	q.Sandbox = ""
	j.asked[q]++
	if q.Host == j.deny {
		return gatewayclient.Judgement{Reason: "the monitor does not like it"}
	}
	return gatewayclient.Judgement{Allow: true}
}

func (j *judging) count(q gatewayclient.Question) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.asked[q]
}

func TestAJudgeIsAskedOnceAboutWhatIsAllowed(t *testing.T) {
	port := serve(t, echo)
	j := &judging{deny: "bad.test"}
	w := open(t, gateway.Options{Policy: policy(allow("good.test", port), allow("bad.test", port)), Judge: j.judge, Ask: func(_ context.Context, q gatewayclient.Question) gatewayclient.Answer {
		if q.Host == "person.test" {
			return gatewayclient.AnswerOnce
		}
		return gatewayclient.AnswerDeny
	}})
	for range 2 {
		talk(t, w.reach(t, "good.test", port), "hello")
		talk(t, w.reach(t, "person.test", port), "hello")
		for _, host := range []string{"bad.test", "none.test"} {
			if _, err := w.Dial(t.Context(), host, port); err == nil {
				t.Fatalf("%s can be reached", host)
			}
		}
	}
	w.record.waitFor(t, denied("bad.test", "the monitor does not like it"))
	for host, want := range map[string]int{"good.test": 1, "bad.test": 1, "none.test": 0} {
		if n := j.count(gatewayclient.Question{Host: host, Port: port, Judge: true, Rule: true}); n != want {
			t.Errorf("asked about %s %d times, want %d", host, n, want)
		}
	}
	if n := j.count(gatewayclient.Question{Host: "person.test", Port: port, Judge: true}); n != 1 {
		t.Errorf("asked about what a person allowed %d times", n)
	}
}

func TestAJudgeDecidesAboutRequestsOfTheProxyToo(t *testing.T) {
	port := web(t, nil)
	j := &judging{deny: "bad.test"}
	w := open(t, gateway.Options{Policy: policy(allow("good.test", port), allow("bad.test", port)), Judge: j.judge})
	for host, want := range map[string]int{"good.test": 200, "bad.test": 403} {
		c, err := w.DialAddr(t.Context(), netip.AddrPortFrom(netstack.Gateway4(), netstack.ProxyPort))
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(c)
		if code, body := say(t, c, r, fmt.Sprintf("GET http://%s:%d/one HTTP/1.1\nHost: %s:%d\n\n", host, port, host, port)); code != want || want == 403 && !strings.Contains(body, "does not like it") {
			t.Errorf("%s: %d, %s", host, code, body)
		}
		c.Close()
	}
}

func TestAJudgeIsNotAskedWithoutABound(t *testing.T) {
	var mu sync.Mutex
	asked, most, now := 0, 0, 0
	w := open(t, gateway.Options{Policy: policy(allow("*", 443)), Judge: func(context.Context, gatewayclient.Question) gatewayclient.Judgement {
		mu.Lock()
		asked, now = asked+1, now+1
		most = max(most, now)
		mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		now--
		return gatewayclient.Judgement{}
	}})
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			if _, err := w.Connect(t.Context(), fmt.Sprintf("h%d.test", i), 443); !errors.Is(err, paddock.Denied) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	if asked < 60 || asked > 400 || most > 8 { // a machine that is slow gives more minutes
		t.Errorf("asked %d times, %d at once", asked, most)
	}
}

func TestAQuestionThatNobodyWaitsForAllowsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := open(t, gateway.Options{Policy: policy(allow("a.test", 443)), Judge: func(context.Context, gatewayclient.Question) gatewayclient.Judgement {
		cancel()
		return gatewayclient.Judgement{Allow: true}
	}})
	if _, err := w.Connect(ctx, "a.test", 443); err == nil {
		t.Error("it was allowed")
	}
}
