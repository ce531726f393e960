package guestpb

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"connectrpc.com/connect"
)

// NewClient is NewGuestClient, and builds what a procedure needs at its first call. A short
// command needs three of the procedures, and to build all of them takes as long as a call.
func NewClient(c connect.HTTPClient, url string, o ...connect.ClientOption) GuestClient {
	return &client{dial: dialing{c, strings.TrimRight(url, "/"), o}}
}

// dialing is what all procedures of a client are built with.
type dialing struct {
	http    connect.HTTPClient
	url     string
	options []connect.ClientOption
}

// A procedure is a client of one procedure, built at its first call.
type procedure[Req, Res any] struct {
	once sync.Once
	made *connect.Client[Req, Res]
}

func (p *procedure[Req, Res]) of(d *dialing, name string) *connect.Client[Req, Res] {
	p.once.Do(func() { p.made = connect.NewClient[Req, Res](d.http, d.url+name, d.options...) })
	return p.made
}

type client struct {
	dial dialing

	hello      procedure[HelloRequest, HelloResponse]
	start      procedure[StartRequest, ProcessEvent]
	attach     procedure[AttachRequest, ProcessEvent]
	input      procedure[InputRequest, InputResponse]
	signal     procedure[SignalRequest, SignalResponse]
	resize     procedure[ResizeRequest, ResizeResponse]
	processes  procedure[ProcessesRequest, ProcessesResponse]
	read       procedure[ReadRequest, ReadResponse]
	write      procedure[WriteRequest, WriteResponse]
	stat       procedure[StatRequest, StatResponse]
	list       procedure[ListRequest, ListResponse]
	mkdir      procedure[MkdirRequest, MkdirResponse]
	rename     procedure[RenameRequest, RenameResponse]
	remove     procedure[RemoveRequest, RemoveResponse]
	chmod      procedure[ChmodRequest, ChmodResponse]
	symlink    procedure[SymlinkRequest, SymlinkResponse]
	watch      procedure[WatchRequest, WatchResponse]
	connection procedure[DialRequest, DialResponse]
	refusals   procedure[RefusalsRequest, RefusalsResponse]
}

func (c *client) Hello(ctx context.Context, r *connect.Request[HelloRequest]) (*connect.Response[HelloResponse], error) {
	return c.hello.of(&c.dial, GuestHelloProcedure).CallUnary(ctx, r)
}

func (c *client) Start(ctx context.Context, r *connect.Request[StartRequest]) (*connect.ServerStreamForClient[ProcessEvent], error) {
	return c.start.of(&c.dial, GuestStartProcedure).CallServerStream(ctx, r)
}

func (c *client) Attach(ctx context.Context, r *connect.Request[AttachRequest]) (*connect.ServerStreamForClient[ProcessEvent], error) {
	return c.attach.of(&c.dial, GuestAttachProcedure).CallServerStream(ctx, r)
}

func (c *client) Input(ctx context.Context) *connect.ClientStreamForClient[InputRequest, InputResponse] {
	return c.input.of(&c.dial, GuestInputProcedure).CallClientStream(ctx)
}

func (c *client) Signal(ctx context.Context, r *connect.Request[SignalRequest]) (*connect.Response[SignalResponse], error) {
	return c.signal.of(&c.dial, GuestSignalProcedure).CallUnary(ctx, r)
}

func (c *client) Resize(ctx context.Context, r *connect.Request[ResizeRequest]) (*connect.Response[ResizeResponse], error) {
	return c.resize.of(&c.dial, GuestResizeProcedure).CallUnary(ctx, r)
}

func (c *client) Processes(ctx context.Context, r *connect.Request[ProcessesRequest]) (*connect.Response[ProcessesResponse], error) {
	return c.processes.of(&c.dial, GuestProcessesProcedure).CallUnary(ctx, r)
}

func (c *client) Read(ctx context.Context, r *connect.Request[ReadRequest]) (*connect.ServerStreamForClient[ReadResponse], error) {
	return c.read.of(&c.dial, GuestReadProcedure).CallServerStream(ctx, r)
}

func (c *client) Write(ctx context.Context) *connect.BidiStreamForClient[WriteRequest, WriteResponse] {
	return c.write.of(&c.dial, GuestWriteProcedure).CallBidiStream(ctx)
}

func (c *client) Stat(ctx context.Context, r *connect.Request[StatRequest]) (*connect.Response[StatResponse], error) {
	return c.stat.of(&c.dial, GuestStatProcedure).CallUnary(ctx, r)
}

func (c *client) List(ctx context.Context, r *connect.Request[ListRequest]) (*connect.ServerStreamForClient[ListResponse], error) {
	return c.list.of(&c.dial, GuestListProcedure).CallServerStream(ctx, r)
}

