package process

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

const killHelp = `
Usage:
 kill [options] <pid> [...]

Options:
 <pid> [...]            send signal to every <pid> listed
 -<signal>, -s, --signal <signal>
                        specify the <signal> to be sent
 -q, --queue <value>    integer value to be sent with the signal
 -l, --list=[<signal>]  list all signal names, or convert one to a name
 -L, --table            list all signal names in a nice table

 -h, --help     display this help and exit
 -V, --version  output version information and exit

For more details see kill(1).
`

// runKill is kill as a program; shells have their own.
func runKill(t *kernel.Task) int {
	args := t.Args[1:]
	sig := linux.SIGTERM
	usage := func() int {
		_, _ = t.Write(2, []byte(killHelp))
		return 1
	}
	invalid := func(s string) int {
		t.Errorf("invalid argument %s", s)
		_, _ = t.Write(2, []byte(killHelp))
		return 1
	}
	var pids []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-h" || a == "--help":
			say(t, strings.TrimSuffix(killHelp, "\n"))
			return 0
		case a == "-V" || a == "--version":
			say(t, "kill (Paddock)")
			return 0
		case a == "-l" || a == "--list" || strings.HasPrefix(a, "--list="):
			what := args[i+1:]
			if v, ok := strings.CutPrefix(a, "--list="); ok {
				what = []string{v}
			}
			return listSignals(t, what)
		case strings.HasPrefix(a, "-l") && len(a) > 2:
			return listSignals(t, []string{a[2:]})
		case a == "-L" || a == "--table":
			return tableSignals(t)
		case a == "-s" || a == "--signal" || strings.HasPrefix(a, "--signal=") || len(a) > 2 && strings.HasPrefix(a, "-s") && pids == nil:
			v, ok := strings.CutPrefix(a, "--signal=")
			if !ok && len(a) > 2 && a[1] == 's' {
				v, ok = a[2:], true
			}
			if !ok {
				if i++; i == len(args) {
					return usage()
				}
				v = args[i]
			}
			s, known := parseSignal(v)
			if !known {
				return invalid(v)
			}
			sig = s
		case a == "-q" || a == "--queue":
			i++
		case a == "--":
			pids = append(pids, args[i+1:]...)
			i = len(args)
		case len(a) > 1 && a[0] == '-' && i == 0:
			s, ok := parseSignal(a[1:])
			if !ok {
				return invalid(a[1:])
			}
			sig = s
		default:
			pids = append(pids, a)
		}
	}
	if len(pids) == 0 {
		return usage()
	}
	status := 0
	for _, s := range pids {
		pid, err := strconv.Atoi(s)
		if err != nil {
			t.Errorf("failed to parse argument: '%s'", s)
			status = 1
			continue
		}
		if err := send(t, pid, sig); err != nil {
			t.Errorf("(%s): %s", s, reason(err))
			status = 1
		}
	}
	return status
}

