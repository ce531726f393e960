//go:build linux

// Package internet simulates the network beyond the host for the attacks on the way out: one process
// that answers at every address, resolves every name, and records every request. It is host code and
// runs in a network namespace of its own.
package internet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// Files that Serve makes in its directory.
const (
	Socket = "internet.sock" // returns what was seen: for each line, a line of protocol.Traffic
	Roots  = "roots.pem"     // root of the servers' certificates
)

// An internet is the state of Serve.
type internet struct {
	watch  *watch
	signer *signer

	mu      sync.Mutex
	asked   []string
	streams []*stream
	times   map[string]int // number of queries of each name
}

// Serve sets up the network of this process as a host's, with an internet behind its only
// link. It prints a line when it is ready, and ends when its input ends. With careless
// there is no sandbox, and the host offers what a careless gateway would.
func Serve(dir string, careless bool) error {
	s, err := newSigner()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, Roots), s.root, 0o644); err != nil {
		return err
	}
	n := &internet{signer: s, times: map[string]int{}}
	ready := make(chan error)
	go n.beyond(ready)
	if err := <-ready; err != nil {
		return fmt.Errorf("make an internet: %w", err)
	}
	if err := n.host(careless); err != nil {
		return fmt.Errorf("make a host: %w", err)
	}
	if err := n.control(filepath.Join(dir, Socket)); err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin) // this process ends with its input
	return err
}

// ip runs the program ip for each line, in the network of the calling thread.
func ip(lines ...string) error {
	for _, l := range lines {
		if out, err := exec.Command("ip", strings.Fields(l)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", l, err, out)
		}
	}
	return nil
}

// host starts the host's servers, which no sandbox may reach.
func (n *internet) host(careless bool) error {
	err := ip("link set lo up", "addr add "+protocol.HostAddr+"/24 dev wan", "addr add "+protocol.HostAddr6+"/64 dev wan nodad", "link set wan up",
		"route add default via "+protocol.InternetAddr, "-6 route add default via "+protocol.Internet6)
	if err != nil {
		return err
	}
	if careless {
		if err := ip("addr add "+protocol.GatewayAddr+"/32 dev lo", "addr add "+protocol.Gateway6+"/128 dev lo nodad"); err != nil {
			return err
		}
		if err := n.careless(); err != nil {
			return err
		}
	}
	for _, port := range []int{22, 80, 443, 8080} {
		if err := n.listen(port, true); err != nil {
			return err
		}
	}
	for _, at := range []string{":443", ":" + strconv.Itoa(protocol.EchoPort)} {
		if err := n.receive(at, true); err != nil {
			return err
		}
	}
	return nil
}

// beyond makes the internet in a network of one thread. Sockets stay in the network in
// which they were made.
func (n *internet) beyond(ready chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the process
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		ready <- err
		return
	}
	defer home.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		ready <- fmt.Errorf("make a network: %w", err)
		return
	}
	err = ip("link set lo up", fmt.Sprintf("link add net type veth peer name wan netns /proc/%d/fd/%d", os.Getpid(), home.Fd()),
		"addr add "+protocol.InternetAddr+"/24 dev net", "addr add "+protocol.Resolver+"/32 dev net", "addr add "+protocol.Internet6+"/64 dev net nodad", "link set net up",
		"route add local 0.0.0.0/0 dev lo", "-6 route add local ::/0 dev lo")
	if err != nil {
		ready <- err
		return
	}
	if n.watch, err = newWatch("net"); err != nil {
		ready <- err
		return
	}
	for _, port := range []int{22, 25, 80, 443, 853, 8080, protocol.ProxyPort, protocol.SOCKSPort} {
		err = errors.Join(err, n.listen(port, false))
	}
	echo := ":" + strconv.Itoa(protocol.EchoPort)
	for _, at := range []string{":123", ":443", echo, protocol.Addresses(protocol.Datagrams, 0)[0].String() + echo} {
		err = errors.Join(err, n.receive(at, false))
	}
	ready <- errors.Join(err, n.names())
	select {} // the thread keeps the network
}

// control returns what was seen since the last request.
func (n *internet) control(name string) error {
	l, err := net.Listen("unix", name)
	if err != nil {
		return err
	}
	if err := os.Chmod(name, 0o666); err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in, out := bufio.NewReader(c), json.NewEncoder(c)
				for {
					if _, err := in.ReadString('\n'); err != nil {
						return
					}
					if err := out.Encode(n.take()); err != nil {
						return
					}
				}
			}()
		}
	}()
	return nil
}

// take returns what was seen, and closes open connections.
func (n *internet) take() protocol.Traffic {
	packets, missed := n.watch.take()
	n.mu.Lock()
	defer n.mu.Unlock()
	t := protocol.Traffic{Packets: packets, Missed: missed, Asked: n.asked}
	for _, s := range n.streams {
		t.Streams = append(t.Streams, s.end())
	}
	n.asked, n.streams, n.times = nil, nil, map[string]int{}
	return t
}

func (n *internet) open(s *stream) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.streams = append(n.streams, s)
}
