package metric

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/admission"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
)

// Bounds of what is asked for one answer.
const (
	scrapeTime = 10 * time.Second // of the whole answer
	listTime   = 5 * time.Second  // in which the driver tells what is there
	listEvery  = 5 * time.Second  // it is not asked more often
)

// Sources are those who are asked when metrics are. One that is nil is not there,
// and neither are its metrics.
type Sources struct {
	// List gives the sandboxes that are there.
	List func(context.Context) ([]paddock.Status, error)

	// Load gives how full the machine is.
	Load func() admission.Load

	// Pools gives the shelves of ready sandboxes, each time in the same order.
	Pools func() []pool.Count

	// Held gives what the server holds of clients' bytes.
	Held func() []Held

	// Failures gives how many calls of the store failed for reasons of its own.
	Failures func() uint64

	// Uploads gives how many finished files of the record wait to be copied, and
	// since when the oldest does.
	Uploads func() (n int, oldest time.Time, err error)

	// Connections gives those of the API.
	Connections func() Connections
}

// Held is how much of a budget is used.
type Held struct {
	What      string // from a list of the server's own
	Used, Max int64  // bytes
}

// Connections are those of a listener.
type Connections struct {
	Open, Max     int
	Full, Crowded uint64 // refused: the server, or their address, has as many as it may
	Closed        uint64 // idle ones that made room for others
}

// Watch sets who is asked, in place of those before. It is called before or while
// metrics are asked for.
func (s *Set) Watch(o Sources) {
	s.sources.mu.Lock()
	defer s.sources.mu.Unlock()
	s.sources.o = o
}

// sources is a collector of what others know.
type sources struct {
	sandboxes, failed                                             *prometheus.Desc
	full, most, promised, promise, waiting, refused               *prometheus.Desc
	ready, target, shelf                                          *prometheus.Desc
	held, holds, store, uploads, oldest, uploadsFailed            *prometheus.Desc
	connections, connectionsMax, connectionsRefused, connectsIdle *prometheus.Desc

	mu     sync.Mutex
	o      Sources           // guarded by mu
	listed time.Time         // guarded by mu
	there  map[[2]string]int // guarded by mu; sandboxes by tier and state
	broken bool              // guarded by mu; the last List failed
	turn   chan struct{}     // of one place: one asks the driver at a time
}

func newSources() *sources {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("paddock_"+name, help, labels, nil)
	}
	return &sources{
		turn:      make(chan struct{}, 1),
		sandboxes: d("sandboxes", "Sandboxes that are there, by tier and state; asked of the tiers every 5 seconds at most.", "tier", "state"),
		failed:    d("sandboxes_unknown", "1 if the tiers could not tell what is there, and paddock_sandboxes is what they told before."),
		full:      d("admission_sandboxes", "Sandboxes that count towards the most, those that are being made included."),
		most:      d("admission_sandboxes_max", "The most sandboxes that may be there."),
		promised:  d("admission_memory_bytes", "Memory that is promised to sandboxes."),
		promise:   d("admission_memory_max_bytes", "The most memory that may be promised."),
		waiting:   d("admission_waiting", "Creations that wait for their turn."),
		refused:   d("admission_refusals_total", "Creations and larger limits that were refused because there was no room."),
		ready:     d("pool_ready", "Sandboxes that are ready, by shelf.", "shelf"),
		target:    d("pool_target", "Sandboxes that are kept ready, by shelf.", "shelf"),
		shelf:     d("pool_events_total", "What happened on a shelf: hit, miss, made, failed, expired, spoiled.", "shelf", "event"),
		held:      d("held_bytes", "Bytes of clients that the server holds, by what they are: output, body, input, file, answer, and ahead, the most that sandboxes can send ahead of clients.", "what"),
		holds:     d("held_max_bytes", "The most bytes that it holds.", "what"),
		store:     d("store_failures_total", "Calls of the database that failed for reasons of its own."),
		uploads:   d("audit_uploads_waiting", "Finished files of the record that are not in the bucket yet."),
		oldest:    d("audit_upload_lag_seconds", "How long the oldest of them waits; 0 if none does."),

		uploadsFailed:      d("audit_uploads_unknown", "1 if the directory of the record could not be read."),
		connections:        d("connections", "Connections to the API."),
		connectionsMax:     d("connections_max", "The most of them."),
		connectionsRefused: d("connections_refused_total", "Connections that were refused: by why, the server being full or their address having its share.", "why"),
		connectsIdle:       d("connections_evicted_total", "Idle connections that were closed to make room for others."),
	}
}

