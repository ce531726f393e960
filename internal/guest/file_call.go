package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

func (h *handler) files() *files { return &files{guard: h.s.o.Guard, names: &h.s.names} }

// within works on files when it is the call's turn.
func (h *handler) within(ctx context.Context, work func(f *files) error) error {
	return h.s.turns.do(ctx, func() error { return work(h.files()) })
}

func (h *handler) Read(ctx context.Context, req *connect.Request[guestpb.ReadRequest], out *connect.ServerStream[guestpb.ReadResponse]) error {
	name, err := checkName("open", req.Msg.Name)
	if err != nil {
		return err
	}
	number, err := numbered(req.Msg.Aside)
	if err != nil {
		return err
	}
	var src *content
	err = h.within(ctx, func(f *files) (err error) { src, err = f.open(name, req.Msg.Offset, req.Msg.Length); return err })
	if err != nil {
		return err
	}
	defer src.close()
	if err := out.Send(&guestpb.ReadResponse{}); err != nil {
		return err
	}
	buf := make([]byte, chunk)
	for sent := 0; ctx.Err() == nil; {
		if number != nil && sent >= guestpb.AsideAfter {
			if err := out.Send(&guestpb.ReadResponse{Aside: true}); err != nil {
				return err
			}
			return h.s.asides.claim(ctx, *number, func(conn net.Conn) error { return src.send(ctx, h.s.turns, conn) })
		}
		var n int
		err := h.s.turns.do(ctx, func() (err error) { n, err = src.read(buf); return err })
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		if err := out.Send(&guestpb.ReadResponse{Data: buf[:n]}); err != nil {
			return err
		}
		sent += n
	}
	return ctx.Err()
}

func (h *handler) Write(ctx context.Context, stream *connect.BidiStream[guestpb.WriteRequest, guestpb.WriteResponse]) error {
	first, err := stream.Receive()
	if err != nil {
		return err
	}
	o := first.GetOpen()
	name, err := checkName("create", o.GetName())
	if err != nil {
		return err
	}
	number, err := numbered(o.GetAside())
	if err != nil {
		return err
	}
	var file *os.File
	err = h.within(ctx, func(f *files) (err error) {
		file, err = f.create(name, creation{
			mode: o.GetMode(), append: o.GetAppend(), exclusive: o.GetExclusive(), parents: o.GetParents(),
		})
		return err
	})
	if err != nil {
		return err
	}
	defer file.Close()
	if err := stream.Send(&guestpb.WriteResponse{Aside: number != nil}); err != nil {
		return err
	}
	var written int64
	for {
		msg, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if msg.GetAside() {
			if number == nil {
				return fmt.Errorf("write %s: over a connection that has no number: %w", name, paddock.Invalid)
			}
			var n int64
			err := h.s.asides.claim(ctx, *number, func(conn net.Conn) (err error) { n, err = h.s.receive(ctx, conn, file, name); return err })
			if written += n; err != nil {
				return err
			}
			number = nil // once
			continue
		}
		var n int
		err = h.s.turns.do(ctx, func() (err error) { n, err = file.Write(msg.GetData()); return err })
		written += int64(n)
		if err != nil {
			return failed("write", name, err)
		}
	}
	if err := h.s.turns.do(ctx, file.Close); err != nil {
		return failed("write", name, err)
	}
	return stream.Send(&guestpb.WriteResponse{Written: written})
}

func (h *handler) Stat(ctx context.Context, req *connect.Request[guestpb.StatRequest]) (*connect.Response[guestpb.StatResponse], error) {
	name, err := checkName("stat", req.Msg.Name)
	if err != nil {
		return nil, err
	}
	var file *guestpb.File
	err = h.within(ctx, func(f *files) (err error) { file, err = f.stat(name); return err })
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&guestpb.StatResponse{File: file}), nil
}

func (h *handler) List(ctx context.Context, req *connect.Request[guestpb.ListRequest], out *connect.ServerStream[guestpb.ListResponse]) error {
	name, err := checkName("list", req.Msg.Name)
	if err != nil {
		return err
	}
	mine := turn{of: h.s.turns}
	if err := mine.take(ctx); err != nil {
		return err
	}
	defer mine.give()
	return h.files().list(name, int(req.Msg.Depth), func(files []*guestpb.File) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		mine.give() // the host may be slow
		return errors.Join(out.Send(&guestpb.ListResponse{Files: files}), mine.take(ctx))
	})
}

func (h *handler) Mkdir(ctx context.Context, req *connect.Request[guestpb.MkdirRequest]) (*connect.Response[guestpb.MkdirResponse], error) {
	name, err := checkName("mkdir", req.Msg.Name)
	if err == nil {
		err = h.within(ctx, func(f *files) error { return f.mkdir(name, req.Msg.Mode, req.Msg.Parents) })
	}
	return answer(&guestpb.MkdirResponse{}, err)
}

func (h *handler) Rename(ctx context.Context, req *connect.Request[guestpb.RenameRequest]) (*connect.Response[guestpb.RenameResponse], error) {
	from, err := checkName("rename", req.Msg.From)
	if err != nil {
		return nil, err
	}
	to, err := checkName("rename to", req.Msg.To)
	if err == nil {
		err = h.within(ctx, func(f *files) error { return f.rename(from, to) })
	}
	return answer(&guestpb.RenameResponse{}, err)
}

func (h *handler) Remove(ctx context.Context, req *connect.Request[guestpb.RemoveRequest]) (*connect.Response[guestpb.RemoveResponse], error) {
	name, err := checkName("remove", req.Msg.Name)
	if err == nil {
		err = h.within(ctx, func(f *files) error { return f.remove(name, req.Msg.All, ctx.Err) })
	}
	return answer(&guestpb.RemoveResponse{}, err)
}

func (h *handler) Chmod(ctx context.Context, req *connect.Request[guestpb.ChmodRequest]) (*connect.Response[guestpb.ChmodResponse], error) {
	name, err := checkName("chmod", req.Msg.Name)
	if err == nil {
		err = h.within(ctx, func(f *files) error { return f.chmod(name, req.Msg.Mode) })
	}
	return answer(&guestpb.ChmodResponse{}, err)
}

func (h *handler) Symlink(ctx context.Context, req *connect.Request[guestpb.SymlinkRequest]) (*connect.Response[guestpb.SymlinkResponse], error) {
	name, err := checkName("symlink", req.Msg.Name)
	if err == nil {
		err = h.within(ctx, func(f *files) error { return f.symlink(req.Msg.Target, name) })
	}
	return answer(&guestpb.SymlinkResponse{}, err)
}

func answer[M any](msg *M, err error) (*connect.Response[M], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(msg), nil
}
