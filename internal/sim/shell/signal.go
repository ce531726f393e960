package shell

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// signalNames are the names without SIG, from 1 on.
const signalNames = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP " +
	"TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS"

// signalName gives a signal's name without SIG, or "".
func signalName(sig linux.Signal) string {
	n := int(sig)
	switch {
	case n >= 1 && n <= 31:
		return strings.Fields(signalNames)[n-1]
	case n == 34:
		return "RTMIN"
	case n > 34 && n <= 49:
		return "RTMIN+" + strconv.Itoa(n-34)
	case n >= 50 && n < 64:
		return "RTMAX-" + strconv.Itoa(64-n)
	case n == 64:
		return "RTMAX"
	}
	return ""
}

// findSignal finds a signal by number or name, with or without SIG. EXIT is 0.
func findSignal(spec string) (linux.Signal, bool) {
	if n, err := strconv.ParseUint(spec, 10, 31); err == nil {
		return linux.Signal(n), n <= 64
	}
	name := strings.TrimPrefix(strings.ToUpper(spec), "SIG")
	if name == "EXIT" {
		return 0, true
	}
	for i, n := range strings.Fields(signalNames) {
		if n == name {
			return linux.Signal(i + 1), true
		}
	}
	switch name {
	case "CLD":
		return linux.SIGCHLD, true
	case "POLL":
		return linux.SIGIO, true
	case "":
		return 0, false
	}
	if strings.HasPrefix(name, "RT") {
		for n := 34; n <= 64; n++ {
			if signalName(linux.Signal(n)) == name {
				return linux.Signal(n), true
			}
		}
	}
	return 0, false
}

// signalText describes a signal as strsignal does.
func signalText(sig linux.Signal) string {
	switch sig {
	case linux.SIGHUP:
		return "Hangup"
	case linux.SIGINT:
		return "Interrupt"
	case linux.SIGQUIT:
		return "Quit"
	case linux.SIGILL:
		return "Illegal instruction"
	case linux.SIGTRAP:
		return "Trace/breakpoint trap"
	case linux.SIGABRT:
		return "Aborted"
	case linux.SIGBUS:
		return "Bus error"
	case linux.SIGFPE:
		return "Floating point exception"
	case linux.SIGKILL:
		return "Killed"
	case linux.SIGUSR1:
		return "User defined signal 1"
	case linux.SIGSEGV:
		return "Segmentation fault"
	case linux.SIGUSR2:
		return "User defined signal 2"
	case linux.SIGPIPE:
		return "Broken pipe"
	case linux.SIGALRM:
		return "Alarm clock"
	case linux.SIGTERM:
		return "Terminated"
	case linux.SIGXCPU:
		return "CPU time limit exceeded"
	case linux.SIGXFSZ:
		return "File size limit exceeded"
	}
	return "Unknown signal " + strconv.Itoa(int(sig))
}
