package step

import (
	"fmt"
	"os"
	"testing"
)

// What a step costs that changes ten files, with the changes themselves: compare with BenchmarkBareChanges.
func BenchmarkStepOfTenFiles(b *testing.B) {
	dir, j := workspace(b), journal(b, Options{})
	for i := range 10 {
		plant(b, dir, map[string]string{fmt.Sprint("d/f", i): fmt.Sprintf("%d %04000d", i, i)})
	}
	n := 0
	for b.Loop() {
		n++
		x := &box{r: begin(b, j, dir), dirs: []string{dir}}
		for i := range 10 {
			must(b, x.write(0, fmt.Sprint("d/f", i), fmt.Sprintf("%d %d %04000d", n, i, i), os.O_TRUNC))
		}
		if rec := end(b, x.r); len(rec.Changes) != 10 {
			b.Fatal(rec.Changes)
		}
	}
}

func BenchmarkBareChanges(b *testing.B) {
	dir := workspace(b)
	for i := range 10 {
		plant(b, dir, map[string]string{fmt.Sprint("d/f", i): fmt.Sprintf("%d %04000d", i, i)})
	}
	n := 0
	for b.Loop() {
		n++
		for i := range 10 {
			must(b, os.WriteFile(fmt.Sprint(dir, "/d/f", i), fmt.Appendf(nil, "%d %d %04000d", n, i, i), 0o644))
		}
	}
}

// The undo of ten thousand removed small files. The removal is not timed.
func BenchmarkUndoOfTenThousandFiles(b *testing.B) {
	dir, j := workspace(b), journal(b, Options{})
	for i := range 10_000 {
		plant(b, dir, map[string]string{fmt.Sprintf("d%d/f%d", i%100, i): fmt.Sprintf("%d %0500d", i, i)})
	}
	for b.Loop() {
		b.StopTimer()
		x := &box{r: begin(b, j, dir), dirs: []string{dir}}
		for i := range 100 {
			must(b, x.clear(0, fmt.Sprint("d", i)))
		}
		rec := end(b, x.r)
		b.StartTimer()
		if res := undoing(b, j, rec.Number); len(res.Restored) != 10_100 {
			b.Fatal(len(res.Restored))
		}
	}
}

// What it costs that ten thousand small files are removed by a step, and kept.
func BenchmarkRemovalOfTenThousandFiles(b *testing.B) {
	dir, j := workspace(b), journal(b, Options{})
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		for i := range 10_000 {
			plant(b, dir, map[string]string{fmt.Sprintf("d%d/f%d", i%100, i): fmt.Sprintf("%d %d %0500d", n, i, i)})
		}
		x := &box{r: begin(b, j, dir), dirs: []string{dir}}
		b.StartTimer()
		for i := range 100 {
			must(b, x.clear(0, fmt.Sprint("d", i)))
		}
		end(b, x.r)
	}
}

// Begin does not depend on the size of the directory.
func BenchmarkBegin(b *testing.B) {
	for _, files := range []int{10, 10_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			dir, j := workspace(b), journal(b, Options{})
			for i := range files {
				plant(b, dir, map[string]string{fmt.Sprintf("d%d/f%d", i%100, i): "x"})
			}
			for b.Loop() {
				r := begin(b, j, dir)
				b.StopTimer()
				must(b, r.Abandon())
				b.StartTimer()
			}
		})
	}
}
