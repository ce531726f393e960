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
	req := &guestpb.ReadRequest{Name: []byte(name), Offset: o.Offset, Length: o.Length, Aside: number}
	stream, err := first(c, func() (*connect.ServerStreamForClient[guestpb.ReadResponse], error) {
		return f.g.rpc.Read(c.ctx, connect.NewRequest(req))
	})
	if err != nil {
		return nil, err
	}
	if len(stream.Msg().GetData()) != 0 {
		c.leave(func() { _ = stream.Close() })
		return nil, c.fail(nonsense("data before the file was open"))
	}
	if err := c.opened(); err != nil {
		c.leave(func() { _ = stream.Close() })
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
	opened, err := within(c.ctx, func() (*guestpb.WriteResponse, error) {
		c.turn.Lock()
		defer c.turn.Unlock()
		// An error of Send is told better by Receive.
		_ = stream.Send(&guestpb.WriteRequest{Open: &guestpb.WriteOpen{
			Name: []byte(name), Mode: mode, Append: o.Append, Exclusive: o.Exclusive, Parents: o.Parents, Aside: number,
		}})
		return stream.Receive()
	}, nil)
	if err != nil {
		err = c.fail(err)
	} else {
		err = c.opened()
	}
	if err != nil {
		c.leave(func() { closeBoth(stream) })
		return nil, err
	}
	w := newWriter(c, stream, name)
	if opened.GetAside() { // one of before knows of no such connections
		w.number = number
	}
	return w, nil
}

func (f files) Stat(ctx context.Context, name string) (paddock.FileInfo, error) {
	if err := checkName("stat", name); err != nil {
		return paddock.FileInfo{}, err
	}
	m, err := askFor(ctx, f.g, f.g.waits, f.g.rpc.Stat, &guestpb.StatRequest{Name: []byte(name)})
	if err != nil {
		return paddock.FileInfo{}, err
	}
	info, err := fileInfo(m.GetFile())
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
	stream, err := exchange(c, func() (*connect.ServerStreamForClient[guestpb.ListResponse], error) {
		return f.g.rpc.List(c.ctx, connect.NewRequest(&guestpb.ListRequest{Name: []byte(name), Depth: int32(depth)}))
	}, closed)
	if err != nil {
		return c.failure(err)
	}
	defer c.leave(func() { _ = stream.Close() })
	dir := tidy(name)
	for listed := 0; ; {
		m, err := exchange(c, func() (*guestpb.ListResponse, error) { return next(stream) }, nil)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return c.failure(err)
		}
		batch := m.GetFiles()
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
	_, err = askFor(ctx, f.g, f.g.waits, f.g.rpc.Mkdir, &guestpb.MkdirRequest{Name: []byte(name), Mode: mode, Parents: o.Parents})
	return err
}

func (f files) Rename(ctx context.Context, from, to string) error {
	if err := checkName("rename", from); err != nil {
		return err
	}
	if err := checkName("rename to", to); err != nil {
		return err
	}
	_, err := askFor(ctx, f.g, f.g.waits, f.g.rpc.Rename, &guestpb.RenameRequest{From: []byte(from), To: []byte(to)})
	return err
}

func (f files) Remove(ctx context.Context, name string, all bool) error {
	if err := checkName("remove", name); err != nil {
		return err
	}
	limit := f.g.waits
	if all {
		limit = removeTime
	}
	_, err := askFor(ctx, f.g, limit, f.g.rpc.Remove, &guestpb.RemoveRequest{Name: []byte(name), All: all})
	return err
}

func (f files) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	if err := checkName("chmod", name); err != nil {
		return err
	}
	bits, err := permission("chmod", name, mode)
	if err != nil {
		return err
	}
	_, err = askFor(ctx, f.g, f.g.waits, f.g.rpc.Chmod, &guestpb.ChmodRequest{Name: []byte(name), Mode: bits})
	return err
}

func (f files) Symlink(ctx context.Context, target, name string) error {
	if err := checkName("symlink", name); err != nil {
		return err
	}
	if err := checkTarget(target, name); err != nil {
		return err
	}
	_, err := askFor(ctx, f.g, f.g.waits, f.g.rpc.Symlink, &guestpb.SymlinkRequest{Target: []byte(target), Name: []byte(name)})
	return err
}
