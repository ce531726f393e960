package daytona

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// Sessions live inside: a shell reads lines from its standard input, and each command has a directory with its text, its
// output and its exit. So no session is lost with the server, and any server of the sandbox goes on with it. A guest can
// write what it likes there: it is its own, and read as bounded text.
const (
	sessionTop    = "/tmp/.paddock-daytona"
	sessionShell  = "paddock-session"
	maxSessionID  = 256
	maxSessions   = 1000
	maxCommands   = 10_000
	maxSmallFile  = 4 << 10
	fileName      = "name"
	fileCommand   = "command"
	fileOut       = "stdout"
	fileErr       = "stderr"
	fileExit      = "exit"
	pollFirst     = time.Millisecond
	pollLast      = 50 * time.Millisecond
	followTimeout = time.Minute // that a client may take for a message
)

// sessionDir is where a session is. An ID is any text, and no part of a path.
func sessionDir(id string) string {
	sum := sha256.Sum256([]byte(id))
	return sessionTop + "/" + hex.EncodeToString(sum[:16])
}

// A told command is one of a session, as clients see it.
type toldCommand struct {
	ID       string `json:"id"`
	Command  string `json:"command"`
	ExitCode *int   `json:"exitCode,omitempty"`
}

type toldSession struct {
	SessionID string        `json:"sessionId"`
	Commands  []toldCommand `json:"commands"`
}

func noSession(id string) error {
	return refuse(404, paddock.NotFound, "session %s not found", dialect.Printable(id))
}

// small reads a file of a few bytes; empty if there is none.
func (c *call) small(sb paddock.Sandbox, name string, most int64) (string, error) {
	r, err := sb.FS().Open(c.ctx, name, paddock.OpenOptions{Length: most})
	if errors.Is(err, paddock.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, most))
	return string(data), err
}

// put writes a file.
func (c *call) put(sb paddock.Sandbox, name, text string) error {
	w, err := sb.FS().Create(c.ctx, name, paddock.CreateOptions{Mode: 0o600})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	return errors.Join(err, w.Close())
}

