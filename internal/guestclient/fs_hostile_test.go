//go:build linux

package guestclient_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// A liar is a guest that gives prepared answers about files, whatever it is
// asked, and then waits for the end of the call where it is told so.
type liar struct {
	guestpb.UnimplementedGuestHandler
	read  []*guestpb.ReadResponse
	list  []*guestpb.ListResponse
	watch []*guestpb.WatchResponse
	write []*guestpb.WriteResponse
	stat  *guestpb.StatResponse
	wait  bool
}

func tell[M any](ctx context.Context, l *liar, out *connect.ServerStream[M], answers []*M) error {
	for _, m := range answers {
		if err := out.Send(m); err != nil {
			return err
		}
	}
	if l.wait {
		<-ctx.Done()
	}
	return nil
}

func (l *liar) Read(ctx context.Context, _ *connect.Request[guestpb.ReadRequest], out *connect.ServerStream[guestpb.ReadResponse]) error {
	return tell(ctx, l, out, l.read)
}

func (l *liar) List(ctx context.Context, _ *connect.Request[guestpb.ListRequest], out *connect.ServerStream[guestpb.ListResponse]) error {
	return tell(ctx, l, out, l.list)
}

func (l *liar) Watch(ctx context.Context, _ *connect.Request[guestpb.WatchRequest], out *connect.ServerStream[guestpb.WatchResponse]) error {
	return tell(ctx, l, out, l.watch)
}

func (l *liar) Stat(context.Context, *connect.Request[guestpb.StatRequest]) (*connect.Response[guestpb.StatResponse], error) {
	return connect.NewResponse(l.stat), nil
}

func (l *liar) Write(_ context.Context, stream *connect.BidiStream[guestpb.WriteRequest, guestpb.WriteResponse]) error {
	if _, err := stream.Receive(); err != nil {
		return err
	}
	for i, m := range l.write {
		if i == 1 {
			for {
				if _, err := stream.Receive(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					return err
				}
			}
		}
		if err := stream.Send(m); err != nil {
			return err
		}
	}
	return nil
}

func (l *liar) fs(t *testing.T) paddock.FS {
	t.Helper()
	_, h := guestpb.NewGuestHandler(l)
	return serve(t, h, guestclient.Options{}).FS()
}

func file(name string) *guestpb.File { return &guestpb.File{Name: []byte(name), Mode: 0o100644} }

