package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

// A Driver is the client of a Paddock server.
type Driver interface {
	paddock.Driver
	CreateWith(context.Context, paddock.Spec, client.Terms) (paddock.Sandbox, error)
	Interpret(context.Context, paddock.ID, client.Cell, func(client.CellEvent) error) error
}

// Options say what a server offers, and to whom.
type Options struct {
	Version string

	// Single offers one sandbox, which is made by the first call, with four tools that name none.
	Single bool

	Offer Offer
}

// A Server has the tools. It serves one client over a pair of streams, or any number over HTTP.
type Server struct {
	o   Options
	mcp *mcp.Server
}

// New makes a server.
func New(o Options) (*Server, error) {
	if o.Single && o.Offer.Directory == nil {
		return nil, fmt.Errorf("one implicit sandbox without a directory: %w", paddock.Invalid)
	}
	s := &Server{o: o}
	s.mcp = mcp.NewServer(
		&mcp.Implementation{Name: "paddock", Title: "Paddock", Version: o.Version},
		&mcp.ServerOptions{Instructions: s.instructions(), Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}},
	)
	s.addTools()
	return s, nil
}

// deskKey is the key of the context value that carries the desk of a call.
type deskKey struct{}

// desk gives the desk of a call.
func desk(ctx context.Context) (*Desk, error) {
	d, ok := ctx.Value(deskKey{}).(*Desk)
	if !ok {
		return nil, fmt.Errorf("a call of nobody: %w", paddock.Internal)
	}
	return d, nil
}

// Serve answers the client at the other end of two streams, until it ends, or ctx does. Then calls under way are
// canceled, and their commands killed. Sandboxes that are not kept go with the driver, when that is closed.
func (s *Server) Serve(ctx context.Context, d Driver, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	of := newDesk(ctx, d, s.o.Offer, true)
	err := s.mcp.Run(context.WithValue(ctx, deskKey{}, of), &mcp.IOTransport{Reader: &ending{in, cancel}, Writer: onlyWriter{out}})
	told := ctx.Err() != nil
	cancel()
	of.end()
	if told || errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE) {
		return nil // the client ended, or we were told to
	}
	return err
}

// ending is a stream whose end cancels what is under way.
type ending struct {
	in     io.Reader
	cancel func()
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.in.Read(p)
	if err != nil {
		e.cancel()
	}
	return n, err
}

func (e *ending) Close() error { return nil }

// onlyWriter is a stream that stays open: it belongs to the process.
type onlyWriter struct{ io.Writer }

func (onlyWriter) Close() error { return nil }

// Handler answers clients over HTTP, without sessions: each request stands for itself, and its driver is that of whoever
// sent it. The handler that calls it has checked the request's origin and key, and bounds its body.
func (s *Server) Handler(driver func(*http.Request) (Driver, func(), error)) http.Handler {
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
		Stateless: true,
		// It compares the host with the address that the connection arrived at, which a proxy on the same machine breaks.
		// The caller of this handler refuses every foreign origin.
		DisableLocalhostProtection: true,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, done, err := driver(r)
		if err != nil {
			http.Error(w, words(err), paddock.KindOf(err).Translate().HTTP)
			return
		}
		defer done()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		of := newDesk(ctx, d, s.o.Offer, false)
		inner.ServeHTTP(w, r.WithContext(context.WithValue(ctx, deskKey{}, of)))
		cancel()
		of.end() // a command of a client that has gone is killed by the driver
	})
}

// A call is one call of a tool.
type call struct {
	*Desk
	s       *Server
	req     *mcp.CallToolRequest
	text    string
	content []mcp.Content // behind the text
}

// add adds a tool. What do gives as its text is for models, its value for programs.
func add[In, Out any](s *Server, name, about string, hints mcp.ToolAnnotations, in, out schema, do func(context.Context, *call, In) (Out, error)) {
	t := &mcp.Tool{Name: name, Description: about, Annotations: &hints, InputSchema: in.object(true), OutputSchema: out.object(false)}
	mcp.AddTool(s.mcp, t, func(ctx context.Context, req *mcp.CallToolRequest, args In) (*mcp.CallToolResult, Out, error) {
		var none Out
		d, err := desk(ctx)
		if err != nil {
			return nil, none, err
		}
		if !d.enter() {
			return nil, none, fmt.Errorf("the client has gone: %w", paddock.Canceled)
		}
		defer d.calls.Done()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(d.ctx, cancel)()
		c := &call{Desk: d, s: s, req: req}
		value, err := do(ctx, c, args)
		if err != nil {
			return nil, none, errors.New(words(err))
		}
		return &mcp.CallToolResult{Content: append([]mcp.Content{&mcp.TextContent{Text: c.text}}, c.content...)}, value, nil
	})
}
