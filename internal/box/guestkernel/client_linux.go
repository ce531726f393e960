package guestkernel

import (
	"context"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// A Client corrects a guest kernel's reports on commands by the host's knowledge of the
// box, because memory and processor time of commands are those of that kernel.
type Client struct{}

// Warm implements box.Client.
func (Client) Warm(ctx context.Context, agent *guestclient.Guest) { agent.Warm(ctx) }

// Refusals implements box.Client. The box's init is the broker, and the agent does not know
// of refusals.
func (Client) Refusals(ctx context.Context, s *box.Sandbox, _ *guestclient.Guest, st *paddock.Status) error {
	return s.Inspect(ctx, st)
}

// Starting implements box.Client.
func (Client) Starting(ctx context.Context, s *box.Sandbox) { s.SampleKills(ctx) }

// Amend implements box.Client.
func (Client) Amend(s *box.Sandbox, start guestclient.Start, exit *paddock.Exit) {
	if exit.Cause == paddock.SandboxGone {
		amendGone(s, exit)
		return
	}
	AmendTime(s, exit)
	s.AmendMemory(start, exit, box.MemoryRule{Wait: killedTime, Killed: killed})
}

// killedTime is how long a box that is short of memory may take to report on a killed
// command. Without the report nobody would learn the cause.
const killedTime = 30 * time.Second

// killed reports whether a command ended as it does for lack of memory. The process that
// the host's kernel killed is one of the host, in which the command ran, or a child of a
// shell.
func killed(exit *paddock.Exit) bool {
	for _, sig := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS} {
		if exit.Signal == sig || exit.Code == 128+int(sig) {
			if exit.Signal != 0 {
				exit.Code, exit.Signal = 128+int(syscall.SIGKILL), syscall.SIGKILL
			}
			return true
		}
	}
	return false
}

// AmendTime corrects the processor time that a guest kernel reports. That kernel counts
// ticks, even while the host does not run it. No process can have used more than the box as
// a whole, which includes the start of a machine, or more than the box was given in the
// meantime.
func AmendTime(s *box.Sandbox, exit *paddock.Exit) {
	if exit.Usage.CPU < amendedTime {
		return
	}
	if m, err := s.MeasureNow(); err == nil && m.Usage.CPU >= 0 {
		exit.Usage.CPU = min(exit.Usage.CPU, m.Usage.CPU)
		if m.CPUs > 0 {
			exit.Usage.CPU = min(exit.Usage.CPU, time.Duration(float64(exit.Usage.Wall)*m.CPUs))
		}
	}
}

// amendedTime is the minimum time that is worth the check.
const amendedTime = 200 * time.Millisecond

// amendGone reports lack of memory that ended the sandbox as a whole, because the commands'
// memory is that of the guest kernel.
func amendGone(s *box.Sandbox, exit *paddock.Exit) {
	m, err := s.MeasureNow()
	if err != nil || m.State != paddock.Dead || m.Kills == 0 {
		return
	}
	exit.Code, exit.Signal = 128+int(syscall.SIGKILL), syscall.SIGKILL
	exit.Cause, exit.Limit, exit.Peak = paddock.OutOfMemory, m.Limits.Memory, m.Peak
}
