package monitor

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// A Command is a judge that is a program of the host. It runs as the caller, outside of every sandbox, once for each question,
// with the input on standard input and the answer on standard output.
type Command struct {
	Args []string // the program and its arguments
	Env  []string // its whole environment
	Dir  string
}

// environment lists the variables that a program has of the caller's.
var environment = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "TZ", "SYSTEMROOT"}

// Environment returns the bounded environment of a program: a few variables of the caller, those that are named, and
// PADDOCK_MONITOR.
func Environment(lookup func(string) (string, bool), names []string) []string {
	env := []string{"PADDOCK_MONITOR=1"}
	for _, name := range slices.Concat(environment, names) {
		if v, ok := lookup(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// Kind implements Judge.
func (c *Command) Kind() string { return "command" }

// stopTime is how long a program that is killed may keep its output open.
const stopTime = 2 * time.Second

// Judge implements Judge.
func (c *Command) Judge(ctx context.Context, input []byte) (Answer, error) {
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = c.Env, c.Dir, stopTime
	cmd.Stdin = bytes.NewReader(input)
	out, said := &bounded{most: maxAnswer + 1}, &bounded{most: maxSaid}
	cmd.Stdout, cmd.Stderr = out, said
	own(cmd)
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return Answer{}, ctx.Err()
	case err != nil && said.Len() > 0:
		return Answer{}, fmt.Errorf("%s: %w (it said: %s): %w", c.Args[0], err, audit.Text(strings.TrimSpace(said.String()), maxSaid), paddock.Unavailable)
	case err != nil:
		return Answer{}, fmt.Errorf("%s: %w: %w", c.Args[0], err, paddock.Unavailable)
	}
	return parseAnswer(out.Bytes())
}

// maxSaid bounds what is kept of a program's standard error.
const maxSaid = 300

// A bounded buffer keeps the beginning, and takes the rest without keeping it.
type bounded struct {
	bytes.Buffer

	most int
}

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	_, _ = b.Buffer.Write(p[:min(len(p), b.most-b.Len())]) // never fails
	return len(p), nil
}
