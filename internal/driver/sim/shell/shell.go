package shell

import (
	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
)

// A Shell is the state of one shell.
type Shell struct {
	t *proc.Task

	name   string   // $0
	params []string // $1 and on
	status int      // $?
	line   int      // $LINENO, of the command that runs
}

// Task gives the task that the shell runs on: where to count, read and write.
func (s *Shell) Task() *proc.Task { return s.t }

// Params gives $1 and on. They must not be changed.
func (s *Shell) Params() []string { return s.params }

// Name gives $0.
func (s *Shell) Name() string { return s.name }

// Line gives the number of the line of the command that runs.
func (s *Shell) Line() int { return s.line }

// Status gives $?.
func (s *Shell) Status() int { return s.status }

// Special gives the values of $? $$ $! $- $# and $0 by that character; ok is
// false for $! before the first background command.
func (s *Shell) Special(name byte) (value string, ok bool) {
	_ = name
	return "", false
}

// On tells an option by its name of set -o or shopt: "nounset", "extglob".
// The tables that expand needs in its inner loops are in Flags.
func (s *Shell) On(option string) bool {
	_ = option
	return false
}

// Substitute runs a command substitution and gives what it wrote, without
// NULs and the newlines at its end. Its status is the shell's.
func (s *Shell) Substitute(c *syntax.CmdSubst) (string, error) {
	_ = c
	return "", nil
}

// Process starts a process substitution and gives the file name for it.
func (s *Shell) Process(p *syntax.ProcSubst) (string, error) {
	_ = p
	return "", nil
}

// Warn writes "NAME: line N: message" to standard error.
func (s *Shell) Warn(format string, args ...any) {
	_, _ = format, args
}
