package qemu

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// maxLine bounds a message of QEMU. The longest message expected is the greeting of some
// hundred bytes.
const maxLine = 64 << 10

// A message is a message of QEMU. Its fields determine its kind.
type message struct {
	QMP    json.RawMessage `json:"QMP"` // greeting
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Desc string `json:"desc"`
	} `json:"error"`
	ID    uint64 `json:"id"`
	Event string `json:"event"`
	Data  struct {
		Reason string `json:"reason"`
		Status string `json:"status"`
		ID     string `json:"id"`
		Open   bool   `json:"open"`
	} `json:"data"`
}

// readMessage reads a line, bounded by the reader's buffer.
func readMessage(r *bufio.Reader) (message, error) {
	var m message
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return m, fmt.Errorf("a line of more than %d bytes: %w", r.Size(), paddock.Invalid)
	}
	if err != nil {
		return m, err
	}
	err = json.Unmarshal(line, &m)
	return m, err
}

// writeTime bounds the time for QEMU to read a command. Its buffer has room for any
// command, unless QEMU does not read at all.
const writeTime = 10 * time.Second

// brief shortens a text of QEMU to one line for an error.
func brief(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "…"
	}
	return fmt.Sprintf("%q", text)
}

// A command is a command for QEMU, with a file.
type command struct {
	Execute   string         `json:"execute"`
	Arguments map[string]any `json:"arguments,omitempty"`
	ID        uint64         `json:"id"`
}

// A qmp is a connection with the QEMU Machine Protocol.
type qmp struct {
	conn  net.Conn
	event func(message)
	send  func(data []byte, fd int) error // with a descriptor, unless fd is negative

	answers chan message
	greeted chan struct{}
	done    chan struct{} // closed when no more messages come
	err     error         // the reason, after done

	mu   sync.Mutex // held during a command
	last uint64     // guarded by mu; number of the last command
}

// newQMP starts to read messages. One goroutine calls event. It ends after close, or when
// QEMU closes the connection.
func newQMP(conn net.Conn, send func([]byte, int) error, event func(message)) *qmp {
	p := &qmp{
		conn: conn, event: event, send: send,
		answers: make(chan message, 1), greeted: make(chan struct{}), done: make(chan struct{}),
	}
	go p.listen()
	return p
}

func (p *qmp) listen() {
	defer close(p.done)
	r := bufio.NewReaderSize(p.conn, maxLine)
	greeted := false
	for {
		m, err := readMessage(r)
		switch {
		case err != nil:
			p.err = err
			return
		case m.Event != "":
			p.event(m)
		case m.QMP != nil && !greeted:
			greeted = true
			close(p.greeted)
		case m.Return != nil || m.Error != nil:
			select {
			case p.answers <- m:
			case <-p.answers: // no caller took the last answer, so none waits for it
				p.answers <- m
			}
		default:
			p.err = fmt.Errorf("a message of no kind: %w", paddock.Invalid)
			return
		}
	}
}

// close closes the connection, and waits for the last call of event.
func (p *qmp) close() {
	p.conn.Close()
	<-p.done
}

// begin waits for QEMU's greeting and enables commands.
func (p *qmp) begin(ctx context.Context) error {
	select {
	case <-p.greeted:
		return p.run(ctx, "qmp_capabilities", nil)
	case <-p.done:
		return p.ended()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *qmp) ended() error {
	if errors.Is(p.err, io.EOF) {
		return fmt.Errorf("QEMU said nothing more: %w", paddock.Internal)
	}
	return fmt.Errorf("listen to QEMU: %w", p.err)
}

// run is ask without the answer.
func (p *qmp) run(ctx context.Context, name string, args map[string]any) error {
	return p.ask(ctx, name, args, nil)
}

// ask sends a command to QEMU and decodes the answer.
func (p *qmp) ask(ctx context.Context, name string, args map[string]any, result any) error {
	return p.askWith(ctx, -1, name, args, result)
}

// askWith is ask with a descriptor. If ctx ends first, a later answer is dropped.
func (p *qmp) askWith(ctx context.Context, fd int, name string, args map[string]any, result any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	data, err := json.Marshal(command{Execute: name, Arguments: args, ID: p.last})
	if err != nil {
		return err
	}
	_ = p.conn.SetWriteDeadline(time.Now().Add(writeTime))
	if err := p.send(data, fd); err != nil {
		p.conn.Close() // part of a command may have been sent
		return fmt.Errorf("%s: %w", name, err)
	}
	for {
		m, err := p.answer(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if m.ID != p.last {
			continue // a late answer
		}
		if m.Error != nil {
			return fmt.Errorf("%s: QEMU: %s: %w", name, brief(m.Error.Desc), paddock.Internal)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Return, result)
	}
}

// answer waits for an answer.
func (p *qmp) answer(ctx context.Context) (message, error) {
	select {
	case m := <-p.answers:
		return m, nil
	case <-ctx.Done():
		return message{}, context.Cause(ctx)
	case <-p.done:
	}
	select {
	case m := <-p.answers: // the last one before the end
		return m, nil
	default:
		return message{}, p.ended()
	}
}
