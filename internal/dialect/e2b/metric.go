package e2b

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

const (
	sampleEvery = 5 * time.Second
	maxSamples  = 720 // one hour
	maxLog      = 1000
)

// usage is the usage at one time, to compute differences.
type usage struct {
	at  time.Time
	cpu time.Duration
}

// sampled converts a status to a metric. What the tier does not measure is 0, because E2B
// has no value for unknown.
func (u usage) sampled(st paddock.Status, now time.Time) metric {
	m := metric{
		Timestamp: now.UTC(), TimestampUnix: now.Unix(), CPUCount: cpus(st.Limits), MemUsed: max(st.Usage.Memory, 0),
		MemTotal: st.Limits.Memory, DiskTotal: st.Limits.Disk,
	}
	if since := now.Sub(u.at); !u.at.IsZero() && since > 0 && st.Usage.CPU > u.cpu {
		m.CPUUsedPct = min(100*float64(st.Usage.CPU-u.cpu)/float64(since)/float64(m.CPUCount), 100)
	}
	return m
}

// first takes the first sample.
func (b *box) first(st paddock.Status) { b.add(st, time.Now()) }

func (b *box) add(st paddock.Status, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.metrics = append(b.metrics, b.used.sampled(st, now))
	if len(b.metrics) > maxSamples {
		b.metrics = slices.Delete(b.metrics, 0, len(b.metrics)-maxSamples)
	}
	b.used = usage{now, max(st.Usage.CPU, 0)}
}

// A sampler samples the usage of running sandboxes, tenant by tenant. A tenant whose
// sandboxes do not answer delays no other.
type sampler struct {
	h      *Handler
	places chan struct{}

	mu      sync.Mutex
	tenants map[string]bool // guarded by mu; those being sampled, or waiting for a place
}

// Bounds of sampling.
const (
	samplesAtOnce = 16               // tenants
	sampleTime    = 30 * time.Second // for the answers of a tenant's sandboxes
)

func newSampler(h *Handler) *sampler {
	return &sampler{h: h, places: make(chan struct{}, samplesAtOnce), tenants: map[string]bool{}}
}

// start starts a sample of each tenant whose last one has ended.
func (s *sampler) start(time.Time) {
	tenants := map[string]map[paddock.ID]*box{}
	for _, b := range s.h.all() {
		if rec, ok := b.record(); ok && !rec.Paused {
			if tenants[rec.Tenant] == nil {
				tenants[rec.Tenant] = map[paddock.ID]*box{}
			}
			tenants[rec.Tenant][rec.name()] = b
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for tenant, boxes := range tenants {
		if s.tenants[tenant] {
			continue
		}
		s.tenants[tenant] = true
		s.h.wg.Go(func() {
			s.sample(s.h.ctx, tenant, boxes)
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.tenants, tenant)
		})
	}
}

// sample samples a tenant once there is a place.
func (s *sampler) sample(ctx context.Context, tenant string, boxes map[paddock.ID]*box) {
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-ctx.Done():
		return
	}
	s.h.sampleTenant(ctx, tenant, boxes)
}

// sampleTenant samples the usage of a tenant's sandboxes.
func (h *Handler) sampleTenant(ctx context.Context, tenant string, boxes map[paddock.ID]*box) {
	list, err := h.list(ctx, tenant)
	if err != nil {
		h.log.Warn("e2b: cannot read the usage of sandboxes", "error", err)
		return
	}
	now := time.Now()
	for _, st := range list {
		b := boxes[st.ID]
		delete(boxes, st.ID)
		switch {
		case b == nil:
		case st.State == paddock.Dead:
			b.cut()
		case st.State == paddock.Ready:
			b.add(st, now)
		}
	}
	for name, b := range boxes { // gone, unless it is being made, or was paused or restarted meanwhile
		if rec, _ := b.record(); rec.Cold == "" && rec.name() == name && now.Sub(rec.Started) > time.Minute {
			if err := b.end(ctx); err != nil {
				h.log.Warn("e2b: the record of a removed sandbox was not deleted", "id", b.id, "error", err)
			}
		}
	}
}

// list returns the sandboxes of a tenant, if they answer in time.
func (h *Handler) list(ctx context.Context, tenant string) ([]paddock.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	d, err := h.o.Tenant(ctx, tenant)
	if err != nil {
		return nil, err
	}
	return d.List(ctx)
}

