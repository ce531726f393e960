package cli

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestThePlaceOfAServerIsRefusedWhereSomebodyElseMayBe(t *testing.T) {
	h := home{filepath.Join(t.TempDir(), "paddock", "server")}
	if err := h.make(); err != nil {
		t.Fatal(err)
	}
	if err := h.make(); err != nil {
		t.Errorf("the second time: %v", err)
	}
	if info, err := os.Stat(h.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v: %v", info, err)
	}
	refused := func(why string) {
		t.Helper()
		if err := h.make(); !errors.Is(err, paddock.Denied) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
	if err := os.Chmod(h.dir, 0o750); err != nil {
		t.Fatal(err)
	}
	refused("is open to others")
	if err := os.Chmod(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(h.dir, 61234, 61234); err != nil {
			t.Fatal(err)
		}
		refused("belongs to another user")
	}
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), h.dir); err != nil {
		t.Fatal(err)
	}
	refused("is no directory")
}

func TestTheSocketOfAServerIsItsOwnersAndTakesThePlaceOfADeadOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v: %v", info, err)
	}
	if _, err := ListenUnix(path); !errors.Is(err, paddock.Conflict) {
		t.Errorf("a second server: %v", err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The check of the second server has been here before.
	for range 2 {
		in, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		in.Close()
	}
}

func TestWhoeverIsAnotherUserIsNotAccepted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	own, ok := l.(*ownSocket)
	if !ok {
		t.Fatalf("a %T", l)
	}
	own.uid++ // so that this process is somebody else
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes", n)
	}
	l.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepted: %v", err)
	}
}

func TestTheLogOfAServerOfOnesOwnStaysSmall(t *testing.T) {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	line := []byte(strings.Repeat("x", 1000) + "\n")
	for range 5000 {
		if _, err := (SmallLog{File: f}).Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := f.Stat(); err != nil || info.Size() > maxLog+int64(len(line)) {
		t.Errorf("%d bytes: %v", info.Size(), err)
	}
}
