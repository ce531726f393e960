package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A home is where a caller's own server lives: a directory of theirs alone, with
// the socket, the log, and two directories that serve as locks.
type home struct{ dir string }

func (h home) socket() string { return filepath.Join(h.dir, "socket") }
func (h home) log() string    { return filepath.Join(h.dir, "log") }
func (h home) start() string  { return filepath.Join(h.dir, "start") } // locked by who starts the server
func (h home) life() string   { return filepath.Join(h.dir, "life") }  // locked by the server

// homeOf gives the place of the caller's own server: in PADDOCK_STATE, or beside
// what sandboxes of the caller leave while they live.
func homeOf(lookup func(string) (string, bool)) (home, error) {
	if dir, _ := lookup("PADDOCK_STATE"); dir != "" {
		if !filepath.IsAbs(dir) {
			return home{}, WithHint(fmt.Errorf("PADDOCK_STATE=%s is not absolute: %w", dir, paddock.Invalid), "write it from /")
		}
		return home{filepath.Join(dir, "server")}, nil
	}
	if os.Geteuid() == 0 {
		return home{"/run/paddock/server"}, nil
	}
	if dir, _ := lookup("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return home{filepath.Join(dir, "paddock", "server")}, nil
	}
	return home{filepath.Join(os.TempDir(), "paddock-"+strconv.Itoa(os.Geteuid()), "server")}, nil
}

// make makes the directories, and refuses those that somebody else made or may
// enter: in a directory for everyone anybody could have been first.
func (h home) make() error {
	for _, dir := range []string{filepath.Dir(h.dir), h.dir, h.start(), h.life()} {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return WithHint(fmt.Errorf("a place for a server of your own: %w: %w", err, paddock.Unavailable), "set XDG_RUNTIME_DIR to a directory of yours, or use a server: --server, PADDOCK_SERVER, paddock login")
		}
		if err := h.owned(dir); err != nil {
			return err
		}
	}
	return nil
}

// owned tells whether a directory is the caller's, and nobody else may enter it.
func (h home) owned(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("a place for a server of your own: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	why := ""
	switch {
	case !ok || !info.IsDir():
		why = "is no directory"
	case int(st.Uid) != os.Geteuid():
		why = "belongs to another user"
	case dir == h.dir && info.Mode().Perm()&0o077 != 0, info.Mode().Perm()&0o022 != 0:
		why = fmt.Sprintf("is open to others (%#o)", info.Mode().Perm())
	}
	if why == "" {
		return nil
	}
	return WithHint(fmt.Errorf("a place for a server of your own: %s %s: %w", dir, why, paddock.Denied), "remove it, or have XDG_RUNTIME_DIR name a directory of yours")
}

// answers reports whether a server listens, is the caller's, and answers.
func (h home) answers() bool {
	c, err := net.Dial("unix", h.socket())
	if err != nil {
		return false
	}
	defer c.Close()
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	if uid, err := sys.PeerUID(u); err != nil || uid != os.Geteuid() {
		return false
	}
	// A server that was just killed takes connections until the kernel closes its socket, and answers none.
	if u.SetDeadline(time.Now().Add(Patience)) != nil {
		return false
	}
	if _, err := io.WriteString(u, "HEAD / HTTP/1.1\r\nHost: paddock\r\nConnection: close\r\n\r\n"); err != nil {
		return false
	}
	n, _ := u.Read(make([]byte, 1))
	return n == 1
}

// runningPrivate gives the address of the caller's own server if it runs.
func (a *App) runningPrivate() (string, error) {
	h, err := homeOf(a.Lookup)
	if err != nil {
		return "", err
	}
	if h.owned(h.dir) == nil && h.answers() {
		return "unix:" + h.socket(), nil
	}
	return "", fmt.Errorf("no server of your own runs: %w", paddock.Unavailable)
}

// startPrivate gives the address of the caller's own server, and starts one where
// there is none. Of several callers at once one starts it, and the others wait.
func (a *App) startPrivate(ctx context.Context) (string, error) {
	if address, err := a.runningPrivate(); err == nil {
		return address, nil
	}
	h, err := homeOf(a.Lookup)
	if err != nil {
		return "", err
	}
	if err := h.make(); err != nil {
		return "", err
	}
	lock, err := sys.LockDir(ctx, h.start())
	if err != nil {
		return "", fmt.Errorf("start a server of your own: %w", err)
	}
	defer lock.Close()
	if address, err := a.runningPrivate(); err == nil {
		return address, nil // somebody else has started it meanwhile
	}
	return "unix:" + h.socket(), h.spawn(ctx, a.Installed)
}

// spawn starts the server, of the program that was installed, and waits until it says that it is ready.
func (h home) spawn(ctx context.Context, installed string) error {
	exe, err := installed, error(nil)
	if exe == "" {
		exe, err = os.Executable()
	}
	if err != nil {
		return fmt.Errorf("start a server of your own: %w", err)
	}
	log, err := os.OpenFile(h.log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("start a server of your own: %w", err)
	}
	defer log.Close()
	before, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("start a server of your own: %w", err)
	}
	ready, theirs, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start a server of your own: %w", err)
	}
	defer ready.Close()
	cmd := exec.Command(exe, "serve", "--private")
	cmd.Args[0] = "paddock" // the path may be a descriptor's
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", theirs, log
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PADDOCK_") && !strings.HasPrefix(v, "PADDOCK_STATE=") // keys, and other servers, are none of its affair
	})
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it has no terminal, and hears none of its signals
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		return fmt.Errorf("start a server of your own: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Now()) })
	defer stop()
	line, err := bufio.NewReader(io.LimitReader(ready, 4096)).ReadString('\n')
	switch {
	case err == nil && line != "":
		return cmd.Process.Release() // it is nobody's child from here on
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), cmd.Process.Release()) // it starts, and leaves when nobody comes
	}
	state := cmd.Wait()
	return WithHint(fmt.Errorf("a server of your own did not start: %s: %w", h.lastWords(before, state), paddock.Unavailable), "its log is %s; paddock doctor tells what this machine can do", h.log())
}

