// Command probe performs the actions inside a sandbox that a shell cannot: it listens on a port, opens
// connections, prints random data of the kernel and variables, takes what it can of the kernel's quotas, and locks
// and watches files. Package drivertest builds it and copies it into
// the sandbox.
package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "hello":
		_, err := fmt.Println("hello")
		return err
	case len(args) > 1 && args[0] == "env":
		for _, name := range args[1:] {
			if _, err := fmt.Println(os.Getenv(name)); err != nil {
				return err
			}
		}
		return nil
	case len(args) == 2 && args[0] == "echo":
		return echo(args[1])
	case len(args) == 3 && args[0] == "connect":
		return connect(args[1], args[2])
	case len(args) == 2 && args[0] == "resolve":
		return resolve(args[1])
	case len(args) == 2 && args[0] == "self":
		return self(args[1])
	case len(args) == 2 && args[0] == "get":
		return get(args[1])
	case len(args) == 2 && args[0] == "hold":
		return hold(args[1])
	case len(args) == 1 && args[0] == "random":
		return errors.Join(random(), atRandom())
	case len(args) == 2 && args[0] == "random":
		return later(args[1])
	case len(args) == 2 && args[0] == "signal":
		return signalAll(args[1])
	case len(args) == 2 && args[0] == "fill":
		return fill(args[1])
	case len(args) > 2 && args[0] == "take":
		return take(args[1:])
	case len(args) == 2 && args[0] == "stamps":
		return stamps(args[1])
	case len(args) == 2 && args[0] == "spread":
		return spread(args[1])
	case len(args) == 3 && args[0] == "lease":
		return lease(args[1], args[2])
	case len(args) == 3 && args[0] == "lock":
		return lock(args[1], args[2])
	case len(args) == 2 && args[0] == "threads":
		return threads(args[1])
	case len(args) == 3 && args[0] == "addresses":
		return addresses(args[1], args[2])
	case len(args) == 3 && args[0] == "serve":
		return serve(args[1], args[2])
	case len(args) == 3 && args[0] == "hasty":
		return hasty(args[1], args[2], 3000)
	case len(args) == 2 && args[0] == "ask":
		return ask(args[1])
	case len(args) == 2 && args[0] == "pair":
		return pair(args[1])
	case len(args) == 3 && args[0] == "undumpable":
		return undumpable(args[1], args[2])
	case len(args) == 2 && args[0] == "race":
		return race(args[1], 2000)
	case len(args) == 2 && args[0] == "size":
		return size(args[1])
	case len(args) > 1 && args[0] == "agent":
		return agent(args[1:])
	case len(args) == 3 && args[0] == "watch":
		return watch(args[1], args[2])
	case len(args) > 1 && args[0] == "events":
		return events(args[1:])
	default:
		return fmt.Errorf("usage: probe hello | echo ADDRESS | connect NETWORK ADDRESS | resolve NAME | self ADDRESS | get ADDRESS | hold ADDRESS | random [FILE] | signal PID | fill BYTES | take KIND=N… FILE | lease NAME FILE | lock NAME FILE | threads NAME | watch NAME FILE | events NAME… | addresses SERVER CLIENT | serve SOCKET FILE | ask SOCKET | hasty SOCKET FILE | pair SOCKET | undumpable DIRECTORY SOCKETS | race DIRECTORY | size KIND | agent STEP…, not %q", args)
	}
}

// echo sends back what each connection sends, and then closes it. It prints
// the port first.
func echo(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if _, err := fmt.Println(l.Addr().(*net.TCPAddr).Port); err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			// An error is the other side's going away.
			_, _ = io.Copy(conn, conn)
		}()
	}
}

// connect says whether an address can be reached. For UDP that is whether a
// packet can be sent.
func connect(network, address string) error {
	conn, err := net.DialTimeout(network, address, 20*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("paddock")); err != nil {
		return err
	}
	_, err = fmt.Println("connected")
	return err
}

// resolve prints the addresses of a name, or how that failed: a name that is not found is not asked
// for again.
func resolve(name string) error {
	addresses, err := net.DefaultResolver.LookupHost(context.Background(), name)
	var failed *net.DNSError
	switch {
	case errors.As(err, &failed) && failed.IsNotFound && !failed.IsTemporary && !failed.IsTimeout:
		_, err = fmt.Println("no such host")
	case err != nil:
		_, err = fmt.Println("not for now:", err)
	default:
		_, err = fmt.Println(strings.Join(addresses, " "))
	}
	return err
}

// self listens at an address of this machine, and connects to it.
func self(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	defer l.Close()
	return connect("tcp", l.Addr().String())
}

// patience bounds what takes milliseconds.
const patience = 3 * time.Minute

// get says hello, and prints what the other side says to that. It knows no proxy.
func get(address string) error {
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(conn, "hello"); err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, conn)
	return err
}

// fill sends datagrams to its own sockets, then reads all of them, and prints how many bytes it got.
func fill(number string) error {
	left, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	var sockets []*net.UDPConn
	packet := make([]byte, 8<<10)
	for left > 0 && len(sockets) < 3000 {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return err
		}
		sockets = append(sockets, c)
		for range 10 { // which fit into the usual buffer
			left -= len(packet)
			if _, err := c.WriteTo(packet, c.LocalAddr()); err != nil {
				break
			}
		}
	}
	got := 0
	for _, c := range sockets {
		for {
			if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
				return err
			}
			n, err := c.Read(packet)
			if err != nil {
				break
			}
			got += n
		}
	}
	_, err = fmt.Println(got)
	return err
}

// hold connects and waits until the connection is over, however it ends.
func hold(address string) error {
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Println("connected"); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, conn) // a reset is an end too
	_, err = fmt.Println("over")
	return err
}

// later makes a file, and tells what is random when somebody has removed it.
func later(name string) error {
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return err
	}
	for {
		if _, err := os.Lstat(name); err != nil {
			return random()
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// random prints what the kernel gives at different places, a line each.
func random() error {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return err
	}
	fmt.Printf("getrandom %x\n", b)
	for _, name := range []string{"/dev/urandom", "/dev/random"} {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		_, err = io.ReadFull(f, b[:])
		f.Close()
		if err != nil {
			return err
		}
		fmt.Printf("%s %x\n", name, b)
	}
	// A name that no other process has; not every kernel gives one.
	if id, err := os.ReadFile("/proc/sys/kernel/random/uuid"); err == nil {
		fmt.Printf("uuid %s\n", strings.TrimSpace(string(id)))
	}
	return nil
}

// atRandom prints the bytes that a kernel gives to a program at its start, from
// which C libraries make the keys of stacks and heaps.
func atRandom() error {
	const tag = 25 // AT_RANDOM in elf.h
	auxv, err := os.ReadFile("/proc/self/auxv")
	if err != nil {
		return err
	}
	for ; len(auxv) >= 16; auxv = auxv[16:] {
		if binary.NativeEndian.Uint64(auxv) != tag {
			continue
		}
		memory, err := os.Open("/proc/self/mem")
		if err != nil {
			return err
		}
		defer memory.Close()
		var b [16]byte
		if _, err := memory.ReadAt(b[:], int64(binary.NativeEndian.Uint64(auxv[8:]))); err != nil {
			return err
		}
		_, err = fmt.Printf("AT_RANDOM %x\n", b)
		return err
	}
	return errors.New("AT_RANDOM is missing")
}
