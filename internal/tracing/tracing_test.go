package tracing_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/tracing"
	"github.com/paddock-sandbox/paddock/internal/wrap/observe"
)

// A sink is a collector on this machine.
type sink struct {
	web *httptest.Server

	mu   sync.Mutex
	raw  []byte        // guarded by mu; all that was received
	have []*spans.Span // guarded by mu
}

func newSink(t *testing.T) *sink {
	t.Helper()
	s := &sink{}
	s.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			var err error
			if body, err = gzip.NewReader(r.Body); err != nil {
				t.Error(err)
				return
			}
		}
		data, err := io.ReadAll(body)
		got := &collector.ExportTraceServiceRequest{}
		if err = errors.Join(err, proto.Unmarshal(data, got)); err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s: %v", r.URL.Path, r.Header.Get("Content-Type"), err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.raw = append(s.raw, data...)
		for _, rs := range got.GetResourceSpans() {
			for _, ss := range rs.GetScopeSpans() {
				s.have = append(s.have, ss.GetSpans()...)
			}
		}
	}))
	t.Cleanup(s.web.Close)
	return s
}

// open makes a tracer as this process's environment says.
func open(t *testing.T, env map[string]string) *tracing.Tracer {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value) // the exporter reads it there
	}
	tr, err := tracing.Open(t.Context(), lookup(env), "v1", func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

// A failing driver has one call.
type failing struct{ paddock.Driver }

func (failing) Open(context.Context, paddock.ID) (paddock.Sandbox, error) {
	return nil, fmt.Errorf("/secret/path: %w", paddock.Unsupported)
}

const sent = "4bf92f3577b34da6a3ce929d0e0e4736"

func ask(t *testing.T, tr *tracing.Tracer, header map[string]string) {
	t.Helper()
	d := observe.New(failing{}, paddock.Jail, tr.Observe)
	h := tr.Around(func(*http.Request) string { return "GET /v1/sandboxes/{id}" }, func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer secret" }, "X-Request-ID", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Request-ID", "number")
		if _, err := d.Open(r.Context(), "secret-id"); err == nil {
			t.Error("it is there")
		}
		w.WriteHeader(http.StatusNotImplemented)
	}))
	r := httptest.NewRequest(http.MethodGet, "/v1/sandboxes/secret-id?x=secret", http.NoBody)
	r.Header.Set("Authorization", "Bearer secret")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	h.ServeHTTP(httptest.NewRecorder(), r)
}

func TestARequestAndItsCallsAreSpansOfTheTraceThatItNames(t *testing.T) {
	s := newSink(t)
	tr := open(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.web.URL})
	ask(t, tr, map[string]string{"traceparent": "00-" + sent + "-00f067aa0ba902b7-01", "tracestate": "a=secret", "baggage": "b=secret"})
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.have) != 2 {
		t.Fatalf("%d spans", len(s.have))
	}
	slices.SortFunc(s.have, func(a, b *spans.Span) int { return strings.Compare(a.GetName(), b.GetName()) })
	request, inner := s.have[0], s.have[1]
	if request.GetName() != "GET /v1/sandboxes/{id}" || inner.GetName() != "open" {
		t.Errorf("spans %q and %q", request.GetName(), inner.GetName())
	}
	if fmt.Sprintf("%x", request.GetTraceId()) != sent || fmt.Sprintf("%x", inner.GetTraceId()) != sent ||
		fmt.Sprintf("%x", request.GetParentSpanId()) != "00f067aa0ba902b7" || !slices.Equal(inner.GetParentSpanId(), request.GetSpanId()) {
		t.Errorf("they do not hang together: %v, %v", request, inner)
	}
	for _, attribute := range []struct {
		of   *spans.Span
		name string
		want string
	}{
		{request, "http.route", "GET /v1/sandboxes/{id}"}, {request, "http.response.status_code", "501"}, {request, "paddock.request", "number"},
		{inner, "paddock.tier", "jail"}, {inner, "error.type", "unimplemented"},
	} {
		if got := valueOf(attribute.of, attribute.name); got != attribute.want {
			t.Errorf("%s: %q, want %q", attribute.name, got, attribute.want)
		}
	}
	if strings.Contains(string(s.raw), "secret") {
		t.Errorf("a secret was sent: %q", s.raw)
	}
}

func valueOf(s *spans.Span, name string) string {
	for _, a := range s.GetAttributes() {
		if a.GetKey() == name {
			if text := a.GetValue().GetStringValue(); text != "" {
				return text
			}
			return fmt.Sprint(a.GetValue().GetIntValue())
		}
	}
	return ""
}

func TestAStrangersTraceIsOneOfItsOwn(t *testing.T) {
	s := newSink(t)
	tr := open(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.web.URL})
	ask(t, tr, map[string]string{"traceparent": "00-" + sent + "-00f067aa0ba902b7-01", "Authorization": "Bearer guessed"})
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.have) != 2 {
		t.Fatalf("%d spans", len(s.have))
	}
	for _, one := range s.have {
		if fmt.Sprintf("%x", one.GetTraceId()) == sent || fmt.Sprintf("%x", one.GetParentSpanId()) == "00f067aa0ba902b7" {
			t.Errorf("%s is of the trace that a stranger named", one.GetName())
		}
	}
}

func TestACallerCannotHaveATraceKeptThatTheServerDoesNotKeep(t *testing.T) {
	s := newSink(t)
	tr := open(t, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": s.web.URL + "/v1/traces", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"})
	ask(t, tr, map[string]string{"traceparent": "00-" + sent + "-00f067aa0ba902b7-01"})
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.have) != 0 {
		t.Errorf("%d spans", len(s.have))
	}
}

func TestACollectorThatIsGoneCostsNoRequest(t *testing.T) {
	s := newSink(t)
	s.web.Close()
	env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": s.web.URL, "OTEL_BSP_MAX_QUEUE_SIZE": "4", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2"}
	for name, value := range env {
		t.Setenv(name, value)
	}
	tr, err := tracing.Open(t.Context(), lookup(env), "v1", func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		ask(t, tr, nil)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tr.Close(ctx); err == nil {
		t.Error("it says that all was sent")
	}
}

func TestNothingIsSentUnlessTheEnvironmentAsksForIt(t *testing.T) {
	for _, env := range []map[string]string{
		{},
		{"OTEL_SERVICE_NAME": "x"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		tr, err := tracing.Open(t.Context(), lookup(env), "v1", nil)
		if tr != nil || err != nil {
			t.Errorf("%v: %v, %v", env, tr, err)
		}
		ask(t, tr, nil) // works all the same
		if err := tr.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatCannotBeDoneIsRefused(t *testing.T) {
	for _, row := range []struct {
		name, value string
		want        error
	}{
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", paddock.Unsupported},
		{"OTEL_TRACES_SAMPLER", "jaeger_remote", paddock.Invalid},
	} {
		env := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", row.name: row.value}
		if _, err := tracing.Open(t.Context(), lookup(env), "v1", nil); !errors.Is(err, row.want) || !strings.Contains(err.Error(), row.value) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
