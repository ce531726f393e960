package gatewayclient

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
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// firstID begins the range of user numbers of gateways whose owner is root, if none is
// configured. No account has them, and each gateway gets another one. systemd reserves the
// range for containers. Sandboxes use lower numbers.
const firstID = 0x68000000

// ChannelFD is the descriptor of a gateway's channel to its owner.
const ChannelFD = 3

// CountersFD is the descriptor of the memory in which a gateway counts bytes and which its owner reads. CountReceived
// is the index of the bytes received from the world, CountSent that of the bytes sent there.
const (
	CountersFD = 4

	CountReceived = 0
	CountSent     = 1
)

// start starts the process. The thread that starts it must stay, because the kernel kills
// the gateway when that thread ends.
func (g *Process) start(exe *os.File) error {
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	ours, theirs, err := sys.NewChannelPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	// The start of a child must not close this descriptor.
	program, err := sys.Duplicate(exe)
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	defer program.Close()
	// Do not pass the owner's stderr: it may be a terminal, which a compromised gateway
	// could read and write.
	words, says, err := os.Pipe()
	if err != nil {
		return errors.Join(err, ours.Close())
	}
	defer says.Close()
	counters, page, err := sys.NewCounters("traffic")
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
		runtime.LockOSThread() // permanently: see above
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

// surroundings returns the owner's variables that name trusted certificates.
func surroundings(env []string) []string {
	kept := []string{}
	for _, e := range env {
		if strings.HasPrefix(e, "SSL_CERT_FILE=") || strings.HasPrefix(e, "SSL_CERT_DIR=") {
			kept = append(kept, e)
		}
	}
	return kept
}

// credential returns the user of the gateway. It has no other process if the owner is root.
func (g *Process) credential() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	own := firstID + binary.LittleEndian.Uint32(random[:])&0x7ffffff
	id := func(n int) uint32 {
		if n <= 0 {
			return own
		}
		return uint32(n)
	}
	return &syscall.Credential{Uid: id(g.config.UID), Gid: id(g.config.GID)}
}

// reap waits for the process, and reports its end with its last output.
func (g *Process) reap(words *os.File) {
	said := make(chan string, 1)
	g.wg.Go(func() {
		head, _ := io.ReadAll(io.LimitReader(words, textMax)) // a partial output is enough
		_, _ = io.Copy(io.Discard, words)
		said <- printable(strings.TrimSpace(string(head)), textMax)
	})
	why := g.wait()
	_ = words.SetReadDeadline(time.Now().Add(closeTime)) // another process may hold the other end
	g.ended(fmt.Errorf("%s: %w", why, paddock.Unavailable), <-said)
}

// wait waits for the process and describes its end.
func (g *Process) wait() string {
	if f, err := sys.OpenProcess(g.process.Pid); err == nil {
		if f, p, err := sys.NewPoller(f); err == nil {
			_ = p.Wait() // cheaper than waiting in the system call below
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
