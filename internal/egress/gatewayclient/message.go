package gatewayclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
)

// Operations of messages from the owner to the gateway.
const (
	OpConfig  = "config"  // first; the file holds a Config
	OpLink    = "link"    // the file is the link
	OpUpdate  = "update"  // the file holds a policy; replied to
	OpNames   = "names"   // replied to with as many replies as it takes
	OpDial    = "dial"    // Host and Port; replied to with a socket
	OpCancel  = "cancel"  // the dial ID is no longer wanted
	OpChannel = "channel" // the file is an end for a Dialer's other side
	OpAnswer  = "answer"  // to question ID; Error has the reason of a judge
	OpClose   = "close"   // tell what is not told yet, and end
)

// Operations of messages from the gateway to the owner.
const (
	OpReady  = "ready"  // or Error
	OpReply  = "reply"  // to ID
	OpEvents = "events" //
	OpAsk    = "ask"    // Question, as ID
	OpLogin  = "login"  // Login, as question ID
	OpUnask  = "unask"  // question ID is no longer asked
)

// A Message is one packet between owner and gateway. Large content goes with it as a file.
type Message struct {
	Op       string       `json:"op"`
	ID       uint64       `json:"id,omitempty"`
	Host     string       `json:"host,omitempty"`
	Port     uint16       `json:"port,omitempty"`
	Error    string       `json:"error,omitempty"`
	Kind     paddock.Kind `json:"kind,omitempty"`
	Ready    *Ready       `json:"ready,omitempty"`
	Events   []Event      `json:"events,omitempty"`
	Names    []string     `json:"names,omitempty"`
	More     bool         `json:"more,omitempty"` // whether another reply to the same ID follows
	Question *Question    `json:"question,omitempty"`
	Answer   Answer       `json:"answer,omitempty"`

	Login *LoginRequest `json:"login,omitempty"`
	Given *LoginAnswer  `json:"given,omitempty"` // to a Login
}

// Bounds of a gateway's messages.
const (
	contentMax = 64 << 20 // bytes of a file of a message
	eventsMax  = 256      // in one message
	findingMax = 32
	namesMax   = 65536
	eventRate  = 1000 // per second; more are only counted
	textMax    = 1024 // bytes of an error, a reason or a path
	nameMax    = 255  // bytes of a host, a method or a name
)

// ErrorReply returns a reply to the message id that reports err.
func ErrorReply(id uint64, err error) Message {
	return Message{Op: OpReply, ID: id, Error: printable(err.Error(), textMax), Kind: paddock.KindOf(err)}
}

// err returns the error in a message.
func (m Message) err() error {
	if m.Error == "" {
		return nil
	}
	return &wordsError{printable(m.Error, textMax), m.Kind}
}

// A wordsError is an error of the other side, whose text already includes its kind.
type wordsError struct {
	words string
	kind  paddock.Kind
}

func (e *wordsError) Error() string { return e.words }
func (e *wordsError) Unwrap() error { return e.kind }

// DecodeMessage decodes a message strictly: unknown fields, trailing data and lists that are too long are Invalid.
func DecodeMessage(data []byte) (Message, error) {
	var m Message
	if err := decodeStrictly(data, &m); err != nil {
		return Message{}, fmt.Errorf("read a message: %w", err)
	}
	if len(m.Events) > eventsMax || len(m.Names) > namesMax || m.Ready != nil && len(m.Ready.Findings) > findingMax {
		return Message{}, fmt.Errorf("read a message: a list is too long: %w", paddock.Invalid)
	}
	return m, nil
}

// decodeStrictly decodes exactly one JSON value.
func decodeStrictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("more follows it: %w", paddock.Invalid)
	}
	return nil
}

// ReadContent decodes the JSON of a file that came with a message into v. The limit is 64 MiB.
func ReadContent(f *os.File, v any) error {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, contentMax+1))
	if err != nil {
		return fmt.Errorf("read what came with a message: %w", err)
	}
	if len(data) > contentMax {
		return fmt.Errorf("what came with a message is too large: %w", paddock.Invalid)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read what came with a message: %w: %w", err, paddock.Invalid)
	}
	return nil
}

// CleanEvent makes an event safe to keep and to show. It sets the sandbox to the owner's, cuts texts and replaces
// control characters, so the event also fits into a message. The gateway cleans its events too; the owner does not rely
// on that.
func CleanEvent(e Event, sandbox string) Event {
	e.Sandbox = sandbox
	for _, s := range []*string{&e.Kind, &e.Host, &e.Address, &e.Method, &e.Verdict} {
		*s = printable(*s, nameMax)
	}
	for _, s := range []*string{&e.Path, &e.Reason, &e.Hint} {
		*s = printable(*s, textMax)
	}
	if len(e.Secrets) > findingMax {
		e.Secrets = e.Secrets[:findingMax]
	}
	for i := range e.Secrets {
		e.Secrets[i] = printable(e.Secrets[i], nameMax)
	}
	e.Rule, e.Count, e.Status = max(e.Rule, -1), max(e.Count, 0), min(max(e.Status, 0), 999)
	e.Sent, e.Received, e.Duration = max(e.Sent, 0), max(e.Received, 0), max(e.Duration, 0)
	return e
}

// printable returns s in at most limit bytes, with "?" for unprintable characters.
func printable(s string, limit int) string {
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}
