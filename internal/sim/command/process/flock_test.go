package process

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/shell"
)

func TestLocksOfFilesAreThoseOfUtilLinux(t *testing.T) {
	with := append(Commands(), command.Command{Name: "bash", Aliases: []string{"sh"}, Run: shell.Program},
		command.Command{Name: "true", Run: func(*kernel.Task) int { return 0 }},
		command.Command{Name: "false", Run: func(*kernel.Task) int { return 1 }},
		command.Command{Name: "echo", Run: func(t *kernel.Task) int { say(t, strings.Join(t.Args[1:], " ")); return 0 }})
	var cases []commandtest.Case
	for _, script := range []string{
		"flock f echo hi; echo $?; flock f -c 'echo $((1+1))'; flock . true; echo $?",
		"exec 9>f; flock 9; echo $?; flock -n f true; echo $?; flock -n -E 7 f true; echo $?; flock -u 9; flock -n f true; echo $?",
		"exec 8<>f 9<>f; flock -s 8; flock -sn 9; echo $?; flock -xn 9; echo $?; flock -u 8; flock -xn 9; echo $?",
		"exec 9>f; flock 9; (flock -n 9; echo $?); exec 9>&-; flock -n f true; echo $?",
		"exec 9>f; flock 9; flock -w 0.02 f true; echo $?; flock -w 0 f true; echo $?",
		"flock f false; echo $?; flock f none; echo $?; flock f bash -c 'kill -9 $$'; echo $?",
		"flock -n f bash -c 'flock -n f true; echo in $?'; flock -n f true; echo out $?",
		"flock -o f bash -c 'flock -n f true; echo in $?'",
		"flock f bash -c 'exec 9<>f; flock -n 9; echo $?'",
		"flock; echo $?; flock 77; echo $?; flock x; echo $?; flock none/f true; echo $?; flock f -c a b; echo $?; flock -w x f true; echo $?; flock -E 300 f true; echo $?",
		"exec 9>f; flock 9; (exec 9>&-; flock f echo late) & exec 9>&-; wait; echo done",
	} {
		cases = append(cases, commandtest.Case{Args: []string{"bash", "-c", script}})
	}
	commandtest.Compare(t, with, cases)
}