func listSignals(t *kernel.Task, what []string) int {
	if len(what) == 0 {
		line := ""
		for n := 1; n < 32; n++ {
			name, _ := signalName(n)
			if n == 17 {
				say(t, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += name
		}
		say(t, line)
		return 0
	}
	for _, s := range what {
		sig, ok := parseSignal(s)
		if !ok {
			t.Errorf("unknown signal name %s", s)
			return 1
		}
		if _, isNumber := atoi(s); isNumber {
			name, _ := signalName(int(sig))
			say(t, name)
		} else {
			say(t, itoa(int(sig)))
		}
	}
	return 0
}

func tableSignals(t *kernel.Task) int {
	line := ""
	for n := 1; n < 32; n++ {
		name, _ := signalName(n)
		line += fmt.Sprintf("%2d %-8s", n, name)
		if n%7 == 0 || n == 31 {
			say(t, strings.TrimRight(line, " "))
			line = ""
		}
	}
	return 0
}

var killallSpec = &command.Spec{
	Name: "killall", Synopsis: "[OPTION]... [--] NAME...", About: "Kill processes by name.",
	Options: []command.Option{
		{Short: 'e', Long: "exact", Help: "require exact match for very long names"}, {Short: 'I', Long: "ignore-case", Help: "case insensitive process name match"},
		{Short: 'g', Long: "process-group", Help: "kill process group instead of process"}, {Short: 'i', Long: "interactive", Help: "ask for confirmation before killing"},
		{Short: 'l', Long: "list", Help: "list all known signal names"}, {Short: 'q', Long: "quiet", Help: "don't print complaints"},
		{Short: 's', Long: "signal", Arg: command.Required, Name: "SIGNAL", Help: "send this signal instead of SIGTERM"}, {Short: 'u', Long: "user", Arg: command.Required, Name: "USER", Help: "kill only process(es) running as USER"},
		{Short: 'v', Long: "verbose", Help: "report if the signal was successfully sent"}, {Short: 'w', Long: "wait", Help: "wait for processes to die"},
	},
}

func runKillall(t *kernel.Task) int {
	args := t.Args[1:]
	sig := linux.SIGTERM
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		if s, ok := parseSignal(args[0][1:]); ok {
			sig, args = s, args[1:]
		}
	}
	a, status, ok := killallSpec.ParseArgs(t, args)
	if !ok {
		return status
	}
	if a.Has("l") {
		return listSignals(t, nil)
	}
	if s, given := a.Value("s"); given {
		if sig, ok = parseSignal(s); !ok {
			_, _ = t.Write(2, []byte(s+": unknown signal; killall -l lists signals.\n"))
			return 1
		}
	}
	user, byUser := a.Value("u")
	if len(a.Operands) == 0 && !byUser {
		_, _ = t.Write(2, []byte("Usage: killall [OPTION]... [--] NAME...\n"))
		return 1
	}
	b := &command.Accounts{View: &t.View}
	names := a.Operands
	if len(names) == 0 {
		names = []string{""}
	}
	var killed []*kernel.Task
	for _, name := range names {
		found := false
		for _, p := range everyone(t) {
			same := p.comm == name || name == "" || a.Has("I") && strings.EqualFold(p.comm, name)
			if p.pid == t.PID || !same || byUser && b.UserText(p.uid) != user {
				continue
			}
			found = true
			if err := send(t, p.pid, sig); err != nil {
				_, _ = t.Write(2, []byte(fmt.Sprintf("%s(%d): %s\n", p.comm, p.pid, reason(err))))
				status = 1
				continue
			}
			if a.Has("v") {
				_, _ = t.Write(2, []byte(fmt.Sprintf("Killed %s(%d) with signal %d\n", p.comm, p.pid, int(sig))))
			}
			killed = append(killed, p.task)
		}
		if !found {
			if !a.Has("q") {
				_, _ = t.Write(2, []byte(name+": no process found\n"))
			}
			status = 1
		}
	}
	if a.Has("w") {
		for _, k := range killed {
			if err := t.Await(k.Done(), time.Time{}); err != nil {
				return 1
			}
		}
	}
	return status
}

var pidofSpec = &command.Spec{
	Name: "pidof", Synopsis: "[options] program [...]", About: "Find the process ID of a running program.",
	Options: []command.Option{
		{Short: 's', Help: "return one PID only"}, {Short: 'c', Help: "(ignored)"}, {Short: 'q', Help: "only tell by the status"}, {Short: 'w', Help: "show kernel workers too"},
		{Short: 'x', Help: "return PIDs of shells running scripts with a matching name"}, {Short: 'n', Help: "(ignored)"}, {Short: 'z', Help: "(ignored)"},
		{Short: 'o', Arg: command.Required, Name: "PID", Help: "omit processes with PID"}, {Short: 'd', Arg: command.Required, Name: "sep", Help: "use the provided character as output separator"},
	},
}

func runPidof(t *kernel.Task) int {
	a, status, ok := pidofSpec.Parse(t)
	if !ok {
		return status
	}
	sep := " "
	if s, given := a.Value("d"); given {
		sep = s
	}
	omit, _ := a.Value("o")
	var found []string
	list := everyone(t)
	for _, name := range a.Operands {
		for i := len(list) - 1; i >= 0; i-- {
			p := list[i]
			if p.comm != base(name) || p.pid == t.PID || itoa(p.pid) == omit {
				continue
			}
			found = append(found, itoa(p.pid))
			if a.Has("s") {
				break
			}
		}
	}
	if len(found) == 0 {
		return 1
	}
	if !a.Has("q") {
		say(t, kernel.Join(t, found, sep))
	}
	return 0
}

func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
