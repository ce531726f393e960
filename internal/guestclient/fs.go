package guestclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"time"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

const (
	// removeTime bounds the removal of a tree, which can be large.
	removeTime = 30 * time.Minute
	// maxListed bounds one listing: a caller may keep all of it.
	maxListed = 4 << 20
	// maxBatch bounds the files and the events of one message.
	maxBatch = 1024
)

// FS returns the sandbox's file system.
func (g *Guest) FS() paddock.FS { return files{g} }

// files is a paddock.FS. It checks names before they are sent, and every
// answer before it is believed.
type files struct {
	g *Guest
}

func (f files) Open(ctx context.Context, name string, o paddock.OpenOptions) (io.ReadCloser, error) {
	if err := checkName("open", name); err != nil {
		return nil, err
	}
	if o.Offset < 0 || o.Length < 0 {
		return nil, fmt.Errorf("open %q: negative offset or length: %w", name, paddock.Invalid)
	}
	c := f.g.begin(ctx)
	number := f.g.asideNumber()
	stream, err := f.g.rpc.Read(c.ctx, connect.NewRequest(&guestpb.ReadRequest{
		Name: []byte(name), Offset: o.Offset, Length: o.Length, Aside: number,
	}))
	if err != nil {
		return nil, c.fail(err)
	}
	if !stream.Receive() {
		err := c.fail(ended(stream.Err()))
		_ = stream.Close()
		return nil, err
	}
	if len(stream.Msg().GetData()) != 0 {
		c.cancel(nil)
		_ = stream.Close()
		return nil, nonsense("data before the file was open")
	}
	if err := c.opened(); err != nil {
		_ = stream.Close()
		return nil, err
	}
	r := newReader(c, stream, name, o.Length)
	r.number = number
	return r, nil
}

func (f files) Create(ctx context.Context, name string, o paddock.CreateOptions) (io.WriteCloser, error) {
	if err := checkName("create", name); err != nil {
		return nil, err
	}
	mode, err := permission("create", name, o.Mode)
	if err != nil {
		return nil, err
	}
	c := f.g.begin(ctx)
	number := f.g.asideNumber()
	stream := f.g.rpc.Write(c.ctx)
	// An error of Send is told better by Receive.
	_ = stream.Send(&guestpb.WriteRequest{Open: &guestpb.WriteOpen{
		Name: []byte(name), Mode: mode, Append: o.Append, Exclusive: o.Exclusive, Parents: o.Parents, Aside: number,
	}})
	first, err := stream.Receive()
	if err != nil {
		err := c.fail(err)
		_ = stream.CloseRequest()
		_ = stream.CloseResponse()
		return nil, err
	}
	if err := c.opened(); err != nil {
		_ = stream.CloseRequest()
		_ = stream.CloseResponse()
		return nil, err
	}
	w := newWriter(c, stream, name)
	if first.GetAside() { // one of before knows of no such connections
		w.number = number
	}
	return w, nil
}

func (f files) Stat(ctx context.Context, name string) (paddock.FileInfo, error) {
	if err := checkName("stat", name); err != nil {
		return paddock.FileInfo{}, err
	}
	ctx, cancel := f.g.bound(ctx)
	defer cancel()
	res, err := f.g.rpc.Stat(ctx, connect.NewRequest(&guestpb.StatRequest{Name: []byte(name)}))
	if err != nil {
		return paddock.FileInfo{}, f.g.failure(ctx, err)
	}
	info, err := fileInfo(res.Msg.GetFile())
	if err != nil {
		return paddock.FileInfo{}, err
	}
	if info.Name != tidy(name) {
		return paddock.FileInfo{}, nonsense("the description of another file")
	}
	return info, nil
}

func (f files) List(ctx context.Context, name string, depth int) iter.Seq2[paddock.FileInfo, error] {
	return func(yield func(paddock.FileInfo, error) bool) {
		if err := f.list(ctx, name, depth, yield); err != nil {
			yield(paddock.FileInfo{}, err)
		}
	}
}

