package guestkernel

import (
	"context"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// A Client corrects what a guest kernel tells of commands by what the host knows of the box. The memory of
// commands is that kernel's, and so is the processor's time.
type Client struct{}

// Warm implements box.Client.
func (Client) Warm(ctx context.Context, agent *guestclient.Guest) { agent.Warm(ctx) }

// Refusals implements box.Client. The box's init is the broker, and the agent knows nothing of it.
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

// killedTime is how long a box that is short of memory may take to tell what became of a command that
// was killed, as else nobody would hear that it was for that.
const killedTime = 30 * time.Second

// killed reports whether a command ended as one does whose memory was gone. What the host's kernel
// killed is a process of the host's, in which the command ran, or a child of a shell's.
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

// AmendTime corrects the processor time that a guest kernel tells. It
// counts in ticks, also while the host lets it wait; no process can have used
// more than the box as a whole, which the start of a machine is a part of, or than
// the box was given meanwhile.
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

// amendedTime is from where on it is worth to ask.
const amendedTime = 200 * time.Millisecond

// amendGone tells lack of memory that ended the sandbox as a whole: the memory of
// commands is the guest kernel's.
func amendGone(s *box.Sandbox, exit *paddock.Exit) {
	m, err := s.MeasureNow()
	if err != nil || m.State != paddock.Dead || m.Kills == 0 {
		return
	}
	exit.Code, exit.Signal = 128+int(syscall.SIGKILL), syscall.SIGKILL
	exit.Cause, exit.Limit, exit.Peak = paddock.OutOfMemory, m.Limits.Memory, m.Peak
}
