package wall

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/wall/flat"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// An order is what the host asks of a child. The host is trusted.
type order struct {
	Op     string // "create", after which a channel comes where there is a network, "status", "update", "pause", "resume", "snapshot"
	Spec   paddock.Spec
	Limits budget.Limits
	Python string // the directory of the interpreter
	Roots  []byte // certificates that tools believe, in PEM
	Update paddock.Update
}

// A reply is the child's answer, which the host distrusts: bounded, and read
// by a parser that takes anything.
type reply struct {
	Kind   paddock.Kind
	Error  string // empty is none
	Status *paddock.Status
}

// maxReply bounds a reply: a status with 1,000 refusals of long paths. In
// memory it can be some twenty times as large.
const maxReply = 8 << 20

func failure(err error) reply {
	return reply{Kind: paddock.KindOf(err), Error: err.Error()}
}

func (r reply) err() error {
	if r.Error == "" {
		return nil
	}
	kind := r.Kind
	if kind > paddock.Canceled {
		kind = paddock.Internal
	}
	return &told{plain(r.Error), kind}
}

// maxText bounds words that come from a child.
const maxText = 4096

// plain makes words of a child fit to be shown: a terminal obeys others than
// printable characters.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s[:min(len(s), maxText)])
}

// A told error is one that the child had: its words already name the kind.
type told struct {
	text string
	kind paddock.Kind
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.kind }

// A link is the host's end of the control socket. One exchange at a time.
type link struct{ conn io.ReadWriter }

// ask sends an order and gives the checked answer.
func (l link) ask(o order) (reply, error) {
	if err := send(l.conn, o); err != nil {
		return reply{}, fmt.Errorf("ask: %w: %w", err, paddock.Unavailable)
	}
	return l.answer()
}

func (l link) answer() (reply, error) {
	var r reply
	if err := receive(l.conn, &r, maxReply); err != nil {
		return reply{}, l.failed(err)
	}
	if err := r.err(); err != nil {
		return reply{}, err
	}
	return r, nil
}

// failed tells what it means that a message could not be read.
func (link) failed(err error) error {
	switch {
	case errors.Is(err, errNonsense):
		return fmt.Errorf("the child answered nonsense: %w: %w", err, paddock.Internal)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", errSilent, paddock.Unavailable)
	}
	return fmt.Errorf("the child has ended: %w", paddock.Unavailable)
}

// A patient writer gives each message its own time.
type patient struct {
	conn net.Conn
	time time.Duration
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.conn.SetDeadline(time.Now().Add(p.time)); err != nil {
		return 0, err
	}
	return p.conn.Write(b)
}

// errSilent says that an answer did not come in time.
var errSilent = errors.New("the child does not answer")

// errNonsense says that a message came whole, and is none.
var errNonsense = errors.New("no message")

// send writes a message: its length, and the value.
func send(w io.Writer, v any) error {
	b, err := flat.Append(make([]byte, 4, 1024), v)
	if err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	if uint64(len(b)-4) > math.MaxUint32 {
		return fmt.Errorf("a message of %d bytes: %w", len(b), paddock.Invalid)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	_, err = w.Write(b)
	return err
}

// receive reads what send wrote, of at most so many bytes.
func receive(r io.Reader, v any, most uint32) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > most {
		return fmt.Errorf("%d bytes: %w", n, errNonsense)
	}
	// It grows with what comes: a length alone is no reason for memory.
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return err
	}
	if err := flat.Parse(b.Bytes(), v); err != nil {
		return fmt.Errorf("%w: %w", errNonsense, err)
	}
	return nil
}
