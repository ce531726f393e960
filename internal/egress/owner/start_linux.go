package owner

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// firstID begins the numbers that gateways of root are, where none was named:
// they belong to nobody, and each gateway has another one. systemd sets the range
// aside for what is contained; sandboxes have numbers below it.
const firstID = 0x61000000

// ChannelFD is the descriptor of a gateway's channel to its owner.
const ChannelFD = 3

// CountersFD is the descriptor of the memory in which a gateway counts bytes and which its owner reads. CountReceived
// is the index of the bytes received from the world, CountSent that of the bytes sent there.
const (
	CountersFD = 4

	CountReceived = 0
	CountSent     = 1
)

// start starts the process. The thread that starts it stays, because the kernel
// ends the gateway with that thread.
func (g *Process) start(exe *os.File) error {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	ours, theirs, err := kernel.NewChannelPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	// Its descriptor is one that the start of a child leaves alone.
	program, err := kernel.Duplicate(exe)
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	defer program.Close()
	// Not the owner's own: that may be a terminal, whose keys could be read and
	// whose screen be written by a gateway that was taken over.
	words, says, err := os.Pipe()
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	defer says.Close()
	counters, page, err := kernel.NewCounters("traffic")
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	defer page.Close()
	g.mu.Lock()
	g.counters = counters
	g.mu.Unlock()
	attr := &os.ProcAttr{
		Dir: "/", Env: surroundings(os.Environ()), Files: []*os.File{null, null, says, ChannelFD: theirs, CountersFD: page},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Credential: g.credential()},
	}
	path := fmt.Sprintf("/proc/self/fd/%d", program.Fd())
	started := make(chan error)
	g.wg.Go(func() {
		runtime.LockOSThread() // for good: see above
		p, err := os.StartProcess(path, []string{Argv0}, attr)
		g.process = p
		started <- err
		if err == nil {
			g.reap(words)
		}
		words.Close()
	})
	if err := <-started; err != nil {
		g.settle()
		return errors.Join(err, ours.Close())
	}
	g.channel = ours
	return nil
}

// surroundings are what of the owner's environment says where trusted
// certificates are.
func surroundings(env []string) []string {
	kept := []string{}
	for _, e := range env {
		if strings.HasPrefix(e, "SSL_CERT_FILE=") || strings.HasPrefix(e, "SSL_CERT_DIR=") {
			kept = append(kept, e)
		}
	}
	return kept
}

// credential is who the gateway is: nobody else where the owner is root.
func (g *Process) credential() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	own := firstID + binary.LittleEndian.Uint32(random[:])&0xffffff
	id := func(n int) uint32 {
		if n <= 0 {
			return own
		}
		return uint32(n)
	}
	return &syscall.Credential{Uid: id(g.config.UID), Gid: id(g.config.GID)}
}

// reap waits for the process and tells how it ended, with what it said last.
func (g *Process) reap(words *os.File) {
	said := make(chan string, 1)
	g.wg.Go(func() {
		head, _ := io.ReadAll(io.LimitReader(words, textMax)) // what there is will do
		_, _ = io.Copy(io.Discard, words)
		said <- printable(strings.TrimSpace(string(head)), textMax)
	})
	why := g.wait()
	_ = words.SetReadDeadline(time.Now().Add(closeTime)) // somebody else may hold the other end
	g.ended(fmt.Errorf("%s: %w", why, paddock.Unavailable), <-said)
}

// wait waits for the process and says how it ended.
func (g *Process) wait() string {
	if f, err := kernel.OpenProcess(g.process.Pid); err == nil {
		if f, p, err := kernel.NewPoller(f); err == nil {
			_ = p.Wait() // cheaper than to wait in the system call below
			f.Close()
		}
	}
	state, err := g.process.Wait()
	if err != nil {
		return fmt.Sprintf("wait for the gateway: %v", err)
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Sprintf("the gateway was killed by signal %d (%s)", int(status.Signal()), status.Signal())
	}
	return fmt.Sprintf("the gateway ended with status %d", state.ExitCode())
}
