package boxinit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/seccomp"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// guardSocket is the broker's socket for the processes of a kernel.
var guardSocket = filepath.Join(State, "guard")

// A guard places the processes of a kernel under the broker. They install the filter
// themselves, because only then it certainly covers the thread from which all their other
// threads come. At that time they still run only our own program, which has not seen any
// input of the guest.
type guard struct {
	listener *net.UnixListener
	broker   *broker
	trees    bool
	taken    chan error // one element for each process
}

func (p *initProcess) listen() (*guard, error) {
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: guardSocket, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	g := &guard{listener: l, broker: p.broker, trees: len(p.config.Trees) > 0, taken: make(chan error, 16)}
	go func() { // ends with complete
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			g.taken <- g.take(c)
		}
	}()
	return g, nil
}

// enlistment tells a process which rules apply to it.
type enlistment struct {
	Trees bool `json:"trees"`
}

func (g *guard) take(c *net.UnixConn) error {
	ch, err := sys.ChannelOf(c)
	if err != nil {
		return err
	}
	defer func() { _ = ch.Close() }()
	data, err := json.Marshal(enlistment{g.trees})
	if err != nil {
		return err
	}
	if err := ch.Send(data); err != nil {
		return err
	}
	_, files, err := ch.Receive()
	if err != nil || len(files) != 1 {
		return errors.Join(err, errors.New("a process of the kernel gave no listener"))
	}
	return g.broker.serve(files[0])
}

// complete waits until the given number of processes is under the broker, and accepts no
// more.
func (g *guard) complete(processes int) error {
	defer g.listener.Close()
	for range processes {
		select {
		case err := <-g.taken:
			if err != nil {
				return fmt.Errorf("guard the kernel's processes: %w", err)
			}
		case <-time.After(enlistTime):
			return errors.New("guard the kernel's processes: not all of them have enlisted")
		}
	}
	return nil
}

const enlistTime = 10 * time.Second

// DialGuard returns a connection to the broker, for EnlistOn.
func DialGuard() (*os.File, error) {
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: guardSocket, Net: "unixpacket"})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.File()
}

// Enlist places this process of a kernel under the broker, before it does anything for the
// guest. If Enlist fails, the process must end.
func Enlist() error {
	f, err := DialGuard()
	if err != nil {
		return err
	}
	defer f.Close()
	return enlist(f, seccomp.Enlisted)
}

// EnlistOn is Enlist over an existing connection, for a process that has its namespaces and
// mounts, and makes no more.
func EnlistOn(guard *os.File) error { return enlist(guard, seccomp.Sealed) }

func enlist(guard *os.File, program func(trees bool) ([]sys.Instruction, error)) error {
	fd, err := syscall.Dup(int(guard.Fd()))
	if err != nil {
		return err
	}
	ch, err := sys.NewChannel(fd)
	if err != nil {
		return err
	}
	defer func() { _ = ch.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), enlistTime)
	defer cancel()
	defer ch.Until(ctx)()
	data, _, err := ch.Receive()
	if err != nil {
		return err
	}
	var e enlistment
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	reported, err := program(e.Trees)
	if err != nil {
		return err
	}
	listener, err := sys.SeccompListenAll(reported)
	if err != nil {
		return err
	}
	// From here on this process's own changes wait for the broker, which waits for this
	// message.
	return errors.Join(ch.Send([]byte{1}, listener), listener.Close())
}
