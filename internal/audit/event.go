package audit

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
)

// A Kind is the kind of an event: one of [paddock.AuditKinds], Did, Started, Judged or Lost.
type Kind = paddock.AuditKind

// Kinds of events. The kind decides which fields of an event are set.
const (
	Exec    = paddock.AuditExec    // Path, Args and Dir
	Open    = paddock.AuditOpen    // Path, Flags and Error
	Connect = paddock.AuditConnect // Address
	Clone   = paddock.AuditClone   // Child
	Exited  = paddock.AuditExit    // Exit
	Network = paddock.AuditNetwork // Network, and no process: packets have none

	KeyAgent = paddock.AuditKeyAgent // KeyUse, and no process: a connection to an agent has none

	// Did is an action of a person or program outside on a sandbox or its server. It sets Action; Args and Dir for a
	// command that was started; and Args for the second name of an action that has two. It has no process.
	Did Kind = "action"

	// Started is the first event of a sandbox that was made while its record was written. It sets Start, and has no
	// process.
	Started Kind = "start"

	// Stepped is the end of a step of the journal. It sets Step, and Args to the command. It has no process.
	Stepped Kind = "step"

	// Judged is a decision of a monitor. It sets Judgement; Args and Dir for a command. It has no process.
	Judged Kind = "monitor"

	// Lost reports only that events were lost: Dropped. It is used where no later event can report the loss.
	Lost Kind = "lost"
)

// Limits of the texts of an event, in bytes. A text that is cut ends with [Cut].
const (
	MaxPath  = 4096 // of a path, as Linux has it
	MaxArgs  = 8192 // of all arguments
	MaxCount = 128  // arguments
	MaxWhy   = 1024 // of a reason
	MaxNames = 32   // secrets
	MaxRows  = 64   // controls
	MaxWord  = 256  // of anything else
)

// Cut ends a text that exceeded its limit. As the last element of Args or Secrets, it stands for the elements left out.
const Cut = "…"

// An Event is one action of a process in a sandbox. Kind decides which fields are set.
//
// The encoding of equal events is equal, so that lines can be hashed. It has no maps and no floats.
type Event struct {
	Time    time.Time `json:"time"` // when the host received the event, in UTC
	Sandbox string    `json:"sandbox"`
	Kind    Kind      `json:"kind"`
	// Dropped counts the events lost between the previous event and this one.
	Dropped uint64 `json:"dropped,omitempty"`

	Process Process `json:"process,omitzero"`

	Path    string   `json:"path,omitempty"`
	Args    []string `json:"args,omitempty"`
	Dir     string   `json:"dir,omitempty"` // the working directory
	Flags   string   `json:"flags,omitempty"`
	Error   string   `json:"error,omitempty"` // why the action failed, where that is known
	Address string   `json:"address,omitempty"`
	Child   int32    `json:"child,omitempty"` // PID, of Clone
	Exit    *Exit    `json:"exit,omitempty"`
	Network *Flow    `json:"network,omitempty"`
	KeyUse  *KeyUse  `json:"key_use,omitempty"`
	Action  *Action  `json:"action,omitempty"`
	Start   *Start   `json:"start,omitempty"`
	Step    *Step    `json:"step,omitempty"`

	Judgement *Judgement `json:"monitor,omitempty"`
}

// An Action is an action from outside on a sandbox, successful or not.
type Action struct {
	Who     string `json:"who"`               // whose key, or which user; never the key
	Tenant  string `json:"tenant,omitempty"`  // on whose behalf
	From    string `json:"from,omitempty"`    // the address
	Request string `json:"request,omitempty"` // the ID of the request that it was part of
	What    string `json:"what"`              // "sandbox.create", "file.write", …
	Target  string `json:"target,omitempty"`  // a file, process, snapshot or key
	Result  string `json:"result"`            // "ok", or the kind of the error
	Reason  string `json:"reason,omitempty"`  // the error in words, or why a new sandbox has not got a stronger tier
	Rule    string `json:"rule,omitempty"`    // the rule that allowed or denied it
}

