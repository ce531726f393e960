package guestclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// Bounds of what the guest may make the host hold.
const (
	maxMessage  = 8 << 20
	maxText     = 4096 // of any text in an answer
	maxRefusals = 1000
)

// A guestError is what the guest answered: its text, cleaned, and a kind.
type guestError struct {
	text string
	kind paddock.Kind
}

func (e *guestError) Error() string { return e.text }
func (e *guestError) Unwrap() error { return e.kind }

// failure makes an error of package paddock from that of a call. ctx is the
// call's own.
func (g *Guest) failure(ctx context.Context, err error) error {
	select {
	case <-g.wire.done:
		return fmt.Errorf("%s: %w", g.goneReason(), paddock.Unavailable)
	default:
	}
	if ctx.Err() != nil {
		g.wire.giveUp()
		return stopped(ctx)
	}
	return answered(err)
}

// stopped is the error of a call whose context has ended.
func stopped(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer in time: %w: %w", paddock.Timeout, context.DeadlineExceeded)
	}
	return fmt.Errorf("given up: %w: %w", paddock.Canceled, context.Canceled)
}

// answered reads an error that the guest sent. Nothing in it is trusted: the
// text is cleaned and cut, and a kind that does not exist, or that the call
// cannot have, is Internal.
func answered(err error) error {
	var known paddock.Kind
	if !connect.IsWireError(err) && errors.As(err, &known) {
		return err // ours: what it sent was refused
	}
	var wire *connect.Error
	if !errors.As(err, &wire) {
		return fmt.Errorf("%s: %w", text(err.Error()), paddock.Internal)
	}
	kind, start := detail(wire)
	if !connect.IsWireError(err) && wire.Code() == connect.CodeInvalidArgument {
		kind = paddock.Internal // Connect could not read the answer; it does not say that a request was wrong
	}
	var from *heardError
	if !errors.As(err, &from) || !from.may.has(kind) {
		kind = paddock.Internal
	}
	out := &guestError{text: text(wire.Message()), kind: kind}
	if out.text == "" {
		out.text = kind.Error()
	}
	if start != 0 {
		return &paddock.StartError{Code: start, Err: out}
	}
	return out
}

// detail gives the kind and the start code that come with an error.
func detail(wire *connect.Error) (paddock.Kind, int) {
	for _, d := range wire.Details() {
		// Type and Bytes, not Value: Value makes any message that is linked in.
		if d.Type() != string((*guestpb.ErrorDetail)(nil).ProtoReflect().Descriptor().FullName()) {
			continue
		}
		var m guestpb.ErrorDetail
		if err := proto.Unmarshal(d.Bytes(), &m); err != nil {
			break
		}
		kind := paddock.Internal
		if m.GetKind() <= uint32(paddock.Canceled) {
			kind = paddock.Kind(m.GetKind())
		}
		start := int(m.GetStartCode())
		if start != 126 && start != 127 {
			start = 0
		}
		return kind, start
	}
	return paddock.KindFromConnect(wire.Code().String()), 0
}

// text makes words of the guest fit to be shown: printable characters only,
// because a terminal obeys others, and not many.
func text(s string) string {
	s = cut(s, maxText)
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || (!unicode.IsPrint(r) && r != ' ') {
			return '?'
		}
		return r
	}, s)
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}
