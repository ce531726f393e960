package guest

import (
	"context"
	"errors"
	"strconv"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// protocol is the version that Hello tells.
const protocol = 1

// Protocol is the protocol version that another guest's handler returns to Hello.
const Protocol = protocol

// Bounds of one connection. The host may have a call open per process, per
// open file and per connection to a port.
const (
	maxStreams   = 4096
	maxFrame     = 128 << 10
	maxMessage   = 8 << 20 // a command's arguments may be some megabytes
	streamWindow = 256 << 10
	connWindow   = 64 << 20 // so that streams that nobody reads do not hold up the others
)

// handler answers the host's calls. Every method may return any error: reply
// turns it into what goes over the wire.
type handler struct {
	guestpb.UnimplementedGuestHandler
	s *Server
}

// replies is an interceptor that makes every error one that the host can read.
type replies struct{}

func (replies) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		if err != nil {
			return nil, reply(err)
		}
		return res, nil
	}
}

func (replies) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (replies) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if err := next(ctx, conn); err != nil {
			return reply(err)
		}
		return nil
	}
}

// reply makes an error for the wire: the Connect code for the kind, the text,
// and the kind itself as a detail, because several kinds share a code.
func reply(err error) error {
	var wire *connect.Error
	if errors.As(err, &wire) {
		return wire
	}
	var kind paddock.Kind
	if !errors.As(err, &kind) {
		switch {
		case errors.Is(err, context.Canceled):
			kind = paddock.Canceled
		case errors.Is(err, context.DeadlineExceeded):
			kind = paddock.Timeout
		}
	}
	text := err.Error()
	detail := &guestpb.ErrorDetail{Kind: uint32(kind)}
	var start *paddock.StartError
	if errors.As(err, &start) {
		// The host knows the command and adds it again.
		text, detail.StartCode = start.Err.Error(), int32(start.Code)
	}
	wire = connect.NewError(code(kind), errors.New(text))
	if d, err := connect.NewErrorDetail(detail); err == nil {
		wire.AddDetail(d)
	}
	return wire
}

// code gives the Connect code of a kind by the vocabulary's table.
func code(kind paddock.Kind) connect.Code {
	var c connect.Code
	if err := c.UnmarshalText([]byte(kind.Translate().Connect)); err != nil {
		panic("guest: the table of kinds names an unknown code: " + strconv.Quote(kind.Translate().Connect))
	}
	return c
}

func (h *handler) Refusals(context.Context, *connect.Request[guestpb.RefusalsRequest]) (*connect.Response[guestpb.RefusalsResponse], error) {
	out := &guestpb.RefusalsResponse{}
	if h.s.o.Refusals != nil {
		for _, r := range h.s.o.Refusals() {
			out.Refusals = append(out.Refusals, &guestpb.Refusal{
				Time: r.Time.UnixNano(), What: r.What, Target: []byte(r.Target),
				Rule: r.Rule, Remedy: r.Remedy, Count: int64(r.Count),
			})
		}
	}
	return connect.NewResponse(out), nil
}