// A Process is the process that acted, with the numbers and names of the sandbox.
type Process struct {
	PID    int32  `json:"pid"`
	Parent int32  `json:"parent,omitempty"`
	UID    uint32 `json:"uid"`            // the effective one
	Name   string `json:"name,omitempty"` // any text: a process names itself
}

// An Exit is the exit status of a process.
type Exit struct {
	Code   int `json:"code"`             // as a shell has it: 128+n for signal n
	Signal int `json:"signal,omitempty"` // zero if it was not killed
}

// A Flow is the network's decision about one lookup, connection, flow of datagrams or request, and the bytes that it
// carried.
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

// A KeyUse is the use of a key of the caller's agent, or a request to that agent that was refused.
type KeyUse struct {
	Agent   string `json:"agent"`             // "ssh" or "gpg"
	Request string `json:"request"`           // "sign", "decrypt", or what was refused
	Key     string `json:"key,omitempty"`     // the fingerprint for ssh, the keygrip for gpg
	Comment string `json:"comment,omitempty"` // of the key, as the agent has it
	Verdict string `json:"verdict"`           // "allow" or "deny"
	Reason  string `json:"reason,omitempty"`
	Purpose string `json:"purpose,omitempty"` // what was signed, in words, as far as it says so itself
	Digest  string `json:"digest,omitempty"`  // of what was signed, after the name of the hash and a colon
	Count   int64  `json:"count,omitempty"`   // how many alike it stands for, where that is more than one
}

// A Judgement is a decision of a monitor.
type Judgement struct {
	Moment   string        `json:"moment"`         // "exec", "host", "secret", "effect" or "apply"
	Step     int           `json:"step,omitempty"` // number in the sandbox
	Verdict  string        `json:"verdict"`        // "allow", "ask", "deny" or "pause"
	Judge    string        `json:"judge"`          // "rules", "command", "url", or a kind of language model
	Rule     string        `json:"rule,omitempty"` // of the rules, which of them
	Reason   string        `json:"reason,omitempty"`
	Score    int           `json:"score"`              // suspicion in thousandths
	Latency  time.Duration `json:"latency,omitempty"`  // nanoseconds that the judge took
	Cached   bool          `json:"cached,omitempty"`   // the judge was not asked, because it answered the same before
	Failed   bool          `json:"failed,omitempty"`   // the judge gave no verdict, which is a denial
	Answered string        `json:"answered,omitempty"` // what a person answered: "allow" or "deny"
	Host     string        `json:"host,omitempty"`
	Port     uint16        `json:"port,omitempty"`
	Secret   string        `json:"secret,omitempty"` // the name, never the value
}

// Clean returns the event with its time in UTC and every text within its limit and valid UTF-8. It shares no memory
// with e. Cleaning twice changes nothing.
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
	if e.KeyUse != nil {
		use := *e.KeyUse
		for _, text := range []*string{&use.Agent, &use.Request, &use.Key, &use.Comment, &use.Verdict, &use.Reason, &use.Purpose, &use.Digest} {
			*text = Text(*text, MaxWord)
		}
		e.KeyUse = &use
	}
	if e.Action != nil {
		action := e.Action.clean()
		e.Action = &action
	}
	if e.Start != nil {
		start := e.Start.clean()
		e.Start = &start
	}
	if e.Step != nil {
		step := e.Step.clean()
		e.Step = &step
	}
	if e.Judgement != nil {
		j := *e.Judgement
		for _, text := range []*string{&j.Moment, &j.Verdict, &j.Judge, &j.Rule, &j.Answered, &j.Host, &j.Secret} {
			*text = Text(*text, MaxWord)
		}
		j.Reason = Text(j.Reason, MaxWhy)
		e.Judgement = &j
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

// Text returns s as valid UTF-8 of at most limit bytes, which must be at least the length of [Cut]. Each run of invalid
// bytes becomes one U+FFFD. A text that is cut ends with Cut.
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

// Arguments returns args cut to [MaxCount] elements and [MaxArgs] bytes in all.
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
