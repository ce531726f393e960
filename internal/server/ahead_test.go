package server

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestWhatSandboxesSendAheadCountsForTheirCaller(t *testing.T) {
	sb := newTalker(4 << 20) // more than a client gets that acknowledges nothing
	tr := newTrial(t, func(c *Caller) { c.Driver = &shelf{sb: sb} })
	a := tr.s.accountOf("one")
	change := func(n int64) int64 {
		a.sentAhead.mu.Lock()
		defer a.sentAhead.mu.Unlock()
		a.sentAhead.used += n
		return a.sentAhead.used
	}
	token := func(i int) string { return fmt.Sprintf("attachment=%016d", i) }
	follow := func(query string) {
		t.Helper()
		if res := tr.follow(query); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", query, res.Status)
		}
	}
	tr.s.sentAhead.max = 3 * followCost
	for i := range 3 {
		follow(token(i))
	}
	if n := change(minAhead); n != minAhead+3*followCost { // so that the caller's floor is used up too
		t.Errorf("%d bytes are counted", n-minAhead)
	}
	const path = "/v1/sandboxes/a/processes/1/output"
	if said := string(tr.want(http.StatusTooManyRequests, "GET", path+"?"+token(3), "")); !strings.Contains(said, "too many processes") {
		t.Errorf("it says %q", said)
	}
	tr.want(http.StatusTooManyRequests, "GET", path, "") // also without a token
	follow(token(0))                                     // the same one again
	change(-minAhead)
	tr.want(http.StatusNoContent, "DELETE", "/v1/attachments/"+strings.TrimPrefix(token(0), "attachment="), "")
	for i := range 3 {
		follow(token(3 + i)) // the caller's floor
	}
	for i := range 6 {
		tr.want(http.StatusNoContent, "DELETE", "/v1/attachments/"+strings.TrimPrefix(token(i), "attachment="), "")
	}
	tr.until(func() bool { return change(0) == 0 && tr.s.sentAhead.held("").Used == 0 })
}

func TestAnEndedProcessSendsNothingAhead(t *testing.T) {
	sb := newTalker(10)
	tr := newTrial(t, func(c *Caller) { c.Driver = &shelf{sb: sb} })
	a := tr.s.accountOf("one")
	a.sentAhead.max = followCost
	tr.s.sentAhead.max = followCost
	tr.want(http.StatusOK, "GET", "/v1/sandboxes/a/processes/1/output?attachment="+someToken, "")
	if n := a.sentAhead.held("").Used; n != 0 {
		t.Errorf("%d bytes are counted", n)
	}
	if a.attached(someToken) == nil {
		t.Error("its output is not there any more")
	}
}

func TestOneCallerTakesNotAllOfTheRoomForWhatIsSentAhead(t *testing.T) {
	all := budget{max: 2 * minAhead}
	one := &account{sentAhead: budget{max: 4 * minAhead, floor: minAhead, above: &all}}
	other := &account{sentAhead: budget{max: 4 * minAhead, floor: minAhead, above: &all}}
	count := func(a *account) (n int64, end func()) {
		var back []func()
		for n < 4*minAhead {
			done, err := a.ahead(followCost)
			if err != nil {
				break
			}
			n += followCost
			back = append(back, done)
		}
		return n, func() {
			for _, done := range back {
				done()
			}
		}
	}
	n, end := count(one)
	if n != 2*minAhead {
		t.Errorf("the first has %d bytes", n)
	}
	m, endOther := count(other)
	if m != minAhead {
		t.Errorf("another has %d bytes", m)
	}
	end()
	endOther()
	if one.sentAhead.used != 0 || other.sentAhead.used != 0 || all.used != 0 {
		t.Errorf("%d, %d and %d bytes are still counted", one.sentAhead.used, other.sentAhead.used, all.used)
	}
}

func TestAWatchCountsForItsCaller(t *testing.T) {
	tr := newTrial(t)
	tr.want(http.StatusCreated, "POST", "/v1/sandboxes", `{"id":"a"}`)
	a := tr.s.accountOf("one")
	a.sentAhead.mu.Lock()
	a.sentAhead.used = maxAhead - watchCost + 1
	a.sentAhead.mu.Unlock()
	tr.want(http.StatusTooManyRequests, "GET", "/v1/sandboxes/a/files/watch?path=/tmp", "")
}

func TestWritersOfOneCallerAreBounded(t *testing.T) {
	tr := newTrial(t)
	a := tr.s.accountOf("one")
	a.mu.Lock()
	for i := range 2048 {
		a.inputs[inputKey{writer: fmt.Sprint(i)}] = &input{process: &deaf{released: make(chan struct{})}, used: time.Now()}
	}
	a.mu.Unlock()
	tr.want(http.StatusCreated, "POST", "/v1/sandboxes", `{"id":"a"}`)
	tr.want(http.StatusTooManyRequests, "POST", "/v1/sandboxes/a/processes/1/input?writer="+someToken, "x")
}
