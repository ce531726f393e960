package wall

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/budget"
)

// An order is what the host asks of a child. The host is trusted.
type order struct {
	Op       string // "create", "status", "update", "pause", "resume", "snapshot"
	Spec     paddock.Spec
	Limits   budget.Limits
	Python   string // the directory of the interpreter
	Update   paddock.Update
	Snapshot paddock.SnapshotOptions
}

// A reply is the child's answer, which the host distrusts: JSON, bounded.
type reply struct {
	Kind     paddock.Kind       `json:"kind,omitempty"`
	Error    string             `json:"error,omitempty"` // empty is none
	Status   *paddock.Status    `json:"status,omitempty"`
	Snapshot paddock.SnapshotID `json:"snapshot,omitempty"`
}

// maxReply bounds a reply: a status with 1,000 refusals of long paths.
const maxReply = 16 << 20

func failure(err error) reply {
	return reply{Kind: paddock.KindOf(err), Error: err.Error()}
}

func (r reply) err() error {
	if r.Error == "" {
		return nil
	}
	text := r.Error
	if len(text) > 4096 {
		text = text[:4096]
	}
	return &told{text, r.Kind}
}

// A told error is one that the child had: its words already name the kind.
type told struct {
	text string
	kind paddock.Kind
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.kind }

// A link is the host's end of the control socket. One exchange at a time.
type link struct {
	out *bufio.Writer
	enc *gob.Encoder
	dec *json.Decoder
	in  *io.LimitedReader
}

func newLink(conn io.ReadWriter) *link {
	in := &io.LimitedReader{R: conn}
	out := bufio.NewWriter(conn)
	return &link{out, gob.NewEncoder(out), json.NewDecoder(in), in}
}

// ask sends an order and gives the checked answer.
func (l *link) ask(o order) (reply, error) {
	if err := errors.Join(l.enc.Encode(o), l.out.Flush()); err != nil {
		return reply{}, fmt.Errorf("ask: %w: %w", err, paddock.Unavailable)
	}
	l.in.N = maxReply
	var r reply
	if err := l.dec.Decode(&r); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return reply{}, fmt.Errorf("the child has ended: %w", paddock.Unavailable)
		}
		return reply{}, fmt.Errorf("the child answered nonsense: %w: %w", err, paddock.Internal)
	}
	if err := r.err(); err != nil {
		return reply{}, err
	}
	return r, nil
}