func TestAGuestThatLiesAboutFilesIsNotBelieved(t *testing.T) {
	opened := &guestpb.ReadResponse{}
	bytes := func(n int) *guestpb.ReadResponse { return &guestpb.ReadResponse{Data: make([]byte, n)} }
	read := func(o paddock.OpenOptions) func(paddock.FS) error {
		return func(fsys paddock.FS) error {
			r, err := fsys.Open(t.Context(), "/f", o)
			if err != nil {
				return err
			}
			defer r.Close()
			n, err := io.Copy(io.Discard, r)
			if o.Length > 0 && n > o.Length {
				t.Errorf("%d bytes came, of %d", n, o.Length)
			}
			return err
		}
	}
	write := func(fsys paddock.FS) error {
		w, err := fsys.Create(t.Context(), "/f", paddock.CreateOptions{})
		if err != nil {
			return err
		}
		if _, err := w.Write([]byte("12345")); err != nil {
			_ = w.Close()
			return err
		}
		return w.Close()
	}
	listing := func(fsys paddock.FS) error { _, err := list(t.Context(), fsys, "/dir", 1); return err }
	stat := func(fsys paddock.FS) error { _, err := fsys.Stat(t.Context(), "/dir/./f"); return err }
	next := func(fsys paddock.FS) error {
		w, err := fsys.Watch(t.Context(), "/dir", paddock.WatchOptions{})
		if err != nil {
			return err
		}
		defer w.Close()
		_, err = w.Next(t.Context())
		return err
	}
	event := func(op guestpb.FileOp, name string) []*guestpb.WatchResponse {
		return []*guestpb.WatchResponse{{}, {Events: []*guestpb.FileEvent{{Op: op, Name: []byte(name)}}}}
	}
	for what, row := range map[string]struct {
		guest liar
		do    func(paddock.FS) error
	}{
		"no opening":                   {liar{}, read(paddock.OpenOptions{})},
		"data before the opening":      {liar{read: []*guestpb.ReadResponse{bytes(1)}, wait: true}, read(paddock.OpenOptions{})},
		"more than was asked for":      {liar{read: []*guestpb.ReadResponse{opened, bytes(5), bytes(6)}, wait: true}, read(paddock.OpenOptions{Length: 10})},
		"too much at once":             {liar{read: []*guestpb.ReadResponse{opened, bytes(256<<10 + 1)}, wait: true}, read(paddock.OpenOptions{})},
		"nothing about a write":        {liar{}, write},
		"no end of a write":            {liar{write: []*guestpb.WriteResponse{{}}}, write},
		"less written":                 {liar{write: []*guestpb.WriteResponse{{}, {Written: 4}}}, write},
		"more written":                 {liar{write: []*guestpb.WriteResponse{{}, {Written: 6}}}, write},
		"an answer after the end":      {liar{write: []*guestpb.WriteResponse{{}, {Written: 5}, {Written: 5}}}, write},
		"a file elsewhere":             {liar{list: []*guestpb.ListResponse{{Files: []*guestpb.File{file("/etc/passwd")}}}, wait: true}, listing},
		"a file above":                 {liar{list: []*guestpb.ListResponse{{Files: []*guestpb.File{file("/dir/..")}}}, wait: true}, listing},
		"a file too deep":              {liar{list: []*guestpb.ListResponse{{Files: []*guestpb.File{file("/dir/a/b")}}}, wait: true}, listing},
		"no file":                      {liar{list: []*guestpb.ListResponse{{Files: []*guestpb.File{nil}}}, wait: true}, listing},
		"very many files":              {liar{list: []*guestpb.ListResponse{{Files: make([]*guestpb.File, 5000)}}, wait: true}, listing},
		"the description of nothing":   {liar{stat: &guestpb.StatResponse{}}, stat},
		"the description of another":   {liar{stat: &guestpb.StatResponse{File: file("/dir/g")}}, stat},
		"a negative size":              {liar{stat: &guestpb.StatResponse{File: &guestpb.File{Name: []byte("/dir/f"), Size: -1}}}, stat},
		"no watch":                     {liar{}, next},
		"events before the watch":      {liar{watch: event(guestpb.FileOp_FILE_OP_WRITE, "/dir/f")[1:], wait: true}, next},
		"an event elsewhere":           {liar{watch: event(guestpb.FileOp_FILE_OP_WRITE, "/dirt"), wait: true}, next},
		"an event too deep":            {liar{watch: event(guestpb.FileOp_FILE_OP_WRITE, "/dir/a/b"), wait: true}, next},
		"an event that does not exist": {liar{watch: event(77, "/dir/f"), wait: true}, next},
		"the end of events":            {liar{watch: []*guestpb.WatchResponse{{}}}, next},
	} {
		t.Run(what, func(t *testing.T) {
			err := row.do(row.guest.fs(t))
			if err == nil || paddock.KindOf(err) != paddock.Internal {
				t.Errorf("%v of kind %v", err, paddock.KindOf(err))
			}
		})
	}
}

func TestAnEndlessListingEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("short: millions of files take seconds")
	}
	batch := &guestpb.ListResponse{}
	for range 1000 {
		batch.Files = append(batch.Files, file("/dir/"+strings.Repeat("n", 9)))
	}
	l := &liar{}
	for range 5000 {
		l.list = append(l.list, batch)
	}
	n := 0
	var last error
	for _, err := range l.fs(t).List(t.Context(), "/dir", 1) {
		n++
		last = err
	}
	wantKind(t, last, paddock.Exhausted)
	if n > 5_000_000 {
		t.Error("it went on to the end")
	}
}
