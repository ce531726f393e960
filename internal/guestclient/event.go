package guestclient

import (
	"fmt"
	"math"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

const (
	maxPID    = 1 << 22 // PID_MAX_LIMIT of Linux
	maxOutput = 64 << 10
	maxSignal = 64
	maxTime   = int64(math.MaxInt64 / 4) // keeps sums of durations and offsets in range
)

// maxKilled is how many processes a guest may say were killed.
const maxKilled = 1 << 30

// events checks the stream of one process: first Started, then output whose
// offsets only grow, then Exited, and nothing after that.
type events struct {
	pid     int32 // that was asked for; zero is any, and then the one that was told
	next    int64 // offset after the last output
	dropped int64 // bytes between outputs that did not come
	silent  bool  // no output was asked for

	started bool
	exited  bool
}

// check answers an error where ev breaks the protocol.
func (s *events) check(ev *guestpb.ProcessEvent) error {
	if s.exited {
		return broken("an event after the exit")
	}
	switch e := ev.GetEvent().(type) {
	case *guestpb.ProcessEvent_Started:
		pid := e.Started.GetPid()
		if s.started || pid < 1 || pid > maxPID || (s.pid != 0 && pid != s.pid) {
			return broken("a start of process %d", pid)
		}
		if k := e.Started.Killed; k != nil && (*k < 0 || *k > maxKilled) {
			return broken("a start after %d processes were killed", *k)
		}
		s.started, s.pid = true, pid
		return nil
	case *guestpb.ProcessEvent_Output:
		o := e.Output
		n := int64(len(o.GetData()))
		if !s.started || s.silent || n == 0 || n > maxOutput || o.GetOffset() < s.next || o.GetOffset() > maxTime {
			return broken("%d bytes of output at offset %d, after %d", n, o.GetOffset(), s.next)
		}
		s.dropped += o.GetOffset() - s.next
		s.next = o.GetOffset() + n
		return nil
	case *guestpb.ProcessEvent_Exited:
		if !s.started {
			return broken("an exit before the start")
		}
		s.exited = true
		return checkExit(e.Exited)
	}
	return broken("an event without content")
}

func broken(format string, args ...any) error {
	return fmt.Errorf("the guest broke the protocol: "+format+": %w", append(args, paddock.Internal)...)
}

// checkExit answers an error where e cannot be true.
func checkExit(e *guestpb.Exited) error {
	code, sig := e.GetCode(), e.GetSignal()
	sane := code >= 0 && code <= 255 && sig >= 0 && sig <= maxSignal && e.GetDropped() >= 0 &&
		inTime(e.GetWall()) && inTime(e.GetCpu()) && e.GetMemoryPeak() >= 0 &&
		len(e.GetReason()) <= maxReason && e.GetLimit() >= 0 && e.GetPeak() >= 0
	switch e.GetCause() {
	case guestpb.Cause_CAUSE_EXITED:
		sane = sane && sig == 0
	case guestpb.Cause_CAUSE_SIGNALED, guestpb.Cause_CAUSE_TIMED_OUT, guestpb.Cause_CAUSE_KILLED_BY_POLICY,
		guestpb.Cause_CAUSE_OUT_OF_MEMORY, guestpb.Cause_CAUSE_OUT_OF_BUDGET:
		sane = sane && sig != 0 && code == 128+sig
	default:
		sane = false
	}
	if !sane {
		return broken("an exit with cause %d, code %d and signal %d", e.GetCause(), code, sig)
	}
	return nil
}

func inTime(ns int64) bool { return ns >= 0 && ns <= maxTime }

// exitOf translates a checked exit. The timeout is the one that was asked for,
// or zero where it is not known.
func exitOf(e *guestpb.Exited, timeout time.Duration) paddock.Exit {
	sig := syscall.Signal(e.GetSignal())
	x := paddock.Exit{
		Code:    int(e.GetCode()),
		Signal:  sig,
		Dropped: e.GetDropped(),
		Usage: paddock.Usage{
			Wall: time.Duration(e.GetWall()), CPU: time.Duration(e.GetCpu()), MemoryPeak: e.GetMemoryPeak(),
		},
	}
	switch e.GetCause() {
	case guestpb.Cause_CAUSE_SIGNALED:
		x.Cause = paddock.Signaled
		x.Reason = fmt.Sprintf("killed by signal %d (%v)", int(sig), sig)
	case guestpb.Cause_CAUSE_TIMED_OUT:
		x.Cause, x.Reason = paddock.TimedOut, overtime(timeout)
	case guestpb.Cause_CAUSE_KILLED_BY_POLICY:
		x.Cause = paddock.KilledByPolicy
		x.Reason = "killed because it made a system call that is forbidden here"
	case guestpb.Cause_CAUSE_OUT_OF_MEMORY:
		x.Cause, x.Reason = paddock.OutOfMemory, "killed because the sandbox ran out of memory"
		x.Limit, x.Peak = e.GetLimit(), e.GetPeak()
	case guestpb.Cause_CAUSE_OUT_OF_BUDGET:
		x.Cause, x.Reason = paddock.OutOfBudget, "killed because a limit was reached"
	default:
		x.Cause = paddock.Exited
		return x
	}
	if e.GetReason() != "" {
		x.Reason = strings.ToValidUTF8(e.GetReason(), "?")
	}
	return x
}

// maxReason bounds the words of a guest.
const maxReason = 500

func overtime(timeout time.Duration) string {
	if timeout == 0 {
		return "killed because it ran longer than its timeout"
	}
	return fmt.Sprintf("killed because it ran longer than its timeout of %v", timeout)
}

// unknownUsage is that of a process whose guest no longer tells.
func unknownUsage(started time.Time) paddock.Usage {
	return paddock.Usage{Wall: time.Since(started), CPU: -1, MemoryPeak: -1}
}
