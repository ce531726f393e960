package audit

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
)

// A Kind is what happened: one of [paddock.AuditKinds], or Lost.
type Kind = paddock.AuditKind

// Which fields of an event are set depends on its kind.
const (
	Exec    = paddock.AuditExec    // Path, Args and Dir
	Open    = paddock.AuditOpen    // Path, Flags and Error
	Connect = paddock.AuditConnect // Address
	Clone   = paddock.AuditClone   // Child
	Exited  = paddock.AuditExit    // Exit
	Network = paddock.AuditNetwork // Network, and no process: packets have none

	// Did is an action of someone on a sandbox or its server: Action, of a
	// command that was started Args and Dir, and of what has a second name that in
	// Args. No process did it.
	Did Kind = "action"

	// Lost tells only that events were lost: Dropped. It stands where no other
	// event follows that could tell it.
	Lost Kind = "lost"
)

// Bounds of the texts of an event, in bytes. A text that is cut ends with [Cut].
const (
	MaxPath  = 4096 // of a path, as Linux has it
	MaxArgs  = 8192 // of all arguments
	MaxCount = 128  // arguments
	MaxWhy   = 1024 // of a reason
	MaxNames = 32   // secrets
	MaxWord  = 256  // of anything else
)

// Cut ends a text that was longer than its bound. As the last of Args or of
// Secrets, alone, it stands for those that were left out.
const Cut = "…"

// An Event is one thing that a process in a sandbox did. Which fields are set
// depends on Kind; see there.
//
// The encoding of an event is always the same for the same event, so that lines
// can be digested; it has no maps and no floats.
type Event struct {
	Time    time.Time `json:"time"` // when the host heard of it, in UTC
	Sandbox string    `json:"sandbox"`
	Kind    Kind      `json:"kind"`
	// Dropped counts the events that were lost between the one before and this.
	Dropped uint64 `json:"dropped,omitempty"`

	Process Process `json:"process,omitzero"`

	Path    string   `json:"path,omitempty"`
	Args    []string `json:"args,omitempty"`
	Dir     string   `json:"dir,omitempty"` // the working directory
	Flags   string   `json:"flags,omitempty"`
	Error   string   `json:"error,omitempty"` // why it came to nothing, where that is known
	Address string   `json:"address,omitempty"`
	Child   int32    `json:"child,omitempty"` // PID, of Clone
	Exit    *Exit    `json:"exit,omitempty"`
	Network *Flow    `json:"network,omitempty"`
	Action  *Action  `json:"action,omitempty"`
}

// An Action is what someone did, or wanted to do, from outside of a sandbox.
type Action struct {
	Who     string `json:"who"`               // whose key, or which user; never the key
	Tenant  string `json:"tenant,omitempty"`  // on whose behalf
	From    string `json:"from,omitempty"`    // the address
	Request string `json:"request,omitempty"` // the ID of the request that it was part of
	What    string `json:"what"`              // "sandbox.create", "file.write", …
	Target  string `json:"target,omitempty"`  // a file, process, snapshot or key
	Result  string `json:"result"`            // "ok", or the kind of the error
	Reason  string `json:"reason,omitempty"`  // the error, in words
	Rule    string `json:"rule,omitempty"`    // what decided that it may be, or may not
}

// A Process is who did it, as the sandbox numbers and names it.
type Process struct {
	PID    int32  `json:"pid"`
	Parent int32  `json:"parent,omitempty"`
	UID    uint32 `json:"uid"`            // the effective one
	Name   string `json:"name,omitempty"` // any text: a process names itself
}

// An Exit is how a process ended.
type Exit struct {
	Code   int `json:"code"`             // as a shell has it: 128+n for signal n
	Signal int `json:"signal,omitempty"` // zero if it was not killed
}

