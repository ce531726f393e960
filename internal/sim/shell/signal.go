package shell

import (
	"strconv"
	"strings"
	"syscall"
)

// signalNames are the names without SIG, from 1 on.
const signalNames = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP " +
	"TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS"

// signalName gives a signal's name without SIG, or "".
func signalName(sig syscall.Signal) string {
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
func findSignal(spec string) (syscall.Signal, bool) {
	if n, err := strconv.ParseUint(spec, 10, 31); err == nil {
		return syscall.Signal(n), n <= 64
	}
	name := strings.TrimPrefix(strings.ToUpper(spec), "SIG")
	if name == "EXIT" {
		return 0, true
	}
	for i, n := range strings.Fields(signalNames) {
		if n == name {
			return syscall.Signal(i + 1), true
		}
	}
	switch name {
	case "CLD":
		return syscall.SIGCHLD, true
	case "POLL":
		return syscall.SIGIO, true
	case "":
		return 0, false
	}
	if strings.HasPrefix(name, "RT") {
		for n := 34; n <= 64; n++ {
			if signalName(syscall.Signal(n)) == name {
				return syscall.Signal(n), true
			}
		}
	}
	return 0, false
}

// signalText describes a signal as strsignal does.
func signalText(sig syscall.Signal) string {
	switch sig {
	case syscall.SIGHUP:
		return "Hangup"
	case syscall.SIGINT:
		return "Interrupt"
	case syscall.SIGQUIT:
		return "Quit"
	case syscall.SIGILL:
		return "Illegal instruction"
	case syscall.SIGTRAP:
		return "Trace/breakpoint trap"
	case syscall.SIGABRT:
		return "Aborted"
	case syscall.SIGBUS:
		return "Bus error"
	case syscall.SIGFPE:
		return "Floating point exception"
	case syscall.SIGKILL:
		return "Killed"
	case syscall.SIGUSR1:
		return "User defined signal 1"
	case syscall.SIGSEGV:
		return "Segmentation fault"
	case syscall.SIGUSR2:
		return "User defined signal 2"
	case syscall.SIGPIPE:
		return "Broken pipe"
	case syscall.SIGALRM:
		return "Alarm clock"
	case syscall.SIGTERM:
		return "Terminated"
	case syscall.SIGXCPU:
		return "CPU time limit exceeded"
	case syscall.SIGXFSZ:
		return "File size limit exceeded"
	}
	return "Unknown signal " + strconv.Itoa(int(sig))
}