// makeSession handles POST …/process/session.
func (c *call) makeSession() error {
	var q struct {
		SessionID string `json:"sessionId"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if q.SessionID == "" || len(q.SessionID) > maxSessionID {
		return invalid("sessionId has 1 to %d bytes", maxSessionID)
	}
	sb, rec, err := c.opened(true)
	if err != nil {
		return err
	}
	dir := sessionDir(q.SessionID)
	if _, err := sb.FS().Stat(c.ctx, dir); err == nil {
		return refuse(http.StatusConflict, paddock.Exists, "session %s already exists", dialect.Printable(q.SessionID))
	}
	if err := sb.FS().Mkdir(c.ctx, dir, paddock.MkdirOptions{Parents: true, Mode: 0o700}); err != nil {
		return err
	}
	if err := c.put(sb, dir+"/"+fileName, q.SessionID); err != nil {
		return err
	}
	p, err := sb.Start(c.ctx, paddock.Cmd{Args: []string{"sh", "-c", shell, sessionShell, dir}, Env: rec.env(nil), Dir: rec.Dir, Input: true, Output: paddock.Output{Detached: true}})
	if err != nil {
		return errors.Join(err, sb.FS().Remove(context.WithoutCancel(c.ctx), dir, true))
	}
	p.Release()
	return c.nothing(http.StatusCreated)
}

// shellOf returns the process of a session's shell. NotFound means that it has ended.
func (c *call) shellOf(sb paddock.Sandbox, dir string) (paddock.ProcessInfo, error) {
	list, err := sb.Processes(c.ctx)
	if err != nil {
		return paddock.ProcessInfo{}, err
	}
	for _, i := range slices.Backward(list) {
		if len(i.Args) == 5 && i.Args[3] == sessionShell && i.Args[4] == dir {
			return i, nil
		}
	}
	return paddock.ProcessInfo{}, fmt.Errorf("the session's shell: %w", paddock.NotFound)
}

// inSession finds the session that the path names.
func (c *call) inSession() (sb paddock.Sandbox, dir string, err error) {
	sb, _, err = c.opened(true)
	if err != nil {
		return nil, "", err
	}
	dir = sessionDir(c.PathValue("sid"))
	if _, err := sb.FS().Stat(c.ctx, dir); errors.Is(err, paddock.NotFound) {
		return nil, "", noSession(c.PathValue("sid"))
	} else if err != nil {
		return nil, "", err
	}
	return sb, dir, nil
}

// sessions handles GET …/process/session.
func (c *call) sessions() error {
	sb, _, err := c.opened(true)
	if err != nil {
		return err
	}
	all := []toldSession{}
	for st, err := range sb.FS().List(c.ctx, sessionTop, 1) {
		if errors.Is(err, paddock.NotFound) {
			break
		}
		if err != nil {
			return err
		}
		name, err := c.small(sb, st.Name+"/"+fileName, maxSessionID)
		if err != nil {
			return err
		}
		if name == "" || sessionDir(name) != st.Name || len(all) == maxSessions {
			continue
		}
		one, err := c.tellSession(sb, name)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	return c.json(http.StatusOK, all)
}

func (c *call) session() error {
	sb, _, err := c.inSession()
	if err != nil {
		return err
	}
	one, err := c.tellSession(sb, c.PathValue("sid"))
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, one)
}

// tellSession describes a session with its commands.
func (c *call) tellSession(sb paddock.Sandbox, id string) (toldSession, error) {
	s := toldSession{SessionID: id, Commands: []toldCommand{}}
	var names []string
	for st, err := range sb.FS().List(c.ctx, sessionDir(id), 1) {
		if err != nil {
			return s, err
		}
		if st.Mode.IsDir() && len(names) < maxCommands {
			names = append(names, path.Base(st.Name))
		}
	}
	slices.Sort(names) // an ID begins with its time
	for _, name := range names {
		one, err := c.tellCommand(sb, sessionDir(id), name)
		if err != nil {
			return s, err
		}
		s.Commands = append(s.Commands, one)
	}
	return s, nil
}

// tellCommand describes a command. One that ended with its shell has the shell's code.
func (c *call) tellCommand(sb paddock.Sandbox, dir, id string) (toldCommand, error) {
	t := toldCommand{ID: id}
	text, err := c.small(sb, dir+"/"+id+"/"+fileCommand, maxArgument)
	if err != nil {
		return t, err
	}
	t.Command = strings.ToValidUTF8(text, "\ufffd")
	if err := c.place.Hold(int64(len(text))); err != nil {
		return t, err
	}
	code, done, err := c.exitOf(sb, dir, id)
	if done {
		t.ExitCode = &code
	}
	return t, err
}

// exitOf returns the exit of a command, if it has ended.
func (c *call) exitOf(sb paddock.Sandbox, dir, id string) (code int, done bool, err error) {
	text, err := c.small(sb, dir+"/"+id+"/"+fileExit, maxSmallFile)
	if err != nil {
		return 0, false, err
	}
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
		return n, true, nil
	}
	i, err := c.shellOf(sb, dir)
	switch {
	case errors.Is(err, paddock.NotFound):
		return -1, true, nil
	case err != nil:
		return 0, false, err
	case i.Exit != nil:
		// It may have ended with its shell, or just before.
		if text, err = c.small(sb, dir+"/"+id+"/"+fileExit, maxSmallFile); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
				return n, true, nil
			}
		}
		return i.Exit.Code, true, err
	}
	return 0, false, nil
}

// removeSession handles DELETE …/process/session/{sid}: what runs in it ends.
func (c *call) removeSession() error {
	sb, dir, err := c.inSession()
	if err != nil {
		return err
	}
	i, err := c.shellOf(sb, dir)
	if err == nil && i.Exit == nil {
		err = c.kill(sb, i.PID)
	}
	if err != nil && !errors.Is(err, paddock.NotFound) {
		return err
	}
	if err := sb.FS().Remove(c.ctx, dir, true); err != nil {
		return err
	}
	return c.nothing(http.StatusNoContent)
}

// kill ends the process group of a command.
func (c *call) kill(sb paddock.Sandbox, pid paddock.PID) error {
	p, err := sb.Attach(c.ctx, pid, paddock.Output{Detached: true})
	if err != nil {
		return err
	}
	defer p.Release()
	return p.Signal(c.ctx, syscall.SIGKILL)
}

// feed writes to the standard input of a session's shell, which the command that it runs has too.
func (c *call) feed(sb paddock.Sandbox, dir, text string) error {
	ended := func() error {
		return coded(http.StatusGone, codeSessionEnded, paddock.NotFound, "the session's shell has ended: make another session")
	}
	i, err := c.shellOf(sb, dir)
	if errors.Is(err, paddock.NotFound) || err == nil && i.Exit != nil {
		return ended()
	}
	if err != nil {
		return err
	}
	p, err := sb.Attach(c.ctx, i.PID, paddock.Output{Detached: true})
	if errors.Is(err, paddock.NotFound) {
		return ended()
	}
	if err != nil {
		return err
	}
	defer p.Release()
	_, err = io.WriteString(p.Input(), text)
	return err
}

// commandID returns an ID that begins with its time, so that names are in order.
func (c *call) commandID() string {
	id := string(newID())
	return fmt.Sprintf("%012x-%s", c.h.now().UnixMicro(), id[len(id)-12:])
}

// sessionExec handles POST …/exec.
func (c *call) sessionExec() error {
	var q struct {
		Command  string `json:"command"`
		RunAsync bool   `json:"runAsync"`
		Async    bool   `json:"async"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if q.Command == "" {
		return invalid("command is required")
	}
	sb, dir, err := c.inSession()
	if err != nil {
		return err
	}
	id := c.commandID()
	at := dir + "/" + id
	if err := sb.FS().Mkdir(c.ctx, at, paddock.MkdirOptions{Mode: 0o700}); err != nil {
		return err
	}
	if err := c.put(sb, at+"/"+fileCommand, q.Command); err != nil {
		return err
	}
	// The braces are no subshell: what the command sets stays. Its exit is there as a whole, or not at all.
	line := fmt.Sprintf("{ command eval \"$(cat %[1]s/command)\"; } >%[1]s/stdout 2>%[1]s/stderr; echo $? >%[1]s/exit.new; command mv %[1]s/exit.new %[1]s/exit\n", at)
	if err := c.feed(sb, dir, line); err != nil {
		return err
	}
	if q.RunAsync || q.Async {
		return c.json(http.StatusAccepted, map[string]string{"cmdId": id})
	}
	code, err := c.await(sb, dir, id)
	if err != nil {
		return err
	}
	out, errs, err := c.logs(sb, at)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"cmdId": id, "output": out + errs, "stdout": out, "stderr": errs, "exitCode": code})
}

