package metric_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/metric"
	"github.com/paddock-sandbox/paddock/internal/wrap/admission"
	"github.com/paddock-sandbox/paddock/internal/wrap/observe"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
)

// told gives what a set answers.
func told(t *testing.T, s *metric.Set) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("there is no line %q", line)
		}
	}
}

// A tier makes one sandbox.
type tier struct {
	paddock.Driver
	err error
}

type box struct{ paddock.Sandbox }

func (box) Status(context.Context) (paddock.Status, error) {
	return paddock.Status{}, fmt.Errorf("gone: %w", paddock.Unavailable)
}

func (d tier) Create(context.Context, paddock.Spec) (paddock.Sandbox, error) {
	if d.err != nil {
		return nil, d.err
	}
	return box{}, nil
}

func (d tier) Open(context.Context, paddock.ID) (paddock.Sandbox, error) { return box{}, d.err }

func TestRequestsAndCallsAreCountedByWordsOfTheProgramAlone(t *testing.T) {
	s := metric.New(metric.Build{Version: "v1", Revision: "abc", Go: "go1"})
	d := s.Arrive(observe.New(tier{}, paddock.Jail, s.Observe))
	h := s.Around(func(r *http.Request) string {
		if strings.HasPrefix(r.URL.Path, "/v1/") {
			return "POST /v1/sandboxes"
		}
		return ""
	}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/cut" {
			panic(http.ErrAbortHandler)
		}
		if r.URL.Path == "/v1/sandboxes" {
			sb, err := d.Create(r.Context(), paddock.Spec{Labels: map[string]string{"tenant": "acme"}})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := sb.Status(r.Context()); !errors.Is(err, paddock.Unavailable) {
				t.Error(err)
			}
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = io.WriteString(w, "text")
	}))
	for _, path := range []string{"/v1/sandboxes", "/acme/secret", "/v1/cut"} {
		func() {
			defer func() {
				if cause := recover(); cause != nil && path != "/v1/cut" {
					panic(cause)
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("ACME", path, http.NoBody))
		}()
	}
	text := told(t, s)
	wantLines(t, text,
		`paddock_http_requests_total{code="201",route="POST /v1/sandboxes",tier="jail"} 1`,
		`paddock_http_requests_total{code="200",route="other",tier="other"} 1`,
		`paddock_http_requests_total{code="none",route="POST /v1/sandboxes",tier="other"} 1`,
		`paddock_http_requests_open{route="POST /v1/sandboxes"} 0`,
		`paddock_http_request_seconds_count{route="POST /v1/sandboxes"} 2`,
		`paddock_http_request_seconds_bucket{route="other",le="600"} 1`,
		`paddock_calls_total{op="create",result="ok",tier="jail"} 1`,
		`paddock_calls_total{op="status",result="unavailable",tier="jail"} 1`,
		`paddock_call_seconds_count{op="create",tier="jail"} 1`,
		`paddock_admission_wait_seconds_count 1`,
		`paddock_build_info{go="go1",revision="abc",version="v1"} 1`,
	)
	if strings.Contains(text, "acme") || strings.Contains(text, "ACME") {
		t.Error("what a caller chose is in a metric")
	}
	for _, name := range []string{"go_goroutines ", "process_open_fds "} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestWhatIsThereIsAskedOfWhoeverKnows(t *testing.T) {
	s := metric.New(metric.Build{})
	asked := 0
	var broken error
	s.Watch(metric.Sources{
		List: func(context.Context) ([]paddock.Status, error) {
			asked++
			return []paddock.Status{{Tier: paddock.Sim, State: paddock.Ready}, {Tier: paddock.Sim, State: paddock.Ready}, {Tier: "made up", State: "odd"}}, broken
		},
		Load: func() admission.Load {
			return admission.Load{Sandboxes: 3, MostSandboxes: 9, Memory: 5, MostMemory: 50, Waiting: 2, Refused: 7}
		},
		Pools:       func() []pool.Count { return []pool.Count{{Ready: 1, Target: 2, Hits: 3, Misses: 4}} },
		Held:        func() []metric.Held { return []metric.Held{{What: "output", Used: 10, Max: 100}} },
		Failures:    func() uint64 { return 4 },
		Uploads:     func() (int, time.Time, error) { return 1, time.Now().Add(-time.Hour), nil },
		Connections: func() metric.Connections { return metric.Connections{Open: 1, Max: 2, Full: 3, Crowded: 4, Closed: 5} },
	})
	text := told(t, s)
	wantLines(t, text,
		`paddock_sandboxes{state="ready",tier="sim"} 2`, `paddock_sandboxes{state="other",tier="other"} 1`, `paddock_sandboxes_unknown 0`,
		`paddock_admission_sandboxes 3`, `paddock_admission_sandboxes_max 9`, `paddock_admission_memory_bytes 5`, `paddock_admission_memory_max_bytes 50`,
		`paddock_admission_waiting 2`, `paddock_admission_refusals_total 7`,
		`paddock_pool_ready{shelf="0"} 1`, `paddock_pool_target{shelf="0"} 2`, `paddock_pool_events_total{event="hit",shelf="0"} 3`,
		`paddock_held_bytes{what="output"} 10`, `paddock_held_max_bytes{what="output"} 100`, `paddock_store_failures_total 4`,
		`paddock_audit_uploads_waiting 1`, `paddock_connections 1`, `paddock_connections_max 2`,
		`paddock_connections_refused_total{why="full"} 3`, `paddock_connections_refused_total{why="address"} 4`, `paddock_connections_evicted_total 5`,
	)
	if !strings.Contains(text, "\npaddock_audit_upload_lag_seconds 36") {
		t.Error("the lag is not an hour")
	}
	if told(t, s); asked != 1 {
		t.Errorf("the tiers were asked %d times for two answers", asked)
	}
}

func TestWhatIsThereStaysKnownWhereTheTiersCannotTell(t *testing.T) {
	s := metric.New(metric.Build{})
	s.Watch(metric.Sources{
		List:    func(context.Context) ([]paddock.Status, error) { return nil, paddock.Unavailable },
		Uploads: func() (int, time.Time, error) { return 0, time.Time{}, io.ErrUnexpectedEOF },
	})
	wantLines(t, told(t, s), `paddock_sandboxes_unknown 1`, `paddock_audit_uploads_unknown 1`)
}

func TestEveryMetricIsInTheDocument(t *testing.T) {
	document, err := os.ReadFile("../../docs/server/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan *prometheus.Desc, 100)
	metric.New(metric.Build{}).Describe(all)
	close(all)
	n := 0
	for d := range all {
		_, rest, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ := strings.Cut(rest, `"`)
		if !strings.HasPrefix(name, "paddock_") {
			continue
		}
		n++
		if !strings.Contains(string(document), "`"+name+"`") {
			t.Errorf("docs/server/operations.md does not have %s", name)
		}
	}
	if n < 20 {
		t.Errorf("%d metrics", n)
	}
}

func TestNamesAndUnitsAreThoseThatPrometheusAsksFor(t *testing.T) {
	s := metric.New(metric.Build{})
	s.Ended("deadline")
	s.Watch(metric.Sources{Load: func() admission.Load { return admission.Load{} }, Failures: func() uint64 { return 0 }})
	var own strings.Builder
	for block := range strings.SplitSeq(told(t, s), "# HELP ") {
		if strings.HasPrefix(block, "paddock_") {
			own.WriteString("# HELP " + block)
		}
	}
	problems, err := promlint.New(strings.NewReader(own.String())).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v: %v", problems, err)
	}
}

// A many is a driver of several tiers, of which the usual one alone can pause.
type many struct{ paddock.Driver }

func (many) List(context.Context) ([]paddock.Status, error) { return nil, nil }

func (many) Info(_ context.Context, tier paddock.Tier) (paddock.Info, error) {
	if tier == paddock.Auto {
		return paddock.Info{Tier: paddock.MicroVM, Available: true, Capabilities: []paddock.Capability{paddock.CanPause}}, nil
	}
	return paddock.Info{Tier: tier, Available: true}, nil
}

func (many) Close() error { return nil }

func TestATierTellsOfItselfThroughAllThatIsBetween(t *testing.T) {
	p, err := pool.New(many{}, pool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	full, err := admission.New(t.Context(), p, admission.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := metric.New(metric.Build{}).Arrive(full)
	defer d.Close()
	if info, err := d.Info(t.Context(), paddock.Jail); err != nil || info.Tier != paddock.Jail || info.Can(paddock.CanPause) {
		t.Errorf("the jail: %+v %v; want one that cannot pause", info, err)
	}
}
