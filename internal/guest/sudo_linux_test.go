package guest_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/sudo"
)

// sudoServer is an agent that answers sudo at an address, for this process's user
// alone.
func sudoServer(t *testing.T) *net.UnixAddr {
	t.Helper()
	at := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"}
	l, err := net.ListenUnix("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	s, err := guest.New(guest.Options{User: guest.User{Name: "me", UID: os.Getuid(), GID: os.Getgid(), Home: "/", Shell: "/bin/sh"}})
	if err != nil {
		t.Fatal(err)
	}
	s.Sudo(l)
	t.Cleanup(func() { _ = s.Close() })
	return at
}

// ask says something to it, with files and credentials, and gives what it answers.
func ask(t *testing.T, at *net.UnixAddr, data []byte, files int, cred *syscall.Ucred) (sudo.Answer, error) {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var oob []byte
	if files > 0 {
		fds := make([]int, files)
		for i := range fds {
			fds[i] = int(null.Fd())
		}
		oob = syscall.UnixRights(fds...)
	}
	if cred != nil {
		oob = append(oob, syscall.UnixCredentials(cred)...)
	}
	head := min(len(data), sudo.Head)
	if _, _, err := conn.WriteMsgUnix(data[:head], oob, nil); err != nil {
		return sudo.Answer{}, err
	}
	_, _ = conn.Write(data[head:])
	if len(data) < sudo.Head {
		_ = conn.CloseWrite()
	}
	_ = conn.SetReadDeadline(time.Now().Add(3 * time.Minute))
	return sudo.ReadAnswer(conn)
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestWhatIsNoRequestForSudoStartsNothing(t *testing.T) {
	at := sudoServer(t)
	me := &syscall.Ucred{Pid: int32(os.Getpid()), Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
	good, err := sudo.Encode(sudo.Request{User: []byte("me"), Args: [][]byte{[]byte("sh"), []byte("-c"), []byte("exit 5")}})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := ask(t, at, good, 3, me); err != nil || a.Code != 5 || a.Error != "" {
		t.Fatalf("what is one: %+v, %v", a, err)
	}
	before := descriptors(t)
	for range 20 {
		for what, c := range map[string]struct {
			data  []byte
			files int
			cred  *syscall.Ucred
		}{
			"no streams":         {good, 0, me},
			"two streams":        {good, 2, me},
			"four streams":       {good, 4, me},
			"two hundred":        {good, 200, me},
			"too long":           {[]byte("\xff\xff\xff\xff"), 3, me},
			"no JSON":            {[]byte("\x04\x00\x00\x00nope"), 3, me},
			"less than its head": {[]byte("\x04"), 3, me},
			"no user":            {encoded(t, sudo.Request{User: []byte("nobody-there"), Args: [][]byte{[]byte("id")}}), 3, me},
			"no program":         {encoded(t, sudo.Request{User: []byte("me")}), 3, me},
			"no terminal":        {encoded(t, sudo.Request{User: []byte("me"), Terminal: true, Args: [][]byte{[]byte("true")}}), 3, me},
		} {
			if a, err := ask(t, at, c.data, c.files, c.cred); err == nil && a.Error == "" {
				t.Errorf("%s: %+v", what, a)
			}
		}
	}
	if a, err := ask(t, at, good, 3, nil); err != nil || a.Code != 5 { // the kernel says who it is where nobody does
		t.Errorf("without its own word: %+v, %v", a, err)
	}
	for range 100 {
		if descriptors(t) <= before {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if now := descriptors(t); now > before {
		t.Errorf("%d descriptors, and %d before", now, before)
	}
}

// Who only holds places takes them from others of the same sandbox, and gives them back.
func TestSudoHasSoManyPlacesAndNoMore(t *testing.T) {
	at := sudoServer(t)
	good := encoded(t, sudo.Request{User: []byte("me"), Args: [][]byte{[]byte("sh"), []byte("-c"), []byte("exit 5")}})
	me := &syscall.Ucred{Pid: int32(os.Getpid()), Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
	before := descriptors(t)
	var idle []*net.UnixConn
	for range 500 {
		conn, err := net.DialUnix("unix", nil, at)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
	}
	if a, err := ask(t, at, good, 3, me); err == nil {
		t.Errorf("it is answered though all places are taken: %+v", a)
	}
	turned := 0
	for _, conn := range idle[64:] { // they came later than those that have the places
		_ = conn.SetReadDeadline(time.Now().Add(3 * time.Minute))
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
			turned++
		}
	}
	if turned != len(idle)-64 {
		t.Errorf("%d of %d were turned away", turned, len(idle)-64)
	}
	for _, conn := range idle {
		_ = conn.Close()
	}
	for range 200 {
		if a, err := ask(t, at, good, 3, me); err == nil && a.Code == 5 {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	if a, err := ask(t, at, good, 3, me); err != nil || a.Code != 5 {
		t.Errorf("when they have gone: %+v, %v", a, err)
	}
	for range 100 {
		if descriptors(t) <= before {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Errorf("%d descriptors, and %d before", descriptors(t), before)
}

func encoded(t *testing.T, r sudo.Request) []byte {
	t.Helper()
	data, err := sudo.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A request may arrive while its connection is accepted.
func TestNoRequestComesWithoutWhoAsks(t *testing.T) {
	at := sudoServer(t)
	empty, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	fd := int(empty.Fd())
	data := encoded(t, sudo.Request{User: []byte("nobody-here"), Args: [][]byte{[]byte("true")}})
	for range 5000 {
		conn, err := net.DialUnix("unix", nil, at)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = conn.WriteMsgUnix(data[:sudo.Head], syscall.UnixRights(fd, fd, fd), nil)
		if err == nil {
			_, err = conn.Write(data[sudo.Head:])
		}
		answer, _ := io.ReadAll(conn)
		conn.Close()
		if err != nil || !strings.Contains(string(answer), "commands run as me here") {
			t.Fatalf("%v, %q", err, answer)
		}
	}
}

func TestWhoLeavesTakesWhatSudoRunsAlong(t *testing.T) {
	at := sudoServer(t)
	conn, err := net.DialUnix("unix", nil, at)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data := encoded(t, sudo.Request{User: []byte("me"), Args: [][]byte{[]byte("sh"), []byte("-c"), []byte("echo $$; sleep 1000 & wait")}})
	oob := syscall.UnixRights(int(r.Fd()), int(w.Fd()), int(w.Fd()))
	if _, _, err := conn.WriteMsgUnix(data[:sudo.Head], oob, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(data[sudo.Head:]); err != nil {
		t.Fatal(err)
	}
	w.Close() // the command alone has it, so that a request that is refused ends the pipe
	buf := make([]byte, 32)
	n, err := r.Read(buf)
	if err != nil {
		answer, _ := io.ReadAll(conn)
		t.Fatalf("the command did not run: %v, %q", err, answer)
	}
	if _, err := strconv.Atoi(string(buf[:n-1])); err != nil {
		t.Fatalf("%q", buf[:n])
	}
	conn.Close()
	// The pipe ends when nobody holds it any more: the shell and what it started.
	_ = r.SetReadDeadline(time.Now().Add(3 * time.Minute))
	if n, err := r.Read(buf); n != 0 || os.IsTimeout(err) {
		t.Errorf("it goes on: %d, %v", n, err)
	}
}
