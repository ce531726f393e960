package box

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/keyagent"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

const (
	// keyAgentConnections is how many programs of a box are joined with one key agent at a time.
	keyAgentConnections = 16
	// keyAgentPause is the least time between two of them, and keyAgentRetry that after a connection to the box's agent
	// that failed, as while the box stands still.
	keyAgentPause = 5 * time.Millisecond
	keyAgentRetry = time.Second
)

// sshAuthSock is the variable by which programs find an agent of SSH.
const sshAuthSock = "SSH_AUTH_SOCK"

// placeKeyAgents finds a place inside for the sockets of key agents, and checks those outside.
func (l *Layout) placeKeyAgents(spec *paddock.Spec) error {
	for _, a := range spec.Policy.KeyAgents {
		for _, m := range l.Mounts {
			if m.Writable() && hostroot.Within(a.Socket, m.Source) {
				return fmt.Errorf("key agent %s: %s is in %s, which commands may change: %w", a.Kind, a.Socket, m.Source, paddock.Invalid)
			}
		}
		file, err := openKeyAgent(a.Socket)
		if err != nil {
			return fmt.Errorf("key agent %s: %w", a.Kind, err)
		}
		sys.Close(file)
		switch a.Kind {
		case paddock.KeyAgentSSH:
			if _, both := spec.Env[sshAuthSock]; both {
				return fmt.Errorf("key agent ssh: the environment has %s too: %w", sshAuthSock, paddock.Invalid)
			}
			if l.sshSocket = l.sshPlace(spec); l.sshSocket == "" {
				return fmt.Errorf("key agent ssh: mounts or rules cover every directory of the sandbox's own: %w", paddock.Unsupported)
			}
		case paddock.KeyAgentGPG:
			if home := l.Config.User.Home; spec.Root.Kind == paddock.RootOpen || !l.free(spec, filepath.Dir(gpgSocket(home))) {
				return fmt.Errorf("key agent gpg: %s is not the sandbox's own, because its home is shown from the host: %w", filepath.Dir(gpgSocket(home)), paddock.Unsupported)
			}
		}
	}
	return nil
}

// sshPlace returns where the socket is inside; empty if there is no place.
func (l *Layout) sshPlace(spec *paddock.Spec) string {
	dirs := append([]string{"/run"}, hostroot.PrivateDirs()...)
	if spec.Root.Kind == paddock.RootOpen { // the others are the host's
		dirs = []string{"/dev/shm"}
	}
	for _, dir := range dirs {
		if at := filepath.Join(dir, "paddock"); l.free(spec, at) {
			return filepath.Join(at, "ssh-agent.sock")
		}
	}
	return ""
}

// free reports whether a directory of the box's own is neither covered nor used by a mount or a rule.
func (l *Layout) free(spec *paddock.Spec, dir string) bool {
	meets := func(path string) bool {
		return path != "/" && (hostroot.Within(dir, path) || hostroot.Within(path, dir))
	}
	f := spec.Policy.Files
	return !slices.ContainsFunc(l.Mounts, func(m boxinit.Mount) bool { return meets(m.Target) }) &&
		!slices.ContainsFunc(slices.Concat(f.DenyRead, f.DenyWrite), func(p string) bool { return meets(filepath.Clean(p)) })
}

// gpgSocket returns where gpg looks for its agent.
func gpgSocket(home string) string { return filepath.Join(home, ".gnupg", "S.gpg-agent") }

// openKeyAgent opens the socket file of a key agent with O_PATH. It follows no link.
func openKeyAgent(socket string) (int, error) {
	file, err := sys.ResolvePlain(socket)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", socket, notThere(err))
	}
	st, err := sys.StatAt(file, "")
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", socket, notThere(err))
	case st.Mode&sys.TypeMask != sys.TypeSocket:
		err = fmt.Errorf("%s is no socket: %w", socket, paddock.Invalid)
	case st.UID != uint32(os.Geteuid()):
		err = fmt.Errorf("%s belongs to user %d, and not to the caller: %w", socket, st.UID, paddock.Denied)
	}
	if err != nil {
		sys.Close(file)
		return -1, err
	}
	return file, nil
}

// dialKeyAgent connects to a key agent. The checked file and the one that is connected to are the same.
func dialKeyAgent(ctx context.Context, socket string) (net.Conn, error) {
	file, err := openKeyAgent(socket)
	if err != nil {
		return nil, err
	}
	defer sys.Close(file)
	var d net.Dialer
	return d.DialContext(ctx, "unix", "/proc/self/fd/"+strconv.Itoa(file))
}

