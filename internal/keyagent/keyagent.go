package keyagent

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of a spec.
const (
	maxKeys    = 64  // names of keys
	maxKeyName = 256 // bytes of a name
)

// Check refuses key agents that are wrong by themselves. An error has the kind Invalid.
func Check(agents []paddock.KeyAgent) error {
	for i, a := range agents {
		if a.Kind != paddock.KeyAgentSSH && a.Kind != paddock.KeyAgentGPG {
			return fmt.Errorf("key agent %.64q: the kinds are %s and %s: %w", string(a.Kind), paddock.KeyAgentSSH, paddock.KeyAgentGPG, paddock.Invalid)
		}
		if slices.ContainsFunc(agents[:i], func(b paddock.KeyAgent) bool { return b.Kind == a.Kind }) {
			return fmt.Errorf("key agent %s: it is there twice: %w", a.Kind, paddock.Invalid)
		}
		if !path.IsAbs(a.Socket) || strings.ContainsRune(a.Socket, 0) || path.Clean(a.Socket) != a.Socket {
			return fmt.Errorf("key agent %s: the socket %.200q is not an absolute path in its shortest form: %w", a.Kind, a.Socket, paddock.Invalid)
		}
		if len(a.Keys) > maxKeys {
			return fmt.Errorf("key agent %s: %d keys, at most %d: %w", a.Kind, len(a.Keys), maxKeys, paddock.Invalid)
		}
		for _, key := range a.Keys {
			if err := CheckKey(a.Kind, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckKey refuses a text that cannot name a key. An error has the kind Invalid.
func CheckKey(kind paddock.KeyAgentKind, key string) error {
	switch {
	case key == "" || len(key) > maxKeyName || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("key agent %s: %.64q cannot name a key: %w", kind, key, paddock.Invalid)
	case kind == paddock.KeyAgentGPG && !isKeygrip(key):
		return fmt.Errorf("key agent gpg: %.64q is no keygrip, which has 40 hexadecimal digits (gpg --list-secret-keys --with-keygrip): %w", key, paddock.Invalid)
	}
	return nil
}

// isKeygrip reports whether a text is GnuPG's name of a key pair.
func isKeygrip(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 20
}

// A Use is what a sandbox asked a key agent to do with a key, or a request that was refused.
type Use struct {
	Time    time.Time
	Agent   paddock.KeyAgentKind
	Request string // "sign", "decrypt", "add a key", …: one of a few fixed texts
	Key     string // fingerprint or keygrip; empty where the request names no key
	Comment string // of the key, as the agent of the caller has it
	Purpose string // what is signed, in words, as far as that says so itself; the sandbox chose it
	Digest  string // of what is signed: the name of a hash, a colon and its value in hexadecimal
	Refused string // why it was not done, one of a few fixed texts; empty if it was
	Count   int    // how many equal refusals this one stands for
}

// Requests that are more than these wait.
const (
	requestRate  = 200 // in a second, of one sandbox to one agent
	requestBurst = 400 // at once
)

// A Forwarder serves connections from one sandbox to one key agent.
type Forwarder struct {
	Agent   paddock.KeyAgent
	Sandbox string // its name, for a person who is asked

	// Dial connects to the agent of the caller.
	Dial func(ctx context.Context) (net.Conn, error)

	// Used is called with each use of a key after it was done. The sandbox gets the answer if no error is returned, and
	// not before. It may be called concurrently.
	Used func(ctx context.Context, use Use) error

	// Refused is called with refusals. It may be called concurrently.
	Refused func(Use)

	refusals refusals
	begin    sync.Once
	rate     *rate.Limiter // of all connections; set by begin
}

// Serve answers the requests on a connection from the sandbox until that, the agent's connection or ctx ends. It closes
// the connection.
func (f *Forwarder) Serve(ctx context.Context, guest net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { guest.Close() })() // also ends a read that waits
	defer guest.Close()
	switch f.Agent.Kind {
	case paddock.KeyAgentSSH:
		s := &sshSession{f: f, ctx: ctx, guest: guest}
		defer s.close()
		s.serve()
	case paddock.KeyAgentGPG:
		f.serveGPG(ctx, guest)
	}
}

// pace waits until one more request may be served. Without it a sandbox would keep the caller's agent, and processors
// that are not its own, as busy as it likes, and would turn over the record of what it signed.
func (f *Forwarder) pace(ctx context.Context) error {
	f.begin.Do(func() { f.rate = rate.NewLimiter(requestRate, requestBurst) })
	return f.rate.Wait(ctx)
}

// connect dials the agent. The connection ends with ctx, or when hangUp is called.
func (f *Forwarder) connect(ctx context.Context) (conn net.Conn, hangUp func(), err error) {
	conn, err = f.Dial(ctx)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	return conn, func() {
		stop()
		conn.Close()
	}, nil
}

// used reports that a key was used.
func (f *Forwarder) used(ctx context.Context, use Use) error {
	use.Time, use.Agent, use.Count = time.Now(), f.Agent.Kind, 1
	return f.Used(ctx, use)
}

// refuse reports that a request was refused. Equal ones are reported together, once a second, because the sandbox can
// send many.
func (f *Forwarder) refuse(request, why string) {
	now := time.Now()
	if n := f.refusals.due(request+"\x00"+why, now); n > 0 {
		f.Refused(Use{Time: now, Agent: f.Agent.Kind, Request: request, Refused: why, Count: n})
	}
}

// End reports the refusals that were counted and not reported yet.
func (f *Forwarder) End() {
	now := time.Now()
	for key, n := range f.refusals.rest() {
		request, why, _ := strings.Cut(key, "\x00")
		f.Refused(Use{Time: now, Agent: f.Agent.Kind, Request: request, Refused: why, Count: n})
	}
}
