package paddock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Monitor says how built-in rules judge what a sandbox does: commands, first connections to hosts, uses of secrets, and
// changes of writable mounts. It is no boundary: whoever knows the rules can avoid them. The zero Monitor has the
// defaults. The rules are those of docs/use/monitor.md.
type Monitor struct {
	// Task is what the user wants done. Rules about files allow what it speaks of. [MaxMonitorTask] bounds it.
	Task string `json:"task,omitempty"`

	// Removed is the number of removed paths of a step from which on it is judged; zero is 100.
	Removed int `json:"removed,omitempty"`

	// Known are names of hosts that give packages out, which rules do not take for new. [MaxMonitorKnown] bounds them.
	Known []string `json:"known,omitempty"`

	// Wait is how long a question waits for its answer, and with it what the question is about. Without an answer that is
	// denied. Zero is [MonitorWait]; [MaxMonitorWait] bounds it.
	Wait time.Duration `json:"wait,omitempty"`
}

// Bounds and defaults of a [Monitor].
const (
	MaxMonitorTask  = 4096 // bytes
	MaxMonitorKnown = 100
	MaxMonitorWait  = time.Hour
	MonitorWait     = 5 * time.Minute
)

// A Monitoring says what the monitor of a sandbox did so far.
type Monitoring struct {
	Settings Monitor        `json:"settings"`
	Without  []string       `json:"without,omitempty"`  // rules that cannot work in this sandbox
	Verdicts map[string]int `json:"verdicts,omitempty"` // number of decisions of each verdict; missing of a saved or dead sandbox
	Open     int            `json:"open,omitempty"`     // questions that wait for an answer
	Paused   string         `json:"paused,omitempty"`   // why the monitor paused the sandbox; it may contain texts of the guest
}

// clone returns a copy that shares no memory.
func (m *Monitoring) clone() *Monitoring {
	if m == nil {
		return nil
	}
	c := *m
	c.Settings.Known, c.Without = slices.Clone(m.Settings.Known), slices.Clone(m.Without)
	c.Verdicts = maps.Clone(m.Verdicts)
	return &c
}

// A MonitorQuestion is what the monitor of a sandbox asks a person about. What it is about waits for the answer.
type MonitorQuestion struct {
	// ID names the question. It is never given again, so an answer is never taken for that of another question.
	ID string `json:"id"`

	Asked time.Time `json:"asked"`
	Until time.Time `json:"until"` // without an answer by then, it is denied

	Moment string `json:"moment"` // "exec", "host", "secret" or "effect"
	Rule   string `json:"rule"`   // the rule that asks
	Reason string `json:"reason"`
	About  string `json:"about"` // the command, path or host; untrusted, because it comes from the guest

	// Pauses means that a denial also pauses the sandbox. Done means that it has happened already, so that a denial
	// refuses nothing.
	Pauses bool `json:"pauses,omitempty"`
	Done   bool `json:"done,omitempty"`
}

// A Monitored is a [Sandbox] that may have a monitor. A wrapper that has no Unwrap passes the calls on with its own checks.
type Monitored interface {
	// MonitorQuestions lists the questions that wait, oldest first. With wait it returns when there is one, or none after half
	// a minute; a sandbox that is dead or saved asks nothing, which it tells at once. Without a monitor the error is
	// [Unsupported].
	MonitorQuestions(ctx context.Context, wait bool) ([]MonitorQuestion, error)

	// AnswerMonitor answers a question: with allow, what it is about goes on. For a question that does not wait any more the
	// error is [NotFound].
	AnswerMonitor(ctx context.Context, question string, allow bool) error
}

// MonitorQuestions asks the outermost layer of sb that is a [Monitored]. Without one, the error is [Unsupported].
func MonitorQuestions(ctx context.Context, sb Sandbox, wait bool) ([]MonitorQuestion, error) {
	if m, ok := As[Monitored](sb); ok {
		return m.MonitorQuestions(ctx, wait)
	}
	return nil, unmonitored()
}

// AnswerMonitor tells the outermost layer of sb that is a [Monitored]. Without one, the error is [Unsupported].
func AnswerMonitor(ctx context.Context, sb Sandbox, question string, allow bool) error {
	if m, ok := As[Monitored](sb); ok {
		return m.AnswerMonitor(ctx, question, allow)
	}
	return unmonitored()
}

func unmonitored() error {
	return fmt.Errorf("the sandbox has no monitor: make it with one: %w", Unsupported)
}
