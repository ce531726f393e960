package keyagent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
)

// Numbers of messages of the SSH agent protocol (draft-ietf-sshm-ssh-agent).
const (
	sshFailure           = 5
	sshSuccess           = 6
	sshRequestIdentities = 11
	sshIdentitiesAnswer  = 12
	sshSignRequest       = 13
	sshSignResponse      = 14
	sshExtension         = 27
)

// sshRefused has the words for requests that are always refused.
func sshRefused() map[byte]string {
	return map[byte]string{
		1: "list keys of version 1", 3: "use a key of version 1", 7: "add a key of version 1", 8: "remove a key of version 1", 9: "remove all keys of version 1",
		17: "add a key", 18: "remove a key", 19: "remove all keys", 20: "add a key of a token", 21: "remove a key of a token", 22: "lock", 23: "unlock",
		24: "add a key of version 1 with constraints", 25: "add a key with constraints", 26: "add a key of a token with constraints",
	}
}

// Bounds of messages. The first two are OpenSSH's own.
const (
	sshMaxMessage = 256 << 10
	sshMaxKeys    = 2048
	sshMaxBind    = 16 << 10 // of a session-bind, which has a host key and a signature
	sshMaxSession = 128      // of a session's identifier, which is a hash
)

// sshBind is the extension that tells an agent for which session of SSH a signature is. An agent needs it to let keys be
// used that are restricted to destinations (ssh-add -h), and refuses such keys without it. So it is passed on: it gives
// the sandbox nothing that a key without such a restriction does not, and the restriction then holds against the sandbox.
const sshBind = "session-bind@openssh.com"

// Reasons of refusals.
const (
	notForwarded = "only listing keys and using them is forwarded"
	malformed    = "the request is malformed"
	notThisKey   = "the agent has no such key, or the key is not forwarded"
	agentRefuses = "the agent refused"
)

var (
	errMessage = errors.New("a message that is empty or too long")
	errParse   = errors.New("a malformed message")
)

// An sshSession serves one connection. It has one connection to the agent, so that what a session binds stays there.
type sshSession struct {
	f     *Forwarder
	ctx   context.Context
	guest net.Conn

	agent  net.Conn // nil until it is needed
	hangUp func()   // closes agent
	keys   []sshKey // that the agent listed, and that the sandbox may use
}

type sshKey struct {
	blob, comment []byte
	print         string // fingerprint
}

func (s *sshSession) close() {
	if s.agent != nil {
		s.hangUp()
	}
}

func (s *sshSession) serve() {
	for {
		request, err := readSSH(s.guest)
		if err != nil {
			if errors.Is(err, errMessage) {
				s.f.refuse("a message of the wrong length", malformed)
			}
			return
		}
		if s.f.pace(s.ctx) != nil {
			return
		}
		answer, err := s.answer(request)
		if err != nil { // there is no agent to go on with, or nobody who records
			_ = writeSSH(s.guest, []byte{sshFailure})
			return
		}
		if answer == nil {
			answer = []byte{sshFailure}
		}
		if err := writeSSH(s.guest, answer); err != nil {
			return
		}
	}
}

// answer carries a request out. No answer and no error stand for a failure. An error ends the connection.
func (s *sshSession) answer(request []byte) (answer []byte, err error) {
	switch body := request[1:]; request[0] {
	case sshRequestIdentities:
		if len(body) > 0 {
			s.f.refuse("list keys", malformed)
			return nil, nil
		}
		if err := s.list(); err != nil {
			return nil, err
		}
		return encodeKeys(s.keys), nil
	case sshSignRequest:
		return s.sign(body)
	case sshExtension:
		return s.bind(body)
	default:
		what, known := sshRefused()[request[0]]
		if !known {
			what = "a request of an unknown kind"
		}
		s.f.refuse(what, notForwarded)
		return nil, nil
	}
}

// ask sends a request to the agent and returns its answer.
func (s *sshSession) ask(request []byte) ([]byte, error) {
	if s.agent == nil {
		conn, hangUp, err := s.f.connect(s.ctx)
		if err != nil {
			return nil, err
		}
		s.agent, s.hangUp = conn, hangUp
	}
	if err := writeSSH(s.agent, request); err != nil {
		return nil, err
	}
	return readSSH(s.agent)
}