// Describe implements prometheus.Collector.
func (s *sources) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		s.sandboxes, s.failed, s.full, s.most, s.promised, s.promise, s.waiting, s.refused, s.ready, s.target, s.shelf, s.held, s.holds, s.store,
		s.uploads, s.oldest, s.uploadsFailed, s.connections, s.connectionsMax, s.connectionsRefused, s.connectsIdle,
	} {
		ch <- d
	}
}

// An answer is where metrics go.
type answer chan<- prometheus.Metric

func (a answer) gauge(d *prometheus.Desc, v float64, labels ...string) {
	a <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (a answer) counter(d *prometheus.Desc, v uint64, labels ...string) {
	a <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

// Collect implements prometheus.Collector.
func (s *sources) Collect(ch chan<- prometheus.Metric) {
	s.mu.Lock()
	o := s.o
	s.mu.Unlock()
	out := answer(ch)
	if o.List != nil {
		s.list(out, o.List)
	}
	if o.Load != nil {
		l := o.Load()
		out.gauge(s.full, float64(l.Sandboxes))
		out.gauge(s.most, float64(l.MostSandboxes))
		out.gauge(s.promised, float64(l.Memory))
		out.gauge(s.promise, float64(l.MostMemory))
		out.gauge(s.waiting, float64(l.Waiting))
		out.counter(s.refused, l.Refused)
	}
	if o.Pools != nil {
		s.pools(out, o.Pools())
	}
	if o.Held != nil {
		for _, h := range o.Held() {
			out.gauge(s.held, float64(h.Used), h.What)
			out.gauge(s.holds, float64(h.Max), h.What)
		}
	}
	if o.Failures != nil {
		out.counter(s.store, o.Failures())
	}
	if o.Uploads != nil {
		s.lag(out, o.Uploads)
	}
	if o.Connections != nil {
		c := o.Connections()
		out.gauge(s.connections, float64(c.Open))
		out.gauge(s.connectionsMax, float64(c.Max))
		out.counter(s.connectionsRefused, c.Full, "full")
		out.counter(s.connectionsRefused, c.Crowded, "address")
		out.counter(s.connectsIdle, c.Closed)
	}
}

func (s *sources) pools(out answer, shelves []pool.Count) {
	for i, c := range shelves {
		name := strconv.Itoa(i)
		out.gauge(s.ready, float64(c.Ready), name)
		out.gauge(s.target, float64(c.Target), name)
		for _, e := range []struct {
			event string
			n     uint64
		}{{"hit", c.Hits}, {"miss", c.Misses}, {"made", c.Made}, {"failed", c.Failed}, {"expired", c.Expired}, {"spoiled", c.Spoiled}} {
			out.counter(s.shelf, e.n, name, e.event)
		}
	}
}

func (s *sources) lag(out answer, uploads func() (int, time.Time, error)) {
	n, since, err := uploads()
	if err != nil {
		out.gauge(s.uploadsFailed, 1)
		return
	}
	out.gauge(s.uploadsFailed, 0)
	out.gauge(s.uploads, float64(n))
	lag := 0.0
	if n > 0 {
		lag = max(0, time.Since(since).Seconds())
	}
	out.gauge(s.oldest, lag)
}

// list counts sandboxes, or tells those of before where the driver was asked just
// now, is being asked, or cannot tell.
func (s *sources) list(out answer, ask func(context.Context) ([]paddock.Status, error)) {
	select {
	case s.turn <- struct{}{}:
		s.mu.Lock()
		stale := s.listed.IsZero() || time.Since(s.listed) >= listEvery
		s.mu.Unlock()
		if stale {
			s.count(ask)
		}
		<-s.turn
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, n := range s.there {
		out.gauge(s.sandboxes, float64(n), key[0], key[1])
	}
	unknown := 0.0
	if s.broken {
		unknown = 1
	}
	out.gauge(s.failed, unknown)
}

func (s *sources) count(ask func(context.Context) ([]paddock.Status, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	all, err := ask(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed, s.broken = time.Now(), err != nil
	if err != nil {
		return
	}
	there := make(map[[2]string]int, len(s.there))
	for key := range s.there {
		there[key] = 0 // what was counted once stays, as zero
	}
	for _, st := range all {
		there[[2]string{tierLabel(st.Tier), stateLabel(st.State)}]++
	}
	s.there = there
}

// tierLabel keeps labels from a list, whatever a driver says.
func tierLabel(t paddock.Tier) string {
	switch t {
	case paddock.Sim, paddock.Jail, paddock.GVisor, paddock.MicroVM:
		return string(t)
	}
	return other
}

func stateLabel(st paddock.State) string {
	switch st {
	case paddock.Ready, paddock.Paused, paddock.Dead:
		return string(st)
	}
	return other
}
