package process

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

var timeoutSpec = &command.Spec{
	Name: "timeout", Synopsis: "[OPTION] DURATION COMMAND [ARG]...", Exit: 125, Ordered: true,
	About: "Start COMMAND, and kill it if still running after DURATION.",
	Options: []command.Option{
		{Long: "preserve-status", Help: "exit with the same status as COMMAND, even when the command times out"},
		{Long: "foreground", Help: "when not running timeout directly from a shell prompt, allow COMMAND to read from the TTY and get TTY signals"},
		{Short: 'k', Long: "kill-after", Arg: command.Required, Name: "DURATION", Help: "also send a KILL signal if COMMAND is still running this long after the initial signal was sent"},
		{Short: 's', Long: "signal", Arg: command.Required, Name: "SIGNAL", Help: "specify the signal to be sent on timeout"},
		{Short: 'v', Long: "verbose", Help: "diagnose to stderr any signal sent upon timeout"},
	},
}

// duration reads a number of seconds, or of another unit.
func duration(s string) (time.Duration, bool) {
	unit := time.Second
	num := s
	if s != "" {
		switch s[len(s)-1] {
		case 's':
			num = s[:len(s)-1]
		case 'm':
			num, unit = s[:len(s)-1], time.Minute
		case 'h':
			num, unit = s[:len(s)-1], time.Hour
		case 'd':
			num, unit = s[:len(s)-1], 24*time.Hour
		}
	}
	if strings.ContainsAny(num, "_pP") || num == "" {
		return 0, false
	}
	f, err := strconv.ParseFloat(num, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || f < 0 || math.IsNaN(f) {
		return 0, false
	}
	if f *= float64(unit); f > float64(math.MaxInt64/2) {
		return math.MaxInt64 / 2, true
	}
	return time.Duration(math.Ceil(f)), true
}

func runTimeout(t *kernel.Task) int {
	a, status, ok := timeoutSpec.Parse(t)
	if !ok {
		return status
	}
	var after time.Duration
	sig := linux.SIGTERM
	if s, given := a.Value("k"); given {
		if after, ok = duration(s); !ok {
			return timeoutSpec.Usage(t, "invalid time interval %s", command.Quote(s))
		}
	}
	if s, given := a.Value("s"); given {
		if sig, ok = parseSignal(s); !ok {
			return timeoutSpec.Usage(t, "%s: invalid signal", command.Quote(s))
		}
	}
	if len(a.Operands) < 2 {
		_, _ = t.Write(2, []byte("Try 'timeout --help' for more information.\n"))
		return 125
	}
	limit, ok := duration(a.Operands[0])
	if !ok {
		return timeoutSpec.Usage(t, "invalid time interval %s", command.Quote(a.Operands[0]))
	}
	if !a.Has("foreground") {
		t.SetPGID(0)
	}
	r := &run{t: t, group: !a.Has("foreground"), verbose: a.Has("v"), name: a.Operands[1]}
	child, err := t.Spawn(kernel.Command{Args: a.Operands[1:]}, nil)
	if err != nil {
		t.Errorf("failed to run command %s: %s", command.Quote(a.Operands[1]), reason(err))
		return unstarted(err)
	}
	for _, s := range []linux.Signal{linux.SIGTERM, linux.SIGINT, linux.SIGHUP, linux.SIGQUIT, linux.SIGALRM} {
		if t.Action(s) != kernel.Ignore {
			t.On(s, kernel.Catch)
		}
	}
	r.child = child
	timedOut := r.wait(limit, sig)
	if timedOut && after > 0 {
		r.wait(after, linux.SIGKILL)
	}
	r.wait(0, 0)
	s, _ := child.Status()
	if s.Signal != 0 {
		if !timedOut {
			t.On(s.Signal, kernel.Default)
			t.Die(s.Signal)
		}
		if s.Signal == linux.SIGKILL {
			return 137
		}
	}
	if timedOut && !a.Has("preserve-status") {
		return 124
	}
	return s.Shell()
}

// A run is a program that is watched.
type run struct {
	t       *kernel.Task
	child   *kernel.Task
	group   bool
	verbose bool
	name    string
}

// wait waits for the end, or for a time to pass (0 is for ever) after which
// the program gets a signal; true is that it got one.
func (r *run) wait(limit time.Duration, sig linux.Signal) bool {
	var deadline time.Time
	if limit > 0 {
		deadline = time.Now().Add(limit)
	}
	for {
		err := r.t.Await(r.child.Done(), deadline)
		switch err {
		case nil:
			return false
		case linux.ETIMEDOUT:
			r.send(sig)
			return true
		case linux.EINTR:
			for s := r.t.Caught(); s != 0; s = r.t.Caught() {
				if s == linux.SIGALRM {
					r.send(sig)
					return true
				}
				r.send(s)
			}
		default:
			return false
		}
	}
}

func (r *run) send(sig linux.Signal) {
	if r.verbose {
		name, _ := signalName(int(sig))
		r.t.Errorf("sending signal %s to command %s", name, command.Quote(r.name))
	}
	r.child.Signal(sig)
	if sig != linux.SIGKILL && sig != linux.SIGCONT {
		defer r.child.Signal(linux.SIGCONT)
	}
	if !r.group {
		return
	}
	for _, other := range r.t.K.Tasks() {
		if other != r.t && other != r.child && other.PGID() == r.t.PGID() {
			other.Signal(sig)
		}
	}
}

var niceSpec = &command.Spec{
	Name: "nice", Synopsis: "[OPTION] [COMMAND [ARG]...]", Exit: 125, Ordered: true,
	About:   "Run COMMAND with an adjusted niceness, which affects process scheduling.",
	Options: []command.Option{{Short: 'n', Long: "adjustment", Arg: command.Required, Name: "N", Help: "add integer N to the niceness (default 10)"}},
}

func runNice(t *kernel.Task) int {
	args := t.Args[1:]
	// The old form, "-5".
	if len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		digits := strings.TrimLeft(args[0][1:], "-+")
		if digits != "" && digits[0] >= '0' && digits[0] <= '9' && len(args[0])-len(digits) <= 2 {
			args = append([]string{"-n", args[0][1:]}, args[1:]...)
		}
	}
	a, status, ok := niceSpec.ParseArgs(t, args)
	if !ok {
		return status
	}
	if n, given := a.Value("n"); given {
		if _, err := command.ParseInt(n, "", math.MinInt64, math.MaxInt64); err != nil && !errors.Is(err, command.ErrLarge) {
			t.Errorf("invalid adjustment %s", command.Quote(n))
			return 125
		}
		if len(a.Operands) == 0 {
			return niceSpec.Usage(t, "a command must be given with an adjustment")
		}
	}
	if len(a.Operands) == 0 {
		say(t, "0")
		return 0
	}
	return become(t, kernel.Command{Args: a.Operands})
}

