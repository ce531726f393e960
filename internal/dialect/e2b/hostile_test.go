package e2b

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// A timed answer notes until when its request's body may arrive.
type timed struct {
	*httptest.ResponseRecorder
	read time.Time
}

func (w *timed) SetReadDeadline(at time.Time) error {
	w.read = at
	return nil
}

// A reading port reads the whole body.
type reading struct {
	seen func(w http.ResponseWriter, body string, err error)
}

func (reading) Close() error { return nil }

func (p reading) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	p.seen(w, string(data), err)
}

func TestOnlyWhoIsLetInTakesTimeToSendABody(t *testing.T) {
	h := newCrossing(t, record{}, nil, func(http.ResponseWriter, *http.Request) {})
	var during time.Time
	seen := reading{func(w http.ResponseWriter, _ string, _ error) {
		for {
			switch next := w.(type) {
			case *timed:
				during = next.read
				return
			case interface{ Unwrap() http.ResponseWriter }:
				w = next.Unwrap()
			default:
				t.Errorf("an answer of type %T", w)
				return
			}
		}
	}}
	h.o.Envd = func(Inside) (Port, error) { return seen, nil }
	h.o.Code = func(Inside) (Port, error) { return seen, nil }
	for _, c := range []struct {
		what  string
		head  []string
		letIn bool
	}{
		{"a sandbox that is not there", []string{headerID, "ibbbbbbbbbbbbbbbbbbbb"}, false},
		{"the agent, without a token", []string{headerID, testID}, false},
		{"the agent, with a wrong one", []string{headerID, testID, headerToken, "ea_guessed"}, false},
		{"the interpreter, without one", []string{headerID, testID, headerPort, "49999"}, false},
		{"the agent, with its token", []string{headerID, testID, headerToken, testToken}, true},
		{"the interpreter, with it", []string{headerID, testID, headerPort, "49999", headerToken, testToken}, true},
	} {
		during = time.Unix(1, 0)
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/x", strings.NewReader("body"))
		for i := 0; i < len(c.head); i += 2 {
			r.Header.Set(c.head[i], c.head[i+1])
		}
		w := &timed{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, r)
		if w.read.IsZero() {
			t.Errorf("%s: what is left of a body is waited for without an end", c.what)
		}
		if c.letIn != during.IsZero() {
			t.Errorf("%s: while it is served, until %v", c.what, during)
		}
	}
}

// A seen body notes until when it may arrive, as it is read.
type seen struct {
	io.Reader
	w     *timed
	until time.Time
}

func (b *seen) Read(p []byte) (int, error) {
	b.until = b.w.read
	return b.Reader.Read(p)
}

func TestABodyOfTheControlPlaneHasToArriveInTime(t *testing.T) {
	h, _ := handler(t, record{Paused: true})
	for _, version := range []int{1, 2} {
		for what, c := range map[string]struct {
			body string
			rest bool // package http waits for what follows
		}{
			"whole":     {`{"timeout":5}`, false},
			"too large": {`{"timeout":5` + strings.Repeat(" ", dialect.MaxBody) + `}`, true},
		} {
			w := &timed{ResponseRecorder: httptest.NewRecorder()}
			body := &seen{Reader: strings.NewReader(c.body), w: w}
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/sandboxes/"+testID+"/timeout", body)
			r.ProtoMajor = version
			r.Header.Set("X-Api-Key", "write")
			h.ServeHTTP(w, r)
			if body.until.IsZero() || w.read.IsZero() == c.rest {
				t.Errorf("%s, by HTTP/%d: it may arrive until %v, and afterwards until %v", what, version, body.until, w.read)
			}
		}
	}
}

// A meter is a place whose bodies have a bound.
type meter struct{ left int }

func (m *meter) Hold(n int64) error {
	if m.left -= int(n); m.left < 0 {
		return paddock.Exhausted
	}
	return nil
}

func (m *meter) Leave() {}

func (m *meter) Encode(v any) ([]byte, error) { return json.Marshal(v) }

func (m *meter) Body(r io.Reader) io.Reader { return &metered{r, m} }

type metered struct {
	io.Reader
	m *meter
}

func (r *metered) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.m.left -= n; r.m.left < 0 {
		return 0, paddock.Exhausted
	}
	return n, err
}

func TestACellCountsWithTheBodiesOfItsOwner(t *testing.T) {
	h := newCrossing(t, record{}, nil, func(http.ResponseWriter, *http.Request) {})
	var body string
	var failed, held error
	h.o.Code = func(Inside) (Port, error) {
		return holding{func(r *http.Request) {
			data, err := io.ReadAll(r.Body)
			body, failed = string(data), err
			holder, ok := r.Body.(interface{ Hold(n int64) error }) // as codeinterpreter.Holder
			if !ok {
				t.Error("what a decoded cell takes cannot be counted")
				return
			}
			held = holder.Hold(5)
		}}, nil
	}
	h.o.Enter = func(context.Context, string) (dialect.Place, error) { return &meter{left: 10}, nil }
	for text, want := range map[string][2]bool{"short": {true, true}, "shorter": {true, false}, "longer than ten": {false, false}} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/execute", strings.NewReader(text))
		for name, value := range map[string]string{headerID: testID, headerPort: "49999", headerToken: testToken} {
			r.Header.Set(name, value)
		}
		h.ServeHTTP(httptest.NewRecorder(), r)
		if fits := want[0]; fits != (failed == nil && body == text) || fits == (paddock.KindOf(failed) == paddock.Exhausted) {
			t.Errorf("%s: %q, %v", text, body, failed)
		}
		if fits := want[1]; fits != (held == nil) || fits == (paddock.KindOf(held) == paddock.Exhausted) {
			t.Errorf("%s, and what it takes: %v", text, held)
		}
	}
}

// A holding port does anything with a request.
type holding struct{ seen func(r *http.Request) }

func (holding) Close() error { return nil }

func (p holding) ServeHTTP(_ http.ResponseWriter, r *http.Request) { p.seen(r) }
