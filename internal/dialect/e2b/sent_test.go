package e2b

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// A stuck answer is of a client that reads nothing. Writes end at their deadline.
type stuck struct {
	*httptest.ResponseRecorder
	t     *testing.T
	until time.Time // deadline of the write; zero is none
	wrote bool
}

func (s *stuck) SetWriteDeadline(at time.Time) error {
	s.until = at
	return nil
}

func (s *stuck) Write([]byte) (int, error) {
	s.wrote = true
	if left := time.Until(s.until); s.until.IsZero() || left > dialect.Stall {
		s.t.Errorf("the client may take %v to read", left)
	}
	return 0, os.ErrDeadlineExceeded
}

func TestAnAnswerEndsWhereItsClientReadsNothing(t *testing.T) {
	h, _ := handler(t, record{})
	for _, path := range []string{"/teams", "/v2/sandboxes?limit=x", "/none"} {
		w := &stuck{ResponseRecorder: httptest.NewRecorder(), t: t, until: time.Unix(1, 0)} // of an earlier request
		r := httptest.NewRequestWithContext(t.Context(), "GET", path, http.NoBody)
		r.Header.Set("X-Api-Key", "read")
		h.ServeHTTP(w, r)
		if !w.wrote || w.until.Before(time.Now()) {
			t.Errorf("%s: answered %v, until %v", path, w.wrote, w.until)
		}
	}
	w := &stuck{ResponseRecorder: httptest.NewRecorder(), t: t, until: time.Unix(1, 0)}
	r := httptest.NewRequestWithContext(t.Context(), "OPTIONS", "/teams", http.NoBody)
	r.Header.Set("Origin", "https://x")
	r.Header.Set("Access-Control-Request-Method", "GET")
	h.ServeHTTP(w, r)
	if w.Code != http.StatusNoContent || !w.until.IsZero() && w.until.Before(time.Now()) {
		t.Errorf("a preflight: %d, until %v", w.Code, w.until)
	}
}

// A crammed place has no space for answers.
type crammed struct{ dialect.Boundless }

func (crammed) Encode(any) ([]byte, error) { return nil, fmt.Errorf("full: %w", paddock.Exhausted) }

func TestAnAnswerForWhichThereIsNoSpaceIsRefused(t *testing.T) {
	h, _ := handler(t, record{})
	h.o.Enter = func(context.Context, string) (dialect.Place, error) { return crammed{}, nil }
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/teams", http.NoBody)
	r.Header.Set("X-Api-Key", "read")
	h.ServeHTTP(w, r)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
		t.Errorf("answered %d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestARecordThatWouldBeTooLargeIsRefusedInWords(t *testing.T) {
	text := func(n int) map[string]string { return map[string]string{"name": strings.Repeat("x", n-4)} }
	raw := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	for _, row := range []struct {
		field string
		max   int
		asked func(n int) newSandbox
	}{
		{"metadata", 64 << 10, func(n int) newSandbox { return newSandbox{Metadata: text(n)} }},
		{"envVars", 256 << 10, func(n int) newSandbox { return newSandbox{EnvVars: text(n)} }},
		{"mcp", 64 << 10, func(n int) newSandbox { return newSandbox{MCP: raw(n)} }},
		{"httpsPorts", 1000, func(n int) newSandbox {
			ports := make([]int, n)
			for i := range ports {
				ports[i] = 443
			}
			return newSandbox{Network: &network{HTTPSPorts: ports}}
		}},
	} {
		c := &call{h: &Handler{o: Options{Wall: time.Now}}}
		for _, more := range []int{0, 1} {
			asked := row.asked(row.max + more)
			asked.TemplateID = "base"
			_, err := c.plan(asked, 300)
			refused := err != nil && faultOf(err).Code == 400 && strings.Contains(err.Error(), row.field) && strings.Contains(err.Error(), fmt.Sprint(row.max))
			if more == 0 && err != nil || more == 1 && !refused {
				t.Errorf("%s with %d: %v", row.field, row.max+more, err)
			}
		}
	}
}
