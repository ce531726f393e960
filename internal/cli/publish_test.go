package cli

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func TestPublicationsAreReadAsElsewhere(t *testing.T) {
	for text, want := range map[string]publication{
		"8080":                {local: 8080, port: 8080},
		"8080/tcp":            {local: 8080, port: 8080},
		"80:8080":             {local: 80, port: 8080},
		"0:8080":              {port: 8080},
		"localhost:80:8080":   {local: 80, port: 8080},
		"127.0.0.1:80:8080":   {addr: netip.MustParseAddr("127.0.0.1"), local: 80, port: 8080},
		"0.0.0.0:80:8080":     {addr: netip.MustParseAddr("0.0.0.0"), local: 80, port: 8080},
		"127.0.0.1::8080":     {addr: netip.MustParseAddr("127.0.0.1"), port: 8080},
		"[::1]:80:8080":       {addr: netip.MustParseAddr("::1"), local: 80, port: 8080},
		"[fe80::1%lo]:80:443": {addr: netip.MustParseAddr("fe80::1%lo"), local: 80, port: 443},
	} {
		if got, err := parsePublication(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, kind := range map[string]paddock.Kind{
		"": paddock.Invalid, "0": paddock.Invalid, "-1": paddock.Invalid, "+80": paddock.Invalid, "65536": paddock.Invalid, "80:": paddock.Invalid, ":80": paddock.Invalid,
		"a:80:80": paddock.Invalid, "::1:80:80": paddock.Invalid, "[127.0.0.1]:80:80": paddock.Invalid, "224.0.0.1:80:80": paddock.Invalid, "1.2.3.4:x:80": paddock.Invalid,
		"example.com:80:80": paddock.Invalid, "80-90:80-90": paddock.Invalid, "53/udp": paddock.Unsupported,
	} {
		if p, err := parsePublication(text); !errors.Is(err, kind) {
			t.Errorf("%q: %+v, %v; want %v", text, p, err, kind)
		}
	}
}

// greeter is a sandbox in which every port says hello.
type greeter struct{ paddock.Sandbox }

func (greeter) Dial(context.Context, int) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		_, _ = theirs.Write([]byte("hello")) // the test sees what is missing
		theirs.Close()
	}()
	return ours, nil
}

func TestAPortToWhichNobodyConnectsKeepsNoOtherFromItsTurn(t *testing.T) {
	all := &publishing{most: make(chan struct{}, 1)}
	for range 4 {
		p := &published{publication: publication{addr: netip.MustParseAddr("127.0.0.1"), port: 80}}
		if err := p.take(); err != nil {
			t.Fatal(err)
		}
		all.ports = append(all.ports, p)
	}
	a := &App{Stderr: io.Discard}
	all.serve(a, greeter{}, paddock.Jail)
	defer all.end(a)
	for _, p := range all.ports {
		c, err := net.Dial("tcp", p.listeners[0].Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len("hello"))
		_, err = io.ReadFull(c, got)
		c.Close()
		if err != nil || string(got) != "hello" {
			t.Fatalf("%s: %q, %v", p.words(), got, err)
		}
	}
}
