package drivertest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func keyAgentPromises() []group {
	can := []paddock.Capability{paddock.CanForwardAgent, paddock.CanPrograms}
	return []group{{can: can, promises: []promise{
		{"commands sign with the keys of a key agent that is named, and without it find none", keyAgentSigns},
		{"a key agent gets no request but to list keys and to sign, whatever commands ask", keyAgentRefuses},
		{"commands can use only the keys of a key agent that are named", keyAgentOneKey},
		{"a key agent serves on while commands flood it", keyAgentFlood},
	}}, {can: append(slices.Clone(can), paddock.CanOutlive, paddock.CanPause), promises: []promise{
		{"a key agent serves a sandbox after another driver has opened it, and after a pause", keyAgentStays},
	}}, {can: append(slices.Clone(can), paddock.CanMountWrite), promises: []promise{
		{"a key agent whose socket commands could replace is refused, and one of a link, too", keyAgentReplaceable},
	}}}
}

// A keyAgent is a program of the host that holds keys, with as much of the protocol as the promises need.
type keyAgent struct {
	socket string
	keys   []ed25519.PrivateKey

	mu    sync.Mutex
	asked []byte // guarded by mu: kinds of requests besides those to list and to sign
}

// newKeyAgent starts an agent with two keys, whose comments are "first" and "second".
func newKeyAgent(t testing.TB) *keyAgent {
	t.Helper()
	dir, err := os.MkdirTemp("", "dt") // not t.TempDir: paths of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &keyAgent{socket: filepath.Join(dir, "agent")}
	for range 2 {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		a.keys = append(a.keys, key)
	}
	l, err := net.Listen("unix", a.socket)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				for a.answer(conn) == nil {
				}
			})
		}
	})
	return a
}

func sshText(to, text []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(text))), text...)
}

// blob returns the public part of a key.
func (a *keyAgent) blob(i int) []byte {
	public, _ := a.keys[i].Public().(ed25519.PublicKey)
	return sshText(sshText(nil, []byte("ssh-ed25519")), public)
}

func (a *keyAgent) answer(conn net.Conn) error {
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return err
	}
	request := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(conn, request); err != nil {
		return err
	}
	answer := []byte{5}
	switch request[0] {
	case 11:
		answer = []byte{12, 0, 0, 0, byte(len(a.keys))}
		for i, comment := range []string{"first", "second"} {
			answer = sshText(sshText(answer, a.blob(i)), []byte(comment))
		}
	case 13:
		for i, key := range a.keys {
			if rest, ok := bytes.CutPrefix(request[1:], sshText(nil, a.blob(i))); ok {
				data := rest[4 : len(rest)-4]
				answer = sshText([]byte{14}, sshText(sshText(nil, []byte("ssh-ed25519")), ed25519.Sign(key, data)))
			}
		}
	default:
		a.mu.Lock()
		a.asked = append(a.asked, request[0])
		a.mu.Unlock()
	}
	_, err := conn.Write(sshText(nil, answer))
	return err
}

// forwarding returns a change of a spec that forwards the agent.
func (a *keyAgent) forwarding(keys ...string) func(*paddock.Spec) {
	return func(spec *paddock.Spec) {
		spec.Policy.KeyAgents = []paddock.KeyAgent{{Kind: paddock.KeyAgentSSH, Socket: a.socket, Keys: keys}}
	}
}

// asks runs the probe as a client of the agent, and returns what it prints.
func (b box) asks(t testing.TB, steps ...string) string {
	t.Helper()
	r := b.run(t, paddock.Cmd{Args: append([]string{b.helper(t), "agent"}, steps...)})
	if r.exit.Code != 0 {
		t.Errorf("ask the agent %q: %+v", steps, r)
	}
	return r.out
}

// wantSigned checks that a command can sign a text with a key.
func (a *keyAgent) wantSigned(t testing.TB, b box, i int, what string) {
	t.Helper()
	text := "text of " + what
	out := strings.TrimSpace(b.asks(t, "sign", hex.EncodeToString(a.blob(i)), text))
	signature, err := hex.DecodeString(out)
	public, _ := a.keys[i].Public().(ed25519.PublicKey)
	if err != nil || !bytes.HasPrefix(signature, sshText(nil, []byte("ssh-ed25519"))) || !ed25519.Verify(public, []byte(text), signature[max(0, len(signature)-ed25519.SignatureSize):]) {
		t.Errorf("%s: the signature is %q", what, out)
	}
}