// list asks the agent for its keys, and keeps those that the sandbox may use.
func (s *sshSession) list() error {
	answer, err := s.ask([]byte{sshRequestIdentities})
	if err != nil {
		return err
	}
	s.keys = nil
	if answer[0] == sshFailure && len(answer) == 1 { // as of an agent that is locked
		return nil
	}
	keys, err := decodeKeys(answer)
	if err != nil {
		return fmt.Errorf("the agent's answer: %w", err)
	}
	allowed := s.f.Agent.Keys
	s.keys = slices.DeleteFunc(keys, func(k sshKey) bool {
		return len(allowed) > 0 && !slices.Contains(allowed, k.print) && !slices.Contains(allowed, string(k.comment))
	})
	return nil
}

func (s *sshSession) find(blob []byte) (sshKey, bool) {
	i := slices.IndexFunc(s.keys, func(k sshKey) bool { return string(k.blob) == string(blob) })
	if i < 0 {
		return sshKey{}, false
	}
	return s.keys[i], true
}

// sign has something signed.
func (s *sshSession) sign(body []byte) ([]byte, error) {
	const what = "sign"
	p := parser{rest: body}
	blob, data, flags := p.text(), p.text(), p.number()
	const known = 1<<1 | 1<<2 // SHA-256 or SHA-512 for RSA
	if p.failed || len(p.rest) > 0 || flags&^known != 0 {
		s.f.refuse(what, malformed)
		return nil, nil
	}
	key, there := s.find(blob)
	if !there {
		if err := s.list(); err != nil {
			return nil, err
		}
		if key, there = s.find(blob); !there {
			s.f.refuse(what, notThisKey)
			return nil, nil
		}
	}
	request := appendText(appendText([]byte{sshSignRequest}, key.blob), data)
	answer, err := s.ask(binary.BigEndian.AppendUint32(request, flags))
	if err != nil {
		return nil, err
	}
	p = parser{rest: answer[1:]}
	if signature := p.text(); answer[0] == sshSignResponse && !p.failed && len(p.rest) == 0 {
		sum := sha256.Sum256(data)
		use := Use{Request: what, Key: key.print, Comment: string(key.comment), Purpose: purpose(data), Digest: "sha256:" + hex.EncodeToString(sum[:])}
		if err := s.f.used(s.ctx, use); err != nil {
			return nil, err
		}
		return appendText([]byte{sshSignResponse}, signature), nil
	}
	s.f.refuse(what, agentRefuses)
	return nil, nil
}

// purpose says what data is that is signed, as far as it says so itself: a signature of ssh-keygen (PROTOCOL.sshsig), or a
// login (RFC 4252, and PROTOCOL of OpenSSH).
func purpose(data []byte) string {
	if rest, ok := bytes.CutPrefix(data, []byte("SSHSIG")); ok {
		p := parser{rest: rest}
		if name := p.text(); !p.failed {
			return "signature for " + clip(name)
		}
		return ""
	}
	const request = 50
	p := parser{rest: data}
	p.text() // the session
	if p.octet() != request {
		return ""
	}
	user, service, method := p.text(), p.text(), p.text()
	bound := string(method) == "publickey-hostbound-v00@openssh.com"
	if p.failed || string(service) != "ssh-connection" || string(method) != "publickey" && !bound {
		return ""
	}
	what := "login as " + clip(user)
	p.octet()
	p.text() // the algorithm
	p.text() // the key
	if host := p.text(); bound && !p.failed {
		what += " at the host with the key " + fingerprint(host)
	}
	return what
}

// clip bounds a text of the sandbox.
func clip(text []byte) string { return string(text[:min(len(text), 64)]) }

// bind passes on for which session of SSH the signatures to come are.
func (s *sshSession) bind(body []byte) ([]byte, error) {
	p := parser{rest: body}
	if name := p.text(); p.failed || string(name) != sshBind {
		s.f.refuse("an extension", notForwarded)
		return nil, nil
	}
	host, session, signature, forwarding := p.text(), p.text(), p.text(), p.octet()
	if p.failed || len(p.rest) > 0 || len(body) > sshMaxBind || len(session) > sshMaxSession || forwarding > 1 {
		s.f.refuse("bind a session", malformed)
		return nil, nil
	}
	request := appendText([]byte{sshExtension}, []byte(sshBind))
	for _, part := range [][]byte{host, session, signature} {
		request = appendText(request, part)
	}
	answer, err := s.ask(append(request, forwarding))
	if err != nil {
		return nil, err
	}
	s.keys = nil // an agent lists others after it
	if len(answer) == 1 && answer[0] == sshSuccess {
		return answer, nil
	}
	return nil, nil // as of an agent that does not know it, after which clients go on
}

