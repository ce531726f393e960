package server

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// supervisedTrial returns a server with one place for each caller, and its log.
func supervisedTrial(t *testing.T) (*Server, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	s, err := New(Options{
		Caller: func(*http.Request) (Caller, error) { return Caller{}, paddock.Denied }, Streams: 1,
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, &log
}

func TestASupervisedHandlerHasIDsAndRecords(t *testing.T) {
	s, log := supervisedTrial(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /thing/{id}", func(w http.ResponseWriter, r *http.Request) {
		p, err := s.Enter(r.Context(), "acme")
		if err != nil {
			t.Error(err)
			return
		}
		defer p.Leave()
		if _, err := s.Enter(r.Context(), "acme"); !errors.Is(err, paddock.Exhausted) {
			t.Errorf("a place more than there are: %v", err)
		}
		if q, ok := RequestOf(r.Context()); !ok || q.ID == "" || q.ID != w.Header().Get(api.RequestHeader) {
			t.Errorf("the request is %+v", q)
		}
		w.WriteHeader(http.StatusTeapot)
	})
	w := httptest.NewRecorder()
	s.Supervise("other", mux).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/thing/secret", http.NoBody))
	if line := log.String(); strings.Count(line, "msg=request") != 1 || !strings.Contains(line, "caller=acme") ||
		!strings.Contains(line, `route="other GET /thing/{id}"`) || !strings.Contains(line, "code=418") || strings.Contains(line, "secret") {
		t.Errorf("the log says %s", line)
	}
	p, err := s.Enter(t.Context(), "acme")
	if err != nil {
		t.Fatalf("a place that was given back: %v", err)
	}
	p.Leave()
}

func TestBodiesOfSupervisedRequestsAreCountedWithTheAPIsOwn(t *testing.T) {
	s, _ := supervisedTrial(t)
	p, err := s.Enter(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	zeros := func(n int) io.Reader { return bytes.NewReader(make([]byte, n)) }
	if _, err := io.Copy(io.Discard, p.Body(zeros(maxBodies))); err != nil {
		t.Errorf("all there may be: %v", err)
	}
	if _, err := io.Copy(io.Discard, p.Body(zeros(1))); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("one byte more: %v", err)
	}
	p.Leave()
	if p, err = s.Enter(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	defer p.Leave()
	if _, err := io.Copy(io.Discard, p.Body(zeros(maxBodies))); err != nil {
		t.Errorf("after it was given back: %v", err)
	}
}

func TestInputOfSupervisedRequestsIsCountedWithTheAPIsOwn(t *testing.T) {
	s, _ := supervisedTrial(t)
	one, again, other := s.InputRoom("acme"), s.InputRoom("acme"), s.InputRoom("other")
	if !one.Take(maxInputHeld - 10) {
		t.Fatal("there is no room for all there may be")
	}
	if again.Take(11) {
		t.Error("there is room for a byte more")
	}
	if !again.Take(10) || !other.Take(maxInputHeld) {
		t.Error("what was refused is held, or another's room is gone")
	}
	again.Give(10)
	one.Give(maxInputHeld - 10)
	if !again.Take(maxInputHeld) {
		t.Error("what was given back is not there")
	}
	again.Give(maxInputHeld)
	other.Give(maxInputHeld)
	if held := s.inputHeld.held("input"); held.Used != 0 {
		t.Errorf("%d bytes are held of nobody", held.Used)
	}
}

func TestAServerThatEndsRefusesSupervisedRequestsAndEndsThoseUnderWay(t *testing.T) {
	s, _ := supervisedTrial(t)
	inside, ended := make(chan struct{}), make(chan struct{})
	h := s.Supervise("other", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(inside)
		<-r.Context().Done()
	}))
	go func() {
		defer close(ended)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", http.NoBody))
	}()
	<-inside
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-ended
	if _, err := s.Enter(t.Context(), "acme"); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("entered: %v", err)
	}
}
