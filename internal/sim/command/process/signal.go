package process

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

func itoa(n int) string { return strconv.Itoa(n) }

// signalName gives a signal's name without SIG.
func signalName(n int) (string, bool) {
	names := [...]string{
		"", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "STKFLT",
		"CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR", "SYS",
	}
	switch {
	case n > 0 && n < len(names):
		return names[n], true
	case n == 34:
		return "RTMIN", true
	case n == 64:
		return "RTMAX", true
	case n > 34 && n <= 49:
		return "RTMIN+" + itoa(n-34), true
	case n > 49 && n < 64:
		return "RTMAX-" + itoa(64-n), true
	}
	return "", false
}

// parseSignal reads a signal's name, with or without SIG, or its number.
func parseSignal(s string) (linux.Signal, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		if n > 128 {
			n -= 128
		}
		return linux.Signal(n), n >= 0 && n <= 64
	}
	name := strings.TrimPrefix(strings.ToUpper(s), "SIG")
	switch name {
	case "EXIT":
		return 0, true
	case "IOT":
		return linux.SIGABRT, true
	case "CLD":
		return linux.SIGCHLD, true
	case "IO":
		return linux.SIGIO, true
	}
	for n := 1; n <= 64; n++ {
		if known, ok := signalName(n); ok && known == name {
			return linux.Signal(n), true
		}
	}
	return 0, false
}

// signalList reads signals with commas between them; empty is all.
func signalList(s string) ([]linux.Signal, bool) {
	var list []linux.Signal
	if s == "" {
		for n := 1; n < 32; n++ {
			list = append(list, linux.Signal(n))
		}
		return list, true
	}
	for part := range strings.SplitSeq(s, ",") {
		sig, ok := parseSignal(part)
		if !ok {
			return nil, false
		}
		list = append(list, sig)
	}
	return list, true
}

// send sends a signal as kill(2) does: to one task, to a group (negative), to
// the own group (0) or to all but the first (-1).
func send(t *kernel.Task, pid int, sig linux.Signal) error {
	var to []*kernel.Task
	switch {
	case pid > 0:
		other, ok := t.K.Task(pid)
		if !ok {
			return linux.ESRCH
		}
		to = append(to, other)
	default:
		for _, other := range t.K.Tasks() {
			switch {
			case pid == 0 && other.PGID() == t.PGID(),
				pid == -1 && other.PID != t.PID && other.PID != 1,
				pid < -1 && other.PGID() == -pid:
				to = append(to, other)
			}
		}
	}
	if len(to) == 0 {
		return linux.ESRCH
	}
	err := error(linux.EPERM)
	for _, other := range to {
		if t.View.UID != 0 && other != t {
			if p, ok := look(t, other); ok && p.uid != t.View.UID {
				continue
			}
		}
		err = nil
		other.Signal(sig)
	}
	t.Check()
	return err
}
