package drivertest

import (
	"bytes"
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bench measures the driver of h. It also reports medians for single calls, because a mean
// hides what most callers see.
func Bench(b *testing.B, h Harness) {
	s := newSuite(b, h)
	b.Run("create to first output", s.benchFirstOutput)
	b.Run("create and remove", s.benchCreateRemove)
	b.Run("exec true", s.benchExec)
	b.Run("standard output", s.benchOutput)
	b.Run("file in", s.benchFileIn)
	b.Run("file out", s.benchFileOut)
	b.Run("idle memory", s.benchIdle)
}

// medians reports the median and the 99th percentile.
func medians(b *testing.B, times []time.Duration) {
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
}

// firstByte notes when output begins.
type firstByte struct{ at time.Time }

func (f *firstByte) Write(p []byte) (int, error) {
	if f.at.IsZero() {
		f.at = time.Now()
	}
	return len(p), nil
}

func (s *suite) benchFirstOutput(b *testing.B) {
	ctx := b.Context()
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		sb, err := s.driver.Create(ctx, s.spec(func(spec *paddock.Spec) { spec.Ephemeral = true }))
		if err != nil {
			b.Fatal(err)
		}
		var first firstByte
		p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"echo", "x"}, Output: paddock.Output{Stdout: &first}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(ctx); err != nil {
			b.Fatal(err)
		}
		times = append(times, first.at.Sub(start))
		b.StopTimer()
		if err := sb.Remove(ctx); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	medians(b, times)
}

func (s *suite) benchCreateRemove(b *testing.B) {
	ctx := b.Context()
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		sb, err := s.driver.Create(ctx, s.spec())
		if err != nil {
			b.Fatal(err)
		}
		if err := sb.Remove(ctx); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(start))
	}
	medians(b, times)
}

func (s *suite) benchExec(b *testing.B) {
	bx := s.own(b)
	ctx := b.Context()
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		r, err := bx.try(ctx, paddock.Cmd{Args: []string{"true"}})
		if err != nil || r.exit.Code != 0 {
			b.Fatalf("%+v, %v", r, err)
		}
		times = append(times, time.Since(start))
	}
	medians(b, times)
}

const benchSize = 1 << 30

// roomy makes a sandbox whose limits admit a file of benchSize.
func (s *suite) roomy(b *testing.B) box {
	return s.own(b, func(spec *paddock.Spec) {
		if s.enforces(paddock.ControlDisk) {
			spec.Limits.Disk = 2 * benchSize
		}
		if s.enforces(paddock.ControlMemory) {
			spec.Limits.Memory = 3 * benchSize
		}
	})
}

func (s *suite) benchOutput(b *testing.B) {
	bx := s.own(b)
	b.SetBytes(benchSize)
	ctx := b.Context()
	for b.Loop() {
		var n counter
		p, err := bx.Start(ctx, paddock.Cmd{
			Args:   []string{"head", "-c", "1073741824", "/dev/zero"},
			Output: paddock.Output{Stdout: &n},
		})
		if err != nil {
			b.Fatal(err)
		}
		if exit, err := p.Wait(ctx); err != nil || n != benchSize {
			b.Fatalf("%d bytes, %+v, %v", n, exit, err)
		}
	}
}

// counter counts the bytes written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// same reads the same bytes without end. New bytes would cost more than what is measured.
type same struct{ block []byte }

func (r same) Read(p []byte) (int, error) { return copy(p, r.block), nil }

func zeros() io.Reader { return same{make([]byte, 256<<10)} }

func (s *suite) benchFileIn(b *testing.B) {
	bx := s.roomy(b)
	b.SetBytes(benchSize)
	ctx := b.Context()
	for b.Loop() {
		if err := bx.write(ctx, bx.in("file"), io.LimitReader(zeros(), benchSize), paddock.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func (s *suite) benchFileOut(b *testing.B) {
	bx := s.roomy(b)
	ctx := b.Context()
	if err := bx.write(ctx, bx.in("file"), io.LimitReader(zeros(), benchSize), paddock.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(benchSize)
	for b.Loop() {
		r, err := bx.FS().Open(ctx, bx.in("file"), paddock.OpenOptions{})
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{r}, make([]byte, 256<<10))
		if err != nil || n != benchSize {
			b.Fatalf("%d bytes, %v", n, err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// benchIdle measures the cost of an idle sandbox: the memory of its processes on the host,
// with shared pages counted proportionally.
func (s *suite) benchIdle(b *testing.B) {
	const n = 8
	ctx := context.Background()
	for b.Loop() {
		before, ok := pss(s.state, s.name)
		if !ok {
			b.Skip("the memory of processes is not known on this system")
		}
		var all []paddock.Sandbox
		for range n {
			sb, err := s.driver.Create(ctx, s.spec())
			if err != nil {
				b.Fatal(err)
			}
			var out bytes.Buffer
			p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"true"}, Output: paddock.Output{Stdout: &out}})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.Wait(ctx); err != nil {
				b.Fatal(err)
			}
			all = append(all, sb)
		}
		after, _ := pss(s.state, s.name)
		b.ReportMetric(float64(after-before)/n/1e6, "MB/sandbox")
		for _, sb := range all {
			if err := sb.Remove(ctx); err != nil {
				b.Fatal(err)
			}
		}
	}
}
