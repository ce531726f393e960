package main

import (
	"errors"
	"net"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestAnOrdinaryKeyReachesNoRegistryOfAPrivateAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1", "192.168.0.1", "[::1]", "[fd00::1]", "[64:ff9b::7f00:1]", "0.0.0.0", "2130706433", "0x7f.1"} {
		if c, err := dialRegistry(t.Context(), false, "tcp", host+":"+port); err == nil {
			c.Close()
			t.Errorf("%s was dialled", host)
		} else if !errors.Is(err, paddock.Denied) && !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %v", host, err)
		}
	}
	c, err := dialRegistry(t.Context(), true, "tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("a key of the scope admin: %v", err)
	}
	c.Close()
}
