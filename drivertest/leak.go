package drivertest

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// Counts lists what a driver holds on the host, by kind. It holds names rather than
// numbers, so that a leak can be identified.
type Counts map[string][]string

// extra lists what after has and c has not, by kind.
func (c Counts) extra(after Counts) []string {
	var extra []string
	for kind, names := range after {
		before := make(map[string]int)
		for _, n := range c[kind] {
			before[n]++
		}
		for _, n := range names {
			if before[n] == 0 {
				extra = append(extra, fmt.Sprintf("%s: %s", kind, n))
				continue
			}
			before[n]--
		}
	}
	slices.Sort(extra)
	return extra
}

// goroutines names every goroutine by the function that started it, except those of the
// test runner.
func goroutines() []string {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var names []string
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		_, by, ok := strings.Cut(stack, "\ncreated by ")
		if !ok {
			continue
		}
		by, _, _ = strings.Cut(by, "\n")
		by, _, _ = strings.Cut(by, " in goroutine ")
		if strings.HasPrefix(by, "testing.") || strings.HasPrefix(by, "runtime") || strings.HasPrefix(by, "os/signal") {
			continue
		}
		names = append(names, by)
	}
	return names
}
