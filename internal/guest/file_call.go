package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

func (h *handler) files() *files { return &files{guard: h.s.o.Guard, names: &h.s.names} }

func (h *handler) Read(ctx context.Context, req *connect.Request[guestpb.ReadRequest], out *connect.ServerStream[guestpb.ReadResponse]) error {
	name, err := checkName("open", req.Msg.Name)
	if err != nil {
		return err
	}
	number, err := numbered(req.Msg.Aside)
	if err != nil {
		return err
	}
	src, err := h.files().open(name, req.Msg.Offset, req.Msg.Length)
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
			return h.s.asides.claim(ctx, *number, src.send)
		}
		n, err := src.read(buf)
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
	file, err := h.files().create(name, creation{
		mode: o.GetMode(), append: o.GetAppend(), exclusive: o.GetExclusive(), parents: o.GetParents(),
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
			err := h.s.asides.claim(ctx, *number, func(conn net.Conn) (err error) { n, err = receive(conn, file, name); return err })
			if written += n; err != nil {
				return err
			}
			number = nil // once
			continue
		}
		n, err := file.Write(msg.GetData())
		written += int64(n)
		if err != nil {
			return failed("write", name, err)
		}
	}
	if err := file.Close(); err != nil {
		return failed("write", name, err)
	}
	return stream.Send(&guestpb.WriteResponse{Written: written})
}

func (h *handler) Stat(_ context.Context, req *connect.Request[guestpb.StatRequest]) (*connect.Response[guestpb.StatResponse], error) {
	name, err := checkName("stat", req.Msg.Name)
	if err != nil {
		return nil, err
	}
	file, err := h.files().stat(name)
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
	return h.files().list(name, int(req.Msg.Depth), func(files []*guestpb.File) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return out.Send(&guestpb.ListResponse{Files: files})
	})
}

func (h *handler) Mkdir(_ context.Context, req *connect.Request[guestpb.MkdirRequest]) (*connect.Response[guestpb.MkdirResponse], error) {
	name, err := checkName("mkdir", req.Msg.Name)
	if err == nil {
		err = h.files().mkdir(name, req.Msg.Mode, req.Msg.Parents)
	}
	return answer(&guestpb.MkdirResponse{}, err)
}

func (h *handler) Rename(_ context.Context, req *connect.Request[guestpb.RenameRequest]) (*connect.Response[guestpb.RenameResponse], error) {
	from, err := checkName("rename", req.Msg.From)
	if err != nil {
		return nil, err
	}
	to, err := checkName("rename to", req.Msg.To)
	if err == nil {
		err = h.files().rename(from, to)
	}
	return answer(&guestpb.RenameResponse{}, err)
}

func (h *handler) Remove(ctx context.Context, req *connect.Request[guestpb.RemoveRequest]) (*connect.Response[guestpb.RemoveResponse], error) {
	name, err := checkName("remove", req.Msg.Name)
	if err == nil {
		err = h.files().remove(name, req.Msg.All, ctx.Err)
	}
	return answer(&guestpb.RemoveResponse{}, err)
}

func (h *handler) Chmod(_ context.Context, req *connect.Request[guestpb.ChmodRequest]) (*connect.Response[guestpb.ChmodResponse], error) {
	name, err := checkName("chmod", req.Msg.Name)
	if err == nil {
		err = h.files().chmod(name, req.Msg.Mode)
	}
	return answer(&guestpb.ChmodResponse{}, err)
}

func (h *handler) Symlink(_ context.Context, req *connect.Request[guestpb.SymlinkRequest]) (*connect.Response[guestpb.SymlinkResponse], error) {
	name, err := checkName("symlink", req.Msg.Name)
	if err == nil {
		err = h.files().symlink(req.Msg.Target, name)
	}
	return answer(&guestpb.SymlinkResponse{}, err)
}

func answer[M any](msg *M, err error) (*connect.Response[M], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(msg), nil
}
