package chain

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// Kinds of the chain's own lines. Their fields are not those of an event, and readers of events skip them.
const (
	Begin audit.Kind = "begin" // the first line, with the identity of the log and the key that signs it
	Head  audit.Kind = "head"  // a signed line
)

// Version is the version of the format, written at the start of a file.
const Version = 1

// MaxLine is the longest line of a file, in bytes, without its line break.
const MaxLine = audit.MaxLine + 256

// The parts of a line that follow what it tells. Their length and place are fixed,
// so that no reader of JSON stands between the bytes and their hash.
const (
	seqKey       = `,"seq":`
	hashKey      = `,"hash":"`
	signatureKey = `,"signature":"`
	end          = `"}`
)

// signatureSize is that of a signature in base64.
const signatureSize = (ed25519.SignatureSize + 2) / 3 * 4

// A begin is what the first line tells.
type begin struct {
	Time        time.Time  `json:"time"`
	Sandbox     string     `json:"sandbox"` // empty: readers of events look for it
	Kind        audit.Kind `json:"kind"`
	Version     int        `json:"version"`
	Log         string     `json:"log"`         // 16 random bytes, in hexadecimal digits
	Fingerprint string     `json:"fingerprint"` // of Key
	Key         string     `json:"key"`         // the public key's 32 bytes, in base64
}

// A head is what a signed line tells.
type head struct {
	Time    time.Time  `json:"time"`
	Sandbox string     `json:"sandbox"`
	Kind    audit.Kind `json:"kind"`
	Log     string     `json:"log"`
	Closed  bool       `json:"closed,omitempty"` // nothing follows
}

// body gives what a line of the chain's own tells, as JSON without the brace that
// ends it.
func body(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b[:len(b)-1], nil
}

// A sum is a hash of the chain.
type sum [sha256.Size]byte

func (s sum) String() string { return hex.EncodeToString(s[:]) }

// follow gives the hash of a line that stands after one with the hash s: over s
// and all bytes of the line up to its number, that included.
func (s sum) follow(text []byte) sum {
	h := sha256.New()
	h.Write(s[:])
	h.Write(text)
	var next sum
	h.Sum(next[:0])
	return next
}

// message is what a head's signature is over. It begins with words of its own, so
// that no other use of the key could be taken for one.
func message(log string, seq uint64, hash sum, at time.Time) []byte {
	return fmt.Appendf(nil, "paddock audit head %d\n%s\n%d\n%s\n%s\n", Version, log, seq, hash, at.UTC().Format(time.RFC3339Nano))
}

// A record is a line that was taken apart.
type record struct {
	text      []byte // all that is hashed
	seq       uint64
	hash      sum
	signature []byte // nil if the line is not signed
}

// parse takes a line, without its break, apart. It takes one spelling of each part
// only: a line that could be written in two ways could be changed unnoticed.
func parse(line []byte) (r record, ok bool) {
	rest, ok := bytes.CutSuffix(line, []byte(end))
	if !ok {
		return r, false
	}
	if at := len(rest) - signatureSize - len(signatureKey); at > 0 && string(rest[at:at+len(signatureKey)]) == signatureKey {
		text := rest[at+len(signatureKey):]
		r.signature = make([]byte, ed25519.SignatureSize+2)
		n, err := base64.StdEncoding.Strict().Decode(r.signature, text)
		if err != nil || n != ed25519.SignatureSize {
			return r, false
		}
		r.signature = r.signature[:n]
		if rest, ok = bytes.CutSuffix(rest[:at], []byte(`"`)); !ok {
			return r, false
		}
	}
	at := len(rest) - 2*sha256.Size - len(hashKey)
	if at <= 0 || string(rest[at:at+len(hashKey)]) != hashKey {
		return r, false
	}
	digits := rest[at+len(hashKey):]
	if _, err := hex.Decode(r.hash[:], digits); err != nil || r.hash.String() != string(digits) {
		return r, false
	}
	r.text = rest[:at]
	at = bytes.LastIndex(r.text, []byte(seqKey))
	if at < 0 {
		return r, false
	}
	number := string(r.text[at+len(seqKey):])
	seq, err := strconv.ParseUint(number, 10, 53)
	if err != nil || strconv.FormatUint(seq, 10) != number {
		return r, false
	}
	r.seq = seq
	return r, true
}

// tells reads what a line of the chain's own tells into v, and checks that it is
// written as a [Writer] writes it.
func (r record) tells(v any) bool {
	text, ok := bytes.CutSuffix(r.text, strconv.AppendUint([]byte(seqKey), r.seq, 10))
	if !ok || json.Unmarshal(append(bytes.Clone(text), '}'), v) != nil {
		return false
	}
	again, err := body(v)
	return err == nil && bytes.Equal(again, text)
}
