package gate

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// firstID begins the numbers that gateways of root are, where none was named:
// they belong to nobody, and each gateway has another one. systemd sets the range
// aside for what is contained; sandboxes have numbers below it.
const firstID = 0x61000000

// Channel is the descriptor on which a gateway finds its owner.
const Channel = 3

// start starts the process. The thread that starts it stays, because the kernel
// ends the gateway with that thread.
func (g *Gate) start(exe *os.File) error {
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
	attr := &os.ProcAttr{
		Dir: "/", Env: surroundings(os.Environ()), Files: []*os.File{null, null, os.Stderr, Channel: theirs},
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
			g.reap()
		}
	})
	if err := <-started; err != nil {
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
func (g *Gate) credential() *syscall.Credential {
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

// reap waits for the process and tells how it ended.
func (g *Gate) reap() {
	if f, err := kernel.OpenProcess(g.process.Pid); err == nil {
		if f, p, err := kernel.NewPoller(f); err == nil {
			_ = p.Wait() // cheaper than to wait in the system call below
			f.Close()
		}
	}
	state, err := g.process.Wait()
	if err != nil {
		g.ended(fmt.Errorf("wait for the gateway: %w: %w", err, paddock.Unavailable))
		return
	}
	why := fmt.Sprintf("the gateway ended with status %d", state.ExitCode())
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		why = fmt.Sprintf("the gateway was killed by signal %d (%s)", int(status.Signal()), status.Signal())
	}
	g.ended(fmt.Errorf("%s: %w", why, paddock.Unavailable))
}
