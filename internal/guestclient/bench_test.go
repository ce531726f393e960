//go:build linux

package guestclient_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
)

// BenchmarkTrue compares a command through the guest with a bare one.
func BenchmarkTrue(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		median(b, func() error { return exec.Command("/bin/true").Run() })
	})
	b.Run("guest", func(b *testing.B) {
		g := guesttest.New(b, guest.Options{})
		median(b, func() error {
			p, err := g.Start(b.Context(), paddock.Cmd{Args: []string{"/bin/true"}})
			if err != nil {
				return err
			}
			_, err = p.Wait(b.Context())
			return err
		})
	})
}

// median reports the time of the middle run: a busy machine moves the mean.
func median(b *testing.B, do func() error) {
	b.Helper()
	var times []time.Duration
	for b.Loop() {
		begin := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "µs-p50")
}
