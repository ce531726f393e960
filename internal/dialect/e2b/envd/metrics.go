package envd

import (
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// metrics has the processor time of the last sample.
type metrics struct {
	mu   sync.Mutex
	at   time.Time     // guarded by mu
	used time.Duration // guarded by mu
}

// busy returns the processor usage since the last sample, in percent of one processor.
func (m *metrics) busy(now time.Time, u paddock.Usage) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	wall, used := u.Wall, u.CPU
	if !m.at.IsZero() {
		wall, used = now.Sub(m.at), u.CPU-m.used
	}
	m.at, m.used = now, u.CPU
	if wall <= 0 || used <= 0 || u.CPU < 0 {
		return 0
	}
	return math.Round(10000*float64(used)/float64(wall)) / 100
}

const mebibyte = 1 << 20

// measured handles GET /metrics. The disk usage is unknown here, and reported as 0.
func (b *Box) measured(w http.ResponseWriter, r *http.Request) {
	st, err := b.o.Sandbox.Status(r.Context())
	if err != nil {
		b.failed(w, r, err)
		return
	}
	now, used := b.now(), max(st.Usage.Memory, 0)
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, http.StatusOK, map[string]any{
		"ts": now.Unix(), "cpu_count": max(int(math.Ceil(st.Limits.CPUs)), 1), "cpu_used_pct": b.metrics.busy(now, st.Usage),
		"mem_total": st.Limits.Memory, "mem_used": used, "mem_cache": 0,
		"mem_total_mib": st.Limits.Memory / mebibyte, "mem_used_mib": used / mebibyte,
		"disk_used": 0, "disk_total": st.Limits.Disk,
	})
}
