package guest

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// testNumber is one, as it comes after the first byte of a connection.
const testNumber = "0123456789abcdef"

// offer gives the guest's end of a connection of that number to a, and the host's.
func offer(t *testing.T, a *asides) (host net.Conn, served chan error) {
	t.Helper()
	host, inside := net.Pipe()
	served = make(chan error, 1)
	go func() { served <- a.serve(t.Context(), inside) }()
	if _, err := io.WriteString(host, testNumber); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	return host, served
}

func hello(conn net.Conn) error {
	_, err := conn.Write([]byte("hello"))
	return err
}

func TestACallAndItsConnectionMeetInAnyOrder(t *testing.T) {
	for _, first := range []string{"call", "connection"} {
		var a asides
		claimed := make(chan error, 1)
		claim := func() { claimed <- a.claim(t.Context(), asideNumber([]byte(testNumber)), hello) }
		if first == "call" {
			go claim()
		}
		host, served := offer(t, &a)
		if first != "call" {
			go claim()
		}
		if got, err := io.ReadAll(host); err != nil || string(got) != "hello" {
			t.Errorf("%s first: %q, %v", first, got, err)
		}
		if err := errors.Join(<-claimed, <-served); err != nil {
			t.Errorf("%s first: %v", first, err)
		}
		if len(a.open) != 0 {
			t.Errorf("%s first: %d are left", first, len(a.open))
		}
	}
}

func TestACallThatEndsWaitsForNoConnection(t *testing.T) {
	var a asides
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.claim(ctx, asideNumber([]byte(testNumber)), hello); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(a.open) != 0 {
		t.Errorf("%d are left", len(a.open))
	}
	ctx, cancel = context.WithCancel(t.Context())
	_, served := offer(t, &a)
	err := a.claim(ctx, asideNumber([]byte(testNumber)), func(conn net.Conn) error {
		cancel() // closes it
		_, err := io.Copy(io.Discard, conn)
		return err
	})
	if err == nil {
		t.Error("a read of a connection whose call has ended ends")
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestANumberIsForOneCallAndOneConnection(t *testing.T) {
	var a asides
	ended := make(chan struct{})
	claimed := make(chan error, 1)
	entered := make(chan struct{})
	go func() {
		claimed <- a.claim(t.Context(), asideNumber([]byte(testNumber)), func(net.Conn) error {
			close(entered)
			<-ended
			return nil
		})
	}()
	_, served := offer(t, &a)
	<-entered
	if err := a.claim(t.Context(), asideNumber([]byte(testNumber)), hello); !errors.Is(err, paddock.Invalid) {
		t.Error("a second call:", err)
	}
	close(ended)
	if err := errors.Join(<-claimed, <-served); err != nil {
		t.Error(err)
	}
	if _, err := numbered([]byte("short")); !errors.Is(err, paddock.Invalid) {
		t.Error("a number that is too short:", err)
	}
	if n, err := numbered(nil); n != nil || err != nil {
		t.Error("no number:", n, err)
	}
}
