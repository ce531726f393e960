//go:build linux

package guestclient_test

import (
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// connections gives a guest, to which each call of join makes one more connection,
// and how many of them stand. Nothing of the test holds the host's sides.
func connections(t *testing.T) (join func() *guestclient.Guest, standing func() int) {
	t.Helper()
	s, err := guest.New(guest.Options{
		Dir: "/", Env: map[string]string{"PATH": os.Getenv("PATH")},
		User: guest.User{Name: "user", UID: os.Getuid(), GID: os.Getgid(), Home: "/", Shell: "/bin/sh"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	began, ended := 0, make(chan struct{}, 1000)
	return func() *guestclient.Guest {
			host, inside := guesttest.Pair(t)
			began++
			go func() {
				defer func() { ended <- struct{}{} }()
				_ = s.Serve(t.Context(), inside)
			}()
			g, err := guestclient.New(host, guestclient.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return g
		}, func() int {
			runtime.GC()
			return began - len(ended)
		}
}

func TestAGuestThatNobodyHoldsAnyMoreIsLetGo(t *testing.T) {
	join, standing := connections(t)
	use := func() {
		for range 20 {
			if _, err := join().Hello(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	use()
	eventually(t, func() bool { return standing() == 0 })
}

func TestWhatIsUnderWayHoldsItsGuest(t *testing.T) {
	join, standing := connections(t)
	out := newMailbox()
	p := start(t, join(), paddock.Cmd{Args: []string{"/bin/cat"}, Input: true, Output: paddock.Output{Stdout: out}})
	r, err := join().FS().Open(t.Context(), "/dev/zero", paddock.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if n := standing(); n != 2 {
			t.Fatalf("%d connections stand", n)
		}
	}
	if _, err := io.WriteString(p.Input(), "it is there\n"); err != nil {
		t.Fatal(err)
	}
	hear(t, out, "it is there\n")
	if _, err := io.ReadFull(r, make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	if err := p.Input().Close(); err != nil {
		t.Error(err)
	}
	wait(t, p)
	r.Close()
	eventually(t, func() bool { return standing() == 0 })
}