// readSSH reads one message.
func readSSH(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n == 0 || n > sshMaxMessage {
		return nil, errMessage
	}
	message := make([]byte, n)
	if _, err := io.ReadFull(r, message); err != nil {
		return nil, err
	}
	return message, nil
}

// writeSSH writes one message.
func writeSSH(w io.Writer, message []byte) error {
	if len(message) > sshMaxMessage {
		return errMessage
	}
	_, err := w.Write(append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(message)), uint32(len(message))), message...))
	return err
}

// A parser takes values of the SSH wire format from the beginning of rest. After a failure all values are empty.
type parser struct {
	rest   []byte
	failed bool
}

func (p *parser) number() uint32 {
	if p.failed || len(p.rest) < 4 {
		p.failed = true
		return 0
	}
	n := binary.BigEndian.Uint32(p.rest)
	p.rest = p.rest[4:]
	return n
}

func (p *parser) octet() byte {
	if p.failed || len(p.rest) < 1 {
		p.failed = true
		return 0
	}
	b := p.rest[0]
	p.rest = p.rest[1:]
	return b
}

func (p *parser) text() []byte {
	n := p.number()
	if p.failed || uint64(n) > uint64(len(p.rest)) {
		p.failed = true
		return nil
	}
	text := p.rest[:n]
	p.rest = p.rest[n:]
	return text
}

func appendText(to, text []byte) []byte {
	return append(binary.BigEndian.AppendUint32(to, uint32(len(text))), text...)
}

// decodeKeys reads an answer with keys.
func decodeKeys(answer []byte) ([]sshKey, error) {
	if len(answer) == 0 || answer[0] != sshIdentitiesAnswer {
		return nil, errParse
	}
	p := parser{rest: answer[1:]}
	n := p.number()
	if p.failed || n > sshMaxKeys {
		return nil, errParse
	}
	keys := make([]sshKey, 0, n)
	for range n {
		k := sshKey{blob: p.text(), comment: p.text()}
		if p.failed {
			return nil, errParse
		}
		k.print = fingerprint(k.blob)
		keys = append(keys, k)
	}
	if len(p.rest) > 0 {
		return nil, errParse
	}
	return keys, nil
}

func encodeKeys(keys []sshKey) []byte {
	answer := binary.BigEndian.AppendUint32([]byte{sshIdentitiesAnswer}, uint32(len(keys)))
	for _, k := range keys {
		answer = appendText(appendText(answer, k.blob), k.comment)
	}
	return answer
}

// fingerprint returns what ssh-add -l prints: of a certificate, that of the key in it.
func fingerprint(blob []byte) string {
	if plain, ok := certified(blob); ok {
		blob = plain
	}
	sum := sha256.Sum256(blob)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// certified returns the key in a certificate. It has the fields of the certificate that follow a random number, as many
// as keys of the type have.
func certified(blob []byte) ([]byte, bool) {
	p := parser{rest: blob}
	kind, ok := strings.CutSuffix(string(p.text()), "-cert-v01@openssh.com")
	if !ok {
		return nil, false
	}
	plain := kind
	fields := 0
	switch {
	case kind == "ssh-ed25519":
		fields = 1
	case kind == "ssh-rsa" || strings.HasPrefix(kind, "ecdsa-sha2-"):
		fields = 2
	case kind == "sk-ssh-ed25519":
		fields, plain = 2, kind+"@openssh.com"
	case strings.HasPrefix(kind, "sk-ecdsa-sha2-"):
		fields, plain = 3, kind+"@openssh.com"
	case kind == "ssh-dss":
		fields = 4
	default:
		return nil, false
	}
	p.text() // random
	key := appendText(nil, []byte(plain))
	for range fields {
		key = appendText(key, p.text())
	}
	return key, !p.failed
}
