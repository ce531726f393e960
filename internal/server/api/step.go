package api

import (
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Steps is a page of the steps of a sandbox, the oldest first.
type Steps struct {
	Steps  []Step `json:"steps"`
	Before int64  `json:"before,omitempty"` // parameter of the page with earlier steps; zero if there are none
}

// A Step encodes a paddock.Step.
type Step struct {
	Number     int64     `json:"number"`
	Kind       string    `json:"kind"`
	Command    []Bytes   `json:"command,omitempty"`
	Begin      time.Time `json:"begin"`
	End        time.Time `json:"end"`
	Exit       int       `json:"exit"`
	Changed    int       `json:"changed"`
	Missed     int       `json:"missed"`
	Undoes     []int64   `json:"undoes,omitempty"`
	Incomplete bool      `json:"incomplete,omitempty"`
	Digest     string    `json:"digest,omitempty"`
	Refused    []Bytes   `json:"refused,omitempty"`
	Hosts      []string  `json:"hosts,omitempty"`
	Secrets    []string  `json:"secrets,omitempty"`

	Use *paddock.StepUse `json:"use,omitempty"`

	Changes []StepChange `json:"changes,omitempty"`
	Left    []StepLeft   `json:"left,omitempty"`
}

// A StepChange encodes a paddock.StepChange.
type StepChange struct {
	What string `json:"what"`
	Path Bytes  `json:"path"`
	From Bytes  `json:"from,omitempty"`
	Why  string `json:"why,omitempty"`
}

// A StepLeft encodes a paddock.StepLeft.
type StepLeft struct {
	Path Bytes  `json:"path,omitempty"`
	Why  string `json:"why"`
}

// FromStep encodes a step.
func FromStep(s *paddock.Step) Step {
	x := Step{
		Number: s.Number, Kind: s.Kind, Command: Pack(s.Command), Begin: s.Begin, End: s.End, Exit: s.Exit, Changed: s.Changed, Missed: s.Missed,
		Undoes: s.Undoes, Incomplete: s.Incomplete, Digest: s.Digest, Refused: Pack(s.Refused), Hosts: s.Hosts, Secrets: s.Secrets,
		Use: s.Use,
	}
	for _, c := range s.Changes {
		x.Changes = append(x.Changes, StepChange{c.What, Bytes(c.Path), Bytes(c.From), c.Why})
	}
	for _, l := range s.Left {
		x.Left = append(x.Left, StepLeft{Bytes(l.Path), l.Why})
	}
	return x
}

// Step decodes the step.
func (x *Step) Step() paddock.Step {
	s := paddock.Step{
		Number: x.Number, Kind: x.Kind, Command: Unpack(x.Command), Begin: x.Begin, End: x.End, Exit: x.Exit, Changed: x.Changed, Missed: x.Missed,
		Undoes: x.Undoes, Incomplete: x.Incomplete, Digest: x.Digest, Refused: Unpack(x.Refused), Hosts: x.Hosts, Secrets: x.Secrets,
		Use: x.Use,
	}
	for _, c := range x.Changes {
		s.Changes = append(s.Changes, paddock.StepChange{What: c.What, Path: string(c.Path), From: string(c.From), Why: c.Why})
	}
	for _, l := range x.Left {
		s.Left = append(s.Left, paddock.StepLeft{Path: string(l.Path), Why: l.Why})
	}
	return s
}

// StepDiffs are the differences that steps made.
type StepDiffs struct {
	Differences []StepDiff `json:"differences"`
}

// A StepDiff encodes a paddock.StepDiff.
type StepDiff struct {
	Path       Bytes    `json:"path"`
	From       Bytes    `json:"from,omitempty"`
	Kinds      []string `json:"kinds"`
	BeforeMode uint32   `json:"before_mode,omitempty"`
	AfterMode  uint32   `json:"after_mode,omitempty"`
	Binary     bool     `json:"binary,omitempty"`
	Text       Bytes    `json:"text,omitempty"`
	Why        string   `json:"why,omitempty"`
}

// FromStepDiff encodes a difference.
func FromStepDiff(d paddock.StepDiff) StepDiff {
	return StepDiff{Bytes(d.Path), Bytes(d.From), d.Kinds, d.BeforeMode, d.AfterMode, d.Binary, Bytes(d.Text), d.Why}
}

// Diff decodes the difference.
func (d StepDiff) Diff() paddock.StepDiff {
	return paddock.StepDiff{
		Path: string(d.Path), From: string(d.From), Kinds: d.Kinds, BeforeMode: d.BeforeMode, AfterMode: d.AfterMode, Binary: d.Binary,
		Text: string(d.Text), Why: d.Why,
	}
}

// An Undo encodes a paddock.Undo.
type Undo struct {
	Steps []int64 `json:"steps,omitempty"`
	To    int64   `json:"to,omitempty"`
	Paths []Bytes `json:"paths,omitempty"`
}

// An Undone encodes a paddock.Undone.
type Undone struct {
	Step      int64        `json:"step,omitempty"`
	Restored  []UndonePath `json:"restored"`
	Conflicts []UndonePath `json:"conflicts"`
	More      int          `json:"more,omitempty"`
}

// An UndonePath encodes a paddock.UndonePath.
type UndonePath struct {
	Step   int64  `json:"step"`
	Path   Bytes  `json:"path"`
	Note   string `json:"note,omitempty"`
	Why    string `json:"why,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// FromUndone encodes what an undo did.
func FromUndone(u *paddock.Undone) Undone {
	pack := func(list []paddock.UndonePath) []UndonePath {
		out := make([]UndonePath, len(list))
		for i, p := range list {
			out[i] = UndonePath{p.Step, Bytes(p.Path), p.Note, p.Why, p.Remedy}
		}
		return out
	}
	return Undone{u.Step, pack(u.Restored), pack(u.Conflicts), u.More}
}

// Undone decodes it.
func (u *Undone) Undone() paddock.Undone {
	unpack := func(list []UndonePath) []paddock.UndonePath {
		var out []paddock.UndonePath
		for _, p := range list {
			out = append(out, paddock.UndonePath{Step: p.Step, Path: string(p.Path), Note: p.Note, Why: p.Why, Remedy: p.Remedy})
		}
		return out
	}
	return paddock.Undone{Step: u.Step, Restored: unpack(u.Restored), Conflicts: unpack(u.Conflicts), More: u.More}
}
