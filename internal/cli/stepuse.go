package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// unmeasured stands for what nobody measured.
const unmeasured = "-"

// inTime writes a time as people read it: to three digits or so.
func inTime(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// stepCPU writes the processor time of a step.
func stepCPU(r *step.Record) string {
	if r.Use == nil || r.Use.CPU == nil {
		return unmeasured
	}
	return inTime(*r.Use.CPU)
}

// stepTraffic writes the bytes of a step in both directions together.
func stepTraffic(r *step.Record) string {
	if r.Use == nil || r.Use.Traffic == nil {
		return unmeasured
	}
	return BytesInWords(both(*r.Use.Traffic))
}

// both returns the bytes in both directions.
func both(t paddock.Traffic) int64 { return t.Plus(paddock.Traffic{In: t.Out}).In }

// showUse writes what a step used, and what of it was not measured. What changed files and ran nothing has no use.
func (a *App) showUse(r *step.Record) {
	if r.Kind == "undo" || r.Kind == "apply" {
		return
	}
	var used, not []string
	add := func(name string, known bool, text func() string) {
		if !known {
			not = append(not, name)
			return
		}
		used = append(used, text())
	}
	u := r.Use
	if u == nil {
		u = &paddock.StepUse{}
	}
	add("processor", u.CPU != nil, func() string { return inTime(*u.CPU) + " of processor" })
	add("memory", u.MemoryPeak != nil, func() string { return BytesInWords(*u.MemoryPeak) + " of memory in one process" })
	add("network", u.Traffic != nil, func() string {
		return fmt.Sprintf("%s from the network and %s to it", BytesInWords(u.Traffic.In), BytesInWords(u.Traffic.Out))
	})
	if len(used) > 0 {
		fmt.Fprintf(a.Stdout, "  used     %s\n", strings.Join(used, ", "))
	}
	if len(not) > 0 {
		fmt.Fprintf(a.Stdout, "  used     not measured: %s\n", strings.Join(not, ", "))
	}
}
