package sim

import (
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// Limits bound a simulated computer. A zero field means its default: there is
// no way to say "no limit".
//
// A limit is reached in one of two ways. Where a program has a word for it, the
// call fails with that word and the program goes on; the field says so.
// Everything else ends the run: the command with all that it started is killed
// (status 137), [paddock.Exit] says [paddock.OutOfBudget] and
// names the limit (or [paddock.OutOfMemory], where more memory is what it
// takes), and the sandbox stays usable.
//
// Fields that count are of one run (a started command with all that it starts,
// or one script of a [Session]), except Heap, Tasks, Disk and Inodes, which are
// of the whole sandbox.
type Limits struct {
	// Source bounds the bytes of one script. Default 64 MiB.
	Source int64 `json:"source,omitempty"`
	// Commands bounds how many commands are executed. Default 5,000,000.
	Commands int64 `json:"commands,omitempty"`
	// Iterations bounds the rounds of the shell's loops. Default 2,000,000.
	Iterations int64 `json:"iterations,omitempty"`
	// Calls bounds functions that call functions. Default 1,000.
	Calls int64 `json:"calls,omitempty"`
	// Sources bounds source and eval within each other. Default 100.
	Sources int64 `json:"sources,omitempty"`
	// Substitution bounds command substitutions within each other. Default 100.
	Substitution int64 `json:"substitution,omitempty"`
	// Nesting bounds syntax within syntax, of the shell and of the tools'
	// languages. Default 500.
	Nesting int64 `json:"nesting,omitempty"`
	// Shells bounds shells and programs that start each other. Default 100.
	Shells int64 `json:"shells,omitempty"`
	// Brace bounds the words of one brace expansion. Default 1,000,000.
	Brace int64 `json:"brace,omitempty"`
	// Matches bounds the names that one glob matches. Default 1,000,000.
	Matches int64 `json:"matches,omitempty"`
	// Arguments bounds the bytes of one command's arguments and environment:
	// the call fails with "Argument list too long". Default 4 MiB.
	Arguments int64 `json:"arguments,omitempty"`
	// String bounds the bytes of one value. Default 64 MiB.
	String int64 `json:"string,omitempty"`
	// Array bounds the elements of one array. Default 2,000,000.
	Array int64 `json:"array,omitempty"`
	// Heredoc bounds the bytes of one here-document. Default 64 MiB.
	Heredoc int64 `json:"heredoc,omitempty"`

	// Heap bounds the bytes of live values and buffers, of the whole sandbox.
	// Default 256 MiB.
	Heap int64 `json:"heap,omitempty"`
	// Tasks bounds the tasks that are alive, of the whole sandbox: the call
	// fails with "Resource temporarily unavailable". Default 512.
	Tasks int64 `json:"tasks,omitempty"`
	// Descriptors bounds the open descriptors of one task: the call fails with
	// "Too many open files". Default 1,024.
	Descriptors int64 `json:"descriptors,omitempty"`
	// Disk bounds the bytes of files, of the whole sandbox: the call fails with
	// "No space left on device". Default 1 GiB.
	Disk int64 `json:"disk,omitempty"`
	// Inodes bounds the number of files, of the whole sandbox: the call fails
	// with "No space left on device". Default 500,000.
	Inodes int64 `json:"inodes,omitempty"`
	// FileSize bounds the bytes of one file, holes too: the call fails with
	// "File too large". Default 4 GiB.
	FileSize int64 `json:"file_size,omitempty"`
	// Path bounds the bytes of a path: the call fails with "File name too
	// long". Default 4 KiB.
	Path int64 `json:"path,omitempty"`
	// Output bounds the bytes that are written to standard output and error.
	// Default 1 GiB.
	Output int64 `json:"output,omitempty"`

	// Steps bounds units of work, about a record, a character class or a state
	// each. Default 2,000,000,000.
	Steps int64 `json:"steps,omitempty"`
	// Traversal bounds the directory entries that are visited. Default
	// 5,000,000.
	Traversal int64 `json:"traversal,omitempty"`
	// Record bounds the bytes of one line or record that a tool reads. Default
	// 64 MiB.
	Record int64 `json:"record,omitempty"`
	// Input bounds the bytes that a tool holds at once. Default 256 MiB.
	Input int64 `json:"input,omitempty"`
	// Archive bounds the bytes that are unpacked from one archive or stream.
	// Default 1 GiB.
	Archive int64 `json:"archive,omitempty"`
	// Database bounds the bytes of one database: the call fails with the
	// database's word for a full one. Default 1 GiB.
	Database int64 `json:"database,omitempty"`
	// Download bounds the bytes of one answer from the network. Default
	// 64 MiB.
	Download int64 `json:"download,omitempty"`
	// Redirects bounds the redirects of one request: the tool fails with its
	// word for it. Default 20.
	Redirects int64 `json:"redirects,omitempty"`
	// ToolCalls bounds the calls of the caller's tools. Default 10,000.
	ToolCalls int64 `json:"tool_calls,omitempty"`

	// ScriptHeap bounds the bytes of one JavaScript engine. Default 64 MiB.
	ScriptHeap int64 `json:"script_heap,omitempty"`
	// PythonHeap bounds the bytes of one Python: it gets a MemoryError. Default
	// 256 MiB.
	PythonHeap int64 `json:"python_heap,omitempty"`
	// SQLHeap bounds the bytes of one database engine: it fails with "out of
	// memory". Default 128 MiB.
	SQLHeap int64 `json:"sql_heap,omitempty"`

	// Wall bounds the time of a run that has no longer timeout of its own.
	// Default 1h.
	Wall time.Duration `json:"wall,omitempty"`
	// ScriptTime bounds the time of one JavaScript, Python or SQL program.
	// Default 1m.
	ScriptTime time.Duration `json:"script_time,omitempty"`
	// Request bounds the time of one network request: the tool fails with its
	// word for it. Default 30s.
	Request time.Duration `json:"request,omitempty"`
}

// Defaults returns the limits with the default in every field.
func Defaults() Limits { return Limits(budget.Limits{}.Filled()) }
