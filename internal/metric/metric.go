package metric

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/observe"
)

// A Build is what the program was built from.
type Build struct {
	Version, Revision, Go string
}

// A Set is the metrics of one server. Its methods are safe for many goroutines.
type Set struct {
	registry *prometheus.Registry
	sources  *sources

	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	open     *prometheus.GaugeVec

	calls    *prometheus.CounterVec
	callTook *prometheus.HistogramVec
	waited   prometheus.Histogram
	ended    *prometheus.CounterVec
}

// durations are the bounds of durations in seconds, from a call that a driver
// answers from memory to one that waits for an image or a machine.
func durations() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
}

// New makes metrics that are all zero.
func New(b Build) *Set {
	s := &Set{
		registry: prometheus.NewRegistry(),
		sources:  newSources(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paddock_http_requests_total", Help: "Requests that were answered, by route, status code and the tier of the sandbox that was asked.",
		}, []string{"route", "code", "tier"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "paddock_http_request_seconds", Help: "Time from a request's headers to the end of its answer; of a stream, how long it was open.", Buckets: durations(),
		}, []string{"route"}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "paddock_http_requests_open", Help: "Requests under way, streams included.",
		}, []string{"route"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paddock_calls_total", Help: "Calls of drivers that ended, by operation, tier, and the kind of error or ok.",
		}, []string{"op", "tier", "result"}),
		callTook: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "paddock_call_seconds", Help: "Time that calls of drivers took; op create is the making of a sandbox.", Buckets: durations(),
		}, []string{"op", "tier"}),
		waited: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "paddock_admission_wait_seconds", Help: "Time that a sandbox waited for its turn before a tier began to make it.", Buckets: durations(),
		}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paddock_lease_ends_total", Help: "Sandboxes that were removed because their time was over, by which one; person is by request.",
		}, []string{"why"}),
	}
	about := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "paddock_build_info", Help: "Always 1; its labels tell what the program was built from.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "go": b.Go},
	})
	about.Set(1)
	s.registry.MustRegister(about, s.requests, s.took, s.open, s.calls, s.callTook, s.waited, s.ended, s.sources,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return s
}

// Describe tells which metrics there are.
func (s *Set) Describe(ch chan<- *prometheus.Desc) { s.registry.Describe(ch) }

// Handler answers all metrics, in the text formats of Prometheus. Few may ask at
// once: what is asked of drivers is asked for each.
func (s *Set) Handler() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: scrapeTime})
}

// noteKey is of the context value by which [Set.Around] learns from [Set.Observe].
type noteKey struct{}

// A note is what is learnt of a request on its way. A request is answered by one
// goroutine at a time, but calls of drivers may be made by others.
type note struct {
	tier chan paddock.Tier // of one place: the first that was asked
}

// Observe is a [observe.Observer].
func (s *Set) Observe(ctx context.Context, op observe.Op, tier paddock.Tier) (context.Context, func(error)) {
	began := time.Now()
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		if op != observe.Create && op != observe.Open { // which several tiers may be asked for
			n.put(tier)
		}
	}
	if op == observe.Create {
		s.arrivedAt(ctx, began)
	}
	return ctx, func(err error) {
		s.calls.WithLabelValues(string(op), string(tier), result(err)).Inc()
		s.callTook.WithLabelValues(string(op), string(tier)).Observe(time.Since(began).Seconds())
		if n, ok := ctx.Value(noteKey{}).(*note); ok && err == nil {
			n.put(tier)
		}
	}
}

func (n *note) put(tier paddock.Tier) {
	select {
	case n.tier <- tier:
	default:
	}
}

func result(err error) string {
	if err == nil {
		return "ok"
	}
	return paddock.KindOf(err).Translate().Connect
}

// Ended counts the end of a sandbox's time.
func (s *Set) Ended(why string) { s.ended.WithLabelValues(why).Inc() }

// arrival is of the context value that tells when a creation came.
type arrival struct{}

// Arrive notes when creations come, for what they wait until a tier begins with
// them: d is what makes them wait, with all that is below it.
func (s *Set) Arrive(d paddock.Driver) paddock.Driver { return &arriving{d} }

type arriving struct{ paddock.Driver }

func (a *arriving) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	at := make(chan time.Time, 1)
	at <- time.Now()
	return a.Driver.Create(context.WithValue(ctx, arrival{}, at), spec)
}

// Unwrap returns the driver whose creations are noted.
func (a *arriving) Unwrap() paddock.Driver { return a.Driver }

// arrivedAt counts how long a creation waited, once: only the first tier that is
// asked ends the waiting.
func (s *Set) arrivedAt(ctx context.Context, now time.Time) {
	at, ok := ctx.Value(arrival{}).(chan time.Time)
	if !ok {
		return
	}
	select {
	case came := <-at:
		s.waited.Observe(now.Sub(came).Seconds())
	default:
	}
}