// list gives an error that is still to be yielded.
func (f files) list(ctx context.Context, name string, depth int, yield func(paddock.FileInfo, error) bool) error {
	if err := checkName("list", name); err != nil {
		return err
	}
	if depth < 1 {
		return fmt.Errorf("list %q: the depth is less than 1: %w", name, paddock.Invalid)
	}
	depth = min(depth, 1<<30)
	c := f.g.call(ctx)
	defer c.cancel(nil)
	var stream *connect.ServerStreamForClient[guestpb.ListResponse]
	err := c.patiently(func() (err error) {
		stream, err = f.g.rpc.List(c.ctx, connect.NewRequest(&guestpb.ListRequest{Name: []byte(name), Depth: int32(depth)}))
		return err
	})
	if err != nil {
		return c.failure(err)
	}
	defer func() {
		c.cancel(nil) // else Close would read what is left
		_ = stream.Close()
	}()
	dir := tidy(name)
	for listed := 0; ; {
		err := c.patiently(func() error {
			if !stream.Receive() {
				return ended(stream.Err())
			}
			return nil
		})
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.failure(err)
		}
		batch := stream.Msg().GetFiles()
		if listed += len(batch); listed > maxListed {
			return fmt.Errorf("list %q: more than %d files; list it in parts: %w", name, maxListed, paddock.Exhausted)
		}
		if len(batch) > maxBatch {
			return nonsense("too many files at once")
		}
		for _, m := range batch {
			info, err := fileInfo(m)
			if err != nil {
				return err
			}
			if !below(dir, info.Name, depth) {
				return nonsense("a file that is not in the directory")
			}
			if !yield(info, nil) {
				return nil
			}
		}
	}
}

func (f files) Mkdir(ctx context.Context, name string, o paddock.MkdirOptions) error {
	if err := checkName("mkdir", name); err != nil {
		return err
	}
	mode, err := permission("mkdir", name, o.Mode)
	if err != nil {
		return err
	}
	ctx, cancel := f.g.bound(ctx)
	defer cancel()
	_, err = f.g.rpc.Mkdir(ctx, connect.NewRequest(&guestpb.MkdirRequest{Name: []byte(name), Mode: mode, Parents: o.Parents}))
	return f.done(ctx, err)
}

func (f files) Rename(ctx context.Context, from, to string) error {
	if err := checkName("rename", from); err != nil {
		return err
	}
	if err := checkName("rename to", to); err != nil {
		return err
	}
	ctx, cancel := f.g.bound(ctx)
	defer cancel()
	_, err := f.g.rpc.Rename(ctx, connect.NewRequest(&guestpb.RenameRequest{From: []byte(from), To: []byte(to)}))
	return f.done(ctx, err)
}

func (f files) Remove(ctx context.Context, name string, all bool) error {
	if err := checkName("remove", name); err != nil {
		return err
	}
	limit := answerTime
	if all {
		limit = removeTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := f.g.rpc.Remove(ctx, connect.NewRequest(&guestpb.RemoveRequest{Name: []byte(name), All: all}))
	return f.done(ctx, err)
}

func (f files) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	if err := checkName("chmod", name); err != nil {
		return err
	}
	bits, err := permission("chmod", name, mode)
	if err != nil {
		return err
	}
	ctx, cancel := f.g.bound(ctx)
	defer cancel()
	_, err = f.g.rpc.Chmod(ctx, connect.NewRequest(&guestpb.ChmodRequest{Name: []byte(name), Mode: bits}))
	return f.done(ctx, err)
}

func (f files) Symlink(ctx context.Context, target, name string) error {
	if err := checkName("symlink", name); err != nil {
		return err
	}
	if err := checkTarget(target, name); err != nil {
		return err
	}
	ctx, cancel := f.g.bound(ctx)
	defer cancel()
	_, err := f.g.rpc.Symlink(ctx, connect.NewRequest(&guestpb.SymlinkRequest{Target: []byte(target), Name: []byte(name)}))
	return f.done(ctx, err)
}

func (f files) done(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return f.g.failure(ctx, err)
}
