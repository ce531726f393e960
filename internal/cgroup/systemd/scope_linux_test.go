package systemd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/paddock-sandbox/paddock"
)

// A fakeManager speaks the wire format of systemd's own socket.
type fakeManager struct {
	t      *testing.T
	socket string
	asked  chan *dbus.Message
}

// manage answers one caller: with an error by name, or with a job that ends with result.
func manage(t *testing.T, refusal, result string) *fakeManager {
	m := &fakeManager{t: t, socket: filepath.Join(t.TempDir(), "private"), asked: make(chan *dbus.Message, 1)}
	l, err := net.Listen("unix", m.socket)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if err := m.answer(conn, refusal, result); err != nil {
			t.Errorf("the manager: %v", err)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-ended
	})
	return m
}

func (m *fakeManager) answer(conn net.Conn, refusal, result string) error {
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		reply := ""
		switch word := strings.TrimLeft(line, "\x00"); {
		case word == "AUTH\r\n":
			reply = "REJECTED EXTERNAL\r\n"
		case strings.HasPrefix(word, "AUTH EXTERNAL"):
			reply = "DATA\r\n"
		case strings.HasPrefix(word, "DATA"):
			reply = "OK 0123456789abcdef0123456789abcdef\r\n"
		case strings.HasPrefix(word, "NEGOTIATE_UNIX_FD"):
			reply = "ERROR\r\n"
		case strings.HasPrefix(word, "BEGIN"):
			return m.serve(in, conn, refusal, result)
		}
		if _, err := conn.Write([]byte(reply)); err != nil {
			return err
		}
	}
}

func (m *fakeManager) serve(in *bufio.Reader, conn net.Conn, refusal, result string) error {
	call, err := dbus.DecodeMessage(in)
	if err != nil {
		return err
	}
	m.asked <- call
	reply := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(call.Serial()),
	}}
	if refusal != "" {
		reply.Type = dbus.TypeError
		reply.Headers[dbus.FieldErrorName] = dbus.MakeVariant(refusal)
		return send(conn, reply, "no")
	}
	const job = dbus.ObjectPath("/org/freedesktop/systemd1/job/7")
	// Other jobs end first, and this one may before the answer.
	for _, m := range []struct {
		id     uint32
		job    dbus.ObjectPath
		result string
	}{{6, "/org/freedesktop/systemd1/job/6", "failed"}, {7, job, result}} {
		err := send(conn, &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/systemd1")), dbus.FieldInterface: dbus.MakeVariant(manager), dbus.FieldMember: dbus.MakeVariant("JobRemoved"),
		}}, m.id, m.job, "x.scope", m.result)
		if err != nil {
			return err
		}
	}
	return send(conn, reply, job)
}

func send(conn net.Conn, m *dbus.Message, body ...any) error {
	m.Body = body
	m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	return m.EncodeTo(conn, binary.LittleEndian)
}

func TestAScopeIsAskedForThisProcessAndWaitedFor(t *testing.T) {
	m := manage(t, "", "done")
	if err := Scope(m.socket); err != nil {
		t.Fatal(err)
	}
	call := <-m.asked
	if member := call.Headers[dbus.FieldMember].Value(); member != "StartTransientUnit" {
		t.Errorf("called %v", member)
	}
	if name, _ := call.Body[0].(string); !strings.HasPrefix(name, fmt.Sprintf("paddock-%d-", os.Getpid())) || !strings.HasSuffix(name, ".scope") {
		t.Errorf("the name is %v", call.Body[0])
	}
	text := fmt.Sprint(call.Body[2])
	for _, want := range []string{"Delegate true", fmt.Sprintf("PIDs @au [%d]", os.Getpid())} {
		if !strings.Contains(strings.ReplaceAll(text, "PIDs [", "PIDs @au ["), want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

func TestAManagerThatCannotIsAnError(t *testing.T) {
	if err := Scope(manage(t, "org.freedesktop.DBus.Error.AccessDenied", "").socket); err == nil || !strings.Contains(err.Error(), "ask systemd for a scope: no") {
		t.Errorf("refused: %v", err)
	}
	if err := Scope(manage(t, "", "failed").socket); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("a job that failed: %v", err)
	}
	if err := Scope(filepath.Join(t.TempDir(), "private")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no manager: %v", err)
	}
}

func TestTheSocketIsTheOneOfTheUsersManager(t *testing.T) {
	for _, c := range []struct {
		uid           int
		runtime, want string
	}{
		{0, "/run/user/0", "/run/systemd/private"},
		{1000, "", "/run/user/1000/systemd/private"},
		{1000, "relative", "/run/user/1000/systemd/private"},
		{1000, "/run/mine", "/run/mine/systemd/private"},
	} {
		if got := Socket(c.uid, c.runtime); got != c.want {
			t.Errorf("%d, %q: %s", c.uid, c.runtime, got)
		}
	}
}
