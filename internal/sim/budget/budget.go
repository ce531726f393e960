// Package budget holds the limits of a simulated computer and counts their use.
//
// A limit is reached in one of two ways. Where a program has a word for it
// (no space left, too many open files, no more processes), the call fails with
// that word and the program goes on. Everything else ends the run: the command
// with all that it started, with an [Exceeded] error that names the limit.
package budget

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"
)

// A Name names a limit, as it appears in messages.
type Name string

// An Exceeded error says that a limit was reached.
type Exceeded struct {
	Name  Name
	Limit int64
}

func (e *Exceeded) Error() string {
	return fmt.Sprintf("the limit %q (%d) is used up", string(e.Name), e.Limit)
}

// A Counter counts up to a limit. The zero Counter allows nothing; make one
// with [NewCounter]. It is safe for many goroutines.
type Counter struct {
	name  Name
	limit atomic.Int64
	used  atomic.Int64
	peak  atomic.Int64
}

// NewCounter makes a counter that has counted nothing.
func NewCounter(name Name, limit int64) *Counter {
	c := &Counter{name: name}
	c.limit.Store(limit)
	return c
}

// Add counts n more, or gives an [*Exceeded] and counts nothing. A negative n
// gives back.
func (c *Counter) Add(n int64) error {
	if n > c.limit.Load() {
		return &Exceeded{c.name, c.limit.Load()}
	}
	now := c.used.Add(n) // below zero where somebody gives back before it takes
	if n <= 0 {
		return nil
	}
	if limit := c.limit.Load(); now > limit {
		c.used.Add(-n)
		return &Exceeded{c.name, limit}
	}
	c.note(now)
	return nil
}

// note keeps the most that was counted.
func (c *Counter) note(now int64) {
	for {
		p := c.peak.Load()
		if now <= p || c.peak.CompareAndSwap(p, now) {
			return
		}
	}
}

// Owe counts n more, also over the limit: for what is there already, and would otherwise be given back without having been
// counted. Nothing more is had until as much has been given back.
func (c *Counter) Owe(n int64) {
	c.note(c.used.Add(n))
}

// Used returns what is counted now.
func (c *Counter) Used() int64 { return c.used.Load() }

// Peak returns the most that was ever counted.
func (c *Counter) Peak() int64 { return c.peak.Load() }

// Limit returns the bound.
func (c *Counter) Limit() int64 { return c.limit.Load() }

// SetLimit moves the bound; what is counted stays.
func (c *Counter) SetLimit(limit int64) { c.limit.Store(limit) }

// Fit moves the bound, unless more is counted than that. It reports whether it did.
func (c *Counter) Fit(limit int64) bool {
	if c.used.Load() > limit {
		return false
	}
	before := c.limit.Swap(limit)
	if c.used.Load() > limit { // it grew in between
		c.limit.Store(before)
		return false
	}
	return true
}

// Check returns an [*Exceeded] where n by itself is over the limit of that name.
func Check(name Name, n, limit int64) error {
	if n > limit {
		return &Exceeded{name, limit}
	}
	return nil
}

