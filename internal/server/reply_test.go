package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A crowded sandbox has a process with a long argument.
type crowded struct {
	thing
	arg string
}

func (c *crowded) Processes(context.Context) ([]paddock.ProcessInfo, error) {
	return []paddock.ProcessInfo{{PID: 1, Args: []string{c.arg}}}, nil
}

// A blocked answer is not read until it may be.
type blocked struct {
	*httptest.ResponseRecorder
	begun chan struct{} // receives an element when a write begins
	read  chan struct{} // closed when the client reads
	until time.Time     // deadline of the write
}

func newBlocked() *blocked {
	return &blocked{ResponseRecorder: httptest.NewRecorder(), begun: make(chan struct{}, 10), read: make(chan struct{})}
}

func (b *blocked) SetWriteDeadline(at time.Time) error {
	b.until = at
	return nil
}

func (b *blocked) Write(p []byte) (int, error) {
	b.begun <- struct{}{}
	<-b.read
	return b.ResponseRecorder.Write(p)
}

func TestAnswersThatAreNotReadAreBounded(t *testing.T) {
	const size = 1 << 20
	tr := newTrial(t, func(c *Caller) { c.Driver = &shelf{sb: &crowded{thing{id: "a"}, strings.Repeat("\x01", size)}} })
	a := tr.s.accountOf("one")
	request := func() *http.Request {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/sandboxes/a/processes", http.NoBody)
		r.Header.Set("Authorization", "Bearer good")
		return r
	}
	first, ended := newBlocked(), make(chan struct{})
	go func() {
		defer close(ended)
		tr.s.ServeHTTP(first, request())
	}()
	<-first.begun
	held := a.answers.held("answer").Used
	if held < 6*size || tr.s.answers.held("answer").Used != held { // each byte is six in JSON
		t.Errorf("%d bytes are counted", held)
	}
	if left := time.Until(first.until); left <= 0 || left > stall {
		t.Errorf("the client has %v to read", left)
	}
	a.answers.max = held + size
	tr.want(429, "GET", "/v1/sandboxes/a/processes", "")
	tr.want(200, "GET", "/v1/sandboxes", "") // a small answer
	close(first.read)
	<-ended
	if first.Code != http.StatusOK || first.Body.Len() < 6*size {
		t.Errorf("answered %d with %d bytes", first.Code, first.Body.Len())
	}
	a.answers.max = maxAnswers
	tr.want(200, "GET", "/v1/sandboxes/a/processes", "")
	if n := tr.s.answers.held("answer").Used; n != 0 {
		t.Errorf("%d bytes are counted of no answer", n)
	}
}

func TestAnswersOfSupervisedRequestsAreCountedWithTheAPIsOwn(t *testing.T) {
	s, _ := supervisedTrial(t)
	p, err := s.Enter(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", small)
	if data, err := p.Encode(text); err != nil || string(data) != `"`+text+`"`+"\n" {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if n := s.answers.held("answer").Used; n < small {
		t.Errorf("%d bytes are counted", n)
	}
	room := s.AnswerRoom("acme")
	if room.Take(maxAnswers) {
		t.Error("there is room for more than there may be")
	}
	if !room.Take(maxAnswers - 2*small) {
		t.Error("there is no room for what there may be")
	}
	if _, err := p.Encode(text + text); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("one too many: %v", err)
	}
	if _, err := p.Encode("small"); err != nil {
		t.Errorf("a small one: %v", err)
	}
	p.Leave()
	room.Give(maxAnswers - 2*small)
	if n := s.answers.held("answer").Used; n != 0 {
		t.Errorf("%d bytes are counted of no answer", n)
	}
}