// boxMetrics handles GET /sandboxes/{id}/metrics. It returns the metrics of a period.
func (c *call) boxMetrics() error {
	b, _, err := c.box()
	if err != nil {
		return err
	}
	var bounds [2]int64
	for i, name := range []string{"start", "end"} {
		if text := c.URL.Query().Get(name); text != "" {
			if bounds[i], err = strconv.ParseInt(text, 10, 64); err != nil || bounds[i] < 0 {
				return invalid("%s: %q is not a time in seconds", name, dialect.Printable(text))
			}
		}
	}
	list := []metric{}
	b.mu.Lock()
	for _, m := range b.metrics {
		if m.TimestampUnix >= bounds[0] && (bounds[1] == 0 || m.TimestampUnix <= bounds[1]) {
			list = append(list, m)
		}
	}
	b.mu.Unlock()
	return c.json(http.StatusOK, list)
}

// manyMetrics handles GET /sandboxes/metrics. It returns the newest metric of each sandbox.
func (c *call) manyMetrics() error {
	ids := strings.Split(c.URL.Query().Get("sandbox_ids"), ",")
	if len(ids) > 100 {
		return invalid("sandbox_ids: %d IDs, the maximum is 100", len(ids))
	}
	all := map[string]metric{}
	for _, id := range ids {
		b, ok := c.h.find(id)
		if !ok {
			continue
		}
		b.mu.Lock()
		if b.rec.Tenant == c.caller.Tenant && len(b.metrics) > 0 {
			all[string(b.id)] = b.metrics[len(b.metrics)-1]
		}
		b.mu.Unlock()
	}
	return c.json(http.StatusOK, map[string]any{"sandboxes": all})
}

// note adds a line to the log of a sandbox. The log has only actions of this server,
// nothing from inside.
func (b *box) note(message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, logEntry{Timestamp: time.Now().UTC(), Message: message, Level: "info", Fields: map[string]string{"logger": "paddock"}})
	if len(b.log) > maxLog {
		b.log = slices.Delete(b.log, 0, len(b.log)-maxLog)
	}
}

func (b *box) logged() []logEntry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.log)
}

// logsOld handles GET /sandboxes/{id}/logs, which the command line uses.
func (c *call) logsOld() error {
	b, _, err := c.box()
	if err != nil {
		return err
	}
	from, limit, err := window(c.Request, "start", maxLog)
	if err != nil {
		return err
	}
	lines, entries := []map[string]any{}, []logEntry{}
	for _, e := range b.logged() {
		if e.Timestamp.UnixMilli() < from || len(entries) == limit {
			continue
		}
		line, err := json.Marshal(map[string]string{"level": e.Level, "logger": "paddock", "message": e.Message})
		if err != nil {
			return err
		}
		lines = append(lines, map[string]any{"timestamp": e.Timestamp, "line": string(line)})
		entries = append(entries, e)
	}
	return c.json(http.StatusOK, map[string]any{"logs": lines, "logEntries": entries})
}

// logs handles GET /v2/sandboxes/{id}/logs.
func (c *call) logs() error {
	b, _, err := c.box()
	if err != nil {
		return err
	}
	list, err := chosen(c.Request, b.logged())
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"logs": list})
}

// window parses the start of a log, in milliseconds, and the number of lines.
func window(r *http.Request, name string, most int) (from int64, limit int, err error) {
	limit = most
	if text := r.URL.Query().Get(name); text != "" {
		if from, err = strconv.ParseInt(text, 10, 64); err != nil || from < 0 {
			return 0, 0, invalid("%s: %q is not a time in milliseconds", name, dialect.Printable(text))
		}
	}
	if text := r.URL.Query().Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 0 {
			return 0, 0, invalid("limit: %q is not a number", dialect.Printable(text))
		}
	}
	return from, min(limit, most), nil
}

// chosen returns the log lines that a query selects.
func chosen(r *http.Request, all []logEntry) ([]logEntry, error) {
	q := r.URL.Query()
	cursor, limit, err := window(r, "cursor", maxLog)
	if err != nil {
		return nil, err
	}
	least, err := severity(q.Get("level"))
	if err != nil {
		return nil, err
	}
	backward := q.Get("direction") == "backward"
	list := []logEntry{}
	if backward {
		slices.Reverse(all)
	}
	for _, e := range all {
		at, have := e.Timestamp.UnixMilli(), 0
		if have, err = severity(e.Level); err != nil {
			return nil, err
		}
		switch {
		case len(list) == limit:
			return list, nil
		case have < least, !strings.Contains(e.Message, q.Get("search")):
		case cursor > 0 && (backward && at > cursor || !backward && at < cursor):
		default:
			list = append(list, e)
		}
	}
	return list, nil
}

func severity(level string) (int, error) {
	i := slices.Index([]string{"", "debug", "info", "warn", "error"}, level)
	if i < 0 {
		return 0, invalid("level: %q is not debug, info, warn or error", dialect.Printable(level))
	}
	return i, nil
}