// A Flow is what the way out decided of one lookup, connection, datagram flow or
// request, and what it carried.
type Flow struct {
	Protocol string        `json:"protocol"` // what was decided about: "dns", "tcp", "udp", "http", "proxy", or "rules": the way out as a whole
	Host     string        `json:"host"`     // the name or address that was asked for
	Port     uint16        `json:"port,omitempty"`
	Address  string        `json:"address,omitempty"` // that was connected to
	Method   string        `json:"method,omitempty"`
	Path     string        `json:"path,omitempty"` // without the query, which may hold secrets
	Verdict  string        `json:"verdict"`        // "allow" or "deny"
	Rule     int           `json:"rule"`           // index of the rule that decided; -1 is none
	Reason   string        `json:"reason,omitempty"`
	Sent     int64         `json:"sent,omitempty"`     // bytes, from the sandbox
	Received int64         `json:"received,omitempty"` // bytes, by the sandbox
	Duration time.Duration `json:"duration,omitempty"` // nanoseconds
	Secrets  []string      `json:"secrets,omitempty"`  // names of those that were put in; never values
	Count    int64         `json:"count,omitempty"`    // how many alike it stands for, where that is more than one
}

// Clean gives the event with its time in UTC and every text within its bound and
// valid UTF-8. It shares no memory with e. Cleaning twice changes nothing.
func (e Event) Clean() Event {
	e.Time = e.Time.Round(0).UTC() // without the monotonic clock
	e.Sandbox = Text(e.Sandbox, MaxWord)
	e.Kind = Kind(Text(string(e.Kind), MaxWord))
	e.Process.Name = Text(e.Process.Name, MaxWord)
	e.Path = Text(e.Path, MaxPath)
	e.Args = Arguments(e.Args)
	e.Dir = Text(e.Dir, MaxPath)
	e.Flags = Text(e.Flags, MaxWord)
	e.Error = Text(e.Error, MaxWord)
	e.Address = Text(e.Address, MaxWord)
	if e.Exit != nil {
		exit := *e.Exit
		e.Exit = &exit
	}
	if e.Network != nil {
		flow := e.Network.clean()
		e.Network = &flow
	}
	if e.Action != nil {
		action := e.Action.clean()
		e.Action = &action
	}
	return e
}

func (a *Action) clean() Action {
	return Action{
		Who: Text(a.Who, MaxWord), Tenant: Text(a.Tenant, MaxWord), From: Text(a.From, MaxWord), Request: Text(a.Request, MaxWord),
		What: Text(a.What, MaxWord), Target: Text(a.Target, MaxPath), Result: Text(a.Result, MaxWord), Reason: Text(a.Reason, MaxWhy), Rule: Text(a.Rule, MaxWord),
	}
}

func (f *Flow) clean() Flow {
	c := *f
	c.Protocol = Text(c.Protocol, MaxWord)
	c.Host = Text(c.Host, MaxWord)
	c.Address = Text(c.Address, MaxWord)
	c.Method = Text(c.Method, MaxWord)
	c.Path = Text(c.Path, MaxPath)
	c.Verdict = Text(c.Verdict, MaxWord)
	c.Reason = Text(c.Reason, MaxWhy)
	c.Secrets = nil
	for i, name := range f.Secrets {
		if i == MaxNames-1 && len(f.Secrets) > MaxNames {
			c.Secrets = append(c.Secrets, Cut)
			break
		}
		c.Secrets = append(c.Secrets, Text(name, MaxWord))
	}
	return c
}

// Text gives s as valid UTF-8 of at most limit bytes, which is no less than
// [Cut] has. A run of what is not UTF-8 becomes one U+FFFD; what is cut ends with
// Cut.
func Text(s string, limit int) string {
	if len(s) <= limit && utf8.ValidString(s) {
		return strings.Clone(s)
	}
	cut := len(s) > limit
	if cut {
		s = s[:limit] // what is looked at is bounded too
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	if !cut && len(s) <= limit {
		return s
	}
	end := min(limit-len(Cut), len(s))
	for end > 0 && end < len(s) && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + Cut
}

// Arguments gives args within [MaxCount] and, together, [MaxArgs].
func Arguments(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	left := MaxArgs
	kept := make([]string, 0, min(len(args), MaxCount))
	for i, a := range args {
		if i == MaxCount-1 && len(args) > MaxCount || left < 2*len(Cut) {
			return append(kept, Cut)
		}
		a = Text(a, left-len(Cut)) // room for the mark of those that are left out
		kept = append(kept, a)
		left -= len(a)
	}
	return kept
}
