// Command probe does inside a sandbox what a shell cannot: it listens and it
// connects. Package drivertest builds it and copies it in.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
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
	case len(args) == 2 && args[0] == "echo":
		return echo(args[1])
	case len(args) == 3 && args[0] == "connect":
		return connect(args[1], args[2])
	case len(args) == 2 && args[0] == "get":
		return get(args[1])
	case len(args) == 2 && args[0] == "hold":
		return hold(args[1])
	default:
		return fmt.Errorf("usage: probe hello | echo ADDRESS | connect NETWORK ADDRESS | get ADDRESS | hold ADDRESS, not %q", args)
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

// patience bounds what takes milliseconds.
const patience = 20 * time.Second

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
