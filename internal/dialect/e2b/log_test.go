package e2b

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// size returns the bytes of a build's log.
func (b *build) size() int {
	n := 0
	for _, e := range b.log {
		n += len(e.Message) + entryCost
	}
	return n
}

func TestTheLogOfABuildHasABoundAndTellsWhatItLeftOut(t *testing.T) {
	for what, line := range map[string]string{
		"long lines":  strings.Repeat("x", 2*maxLine),
		"empty lines": "",
		"odd bytes":   strings.Repeat("\xffx", maxLine),
	} {
		b := &build{status: building}
		const lines = 20_000
		for range lines {
			b.say("info", "1", line)
		}
		kept := len(b.log)
		b.say("info", "1", "") // which would have room
		if n := b.size(); n > maxBuildLog || n < maxBuildLog-maxLine-2*entryCost || len(b.log) != kept {
			t.Errorf("%s: %d lines of %d bytes", what, len(b.log), n)
		}
		for _, e := range b.log {
			if len(e.Message) > maxLine || !utf8.ValidString(e.Message) {
				t.Fatalf("%s: a line of %d bytes, %.20q", what, len(e.Message), e.Message)
			}
		}
		b.end(errors.New("it failed"), "1")
		last := b.log[len(b.log)-1]
		if want := fmt.Sprintf("%d more lines were left out", lines+1-kept); !strings.HasPrefix(last.Message, want) || len(b.log) != kept+1 || b.status != failed || b.ended.IsZero() {
			t.Errorf("%s: it ends with %q, and is to say %q", what, last.Message, want)
		}
	}
	b := &build{}
	b.say("info", "1", "one")
	b.end(nil, "")
	if len(b.log) != 1 || b.status != ready {
		t.Errorf("of a short one: %v", b.log)
	}
}

func TestOfBuildsThatEndedTheNewestLogsAreKept(t *testing.T) {
	h, _ := handler(t, record{})
	begun := time.Now()
	end := func(tenant string, n int) {
		h.builds[fmt.Sprint(tenant, n)] = &build{
			id: fmt.Sprint(tenant, n), caller: dialect.Caller{Tenant: tenant}, status: ready, ended: begun.Add(time.Duration(n) * time.Second), log: []logEntry{{}},
		}
	}
	kept := func(tenant string) (list []int) {
		for n := range 100 {
			if h.builds[fmt.Sprint(tenant, n)] != nil {
				list = append(list, n)
			}
		}
		return list
	}
	enqueue := func(id string) {
		t.Helper()
		done := make(chan struct{})
		b := &build{id: id, status: waiting, caller: dialect.Caller{Tenant: "third"}}
		b.start = func() { b.end(nil, ""); close(done) }
		if err := h.enqueue(b); err != nil {
			t.Fatal(err)
		}
		<-done
	}
	h.mu.Lock()
	for n := range 20 {
		end("acme", n)
	}
	for n := range 3 {
		end("other", n)
	}
	h.mu.Unlock()
	enqueue("one")
	h.mu.Lock()
	if got := kept("acme"); len(got) != maxOwnLogs || got[0] != 4 {
		t.Errorf("kept of a tenant with many builds: %v", got)
	}
	if got := kept("other"); len(got) != 3 {
		t.Errorf("kept of another: %v", got)
	}
	for n := range maxLogs {
		end(fmt.Sprint("tenant", n), 50)
	}
	h.mu.Unlock()
	enqueue("two")
	h.mu.Lock()
	defer h.mu.Unlock()
	if got, more := kept("acme"), kept("other"); len(got) > 0 || len(more) > 0 || len(h.builds) > maxLogs+1 {
		t.Errorf("kept of all %d: %v, %v", len(h.builds), got, more)
	}
}

// A build that waits or runs keeps its request, and an ended one does not.
func TestTheRequestOfABuildHasABoundAndEndsWithIt(t *testing.T) {
	h, _ := handler(t, record{})
	q := buildRequest{Steps: []step{{Type: "ENV", Args: make([]string, 100_000)}}}
	if n := q.size(); n < 100_000*16 || n <= maxRequest {
		t.Errorf("many short arguments count %d bytes", n)
	}
	h.templates["t"] = &template{ID: "t", Tenant: "acme", Builds: []built{{ID: "b", Status: waiting}}}
	for what, body := range map[string]string{
		"arguments": `{"steps":[{"type":"ENV","args":["A","` + strings.Repeat("x", maxRequest) + `"]}]}`,
		"a command": `{"startCmd":"` + strings.Repeat("x", maxRequest+1) + `"}`,
	} {
		if w := post(t, h, "/v2/templates/t/builds/b", body); w.Code != 413 || !strings.Contains(w.Body.String(), "steps and commands") {
			t.Errorf("%s: %d %.200s", what, w.Code, w.Body)
		}
	}
	b := &build{id: "c", status: waiting, caller: dialect.Caller{Tenant: "acme"}, start: func() {}}
	if err := h.enqueue(b); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil { // waits for the build
		t.Fatal(err)
	}
	if b.start != nil {
		t.Error("a build that ended keeps its request")
	}
}

func post(t *testing.T, h *Handler, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body))
	r.Header.Set("X-Api-Key", "write")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
