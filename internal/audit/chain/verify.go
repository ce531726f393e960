package chain

import (
	"bufio"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A State is the result of a verification.
type State string

// States of a file.
const (
	Whole State = "whole" // closed, and every line as it was written
	// Open is a file without its closing head and without an error: it is being written, its writer was killed, or its
	// end was cut off.
	Open  State = "open"
	Wrong State = "wrong"
)

// A Problem is the kind of an error in a line, for programs.
type Problem string

// Problems of lines.
const (
	BadForm      Problem = "form"      // it is no line of a chain
	BadBegin     Problem = "begin"     // the first line is not that of a log
	BadKey       Problem = "key"       // another key signs the log than the one that was asked for
	BadSequence  Problem = "sequence"  // lines are missing, doubled or moved
	BadHash      Problem = "hash"      // it was changed
	BadSignature Problem = "signature" // the key did not sign it
	BadEnd       Problem = "end"       // it stands behind the closing head
	BadHead      Problem = "head"      // it is not the one that was seen earlier
	CutOff       Problem = "cut"       // a line that was seen earlier is gone with all behind it
)

// A Point identifies a line of a log by number and hash. A reader who keeps the Point of a head elsewhere can check
// later whether the file still has it.
type Point struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"` // hexadecimal digits
}

// String returns the point in the form that ParsePoint reads.
func (p Point) String() string { return fmt.Sprintf("%d:%s", p.Seq, p.Hash) }

// ParsePoint parses SEQ:HASH.
func ParsePoint(text string) (Point, error) {
	number, hash, _ := strings.Cut(text, ":")
	seq, err := strconv.ParseUint(number, 10, 53)
	if digits, wrong := hex.DecodeString(hash); err != nil || wrong != nil || seq == 0 || len(digits) != len(sum{}) {
		return Point{}, fmt.Errorf("%q is no SEQ:HASH, a line's number and the 64 hexadecimal digits of its hash: %w", text, paddock.Invalid)
	}
	return Point{seq, strings.ToLower(hash)}, nil
}

// Options state the requirements on a log.
type Options struct {
	Fingerprint string // of the key that must have signed it; required
	Seen        *Point // a line that it must have; may be nil

	// Each, if set, is called with each line before the first wrong one, in order. A line is signed by the next Line
	// that is Signed; lines behind the last one of those are nobody's.
	Each func(Line)
}

// A Line is a line of a log that was verified.
type Line struct {
	Point
	Log    string
	Signed bool      // it is a head
	Closed bool      // it is the head behind which nothing follows
	Time   time.Time // of a head
	Text   []byte    // the whole line, without its break; valid during the call
}

// A Signed is a head with a valid signature.
type Signed struct {
	Point
	Time time.Time `json:"time"`
}

// A Report is the result for one file. Its counts and names are from the lines before the first wrong one.
type Report struct {
	State   State   `json:"state"`
	Line    uint64  `json:"line,omitempty"`    // the first that is wrong
	Problem Problem `json:"problem,omitempty"` // with it
	Why     string  `json:"why,omitempty"`     // in words: why it is wrong, or what an open file lacks

	Log         string    `json:"log,omitempty"`
	Fingerprint string    `json:"fingerprint,omitempty"` // of the key that the file names
	Begun       time.Time `json:"begun,omitzero"`

	Lines    uint64  `json:"lines"`  // whole ones
	Events   uint64  `json:"events"` // of them
	Head     *Signed `json:"head,omitempty"`
	Closed   bool    `json:"closed"`
	Unsigned uint64  `json:"unsigned"` // lines behind the last head
	Partial  int     `json:"partial"`  // bytes of a line without an end, at the end of the file
}

// Verify reads a file to its end. It returns an error only if reading fails; errors in the file are in the report. Its
// memory does not grow with the file.
func Verify(r io.Reader, o Options) (Report, error) {
	v := &verifier{o: o}
	in := bufio.NewReaderSize(r, MaxLine+1)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == nil:
			v.line(line[:len(line)-1])
		case errors.Is(err, io.EOF):
			v.rep.Partial = len(line)
			v.end()
			return v.rep, nil
		case errors.Is(err, bufio.ErrBufferFull):
			v.wrongf(BadForm, "it is longer than any line of a log, %d bytes", MaxLine)
		default:
			return v.rep, fmt.Errorf("read: %w: %w", err, paddock.Unavailable)
		}
		if v.rep.State == Wrong {
			return v.rep, nil
		}
	}
}

type verifier struct {
	o    Options
	rep  Report
	key  ed25519.PublicKey
	last sum
}

func (v *verifier) wrongf(p Problem, format string, args ...any) {
	v.rep.State, v.rep.Line, v.rep.Problem, v.rep.Why = Wrong, v.rep.Lines+1, p, fmt.Sprintf(format, args...)
}

