package box

import (
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A reading is what a sandbox has used so far, as the host counts it.
type reading struct {
	cpu     time.Duration // negative if it is not counted
	traffic *paddock.Traffic
}

// reading returns what the sandbox has used so far, without a question to it.
func (l *Life) reading() reading {
	r := reading{cpu: l.Box().Measure().Usage.CPU, traffic: l.traffic()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.cpu >= 0 {
		r.cpu += l.used
	}
	return r
}

// useOf returns what was used between two readings, and by a command that ended meanwhile, if it is known how. It is nil
// if nothing was measured.
func useOf(before, after reading, exit *paddock.Exit) *paddock.StepUse {
	var u paddock.StepUse
	if cpu := after.cpu - before.cpu; before.cpu >= 0 && cpu >= 0 {
		u.CPU = &cpu
	}
	if exit != nil && exit.Usage.MemoryPeak > 0 { // no process has no memory
		u.MemoryPeak = &exit.Usage.MemoryPeak
	}
	if before.traffic != nil && after.traffic != nil {
		t := paddock.Traffic{In: after.traffic.In - before.traffic.In, Out: after.traffic.Out - before.traffic.Out}
		if t.In >= 0 && t.Out >= 0 {
			u.Traffic = &t
		}
	}
	if u == (paddock.StepUse{}) {
		return nil
	}
	return &u
}
