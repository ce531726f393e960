package guestinit

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/nameserver"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Main runs the agent and does not return.
func Main() {
	fmt.Fprintln(os.Stderr, "paddock: the agent:", run()) // run only returns after a failure
	os.Exit(1)
}

func run() error {
	if len(os.Args) == 2 && os.Args[1] == OnPort {
		return runOnPort()
	}
	// Commands must not get what packages opened during initialisation.
	if err := sys.CloseFrom(3); err != nil {
		return err
	}
	listener, err := net.Listen("tcp4", net.JoinHostPort(Address, strconv.Itoa(Port)))
	if err != nil {
		return err
	}
	names, err := nameserver.Listen()
	if err != nil {
		return err
	}
	if slices.Contains(os.Args[1:], Furnish) {
		if err := furnish(); err != nil {
			return fmt.Errorf("complete the tree of the image: %w", err)
		}
	}
	var sudo *net.UnixListener
	if slices.Contains(os.Args[1:], WithSudo) {
		if err := showSudo(); err != nil {
			return fmt.Errorf("give commands sudo: %w", err)
		}
		if sudo, err = listenSudo(); err != nil {
			return err
		}
	}
	// Covering the directory of the control groups also covers the program.
	a, err := newAgent(Dir, slices.Contains(os.Args[1:], RootIsRoot))
	if err == nil {
		a.sudo = sudo
		a.serveNames(names)
		err = a.giveUp()
	}
	if err != nil {
		return err
	}
	// The host can wait for this connection instead of polling.
	first, err := net.Dial("tcp4", net.JoinHostPort(Peer, strconv.Itoa(Port)))
	if err != nil {
		return err
	}
	go a.answer(first)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		if !fromOutside(conn) {
			_ = conn.Close()
			continue
		}
		go a.answer(conn)
	}
}

// newAgent does what the agent needs privileges for. It mounts the control groups at dir,
// which is covered afterwards. With root, commands of root are root.
func newAgent(dir string, root bool) (*agent, error) {
	s, err := newSpawner(dir, root)
	if err != nil {
		return nil, err
	}
	a := &agent{spawn: s, gate: make(chan struct{}), names: nameserver.New(os.Hostname, nil)}
	o := guest.Options{Init: true, StartProcess: s.start, Signal: s.signal, Gate: a.gate}
	if s.count.events != nil {
		o.Killed = s.count.killed
	}
	a.made, err = guest.New(o)
	return a, err
}

// serveNames answers the queries of a box without a network. The agent always does it, because a saved
// box may go on with another network, and its file resolv.conf says who is asked.
func (a *agent) serveNames(c net.PacketConn) {
	go func() { _ = a.names.Serve(c) }() // as long as the agent lives
}

// giveUp drops all privileges that the agent does not need.
func (a *agent) giveUp() error {
	// From here on the agent is as weak as its commands, except for its open descriptors,
	// the listener, and the privileges that the thread needs which starts commands. No
	// command can inspect the agent or signal one of its threads. gVisor does not protect a
	// first process from signals as Linux does. A filter could not prevent signals, because
	// threads come and go with numbers that no filter knows.
	for _, step := range []func() error{
		func() error { return sys.OutOfReach(nobody()) },
		sys.ReserveStarting,
		func() error { return a.spawn.do(sys.TakeStarting) },
		sys.NotDumpable,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// User numbers from beyond on are not used in boxes, except for the caller's own number.
const beyond = 1 << 30

// nobody returns a user that no command is or can be.
func nobody() int {
	if os.Geteuid() == beyond {
		return beyond + 1
	}
	return beyond
}

// fromOutside reports whether a connection comes over the link. No process inside can have
// that address.
func fromOutside(conn net.Conn) bool {
	a, ok := conn.RemoteAddr().(*net.TCPAddr)
	return ok && a.IP.Equal(net.ParseIP(Peer))
}

type agent struct {
	spawn *spawner
	form  Form
	names *nameserver.Server
	probe *guest.Probe      // made before there was a box; nil means none
	sudo  *net.UnixListener // address for sudo requests of commands; nil means none
	made  *guest.Server
	gate  chan struct{} // of made; closed when it is settled

	mu     sync.Mutex
	server *guest.Server // guarded by mu: made, once it is settled
	token  []byte        // guarded by mu; set with server
}

func (a *agent) answer(conn net.Conn) {
	first := make([]byte, 1+TokenSize)
	if _, err := io.ReadFull(conn, first); err != nil || !a.knows(first[1:]) {
		_ = conn.Close()
		return
	}
	switch what := first[0]; what {
	case Settle, Bound, Inspect:
		defer conn.Close()
		var s Settings
		err := a.form.Read(conn, &s)
		switch {
		case err != nil:
		case what == Settle:
			err = a.settle(&s, first[1:])
		case what == Bound:
			err = a.spawn.count.bound(s.PIDs)
		}
		var answer Answer
		if err == nil {
			answer.PIDs, err = a.spawn.count.read()
			if what == Inspect {
				answer.Asked = a.names.Asked()
				answer.Crowded = a.spawn.count.crowded()
				_, answer.Full = Full("/") // everything private is there
			}
		}
		if err != nil {
			answer = Answer{Error: err.Error(), Kind: paddock.KindOf(err)}
		}
		_ = a.form.Write(conn, &answer) // a host that does not receive it asks again
	case Serve:
		a.mu.Lock()
		server := a.server
		a.mu.Unlock()
		if server == nil {
			_ = conn.Close()
			return
		}
		_ = server.Serve(context.Background(), conn)
	default:
		_ = conn.Close()
	}
}

// knows reports whether a token is that of the first connection, which was made before
// there was a command.
func (a *agent) knows(token []byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.token == nil || subtle.ConstantTimeCompare(a.token, token) == 1
}

// settle applies the host's decisions, and checks that a command runs.
func (a *agent) settle(s *Settings, token []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if st, err := os.Stat(s.Dir); err != nil || !st.IsDir() {
		return fmt.Errorf("enter the working directory: %s is not a directory in the sandbox: %w", s.Dir, paddock.Invalid)
	}
	if err := a.spawn.count.bound(s.PIDs); err != nil {
		return err
	}
	if a.server != nil {
		a.server.Settle(s.Env, s.Dir)
		return a.server.First()
	}
	if err := a.spawn.bound(s); err != nil {
		return err
	}
	first := guest.First
	if a.probe != nil {
		first = a.probe.Run
	}
	if err := first(a.spawn.start); err != nil {
		return err
	}
	a.made.Own(s.User)
	a.made.Settle(s.Env, s.Dir)
	a.server, a.token = a.made, token
	close(a.gate)
	if a.sudo != nil {
		a.server.Sudo(a.sudo)
	}
	time.AfterFunc(300*time.Millisecond, func() { debug.SetGCPercent(50) })
	return nil
}
