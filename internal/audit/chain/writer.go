package chain

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Limits of the lines after the last head of a file that is being written: a head is due when one is reached.
const (
	Every  = 256             // events
	Within = 2 * time.Second // from the first of them
)

// A Writer writes lines of events as a chain. It is the [audit.Sealer] of one [audit.Lines], whose goroutine uses it.
type Writer struct {
	w        io.Writer
	key      *Key
	log      string
	seq      uint64
	last     sum
	events   uint64
	unsigned int         // lines of events after the last head
	timer    *time.Timer // runs while there are such
	out      []byte
	err      error // the first; nothing is written after it
}

// NewWriter writes the first line and a head to w, which must be empty. Later writes are whole lines, as audit.Line
// returns them.
func NewWriter(w io.Writer, key *Key) (*Writer, error) {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		return nil, fmt.Errorf("name a log: %w", err)
	}
	c := &Writer{w: w, key: key, log: hex.EncodeToString(id), timer: time.NewTimer(Within)}
	c.timer.Stop()
	text, err := body(begin{
		Time: time.Now().Round(0).UTC(), Kind: Begin, Version: Version, Log: c.log,
		Fingerprint: key.Fingerprint(), Key: base64.StdEncoding.EncodeToString(key.public),
	})
	if err != nil {
		return nil, err
	}
	c.add(text)
	return c, c.sign(false)
}

// Write adds lines of events to the chain. It refuses an invalid line and all that follow.
func (c *Writer) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	before := c.unsigned
	for line := range bytes.Lines(p) {
		text, ok := bytes.CutSuffix(line, []byte("}\n"))
		if !ok || len(text) < 2 || text[0] != '{' {
			c.err = fmt.Errorf("what is to be recorded is no line of an event: %w", paddock.Internal)
			return 0, c.err
		}
		c.add(text)
		c.events++
		if c.unsigned++; c.unsigned >= Every {
			if c.err = c.head(false); c.err != nil {
				return 0, c.err
			}
			before = 0
		}
	}
	if before == 0 && c.unsigned > 0 {
		c.timer.Reset(Within)
	}
	if err := c.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Due implements [audit.Sealer]: it returns a channel that receives when a head is due.
func (c *Writer) Due() <-chan time.Time {
	if c.unsigned == 0 || c.err != nil {
		return nil
	}
	return c.timer.C
}

// Seal writes a head, unless there is no new line since the last.
func (c *Writer) Seal() error {
	if c.unsigned == 0 || c.err != nil {
		return c.err
	}
	return c.sign(false)
}

// Close writes the last head, which says that no line follows. It leaves w open.
func (c *Writer) Close() error {
	if c.err != nil {
		return c.err
	}
	if err := c.sign(true); err != nil {
		return err
	}
	c.err = fmt.Errorf("the log is closed: %w", paddock.Conflict)
	return nil
}

// Events returns the number of events written.
func (c *Writer) Events() uint64 { return c.events }

// Point returns the last line. After Close this is the closing head.
func (c *Writer) Point() Point { return Point{Seq: c.seq, Hash: c.last.String()} }

// add puts a line into what is to be written.
func (c *Writer) add(text []byte) {
	c.seq++
	start := len(c.out)
	c.out = append(c.out, text...)
	c.out = append(c.out, seqKey...)
	c.out = strconv.AppendUint(c.out, c.seq, 10)
	c.last = c.last.follow(c.out[start:])
	c.out = append(c.out, hashKey...)
	c.out = hex.AppendEncode(c.out, c.last[:])
	c.out = append(c.out, "\"}\n"...)
}

// head puts a signed line into what is to be written.
func (c *Writer) head(closed bool) error {
	at := time.Now().Round(0).UTC()
	text, err := body(head{Time: at, Kind: Head, Log: c.log, Closed: closed})
	if err != nil {
		return err
	}
	c.add(text)
	c.out = append(c.out[:len(c.out)-len("}\n")], signatureKey...)
	c.out = base64.StdEncoding.AppendEncode(c.out, c.key.sign(message(c.log, c.seq, c.last, at)))
	c.out = append(c.out, "\"}\n"...)
	c.unsigned = 0
	c.timer.Stop()
	return nil
}

// sign writes a head, with what waits before it.
func (c *Writer) sign(closed bool) error {
	if c.err = c.head(closed); c.err != nil {
		return c.err
	}
	return c.flush()
}

func (c *Writer) flush() error {
	n, err := c.w.Write(c.out)
	if err == nil && n < len(c.out) {
		err = io.ErrShortWrite
	}
	c.out = c.out[:0]
	c.err = err
	return err
}
