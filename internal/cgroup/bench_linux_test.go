package cgroup

import (
	"context"
	"os/exec"
	"syscall"
	"testing"
)

func BenchmarkCreateStartRemove(b *testing.B) {
	h := host(b)
	for b.Loop() {
		g, err := h.Create("bench", moderate)
		if err != nil {
			b.Fatal(err)
		}
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		if err := g.Start(cmd.SysProcAttr, cmd.Start); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
		if err := g.Remove(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStartAlone is the same start without a group, to subtract.
func BenchmarkStartAlone(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("/bin/true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkProbe(b *testing.B) {
	for b.Loop() {
		if Probe().Mode == "" {
			b.Fatal("no mode")
		}
	}
}

func BenchmarkCreateRemove(b *testing.B) {
	h := host(b)
	for b.Loop() {
		g, err := h.Create("bench", moderate)
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Remove(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEnterLeave(b *testing.B) {
	h := host(b)
	g, err := h.Create("bench", moderate)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := g.Start(&syscall.SysProcAttr{}, func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	if err := g.Remove(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkSweep(b *testing.B) {
	h := host(b)
	for b.Loop() {
		if _, err := h.Sweep(func(string) bool { return true }); err != nil {
			b.Fatal(err)
		}
	}
}