var nohupSpec = &command.Spec{Name: "nohup", Synopsis: "COMMAND [ARG]...", Exit: 125, Ordered: true, About: "Run COMMAND, ignoring hangup signals."}

func runNohup(t *kernel.Task) int {
	a, status, ok := nohupSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return nohupSpec.Usage(t, "missing operand")
	}
	_, _, in := command.TerminalSize(t, 0)
	_, _, out := command.TerminalSize(t, 1)
	_, _, errs := command.TerminalSize(t, 2)
	if in {
		d, err := t.Open("/dev/null", linux.O_RDONLY, 0)
		if err == nil {
			err = t.SetFD(0, d, false)
		}
		if err != nil {
			t.Errorf("failed to render standard input unusable: %s", reason(err))
			return 125
		}
		if !out && !errs {
			t.Errorf("ignoring input")
		}
	}
	if out {
		name := "nohup.out"
		d, err := t.Open(name, linux.O_WRONLY|linux.O_CREAT|linux.O_APPEND, 0o600)
		if err != nil && t.Getenv("HOME") != "" {
			name = strings.TrimRight(t.Getenv("HOME"), "/") + "/nohup.out"
			d, err = t.Open(name, linux.O_WRONLY|linux.O_CREAT|linux.O_APPEND, 0o600)
		}
		if err == nil {
			err = t.SetFD(1, d, false)
		}
		if err != nil {
			t.Errorf("failed to open %s: %s", command.QuoteAlways(name), reason(err))
			return 125
		}
		if in {
			t.Errorf("ignoring input and appending output to %s", command.QuoteAlways(name))
		} else {
			t.Errorf("appending output to %s", command.QuoteAlways(name))
		}
	}
	if errs {
		if !out {
			if in {
				t.Errorf("ignoring input and redirecting stderr to stdout")
			} else {
				t.Errorf("redirecting stderr to stdout")
			}
		}
		if err := t.Dup2(1, 2); err != nil {
			return 125
		}
	}
	t.On(linux.SIGHUP, kernel.Ignore)
	if err := t.Flush(); err != nil {
		return 125
	}
	code, err := t.Exec(kernel.Command{Args: a.Operands})
	if err != nil {
		t.Errorf("failed to run command %s: %s", command.QuoteAlways(a.Operands[0]), reason(err))
		return unstarted(err)
	}
	return code
}

var setsidSpec = &command.Spec{
	Name: "setsid", Synopsis: "[options] <program> [arguments ...]", Ordered: true, About: "Run a program in a new session.",
	Options: []command.Option{
		{Short: 'c', Long: "ctty", Help: "set the controlling terminal to the current one"},
		{Short: 'f', Long: "fork", Help: "always fork"},
		{Short: 'w', Long: "wait", Help: "wait program to exit, and use the same return"},
	},
}

func runSetsid(t *kernel.Task) int {
	a, status, ok := setsidSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		t.Errorf("no command specified")
		_, _ = t.Write(2, []byte("Try 'setsid --help' for more information.\n"))
		return 1
	}
	if a.Has("f") {
		child, err := t.Spawn(kernel.Command{Args: a.Operands}, func(child *kernel.Task) error { child.SetPGID(0); return nil })
		if err != nil {
			t.Errorf("failed to execute %s: %s", a.Operands[0], reason(err))
			return unstarted(err)
		}
		if !a.Has("w") {
			return 0
		}
		s, err := t.Wait(child)
		if err != nil {
			return 1
		}
		return s.Shell()
	}
	t.SetPGID(0)
	if err := t.Flush(); err != nil {
		return 1
	}
	code, err := t.Exec(kernel.Command{Args: a.Operands})
	if err != nil {
		t.Errorf("failed to execute %s: %s", a.Operands[0], reason(err))
		return unstarted(err)
	}
	return code
}

var chrootSpec = &command.Spec{Name: "chroot", Synopsis: "[OPTION] NEWROOT [COMMAND [ARG]...]", Exit: 125, Ordered: true, About: "Run COMMAND with root directory set to NEWROOT."}

func runChroot(t *kernel.Task) int {
	a, status, ok := chrootSpec.Parse(t)
	if !ok {
		return status
	}
	if len(a.Operands) == 0 {
		return chrootSpec.Usage(t, "missing operand")
	}
	t.Errorf("cannot change root directory to %s: %s", command.QuoteAlways(a.Operands[0]), reason(linux.EPERM))
	return 125
}
