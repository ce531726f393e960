package protocol

import (
	"bytes"
	"context"
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
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/encoding"
	"github.com/paddock-sandbox/paddock/internal/private"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// An Order is a request of the host to a child. The child trusts it.
type Order struct {
	Op      string // "create", after which a channel comes where there is a network, "status", "update", "pause", "resume", "snapshot"
	Spec    paddock.Spec
	Limits  budget.Limits
	Python  string         // the directory of the interpreter
	Private private.Files  // of the caller, which no sandbox may see, by real paths
	Roots   []byte         // certificates that tools believe, in PEM
	Update  paddock.Update // its limits are all that the sandbox has: what is zero gets its default
	Room    Room           // for the files of a snapshot

	// Landlock is false only if this kernel has none, and the caller accepted that by name.
	Landlock bool
}

// A Reply is a child's answer. The host does not trust it: its size is bounded, and the parser
// accepts any input.
type Reply struct {
	Kind   paddock.Kind
	Error  string // empty is none
	Status *Status
}

// A Status is what the host asks a child for. The host knows the rest by itself.
type Status struct {
	User, Dir string
	Limits    paddock.Limits // by which the child counts
	Usage     paddock.Usage
	Refused   []paddock.Refusal // at most gatewayclient.InsideMax bytes in JSON, which are more than encoded
}

// MaxReply is the maximum size of an encoded reply, in bytes. A list asks many children at once, so
// this is little more than a status needs.
const MaxReply = 256 << 10

// growth is how many times its size a message may take in memory when it is decoded.
const growth = 2

// Failure returns the reply that carries an error and its kind. It cuts the text at MaxText, as the
// host does.
func Failure(err error) Reply {
	text := err.Error()
	return Reply{Kind: paddock.KindOf(err), Error: text[:min(len(text), MaxText)]}
}

func (r Reply) err() error {
	if r.Error == "" {
		return nil
	}
	return &told{Plain(r.Error), kindOf(r.Kind)}
}

// kindOf returns the kind of an error that a child tells. A child that was taken over chooses it, so it is none by which
// callers learn that the sandbox is not there, or is there already, or that they gave up.
func kindOf(k paddock.Kind) paddock.Kind {
	switch k {
	case paddock.Invalid, paddock.Denied, paddock.Unsupported, paddock.Exhausted, paddock.Timeout, paddock.Conflict:
		return k
	case paddock.NotFound: // what the order names
		return paddock.Invalid
	default:
		return paddock.Internal
	}
}

// Stuck are the words with which a child ends that cannot end a command. The name of its program
// follows.
const Stuck = "a command was to end and did not stop computing:"

// MaxText is the maximum length of a text from a child, in bytes.
const MaxText = 4096

// Plain makes a text of a child safe to show. It replaces every character that is not printable by
// a question mark, and cuts the text at MaxText.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s[:min(len(s), MaxText)])
}

// A told error is one that the child had: its words already name the kind.
type told struct {
	text string
	kind paddock.Kind
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.kind }

// A Link is the host's end of the control socket. It carries one exchange at a time.
type Link struct{ Conn io.ReadWriter }

// Ask sends an order and returns the checked reply.
func (l Link) Ask(o Order) (Reply, error) {
	if err := Send(l.Conn, o); err != nil {
		return Reply{}, l.Failed(err)
	}
	return l.Answer()
}

// Answer reads and checks the next reply. An error in the reply is returned as an error.
func (l Link) Answer() (Reply, error) {
	var r Reply
	if err := Receive(l.Conn, &r, MaxReply); err != nil {
		return Reply{}, l.Failed(err)
	}
	if err := r.err(); err != nil {
		return Reply{}, err
	}
	return r, nil
}

// Failed converts an error of writing or reading a message into an error about the child. After
// [ErrNonsense], [ErrSilent] and [ErrEnded] the link is of no use any more.
func (Link) Failed(err error) error {
	switch {
	case errors.Is(err, errUnsendable):
		return err
	case errors.Is(err, ErrNonsense):
		return fmt.Errorf("the child answered nonsense: %w: %w", err, paddock.Internal)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrSilent, paddock.Unavailable)
	}
	return fmt.Errorf("%w: %w", ErrEnded, paddock.Unavailable)
}