// line takes the next line up.
func (v *verifier) line(line []byte) {
	expected := v.rep.Lines + 1
	r, ok := parse(line)
	switch {
	case v.rep.Closed:
		v.wrongf(BadEnd, "it stands behind the head that closed the log: it was added later")
		return
	case !ok || !json.Valid(line):
		v.wrongf(BadForm, "it is no line of a log: it was changed or added, or this is a file of another kind")
		return
	case r.seq > expected:
		v.wrongf(BadSequence, "it is line %d of the log, and line %d is not in its place: lines were removed or moved", r.seq, expected)
		return
	case r.seq < expected:
		v.wrongf(BadSequence, "it is line %d of the log once more, where line %d should be: lines were doubled or moved", r.seq, expected)
		return
	case v.last.follow(r.text) != r.hash:
		v.wrongf(BadHash, "its hash does not follow from its text and the line before: it was changed, or that one was with its hash")
		return
	}
	switch {
	case expected == 1:
		v.begin(r)
	case r.signature != nil:
		v.head(r)
	default:
		v.rep.Events++
		v.rep.Unsigned++
	}
	if seen := v.o.Seen; v.rep.State != Wrong && seen != nil && seen.Seq == r.seq && seen.Hash != r.hash.String() {
		v.wrongf(BadHead, "its hash is %s and not that which was seen: the log was written anew", r.hash)
	}
	if v.rep.State != Wrong {
		v.last = r.hash
		v.rep.Lines++
		v.each(r, line)
	}
}

func (v *verifier) each(r record, text []byte) {
	if v.o.Each == nil {
		return
	}
	l := Line{Point: Point{r.seq, r.hash.String()}, Log: v.rep.Log, Signed: r.signature != nil, Text: text}
	if l.Signed {
		l.Closed, l.Time = v.rep.Closed, v.rep.Head.Time
	}
	v.o.Each(l)
}

func (v *verifier) begin(r record) {
	var b begin
	if r.signature != nil || !r.tells(&b) || b.Kind != Begin || b.Sandbox != "" || len(b.Log) != 32 {
		v.wrongf(BadBegin, "it is not the first line of a log")
		return
	}
	if b.Version != Version {
		v.wrongf(BadBegin, "the log has version %d, and this program knows %d", b.Version, Version)
		return
	}
	key, err := base64.StdEncoding.Strict().DecodeString(b.Key)
	if err != nil || len(key) != ed25519.PublicKeySize || Fingerprint(key) != b.Fingerprint {
		v.wrongf(BadBegin, "the key that it names is none, or has another fingerprint")
		return
	}
	v.key, v.rep.Log, v.rep.Fingerprint, v.rep.Begun = key, b.Log, b.Fingerprint, b.Time
	v.rep.Unsigned++
	if b.Fingerprint != v.o.Fingerprint {
		v.wrongf(BadKey, "the log is signed with the key %s, and not with %s: it is somebody else's, or was written anew", b.Fingerprint, v.o.Fingerprint)
	}
}

func (v *verifier) head(r record) {
	var h head
	if !r.tells(&h) || h.Kind != Head || h.Sandbox != "" || h.Log != v.rep.Log {
		v.wrongf(BadForm, "it is signed and not a head of this log")
		return
	}
	if !ed25519.Verify(v.key, message(h.Log, r.seq, r.hash, h.Time), r.signature) {
		from := uint64(1)
		if v.rep.Head != nil {
			from = v.rep.Head.Seq + 1
		}
		v.wrongf(BadSignature, "the key did not sign it: it, or any line from %d on, was rewritten", from)
		return
	}
	v.rep.Head = &Signed{Point{r.seq, r.hash.String()}, h.Time}
	v.rep.Closed, v.rep.Unsigned = h.Closed, 0
}

// end judges a file of which every line is good.
func (v *verifier) end() {
	rep := &v.rep
	switch seen := v.o.Seen; {
	case rep.Closed && rep.Partial > 0:
		v.wrongf(BadEnd, "it stands behind the head that closed the log: it was added later")
		return
	case seen != nil && seen.Seq > rep.Lines:
		v.wrongf(CutOff, "the log ends here, and line %d of it was seen: its end was cut off", seen.Seq)
		return
	case rep.Closed:
		rep.State = Whole
		return
	}
	rep.State = Open
	rep.Why = "it has no closing head: it is being written, its writer was killed, or its end was cut off"
	if rep.Head == nil {
		rep.Why += "; nothing in it is signed"
	} else if rep.Unsigned > 0 {
		rep.Why += fmt.Sprintf("; what stands behind line %d is not signed, and anybody could have written it", rep.Head.Seq)
	}
	if rep.Partial > 0 {
		rep.Why += fmt.Sprintf("; the last line is half a line, %d bytes", rep.Partial)
	}
}