// forward makes the sockets inside by which commands use key agents of the caller. They are served until the box ends.
func (m *making) forward(ctx context.Context) error {
	for _, a := range m.p.Policy.KeyAgents {
		path := m.p.Layout.Config.Env[sshAuthSock]
		if a.Kind == paddock.KeyAgentGPG {
			path = gpgSocket(m.p.Layout.Config.User.Home)
		}
		conn, err := m.b.listenAt(ctx, path)
		if err != nil {
			return fmt.Errorf("forward the agent of %s: %w", a.Kind, err)
		}
		f := &keyagent.Forwarder{
			Agent: a, Sandbox: m.p.Name, Used: m.b.usedKey, Refused: m.b.refusedKey,
			Dial: func(ctx context.Context) (net.Conn, error) { return dialKeyAgent(ctx, a.Socket) },
		}
		m.b.wg.Go(func() { m.b.serveKeys(f, path, conn) })
	}
	return nil
}

// listenAt returns a connection that waits for a program which connects to a socket in the box.
func (b *Box) listenAt(ctx context.Context, path string) (net.Conn, error) {
	f, err := b.connect()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return conn, guestclient.Listen(ctx, conn, path)
}

// serveKeys serves the programs that connect to a socket in the box, until the box ends. conn waits for the first one.
func (b *Box) serveKeys(f *keyagent.Forwarder, path string, conn net.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-b.ended // which it always does: this function is waited for after it
		cancel()
	}()
	var serving sync.WaitGroup
	defer func() {
		cancel()
		serving.Wait()
		f.End()
	}()
	room := make(chan struct{}, keyAgentConnections)
	for {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			if conn != nil {
				conn.Close()
			}
			return
		}
		var err error
		if conn == nil {
			conn, err = b.listenAt(ctx, path)
		}
		if err == nil {
			waits := conn // ended does not wait for the function
			ended := context.AfterFunc(ctx, func() { waits.Close() })
			err = guestclient.Came(waits)
			ended()
		}
		pause := keyAgentPause
		if err == nil {
			program := conn
			serving.Go(func() {
				defer func() { <-room }()
				f.Serve(ctx, program)
			})
		} else {
			if conn != nil {
				conn.Close()
			}
			<-room
			pause = keyAgentRetry
		}
		conn = nil
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// usedKey records the use of a key. An error means that it could not be recorded.
func (b *Box) usedKey(ctx context.Context, u keyagent.Use) error {
	e := b.keyEvent(u, "allow")
	switch sink := b.plan.Audit.(type) {
	case nil:
	case audit.Keeper: // else a sandbox could hide it among other events
		return sink.Keep(ctx, e)
	default:
		sink.Record(e)
	}
	return nil
}

// refusedKey records refusals.
func (b *Box) refusedKey(u keyagent.Use) {
	if b.plan.refusedKeys != nil {
		b.plan.refusedKeys.add(u)
	}
	for _, sink := range []audit.Sink{b.plan.Audit, b.plan.follower} {
		if sink != nil {
			sink.Record(b.keyEvent(u, "deny"))
		}
	}
}

func (b *Box) keyEvent(u keyagent.Use, verdict string) audit.Event {
	use := &audit.KeyUse{Agent: string(u.Agent), Request: u.Request, Key: u.Key, Comment: u.Comment, Verdict: verdict, Reason: u.Refused, Purpose: u.Purpose, Digest: u.Digest}
	if u.Count > 1 {
		use.Count = int64(u.Count)
	}
	return audit.Event{Time: u.Time, Sandbox: b.plan.Name, Kind: audit.KeyAgent, KeyUse: use}
}

// refusedKeys are the refused requests to key agents. There are few kinds of them.
type refusedKeys struct {
	mu   sync.Mutex
	list []paddock.Refusal // guarded by mu
}

func (r *refusedKeys) add(u keyagent.Use) {
	what := string(u.Agent) + "-agent"
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.list {
		if o := &r.list[i]; o.What == what && o.Target == u.Request && o.Rule == u.Refused {
			o.Count, o.Time = min(o.Count+u.Count, 1<<31-1), u.Time
			return
		}
	}
	r.list = append(r.list, paddock.Refusal{Time: u.Time, What: what, Target: u.Request, Rule: u.Refused, Count: u.Count})
}

// all returns them. Nil has none.
func (r *refusedKeys) all() []paddock.Refusal {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}