// A Patient is a writer with a deadline for each message and one for all of them. After the end of Ctx it
// starts no further message. To interrupt the current message too, the caller sets a deadline in the past
// after it ended Ctx.
type Patient struct {
	Ctx  context.Context
	Conn net.Conn
	Time time.Duration // of each message
	Last time.Time     // of all
}

func (p Patient) Write(b []byte) (int, error) {
	until := time.Now().Add(p.Time)
	if until.After(p.Last) {
		until = p.Last
	}
	if err := p.Conn.SetDeadline(until); err != nil {
		return 0, err
	}
	// Not before: the deadline could take the place of one that says that Ctx has ended.
	if err := context.Cause(p.Ctx); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// ErrSilent is the error of a reply that did not arrive in time.
var ErrSilent = errors.New("the child does not answer")

// ErrEnded is the error of a link that the child has closed, by its end or before it.
var ErrEnded = errors.New("the child has ended")

// errUnsendable is the error of a message of which nothing was written.
var errUnsendable = errors.New("it cannot be sent")

// ErrNonsense is the error of a complete message that cannot be decoded.
var ErrNonsense = errors.New("no message")

// Send writes a message: its length, and the encoded value.
func Send(w io.Writer, v any) error {
	b, err := pack(v)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// headSize is the number of bytes that say how long a message is.
const headSize = 4

// pack returns a message as it is sent.
func pack(v any) ([]byte, error) {
	b, err := encoding.Append(make([]byte, headSize, 1024), v)
	if err != nil {
		return nil, fmt.Errorf("write a message: %w: %w: %w", errUnsendable, err, paddock.Internal)
	}
	if uint64(len(b)-headSize) > math.MaxUint32 {
		return nil, fmt.Errorf("a message of %d bytes: %w: %w", len(b), errUnsendable, paddock.Invalid)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-headSize))
	return b, nil
}

// Receive reads a message that [Send] wrote, of at most the given number of bytes, into v. The value
// takes at most twice as much memory.
func Receive(r io.Reader, v any, most uint32) error {
	var head [headSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > most {
		return fmt.Errorf("%d bytes: %w", n, ErrNonsense)
	}
	// It grows with what comes: a length alone is no reason for memory.
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return err
	}
	if err := encoding.Parse(b.Bytes(), v, growth*int64(most)); err != nil {
		return fmt.Errorf("%w: %w", ErrNonsense, err)
	}
	return nil
}

// FileConn returns a connection for a socket descriptor, and closes the descriptor.
func FileConn(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	return net.FileConn(f)
}

// Findings lists the controls around the child process, on a kernel with this version of Landlock;
// zero is none.
func Findings(landlock int) []paddock.Finding {
	full := func(c paddock.Control, how string) paddock.Finding {
		return paddock.Finding{Control: c, Strength: paddock.Full, How: how}
	}
	// A version that knows of reading is enough: the allow-list refuses all changes of files.
	files := full(paddock.ControlLandlock, "only the sources of mounts can be opened, to be read")
	if landlock < 1 {
		files = paddock.Finding{
			Control: paddock.ControlLandlock, Strength: paddock.Absent,
			Cause:  "this kernel has no Landlock, or it is not in use; a tool that was taken over could read the files that its user can",
			Remedy: "boot with lsm=landlock,… (see /sys/kernel/security/lsm), on Linux 5.13 or later",
		}
	}
	return []paddock.Finding{full(paddock.ControlSeccomp, "an allow-list: the process can compute, answer its host, and read what is open to it"), files}
}

// ChildName is argument 0 of a child process.
const ChildName = "paddock-sim"

// Descriptors of a child beside the usual three.
const (
	GuestFD   = 3
	ControlFD = 4
)
