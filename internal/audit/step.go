package audit

import "time"

// A Step is a step of a sandbox as the journal of steps recorded it: a command, with what it changed in directories of
// the host. It ties the record in the journal to the log.
type Step struct {
	Number     int64         `json:"number"` // in the journal
	Record     string        `json:"record"` // "sha256:" and the digest of the journal's record
	Kind       string        `json:"kind"`   // "run", "exec", "background", …
	Exit       int           `json:"exit"`   // as a shell has it; -1 is unknown
	Changed    int           `json:"changed,omitempty"`
	Removed    int           `json:"removed,omitempty"`     // of the changed paths, those that are gone
	Left       int           `json:"left,omitempty"`        // places that cannot be undone
	Incomplete bool          `json:"incomplete,omitempty"`  // the recorder could not note everything
	Duration   time.Duration `json:"duration"`              // nanoseconds
	CPU        time.Duration `json:"cpu,omitempty"`         // processor time of the command, in nanoseconds; zero is unknown
	MemoryPeak int64         `json:"memory_peak,omitempty"` // bytes of the command; zero is unknown
}

func (s *Step) clean() Step {
	c := *s
	c.Record, c.Kind = Text(s.Record, MaxWord), Text(s.Kind, maxName)
	return c
}
