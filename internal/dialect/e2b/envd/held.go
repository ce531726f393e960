package envd

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// maxHeld bounds the bytes of requests that a Box holds: bodies while they are read and
// decompressed, and messages until their calls end.
const maxHeld = 64 << 20

var errHeld = errors.New("too much of other requests is held for this sandbox, or for its owner; try again")

// A held counts the bytes of one request. They also count in the sum of its Box, and in the
// room of several Boxes.
type held struct {
	b *Box
	n int64
}

// set replaces the count by n bytes.
func (h *held) set(n int64) error {
	more, room := n-h.n, h.b.o.Room
	all := h.b.held.Add(more)
	switch {
	case more > 0 && all > maxHeld, more > 0 && room != nil && !room.Take(more):
		h.b.held.Add(-more)
		return connect.NewError(connect.CodeResourceExhausted, errHeld)
	case more < 0 && room != nil:
		room.Give(-more)
	}
	h.n = n
	return nil
}

// A heldBody counts the bytes read from a body, and waits a bounded time for the rest of a
// message. It is used by one goroutine at a time.
type heldBody struct {
	io.ReadCloser
	held
	patient patient
	stream  bool // the next message may come at any time
	begun   bool // a part of the next message has come
}

func (b *heldBody) Read(p []byte) (int, error) {
	if b.stream && !b.begun {
		b.patient.wait(forever)
	} else {
		b.patient.wait(stall)
	}
	n, err := b.ReadCloser.Read(p)
	b.begun = b.begun || n > 0
	if errors.Is(err, io.EOF) { // from now on package http reads, to notice that the client has gone
		b.patient.wait(forever)
	}
	if full := b.set(b.n + int64(n)); full != nil {
		return 0, full
	}
	return n, err
}

// decoded replaces the count of the bytes read by what the decoded message takes.
func (b *heldBody) decoded(n int64) error {
	b.begun = false
	b.patient.wait(forever) // handling the message may take longer
	return b.set(n)
}

type heldKey struct{}

// heldOf returns the counted body of a request.
func heldOf(ctx context.Context) (*heldBody, bool) {
	body, ok := ctx.Value(heldKey{}).(*heldBody)
	return body, ok
}

// counted makes a handler count the bytes that it holds of a request, and bounds the wait
// for a body that stops early.
func (b *Box) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := &heldBody{ReadCloser: r.Body, held: held{b: b}, stream: r.URL.Path == envdpb.ProcessStreamInputProcedure}
		body.patient = patient{control: http.NewResponseController(w), end: b.ctx}
		defer func() { _ = body.set(0) }() // a smaller count is never refused
		r = r.WithContext(context.WithValue(r.Context(), heldKey{}, body))
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// arrived replaces the count of a message's bytes by the memory that the decoded message takes.
func arrived(ctx context.Context, m any) error {
	message, is := m.(proto.Message)
	if !is {
		return nil
	}
	if isRefused(message) {
		return connect.NewError(connect.CodeResourceExhausted, errHeld)
	}
	body, ok := heldOf(ctx)
	if !ok {
		return nil
	}
	return body.decoded(costOfMessage(message.ProtoReflect()))
}

// A counter counts the messages of calls, and the answers that are not streams.
type counter struct{}

func (counter) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
		if err := arrived(ctx, r.Any()); err != nil {
			return nil, err
		}
		out, err := next(ctx, r)
		if err != nil {
			return nil, err
		}
		if m, ok := out.Any().(proto.Message); ok {
			if a := answering(ctx); a != nil {
				err = a.hold(max(a.held, proto.Size(m)))
			}
		}
		if err != nil {
			return nil, rpcError(err)
		}
		return out, nil
	}
}

func (counter) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (counter) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, c connect.StreamingHandlerConn) error {
		return next(ctx, &countedConn{c, ctx})
	}
}

type countedConn struct {
	connect.StreamingHandlerConn
	ctx context.Context //nolint:containedctx // the call's context
}

func (c *countedConn) Receive(m any) error {
	if err := c.StreamingHandlerConn.Receive(m); err != nil {
		return err
	}
	return arrived(c.ctx, m)
}

// An unpacker counts the decompressed bytes until the message is read.
type unpacker struct {
	gzip.Reader
	held
}

func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if full := u.set(u.n + int64(n)); full != nil {
		return 0, full
	}
	return n, err
}

func (u *unpacker) Close() error {
	_ = u.set(0) // a smaller count is never refused
	return u.Reader.Close()
}

// callOptions returns the bounds of calls. Only input may be large.
func (b *Box) callOptions() []connect.HandlerOption {
	options := []connect.HandlerOption{
		connect.WithSendMaxBytes(maxAnswer),
		connect.WithInterceptors(counter{}),
		connect.WithCompression("gzip",
			func() connect.Decompressor { return &unpacker{held: held{b: b}} },
			func() connect.Compressor { return gzip.NewWriter(io.Discard) }),
		connect.WithConditionalHandlerOptions(func(s connect.Spec) []connect.HandlerOption {
			if s.Procedure == envdpb.ProcessSendInputProcedure || s.Procedure == envdpb.ProcessStreamInputProcedure {
				return []connect.HandlerOption{connect.WithReadMaxBytes(maxInput)}
			}
			return []connect.HandlerOption{connect.WithReadMaxBytes(maxMessage)}
		}),
	}
	for _, c := range codecs(b) {
		options = append(options, connect.WithCodec(c))
	}
	return options
}
