package api

import (
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Command encodes a paddock.Cmd and how its output is sent.
type Command struct {
	Args     []Bytes          `json:"args"`
	Env      map[string]Bytes `json:"env,omitempty"`
	Dir      Bytes            `json:"dir,omitempty"`
	User     string           `json:"user,omitempty"`
	Input    bool             `json:"input,omitempty"`
	Terminal *Size            `json:"terminal,omitempty"`
	Timeout  time.Duration    `json:"timeout,omitempty"`

	// Detached asks for no output: the answer is a Begun instead of frames.
	Detached bool `json:"detached,omitempty"`
	// Attachment names the stream of frames, so that the client can return to it. It is 16
	// to 64 letters, digits and dashes that nobody can guess. A repeated request with the
	// same name attaches to the process that the first request started.
	Attachment string `json:"attachment,omitempty"`
}

// A Size encodes a paddock.Size.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// FromCmd encodes a command.
func FromCmd(c paddock.Cmd) Command {
	out := Command{
		Args: Pack(c.Args), Dir: Bytes(c.Dir), User: c.User, Input: c.Input, Timeout: c.Timeout, Detached: c.Output.Detached,
	}
	for name, value := range c.Env {
		if out.Env == nil {
			out.Env = map[string]Bytes{}
		}
		out.Env[name] = Bytes(value)
	}
	if c.Terminal != nil {
		out.Terminal = &Size{Rows: c.Terminal.Rows, Cols: c.Terminal.Cols}
	}
	return out
}

// Cmd decodes the command.
func (c Command) Cmd() paddock.Cmd {
	out := paddock.Cmd{Args: Unpack(c.Args), Dir: string(c.Dir), User: c.User, Input: c.Input, Timeout: c.Timeout}
	for name, value := range c.Env {
		if out.Env == nil {
			out.Env = map[string]string{}
		}
		out.Env[name] = string(value)
	}
	if c.Terminal != nil {
		out.Terminal = &paddock.Size{Rows: c.Terminal.Rows, Cols: c.Terminal.Cols}
	}
	return out
}

// A Process encodes a paddock.ProcessInfo.
type Process struct {
	PID      paddock.PID   `json:"pid"`
	Args     []Bytes       `json:"args"`
	Dir      Bytes         `json:"dir"`
	User     string        `json:"user"`
	Terminal bool          `json:"terminal,omitempty"`
	Started  time.Time     `json:"started"`
	Exit     *paddock.Exit `json:"exit,omitempty"`
	First    int64         `json:"first"`
	Next     int64         `json:"next"`
}

// FromProcess encodes a ProcessInfo.
func FromProcess(p paddock.ProcessInfo) Process {
	return Process{
		PID: p.PID, Args: Pack(p.Args), Dir: Bytes(p.Dir), User: p.User, Terminal: p.Terminal,
		Started: p.Started, Exit: p.Exit, First: p.First, Next: p.Next,
	}
}

// Info decodes the ProcessInfo.
func (p Process) Info() paddock.ProcessInfo {
	return paddock.ProcessInfo{
		PID: p.PID, Args: Unpack(p.Args), Dir: string(p.Dir), User: p.User, Terminal: p.Terminal,
		Started: p.Started, Exit: p.Exit, First: p.First, Next: p.Next,
	}
}

// Processes is a list of processes.
type Processes struct {
	Processes []Process `json:"processes"`
}

// A Signal is the body of a request to send a signal, by its number.
type Signal struct {
	Signal int `json:"signal"`
}

// An Accepted reports how much input was accepted: the offset of the next byte.
type Accepted struct {
	Next int64 `json:"next"`
}
