package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/metric"
)

// heapHeld is what the heap holds that somebody holds.
func heapHeld() int64 {
	var m runtime.MemStats
	for range 3 { // what a cleanup or a pool lets go of is freed by the next
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A wholeServer is one with its store, its lifetimes, its counts and its record, whose
// clock is the test's.
type wholeServer struct {
	t *testing.T
	h http.Handler
}

func (s *wholeServer) call(method, path, body string) string {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer static")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	if w.Code >= 300 {
		s.t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Body.String()
}

func (s *wholeServer) create() string {
	s.t.Helper()
	var st struct{ ID string }
	if err := json.NewDecoder(bytes.NewReader([]byte(s.call("POST", "/v1/sandboxes", `{"tier":"sim"}`)))).Decode(&st); err != nil || st.ID == "" {
		s.t.Fatal(st, err)
	}
	return st.ID
}

// use makes each sort of call once.
func (s *wholeServer) use(id string) {
	s.t.Helper()
	box := "/v1/sandboxes/" + id
	s.call("GET", box, "")
	s.call("GET", "/v1/sandboxes", "")
	s.call("GET", box+"/processes", "")
	s.call("GET", box+"/files/stat?path=/etc", "")
	s.call("PATCH", box, `{"labels":{"a":"b"}}`)
}

func TestWhatAServerHoldsDoesNotGrowWithCallsOrWithSandboxesThatWere(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, err := sim.New(sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.DiscardHandler)
		o := &operation{log: log, set: metric.New(metric.Build{})}
		f := &serveFlags{
			listen: "127.0.0.1:0", store: storeFlags{state: filepath.Join(dir, "state")},
			account: accountFlags{host: "a", audit: filepath.Join(dir, "audit")},
		}
		c, err := openAccounts(t.Context(), invoke(dir, nil, nil).App, o.driver(d, "sim"), f, "static", o)
		if err != nil {
			t.Fatal(err)
		}
		api, err := newService(d, c.caller, log, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := errors.Join(api.end(t.Context()), c.Close()); err != nil {
				t.Error(err)
			}
		}()
		s := &wholeServer{t, o.around(api)}
		id := s.create()
		round := func(boxes, uses int) (held int64, routines int) {
			for range boxes {
				one := s.create()
				s.use(one)
				s.call("DELETE", "/v1/sandboxes/"+one, "")
			}
			for range uses {
				s.use(id)
			}
			time.Sleep(2 * time.Hour) // the bubble's time: nothing is kept for longer
			return heapHeld(), runtime.NumGoroutine()
		}
		round(20, 20)
		for _, row := range []struct {
			what        string
			boxes, uses int
		}{
			{"calls", 0, 200},
			{"sandboxes that were", 100, 0},
		} {
			// What has a bound, such as the database's cache, grows up to it; what has none
			// grows each time.
			var grown []int64
			before, routines := round(row.boxes, row.uses)
			for len(grown) < 5 && (len(grown) == 0 || grown[len(grown)-1] > 40) {
				after, now := round(row.boxes, row.uses)
				grown = append(grown, (after-before)/int64(row.boxes+5*row.uses))
				if now > routines+3 {
					t.Fatalf("%s: %d goroutines, %d before", row.what, now, routines)
				}
				before = after
			}
			if grown[len(grown)-1] > 40 {
				t.Errorf("of %s the server holds so many bytes more for each, each time: %d", row.what, grown)
			}
		}
	})
}