func keyAgentSigns(t *testing.T, s *suite) {
	a := newKeyAgent(t)
	if got := s.own(t).must(t, `echo "${SSH_AUTH_SOCK-none}"`); got != "none\n" {
		t.Errorf("without an agent, SSH_AUTH_SOCK is %q", got)
	}
	for _, ephemeral := range []bool{true, false} {
		if !ephemeral && !s.info.Can(paddock.CanOutlive) {
			continue
		}
		b := s.own(t, a.forwarding(), func(spec *paddock.Spec) { spec.Ephemeral = ephemeral })
		if got := b.asks(t, "list"); got != "first\nsecond\n" {
			t.Errorf("the keys are %q", got)
		}
		for i := range a.keys {
			a.wantSigned(t, b, i, fmt.Sprintf("key %d, ephemeral %v", i, ephemeral))
		}
	}
}

func keyAgentRefuses(t *testing.T, s *suite) {
	a := newKeyAgent(t)
	b := s.own(t, a.forwarding())
	var steps []string
	want := ""
	for kind := range 256 {
		if kind != 11 && kind != 13 {
			steps = append(steps, fmt.Sprint(kind), "list") // which goes on after it
			want += "5\nfirst\nsecond\n"
		}
	}
	if got := b.asks(t, steps...); got != want {
		t.Errorf("all kinds of requests: %q", got)
	}
	if got := b.asks(t, "long"); got != "closed\n" {
		t.Errorf("a message of a gigabyte: %q", got)
	}
	a.wantSigned(t, b, 0, "after all of them")
	a.mu.Lock()
	asked := slices.Clone(a.asked)
	a.mu.Unlock()
	if len(asked) > 0 {
		t.Errorf("the agent was asked %v", asked)
	}
	st, err := b.Status(bounded(t))
	if err != nil || !slices.ContainsFunc(st.Refused, func(r paddock.Refusal) bool { return r.What == "ssh-agent" && r.Target == "remove all keys" }) {
		t.Errorf("refusals: %+v, %v", st.Refused, err)
	}
}

func keyAgentOneKey(t *testing.T, s *suite) {
	a := newKeyAgent(t)
	b := s.own(t, a.forwarding("second"))
	if got := b.asks(t, "list"); got != "second\n" {
		t.Errorf("the keys are %q", got)
	}
	a.wantSigned(t, b, 1, "the key that is named")
	if got := b.asks(t, "sign", hex.EncodeToString(a.blob(0)), "text"); got != "refused\n" {
		t.Errorf("the other key: %q", got)
	}
}

func keyAgentFlood(t *testing.T, s *suite) {
	a := newKeyAgent(t)
	b := s.own(t, a.forwarding())
	if got := b.asks(t, "many", "40"); got != "16\n" {
		t.Errorf("of 40 connections that stay open, so many were served: %q", got)
	}
	a.wantSigned(t, b, 0, "after a flood")
}

func keyAgentStays(t *testing.T, s *suite) {
	a := newKeyAgent(t)
	b := s.own(t, a.forwarding())
	other, err := s.fresh(t).Open(bounded(t), b.ID())
	if err != nil {
		t.Fatal(err)
	}
	b2 := b
	b2.Sandbox = other
	a.wantSigned(t, b2, 0, "another driver")
	if err := other.Pause(bounded(t)); err != nil {
		t.Fatal(err)
	}
	if err := other.Resume(bounded(t)); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		a.wantSigned(t, b2, 1, fmt.Sprintf("after a pause, %d", i))
	}
}

func keyAgentReplaceable(t *testing.T, s *suite) {
	a := newKeyAgent(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(a.socket, link); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*paddock.Spec){
		"in a mount": func(spec *paddock.Spec) {
			spec.Mounts = append(spec.Mounts, paddock.Mount{Source: filepath.Dir(a.socket), Target: "/mnt/desk", Write: true})
		},
		"a link": func(spec *paddock.Spec) { spec.Policy.KeyAgents[0].Socket = link },
	} {
		sb, err := s.driver.Create(bounded(t), s.spec(a.forwarding(), change))
		if err == nil {
			s.removeAfter(t, sb)
		}
		wantKind(t, "a socket "+what, err, paddock.Invalid)
	}
}
