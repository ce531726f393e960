package monitor

import (
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// A Moment is the occasion at which a monitor is asked.
type Moment string

// Moments.
const (
	Exec   Moment = "exec"   // a command is about to start
	Host   Moment = "host"   // the sandbox is about to connect to a host for the first time
	Secret Moment = "secret" // a secret is about to be put into a request
	Effect Moment = "effect" // a step changed files or sent data such that it is worth a look
	Apply  Moment = "apply"  // the changes of a review are about to be applied to the host's files
)

// Moments returns all moments.
func Moments() []Moment { return []Moment{Exec, Host, Secret, Effect, Apply} }

// Bounds of an Input. What is beyond them is left out, and the input says so.
const (
	maxTask    = 4096 // bytes
	maxText    = 1024 // bytes of a path, host or reason
	maxArgs    = 8192 // bytes of a command
	maxNotable = 50   // of one step
	maxHosts   = 50   // of one step
	maxNames   = 20   // secrets of one step
)

// An Input is what a judge sees. Its JSON is described by docs/reference/monitor.schema.json.
//
// Everything below a member named "guest" was chosen inside the sandbox, or by who told it what to run. It is data, and
// never an instruction.
type Input struct {
	Version  int      `json:"version"` // 1
	Moment   Moment   `json:"moment"`
	Sandbox  string   `json:"sandbox"`
	Tier     string   `json:"tier"`
	Policy   string   `json:"policy"`         // digest of the sandbox's policy
	Task     string   `json:"task,omitempty"` // that the user stated
	Measured Measured `json:"measured"`
	Step     Step     `json:"step"`              // that goes on, or is about to begin
	Earlier  []Step   `json:"earlier,omitempty"` // the last ones, oldest first

	Destination *Destination `json:"destination,omitempty"` // of Host and Secret
	Secret      string       `json:"secret,omitempty"`      // of Secret: the name
}

// Measured says what of the effects is measured in this sandbox. What is not measured is missing, not zero.
type Measured struct {
	Files   bool `json:"files"`   // changes in directories of the host
	Network bool `json:"network"` // connections by the sandbox's gateway
}

// A Step is one command with its measured effects so far.
type Step struct {
	Number  int         `json:"number"` // in this sandbox, from 1
	Running bool        `json:"running,omitempty"`
	Exit    int         `json:"exit,omitempty"` // -1 if it is not known
	Files   *Files      `json:"files,omitempty"`
	Network *NetworkUse `json:"network,omitempty"`
	Secrets []string    `json:"secrets,omitempty"` // names of those that were put into requests
	Guest   StepGuest   `json:"guest"`
}

// A StepGuest holds the texts of a step that the sandbox chose.
type StepGuest struct {
	Command []string   `json:"command,omitempty"`
	Dir     string     `json:"dir,omitempty"`
	Notable []Notable  `json:"notable,omitempty"` // changed paths that tools act on, or that are named like keys
	Hosts   []HostUsed `json:"hosts,omitempty"`
	Cut     bool       `json:"cut,omitempty"` // there was more than is listed
}

// Files counts the paths of the host's directories that a step changed. Files that the step itself made count only as
// created.
type Files struct {
	Created int  `json:"created"`
	Changed int  `json:"changed"`
	Removed int  `json:"removed"`           // outside of directories that tools rebuild
	Rebuilt int  `json:"rebuilt,omitempty"` // removed within them
	Emptied int  `json:"emptied,omitempty"` // cut to nothing; known when the step has ended
	Present int  `json:"present,omitempty"` // files and directories that are left; counted only once many were removed
	Partial bool `json:"partial,omitempty"` // Present is not all, because counting has a bound
}

// A NetworkUse counts what a step exchanged with the network.
type NetworkUse struct {
	Sent     int64 `json:"sent"` // bytes
	Received int64 `json:"received"`
	Refused  int   `json:"refused,omitempty"` // attempts that the rules or the monitor refused
}

// A Notable path was changed and is of a kind that matters.
type Notable struct {
	Path string `json:"path"` // below the directory that is mounted
	Kind string `json:"kind"` // "hook", "ci", "shell", "agent", "key" or "repository"
	What string `json:"what"` // "created", "edited", "removed" or "moved"
}

// A HostUsed is a host that a step tried to reach.
type HostUsed struct {
	Host    string `json:"host"`
	Port    uint16 `json:"port,omitempty"`
	New     bool   `json:"new,omitempty"` // no earlier step reached it
	Refused bool   `json:"refused,omitempty"`
	Sent    int64  `json:"sent,omitempty"`
}

// A Destination is where a connection goes.
type Destination struct {
	Port  uint16           `json:"port,omitempty"`
	UDP   bool             `json:"udp,omitempty"`
	Rule  bool             `json:"rule"` // a rule of the policy allows it; otherwise a person did
	Guest DestinationGuest `json:"guest"`
}

// A DestinationGuest holds the text of a destination.
type DestinationGuest struct {
	Host string `json:"host"`
}

// clean returns the input within its bounds, valid and without values of secrets. It shares no memory with in.
func (in Input) clean(redact *strings.Replacer) Input {
	text := func(s string, limit int) string {
		return audit.Text(redact.Replace(audit.Text(s, 4*limit)), limit)
	}
	in.Version = 1
	in.Sandbox, in.Tier, in.Policy = audit.Text(in.Sandbox, audit.MaxWord), audit.Text(in.Tier, audit.MaxWord), audit.Text(in.Policy, audit.MaxWord)
	in.Task = text(in.Task, maxTask)
	in.Secret = audit.Text(in.Secret, audit.MaxWord)
	in.Step = in.Step.clean(text)
	earlier := make([]Step, 0, len(in.Earlier))
	for _, s := range in.Earlier {
		earlier = append(earlier, s.clean(text))
	}
	in.Earlier = earlier
	if in.Destination != nil {
		d := *in.Destination
		d.Guest.Host = text(d.Guest.Host, maxText)
		in.Destination = &d
	}
	return in
}

func (s Step) clean(text func(string, int) string) Step {
	if s.Files != nil {
		f := *s.Files
		s.Files = &f
	}
	if s.Network != nil {
		n := *s.Network
		s.Network = &n
	}
	secrets := slices.Clone(s.Secrets[:min(len(s.Secrets), maxNames)])
	for i := range secrets {
		secrets[i] = audit.Text(secrets[i], audit.MaxWord)
	}
	s.Secrets = secrets
	g := &s.Guest
	args := make([]string, 0, len(g.Command))
	for _, a := range g.Command[:min(len(g.Command), audit.MaxCount)] {
		args = append(args, text(a, maxArgs))
	}
	g.Cut = g.Cut || len(g.Command) > audit.MaxCount || len(g.Notable) > maxNotable || len(g.Hosts) > maxHosts
	g.Command, g.Dir = audit.Arguments(args), text(g.Dir, maxText)
	notable := slices.Clone(g.Notable[:min(len(g.Notable), maxNotable)])
	for i := range notable {
		notable[i].Path = text(notable[i].Path, maxText)
	}
	hosts := slices.Clone(g.Hosts[:min(len(g.Hosts), maxHosts)])
	for i := range hosts {
		hosts[i].Host = text(hosts[i].Host, maxText)
	}
	g.Notable, g.Hosts = notable, hosts
	return s
}

// redactor replaces the values of secrets by their names. A value that is shorter than a few characters would tear texts
// apart, and is no secret.
func redactor(secrets map[string]string) *strings.Replacer {
	names := make([]string, 0, len(secrets))
	for name := range secrets {
		names = append(names, name)
	}
	// The longest first, so that a value that begins like another one is replaced as a whole.
	slices.SortFunc(names, func(a, b string) int {
		if d := len(secrets[b]) - len(secrets[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var pairs []string
	for _, name := range names {
		if v := secrets[name]; len(v) >= minSecret {
			pairs = append(pairs, v, "[secret "+name+"]")
		}
	}
	return strings.NewReplacer(pairs...)
}

// minSecret is the length of the shortest value that is replaced.
const minSecret = 4

// A Verdict is the answer of a monitor. From Allow to Pause each is stricter than the one before.
type Verdict string

// Verdicts.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"   // ask the person at the terminal; a denial where nobody can be asked
	Deny  Verdict = "deny"  // refuse this, and go on; what has happened already is met with a pause
	Pause Verdict = "pause" // stop the sandbox until a person says how to go on
)

// rank orders verdicts. An unknown one is stricter than any.
func (v Verdict) rank() int {
	i := slices.Index([]Verdict{Allow, Ask, Deny, Pause}, v)
	if i < 0 {
		return len("all")
	}
	return i
}

// A Decision is a verdict with its reason.
type Decision struct {
	Moment  Moment
	Step    int
	Verdict Verdict
	Reason  string        // in words; empty for an allowance
	Score   float64       // suspicion, from 0 to 1
	Rule    string        // of the rules, which of them; empty of a judge
	Judge   string        // "rules", or the kind of the judge
	Latency time.Duration // of the judge
	Cached  bool
	Failed  bool // the judge gave no verdict
}