// lastWords gives what the server said last, or how it ended.
func (h home) lastWords(from int64, state error) string {
	f, err := os.Open(h.log())
	if err != nil {
		return fmt.Sprint(state)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() < from {
		from = 0 // it was begun anew
	}
	data, err := io.ReadAll(io.NewSectionReader(f, from, 64<<10))
	if err != nil {
		return fmt.Sprint(state)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	for _, line := range slices.Backward(lines) {
		if text, ok := strings.CutPrefix(line, "paddock: "); ok {
			return text
		}
	}
	return fmt.Sprint(state)
}

// maxLog is how large the log of a caller's own server gets before it is begun
// anew.
const maxLog = 1 << 20

// A SmallLog writes to a file and truncates it when it exceeds 1 MiB. Other writers of the file
// must append.
type SmallLog struct{ File *os.File }

func (l SmallLog) Write(p []byte) (int, error) {
	if at, err := l.File.Seek(0, io.SeekEnd); err == nil && at > maxLog {
		_ = l.File.Truncate(0) // where that fails it grows on
	}
	return l.File.Write(p)
}

// ListenPrivate listens on the socket of the caller's own server, to which only that user can
// connect. It first waits until an earlier server has ended. Call release when the server has
// ended, so that a next one can start.
func ListenPrivate(ctx context.Context, lookup func(string) (string, bool)) (l net.Listener, release func(), err error) {
	h, err := homeOf(lookup)
	if err != nil {
		return nil, nil, err
	}
	if err := h.make(); err != nil {
		return nil, nil, err
	}
	lock, err := sys.LockDir(ctx, h.life())
	if err != nil {
		return nil, nil, fmt.Errorf("wait for an earlier server of your own to end: %w", err)
	}
	if l, err = ListenUnix(h.socket()); err != nil {
		lock.Close()
		return nil, nil, err
	}
	return l, func() { lock.Close() }, nil
}

// ListenUnix listens on a Unix socket to which only its owner can connect. It replaces the socket
// file of a server that has ended.
func ListenUnix(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode().Type() != fs.ModeSocket {
			return nil, WithHint(fmt.Errorf("listen on %s: it is there, and is no socket: %w", path, paddock.Exists), "name another path")
		}
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			return nil, WithHint(fmt.Errorf("listen on %s: another server does: %w", path, paddock.Conflict), "name another path, or end that one")
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("listen on %s: %w: %w", path, err, paddock.Denied)
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w: %w", path, err, paddock.Denied)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on %s: %w", path, err), l.Close())
	}
	return &ownSocket{UnixListener: l, uid: os.Geteuid()}, nil
}

// An ownSocket accepts its own user alone, whoever may open the file: between its
// making and its mode there is a moment.
type ownSocket struct {
	*net.UnixListener
	uid int
}

func (l *ownSocket) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if uid, err := sys.PeerUID(c); err == nil && uid == l.uid {
			return c, nil
		}
		c.Close()
	}
}