// await waits for the end of a command.
func (c *call) await(sb paddock.Sandbox, dir, id string) (int, error) {
	for wait := pollFirst; ; wait = min(2*wait, pollLast) {
		code, done, err := c.exitOf(sb, dir, id)
		if done || err != nil {
			return code, err
		}
		select {
		case <-time.After(wait):
		case <-c.ctx.Done():
			return 0, fmt.Errorf("the client has gone: %w", paddock.Canceled)
		case <-c.h.ctx.Done():
			return 0, fmt.Errorf("the server ends; the command goes on: %w", paddock.Unavailable)
		}
	}
}

// logs reads what a command has written.
func (c *call) logs(sb paddock.Sandbox, at string) (stdout, stderr string, err error) {
	read := func(name string) (string, error) {
		r, err := sb.FS().Open(c.ctx, at+"/"+name, paddock.OpenOptions{Length: maxOutput + 1})
		if errors.Is(err, paddock.NotFound) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		defer r.Close()
		to := &capture{place: c.place}
		_, err = io.Copy(to, r)
		return to.String(), err
	}
	if stdout, err = read(fileOut); err != nil {
		return "", "", err
	}
	stderr, err = read(fileErr)
	return stdout, stderr, err
}

// inCommand finds the command that the path names.
func (c *call) inCommand() (sb paddock.Sandbox, dir, id string, err error) {
	sb, dir, err = c.inSession()
	if err != nil {
		return nil, "", "", err
	}
	id = c.PathValue("cid")
	missing := refuse(404, paddock.NotFound, "command %s not found", dialect.Printable(id))
	if strings.Trim(id, "0123456789abcdef-") != "" || len(id) > 64 {
		return nil, "", "", missing
	}
	if _, err := sb.FS().Stat(c.ctx, dir+"/"+id+"/"+fileCommand); errors.Is(err, paddock.NotFound) {
		return nil, "", "", missing
	} else if err != nil {
		return nil, "", "", err
	}
	return sb, dir, id, nil
}