// Limits bound a simulated computer. A zero field means its default: there is
// no way to say "no limit". Fields that count are of one run (a started
// command with all that it starts), except Heap, Disk, Inodes and Tasks, which
// are of the whole sandbox.
type Limits struct {
	// Of the language.
	Source       int64 `json:"source,omitempty" unit:"bytes"`    // bytes of one script: 64 MiB
	Commands     int64 `json:"commands,omitempty"`               // commands executed: 5,000,000
	Iterations   int64 `json:"iterations,omitempty"`             // rounds of loops: 2,000,000
	Calls        int64 `json:"calls,omitempty"`                  // functions within functions: 1,000
	Sources      int64 `json:"sources,omitempty"`                // source and eval within each other: 100
	Substitution int64 `json:"substitution,omitempty"`           // command substitutions within each other: 100
	Nesting      int64 `json:"nesting,omitempty"`                // syntax within syntax (also of tools' languages): 500
	Shells       int64 `json:"shells,omitempty"`                 // shells and programs that start each other: 100
	Brace        int64 `json:"brace,omitempty"`                  // words of one brace expansion: 1,000,000
	Matches      int64 `json:"matches,omitempty"`                // names of one glob: 1,000,000
	Arguments    int64 `json:"arguments,omitempty" unit:"bytes"` // bytes of one command's arguments and environment: 4 MiB
	String       int64 `json:"string,omitempty" unit:"bytes"`    // bytes of one value: 64 MiB
	Array        int64 `json:"array,omitempty"`                  // elements of one array: 2,000,000
	Heredoc      int64 `json:"heredoc,omitempty" unit:"bytes"`   // bytes of one here-document: 64 MiB

	// Of the machine.
	Heap        int64 `json:"heap,omitempty" unit:"bytes"`      // bytes of live values and buffers: 256 MiB
	Tasks       int64 `json:"tasks,omitempty"`                  // tasks alive: 512
	Descriptors int64 `json:"descriptors,omitempty"`            // open descriptors of one task: 1,024
	Disk        int64 `json:"disk,omitempty" unit:"bytes"`      // bytes of files: 1 GiB
	Inodes      int64 `json:"inodes,omitempty"`                 // files: 500,000
	FileSize    int64 `json:"file_size,omitempty" unit:"bytes"` // bytes of one file, holes too: 4 GiB
	Path        int64 `json:"path,omitempty" unit:"bytes"`      // bytes of a path: 4,096
	Output      int64 `json:"output,omitempty" unit:"bytes"`    // bytes written to standard output and error: 1 GiB

	// Of the tools.
	Steps     int64 `json:"steps,omitempty"`                 // units of work, about a record or a state each: 2,000,000,000
	Traversal int64 `json:"traversal,omitempty"`             // directory entries visited: 5,000,000
	Record    int64 `json:"record,omitempty" unit:"bytes"`   // bytes of one line or record: 64 MiB
	Input     int64 `json:"input,omitempty" unit:"bytes"`    // bytes that a tool holds at once: 256 MiB
	Archive   int64 `json:"archive,omitempty" unit:"bytes"`  // bytes unpacked from one archive or stream: 1 GiB
	Database  int64 `json:"database,omitempty" unit:"bytes"` // bytes of one database: 1 GiB
	Download  int64 `json:"download,omitempty" unit:"bytes"` // bytes of one answer: 64 MiB
	Redirects int64 `json:"redirects,omitempty"`             // of one request: 20
	ToolCalls int64 `json:"tool_calls,omitempty"`            // calls of the caller's tools: 10,000

	// Of the languages.
	ScriptHeap int64 `json:"script_heap,omitempty" unit:"bytes"` // bytes of one JavaScript engine: 64 MiB
	PythonHeap int64 `json:"python_heap,omitempty" unit:"bytes"` // bytes of one Python: 256 MiB
	SQLHeap    int64 `json:"sql_heap,omitempty" unit:"bytes"`    // bytes of one database engine: 128 MiB

	// Of time.
	Wall       time.Duration `json:"wall,omitempty"`        // of a run without a longer timeout: 1 h
	ScriptTime time.Duration `json:"script_time,omitempty"` // of one JavaScript, Python or SQL program: 60 s
	Request    time.Duration `json:"request,omitempty"`     // of one network request: 30 s
}

// Deepest returns the bound of the absolute paths of a computer, in bytes: four times the limit of a path in
// a call.
func (l Limits) Deepest() int64 { return 4 * min(l.Filled().Path, math.MaxInt64/4) }

// Filled returns the limits with the default in every zero field.
func (l Limits) Filled() Limits {
	const mib = 1 << 20
	set := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&l.Source, 64*mib)
	set(&l.Commands, 5_000_000)
	set(&l.Iterations, 2_000_000)
	set(&l.Calls, 1_000)
	set(&l.Sources, 100)
	set(&l.Substitution, 100)
	set(&l.Nesting, 500)
	set(&l.Shells, 100)
	set(&l.Brace, 1_000_000)
	set(&l.Matches, 1_000_000)
	set(&l.Arguments, 4*mib)
	set(&l.String, 64*mib)
	set(&l.Array, 2_000_000)
	set(&l.Heredoc, 64*mib)
	set(&l.Heap, 256*mib)
	set(&l.Tasks, 512)
	set(&l.Descriptors, 1024)
	set(&l.Disk, 1024*mib)
	set(&l.Inodes, 500_000)
	set(&l.FileSize, 4096*mib)
	set(&l.Path, 4096)
	set(&l.Output, 1024*mib)
	set(&l.Steps, 2_000_000_000)
	set(&l.Traversal, 5_000_000)
	set(&l.Record, 64*mib)
	set(&l.Input, 256*mib)
	set(&l.Archive, 1024*mib)
	set(&l.Database, 1024*mib)
	set(&l.Download, 64*mib)
	set(&l.Redirects, 20)
	set(&l.ToolCalls, 10_000)
	set(&l.ScriptHeap, 64*mib)
	set(&l.PythonHeap, 256*mib)
	set(&l.SQLHeap, 128*mib)
	wait := func(v *time.Duration, d time.Duration) {
		if *v <= 0 {
			*v = d
		}
	}
	wait(&l.Wall, time.Hour)
	wait(&l.ScriptTime, time.Minute)
	wait(&l.Request, 30*time.Second)
	return l
}