func (c *client) Mkdir(ctx context.Context, r *connect.Request[MkdirRequest]) (*connect.Response[MkdirResponse], error) {
	return c.mkdir.of(&c.dial, GuestMkdirProcedure).CallUnary(ctx, r)
}

func (c *client) Rename(ctx context.Context, r *connect.Request[RenameRequest]) (*connect.Response[RenameResponse], error) {
	return c.rename.of(&c.dial, GuestRenameProcedure).CallUnary(ctx, r)
}

func (c *client) Remove(ctx context.Context, r *connect.Request[RemoveRequest]) (*connect.Response[RemoveResponse], error) {
	return c.remove.of(&c.dial, GuestRemoveProcedure).CallUnary(ctx, r)
}

func (c *client) Chmod(ctx context.Context, r *connect.Request[ChmodRequest]) (*connect.Response[ChmodResponse], error) {
	return c.chmod.of(&c.dial, GuestChmodProcedure).CallUnary(ctx, r)
}

func (c *client) Symlink(ctx context.Context, r *connect.Request[SymlinkRequest]) (*connect.Response[SymlinkResponse], error) {
	return c.symlink.of(&c.dial, GuestSymlinkProcedure).CallUnary(ctx, r)
}

func (c *client) Watch(ctx context.Context, r *connect.Request[WatchRequest]) (*connect.ServerStreamForClient[WatchResponse], error) {
	return c.watch.of(&c.dial, GuestWatchProcedure).CallServerStream(ctx, r)
}

func (c *client) Dial(ctx context.Context) *connect.BidiStreamForClient[DialRequest, DialResponse] {
	return c.connection.of(&c.dial, GuestDialProcedure).CallBidiStream(ctx)
}

func (c *client) Refusals(ctx context.Context, r *connect.Request[RefusalsRequest]) (*connect.Response[RefusalsResponse], error) {
	return c.refusals.of(&c.dial, GuestRefusalsProcedure).CallUnary(ctx, r)
}

// NewHandler is NewGuestHandler, and builds what a procedure needs at its first call.
func NewHandler(s GuestHandler, o ...connect.HandlerOption) http.Handler {
	return &handler{service: s, options: o, made: map[string]http.Handler{}}
}

type handler struct {
	service GuestHandler
	options []connect.HandlerOption

	mu   sync.Mutex
	made map[string]http.Handler // guarded by mu: by procedure
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p := h.of(r.URL.Path); p != nil {
		p.ServeHTTP(w, r)
		return
	}
	http.NotFound(w, r)
}

// of gives the handler of a procedure; nil is that there is no such procedure.
func (h *handler) of(name string) http.Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.made[name]
	if p == nil {
		if p = build(name, h.service, h.options); p != nil {
			h.made[name] = p
		}
	}
	return p
}

func build(name string, s GuestHandler, o []connect.HandlerOption) http.Handler {
	switch name {
	case GuestHelloProcedure:
		return connect.NewUnaryHandler(name, s.Hello, o...)
	case GuestStartProcedure:
		return connect.NewServerStreamHandler(name, s.Start, o...)
	case GuestAttachProcedure:
		return connect.NewServerStreamHandler(name, s.Attach, o...)
	case GuestInputProcedure:
		return connect.NewClientStreamHandler(name, s.Input, o...)
	case GuestSignalProcedure:
		return connect.NewUnaryHandler(name, s.Signal, o...)
	case GuestResizeProcedure:
		return connect.NewUnaryHandler(name, s.Resize, o...)
	case GuestProcessesProcedure:
		return connect.NewUnaryHandler(name, s.Processes, o...)
	case GuestReadProcedure:
		return connect.NewServerStreamHandler(name, s.Read, o...)
	case GuestWriteProcedure:
		return connect.NewBidiStreamHandler(name, s.Write, o...)
	case GuestStatProcedure:
		return connect.NewUnaryHandler(name, s.Stat, o...)
	case GuestListProcedure:
		return connect.NewServerStreamHandler(name, s.List, o...)
	case GuestMkdirProcedure:
		return connect.NewUnaryHandler(name, s.Mkdir, o...)
	case GuestRenameProcedure:
		return connect.NewUnaryHandler(name, s.Rename, o...)
	case GuestRemoveProcedure:
		return connect.NewUnaryHandler(name, s.Remove, o...)
	case GuestChmodProcedure:
		return connect.NewUnaryHandler(name, s.Chmod, o...)
	case GuestSymlinkProcedure:
		return connect.NewUnaryHandler(name, s.Symlink, o...)
	case GuestWatchProcedure:
		return connect.NewServerStreamHandler(name, s.Watch, o...)
	case GuestDialProcedure:
		return connect.NewBidiStreamHandler(name, s.Dial, o...)
	case GuestRefusalsProcedure:
		return connect.NewUnaryHandler(name, s.Refusals, o...)
	}
	return nil
}