func (c *call) command() error {
	sb, dir, id, err := c.inCommand()
	if err != nil {
		return err
	}
	t, err := c.tellCommand(sb, dir, id)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, t)
}

// commandInput handles POST …/input.
func (c *call) commandInput() error {
	var q struct {
		Data string `json:"data"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	sb, dir, id, err := c.inCommand()
	if err != nil {
		return err
	}
	if _, done, err := c.exitOf(sb, dir, id); err != nil {
		return err
	} else if done {
		return coded(http.StatusGone, codeCommandCompleted, paddock.Conflict, "the command has ended")
	}
	if !strings.HasSuffix(q.Data, "\n") {
		q.Data += "\n"
	}
	if err := c.feed(sb, dir, q.Data); err != nil {
		return err
	}
	return c.nothing(http.StatusNoContent)
}

// commandLogs handles GET …/logs, and with follow a WebSocket.
func (c *call) commandLogs() error {
	sb, dir, id, err := c.inCommand()
	if err != nil {
		return err
	}
	if c.URL.Query().Get("follow") == "true" && strings.EqualFold(c.Header.Get("Upgrade"), "websocket") {
		return c.follow(sb, dir, id)
	}
	out, errs, err := c.logs(sb, dir+"/"+id)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]string{"output": out + errs, "stdout": out, "stderr": errs})
}

// Prefixes of a message of a followed log.
var (
	outPrefix = []byte{1, 1, 1}
	errPrefix = []byte{2, 2, 2}
)

// follow sends what a command writes until it ends.
func (c *call) follow(sb paddock.Sandbox, dir, id string) error {
	ws, err := c.upgrade()
	if err != nil {
		return nil // it has answered
	}
	defer ws.CloseNow() //nolint:errcheck // it is closed by then, or lost
	ctx := ws.CloseRead(c.ctx)
	var sent [2]int64
	pass := func() error {
		for i, name := range []string{fileOut, fileErr} {
			n, err := c.passOn(ctx, ws, sb, dir+"/"+id+"/"+name, sent[i], [][]byte{outPrefix, errPrefix}[i])
			sent[i] += n
			if err != nil {
				return err
			}
		}
		return nil
	}
	for {
		_, done, err := c.exitOf(sb, dir, id) // before the rest is read
		if err == nil {
			err = pass()
		}
		if err != nil {
			return ws.Close(websocket.StatusInternalError, "the log cannot be read any more")
		}
		if done {
			_ = ws.Close(websocket.StatusNormalClosure, "") // or the client has gone
			return nil
		}
		select {
		case <-time.After(pollLast):
		case <-ctx.Done():
			return nil
		case <-c.h.ctx.Done():
			_ = ws.Close(websocket.StatusGoingAway, "the server ends")
			return nil
		}
	}
}

// passOn sends what a file has behind an offset, and returns how much that was.
func (c *call) passOn(ctx context.Context, ws *websocket.Conn, sb paddock.Sandbox, name string, from int64, prefix []byte) (n int64, err error) {
	r, err := sb.FS().Open(ctx, name, paddock.OpenOptions{Offset: from})
	if errors.Is(err, paddock.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer r.Close()
	buf, done, err := c.h.o.Buffer(c.caller.Tenant)
	if err != nil {
		return 0, err
	}
	defer done()
	copy(buf, prefix)
	for {
		got, err := r.Read(buf[len(prefix):])
		if got > 0 {
			if err := send(ctx, ws, websocket.MessageBinary, buf[:len(prefix)+got]); err != nil {
				return n, err
			}
			n += int64(got)
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func send(ctx context.Context, ws *websocket.Conn, kind websocket.MessageType, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	return ws.Write(ctx, kind, data)
}

// upgrade accepts a WebSocket. Browsers cannot send the key in a header, so that no page of another origin gets here.
func (c *call) upgrade(protocols ...string) (*websocket.Conn, error) {
	dialect.Arrived(c.w)
	ws, err := websocket.Accept(c.w, c.Request, &websocket.AcceptOptions{Subprotocols: protocols, InsecureSkipVerify: true, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(1 << 20)
	return ws, nil
}
