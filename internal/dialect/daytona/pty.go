package daytona

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/coder/websocket"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// A terminal session is a process of the sandbox, whose arguments have its ID. So it goes on without this server, and any
// number of clients join it.
const (
	ptyShell  = "paddock-pty"
	maxPTYID  = 128
	maxCells  = 2000 // of rows and of columns
	usualRows = 24
	usualCols = 80

	// exitControl is the sub-protocol by which a client asks for the exit in the reason of the closing.
	exitControl = "X-Daytona-Pty-Exit-Control"
	envProtocol = "X-Daytona-Pty-Envs~" // and an object in JSON, in unpadded base64url
)

type ptyKey struct {
	box paddock.ID
	id  string
}

// A pty is what a process does not tell of itself.
type pty struct {
	size paddock.Size
	envs map[string]string
}

func (h *Handler) endPTYs(box paddock.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.ptys {
		if k.box == box {
			delete(h.ptys, k)
		}
	}
}

// ptysNow copies what is known of a sandbox's sessions.
func (h *Handler) ptysNow(box paddock.ID) map[ptyKey]*pty {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := map[ptyKey]*pty{}
	for k, p := range h.ptys {
		if k.box == box {
			now[k] = p
		}
	}
	return now
}

// sweepPTYs forgets those that have ended: known were there before the list of what runs was read. So no more is kept than a
// sandbox can have at a time.
func (h *Handler) sweepPTYs(known map[ptyKey]*pty, runs []paddock.ProcessInfo) {
	for k := range known {
		if slices.ContainsFunc(runs, func(i paddock.ProcessInfo) bool { return i.Args[4] == k.id }) {
			delete(known, k)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for k, p := range known {
		if h.ptys[k] == p { // or it is another one by now
			delete(h.ptys, k)
		}
	}
}

// A toldPTY is a session as clients see it.
type toldPTY struct {
	ID        string            `json:"id"`
	Active    bool              `json:"active"`
	Cols      uint16            `json:"cols"`
	Rows      uint16            `json:"rows"`
	Cwd       string            `json:"cwd"`
	Envs      map[string]string `json:"envs"`
	CreatedAt string            `json:"createdAt"`
	LazyStart bool              `json:"lazyStart"`
}

func (h *Handler) tellPTY(box paddock.ID, i paddock.ProcessInfo) toldPTY {
	h.mu.Lock()
	p, ok := h.ptys[ptyKey{box, i.Args[4]}]
	if !ok {
		p = &pty{}
	}
	h.mu.Unlock()
	t := toldPTY{ID: i.Args[4], Active: i.Exit == nil, Cols: p.size.Cols, Rows: p.size.Rows, Cwd: i.Dir, Envs: p.envs, CreatedAt: i.Started.UTC().Format("2006-01-02T15:04:05.000Z07:00")}
	if t.Cols == 0 {
		t.Cols, t.Rows = usualCols, usualRows
	}
	if t.Envs == nil {
		t.Envs = map[string]string{}
	}
	return t
}

func noPTY(id string) error {
	return refuse(404, paddock.NotFound, "PTY session %s not found", dialect.Printable(id))
}

// ptysOf lists the sessions that run.
func (c *call) ptysOf(sb paddock.Sandbox) ([]paddock.ProcessInfo, error) {
	list, err := sb.Processes(c.ctx)
	return slices.DeleteFunc(list, func(i paddock.ProcessInfo) bool {
		return len(i.Args) != 5 || i.Args[3] != ptyShell || i.Exit != nil
	}), err
}

// inPTY finds the session that the path names.
func (c *call) inPTY() (paddock.Sandbox, record, paddock.ProcessInfo, error) {
	sb, rec, err := c.opened(true)
	if err != nil {
		return nil, rec, paddock.ProcessInfo{}, err
	}
	list, err := c.ptysOf(sb)
	if err != nil {
		return nil, rec, paddock.ProcessInfo{}, err
	}
	for _, i := range list {
		if i.Args[4] == c.PathValue("sid") {
			return sb, rec, i, nil
		}
	}
	return nil, rec, paddock.ProcessInfo{}, noPTY(c.PathValue("sid"))
}

func (c *call) listPTY() error {
	sb, rec, err := c.opened(true)
	if err != nil {
		return err
	}
	list, err := c.ptysOf(sb)
	if err != nil {
		return err
	}
	all := []toldPTY{}
	for _, i := range list {
		all = append(all, c.h.tellPTY(rec.ID, i))
	}
	return c.json(http.StatusOK, map[string]any{"sessions": all})
}

func (c *call) getPTY() error {
	_, rec, i, err := c.inPTY()
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, c.h.tellPTY(rec.ID, i))
}

// A newPTY is what a client asks for.
type newPTY struct {
	ID   string            `json:"id"`
	Cols int               `json:"cols"`
	Rows int               `json:"rows"`
	Cwd  string            `json:"cwd"`
	Envs map[string]string `json:"envs"`
}

func (q newPTY) size() (paddock.Size, error) {
	if q.Cols < 0 || q.Cols > maxCells || q.Rows < 0 || q.Rows > maxCells {
		return paddock.Size{}, invalid("cols and rows are numbers up to %d", maxCells)
	}
	s := paddock.Size{Cols: uint16(q.Cols), Rows: uint16(q.Rows)}
	if s.Cols == 0 {
		s.Cols = usualCols
	}
	if s.Rows == 0 {
		s.Rows = usualRows
	}
	return s, nil
}

// begin starts a session, and returns its process with its output attached.
func (c *call) begin(q newPTY, out paddock.Output) (paddock.Process, error) {
	if q.ID == "" || len(q.ID) > maxPTYID || strings.ContainsRune(q.ID, 0) {
		return nil, invalid("id has 1 to %d bytes", maxPTYID)
	}
	size, err := q.size()
	if err != nil {
		return nil, err
	}
	if err := checkTexts(nil, q.Envs); err != nil {
		return nil, err
	}
	sb, rec, err := c.opened(true)
	if err != nil {
		return nil, err
	}
	known := c.h.ptysNow(rec.ID)
	list, err := c.ptysOf(sb)
	if err != nil {
		return nil, err
	}
	c.h.sweepPTYs(known, list)
	if slices.ContainsFunc(list, func(i paddock.ProcessInfo) bool { return i.Args[4] == q.ID }) {
		return nil, refuse(http.StatusConflict, paddock.Exists, "PTY session with ID %s already exists", dialect.Printable(q.ID))
	}
	env := map[string]string{"TERM": "xterm-256color"}
	for name, value := range q.Envs {
		env[name] = value
	}
	p, err := sb.Start(c.ctx, paddock.Cmd{Args: []string{"sh", "-c", shell, ptyShell, q.ID}, Env: rec.env(env), Dir: rec.absolute(q.Cwd), Terminal: &size, Output: out})
	if err != nil {
		return nil, err
	}
	c.h.mu.Lock()
	c.h.ptys[ptyKey{rec.ID, q.ID}] = &pty{size, q.Envs}
	c.h.mu.Unlock()
	return p, nil
}

// makePTY handles POST …/process/pty.
func (c *call) makePTY() error {
	var q newPTY
	if err := c.body(&q, false); err != nil {
		return err
	}
	p, err := c.begin(q, paddock.Output{Detached: true})
	if err != nil {
		return err
	}
	p.Release()
	return c.json(http.StatusCreated, map[string]string{"sessionId": q.ID})
}

func (c *call) removePTY() error {
	sb, _, i, err := c.inPTY()
	if err != nil {
		return err
	}
	if err := c.kill(sb, i.PID); err != nil && !errors.Is(err, paddock.NotFound) {
		return err
	}
	return c.json(http.StatusOK, map[string]string{"message": "PTY session deleted"})
}

func (c *call) resizePTY() error {
	var q newPTY
	if err := c.body(&q, false); err != nil {
		return err
	}
	size, err := q.size()
	if err != nil {
		return err
	}
	sb, rec, i, err := c.inPTY()
	if err != nil {
		return err
	}
	p, err := sb.Attach(c.ctx, i.PID, paddock.Output{Detached: true})
	if err != nil {
		return err
	}
	defer p.Release()
	if err := p.Resize(c.ctx, size); err != nil {
		return err
	}
	c.h.mu.Lock()
	key := ptyKey{rec.ID, i.Args[4]}
	next := &pty{size: size}
	if p := c.h.ptys[key]; p != nil {
		next.envs = p.envs
	}
	c.h.ptys[key] = next
	c.h.mu.Unlock()
	return c.json(http.StatusOK, c.h.tellPTY(rec.ID, i))
}

// connectPTY handles GET …/connect: a WebSocket joined to a session.
func (c *call) connectPTY() error {
	sb, _, i, err := c.inPTY()
	if err != nil {
		return err
	}
	return c.joined(func(out paddock.Output) (paddock.Process, error) { return sb.Attach(c.ctx, i.PID, out) })
}

// createConnectPTY handles GET …/create-connect: a session that is made and joined by one WebSocket.
func (c *call) createConnectPTY() error {
	v := c.URL.Query()
	q := newPTY{ID: v.Get("id"), Cwd: v.Get("cwd")}
	var err error
	if q.Cols, err = number("cols", v.Get("cols"), 0, 0, maxCells); err == nil {
		q.Rows, err = number("rows", v.Get("rows"), 0, 0, maxCells)
	}
	if err != nil {
		return err
	}
	for _, one := range c.protocols() {
		text, ok := strings.CutPrefix(one, envProtocol)
		if !ok {
			continue
		}
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err == nil {
			err = json.Unmarshal(data, &q.Envs)
		}
		if err != nil {
			return invalid("the variables are no object of texts in JSON, in base64url")
		}
	}
	return c.joined(func(out paddock.Output) (paddock.Process, error) { return c.begin(q, out) })
}

// protocols lists the sub-protocols that the client offers.
func (c *call) protocols() (list []string) {
	for _, line := range c.Header.Values("Sec-WebSocket-Protocol") {
		for one := range strings.SplitSeq(line, ",") {
			list = append(list, strings.TrimSpace(one))
		}
	}
	return list
}

// A screen passes on what a terminal shows, once the client has been told that it is connected.
type screen struct {
	ctx   context.Context
	ws    *websocket.Conn
	ready chan struct{} // closed when there is one
}

func (s *screen) Write(data []byte) (int, error) {
	select {
	case <-s.ready:
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	if err := send(s.ctx, s.ws, websocket.MessageBinary, data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// joined joins a WebSocket to the terminal that start gives.
func (c *call) joined(start func(paddock.Output) (paddock.Process, error)) error {
	if !strings.EqualFold(c.Header.Get("Upgrade"), "websocket") {
		return invalid("this is a WebSocket")
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	stop := context.AfterFunc(c.h.ctx, cancel)
	defer stop()
	s := &screen{ctx: ctx, ready: make(chan struct{})}
	p, err := start(paddock.Output{Stdout: s}) // an error is answered in HTTP
	if err != nil {
		return err
	}
	defer p.Release()
	if s.ws, err = c.upgrade(exitControl); err != nil {
		return nil // it has answered
	}
	defer s.ws.CloseNow() //nolint:errcheck // it is closed by then, or lost
	if err := send(ctx, s.ws, websocket.MessageText, []byte(`{"type":"control","status":"connected"}`)); err != nil {
		return nil // the client has gone
	}
	close(s.ready)
	if !c.h.spawn(func() {
		defer cancel()
		for {
			_, data, err := s.ws.Read(ctx)
			if err != nil {
				return // the client has gone, and the session goes on
			}
			if _, err := p.Input().Write(data); err != nil {
				return
			}
		}
	}) {
		return nil
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		_ = s.ws.Close(websocket.StatusGoingAway, "")
		return nil
	}
	reason := map[string]any{"exitCode": exit.Code}
	if exit.Cause != paddock.Exited {
		reason["exitReason"] = short(exit.Reason)
	}
	data, err := json.Marshal(reason)
	if err != nil {
		return fmt.Errorf("pty: %w", err)
	}
	_ = s.ws.Close(websocket.StatusNormalClosure, string(data)) // or the client has gone
	return nil
}

// short cuts a reason so that the closing frame, which has up to 123 bytes, holds it.
func short(text string) string {
	if len(text) > 64 {
		text = strings.ToValidUTF8(text[:64], "")
	}
	return text
}
