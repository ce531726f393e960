package envd

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// Bounds of one list of files.
const (
	maxEntries = 100_000
	maxDepth   = 1000
	maxListed  = maxAnswer / 2 // bytes of names and links
)

// fileService implements filesystem.Filesystem.
type fileService struct{ b *Box }

// named makes a path absolute, and returns a context for the user of the request.
func (b *Box) named(ctx context.Context, h http.Header, name string) (context.Context, string, error) {
	user, err := b.caller(ctx, h)
	if err == nil {
		ctx, err = b.as(ctx, user)
	}
	if err != nil {
		return ctx, "", err
	}
	name, err = b.resolve(ctx, name)
	return ctx, name, err
}

// Stat describes a file.
func (s fileService) Stat(ctx context.Context, r *connect.Request[envdpb.StatRequest]) (*connect.Response[envdpb.StatResponse], error) {
	var entry *envdpb.EntryInfo
	ctx, name, err := s.b.named(ctx, r.Header(), r.Msg.GetPath())
	if err == nil {
		entry, err = s.b.described(ctx, name)
	}
	return answered(ctx, s.b, &envdpb.StatResponse{Entry: entry}, err)
}

// MakeDir makes a directory and its parents.
func (s fileService) MakeDir(ctx context.Context, r *connect.Request[envdpb.MakeDirRequest]) (*connect.Response[envdpb.MakeDirResponse], error) {
	entry, err := s.b.makeDir(ctx, r.Header(), r.Msg.GetPath())
	return answered(ctx, s.b, &envdpb.MakeDirResponse{Entry: entry}, err)
}

func (b *Box) makeDir(ctx context.Context, h http.Header, text string) (*envdpb.EntryInfo, error) {
	ctx, name, err := b.named(ctx, h, text)
	if err != nil {
		return nil, err
	}
	files := b.files(ctx)
	err = files.Mkdir(ctx, name, paddock.MkdirOptions{})
	if err != nil && paddock.KindOf(err) == paddock.NotFound {
		err = files.Mkdir(ctx, name, paddock.MkdirOptions{Parents: true})
	}
	if err != nil && paddock.KindOf(err) == paddock.Exists {
		return nil, b.taken(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	return b.described(ctx, name)
}

// taken returns the error for an existing name that is not a directory.
func (b *Box) taken(ctx context.Context, name string) error {
	_, info, err := b.walker().real(ctx, name)
	switch {
	case err != nil && paddock.KindOf(err) != paddock.NotFound:
		return err
	case err == nil && info.Mode.IsDir():
		return refuse(http.StatusConflict, connect.CodeAlreadyExists, fmt.Sprintf("directory already exists: %s", clean(name)))
	}
	return invalid(fmt.Sprintf("path already exists but it is not a directory: %s", clean(name)))
}

// Move renames a file or directory, and makes the parents of the new name.
func (s fileService) Move(ctx context.Context, r *connect.Request[envdpb.MoveRequest]) (*connect.Response[envdpb.MoveResponse], error) {
	entry, err := s.b.move(ctx, r.Header(), r.Msg)
	return answered(ctx, s.b, &envdpb.MoveResponse{Entry: entry}, err)
}

func (b *Box) move(ctx context.Context, h http.Header, m *envdpb.MoveRequest) (*envdpb.EntryInfo, error) {
	ctx, from, err := b.named(ctx, h, m.GetSource())
	if err != nil {
		return nil, err
	}
	to, err := b.resolve(ctx, m.GetDestination())
	if err != nil {
		return nil, err
	}
	files := b.files(ctx)
	err = files.Rename(ctx, from, to)
	if err != nil && paddock.KindOf(err) == paddock.NotFound {
		if _, gone := files.Stat(ctx, from); gone != nil {
			return nil, notThere(gone, from)
		}
		if err := files.Mkdir(ctx, path.Dir(to), paddock.MkdirOptions{Parents: true}); err != nil {
			return nil, err
		}
		err = files.Rename(ctx, from, to)
	}
	if err != nil {
		return nil, err
	}
	if !b.metadata.empty() {
		b.metadata.move(b.key(ctx, from), b.key(ctx, to))
	}
	return b.described(ctx, to)
}

// Remove removes a file, or a directory with its contents. A missing name is not an error.
func (s fileService) Remove(ctx context.Context, r *connect.Request[envdpb.RemoveRequest]) (*connect.Response[envdpb.RemoveResponse], error) {
	ctx, name, err := s.b.named(ctx, r.Header(), r.Msg.GetPath())
	if err == nil {
		key := ""
		if !s.b.metadata.empty() {
			key = s.b.key(ctx, name)
		}
		if err = s.b.files(ctx).Remove(ctx, name, true); err == nil && key != "" {
			s.b.metadata.remove(key)
		}
	}
	return answered(ctx, s.b, &envdpb.RemoveResponse{}, err)
}

// ListDir lists a directory in lexical order, each subdirectory before its contents.
func (s fileService) ListDir(ctx context.Context, r *connect.Request[envdpb.ListDirRequest]) (*connect.Response[envdpb.ListDirResponse], error) {
	select {
	case s.b.listing <- struct{}{}: // one at a time, until it was sent, because a list may be large
		end := func() { <-s.b.listing }
		if a := answering(ctx); a != nil {
			a.after = end
		} else {
			defer end()
		}
	case <-ctx.Done():
		return nil, rpcError(context.Cause(ctx))
	}
	list, err := s.b.list(ctx, r.Header(), r.Msg)
	return answered(ctx, s.b, &envdpb.ListDirResponse{Entries: list}, err)
}

func (b *Box) list(ctx context.Context, h http.Header, m *envdpb.ListDirRequest) ([]*envdpb.EntryInfo, error) {
	ctx, name, err := b.named(ctx, h, m.GetPath())
	if err != nil {
		return nil, err
	}
	w := b.walker()
	root, err := w.directory(ctx, name)
	if err != nil {
		return nil, err
	}
	depth := int(min(max(m.GetDepth(), 1), maxDepth))
	var infos []paddock.FileInfo
	size := 0
	for info, err := range b.files(ctx).List(ctx, root, depth) {
		size += len(info.Name) + len(info.Link)
		full := answering(ctx).hold(size)
		switch {
		case full != nil:
			return nil, full
		case err != nil && paddock.KindOf(err) == paddock.NotFound && len(infos) > 0:
			// the directory was removed meanwhile
		case err != nil:
			return nil, notThere(err, name)
		case len(infos) == maxEntries:
			return nil, fmt.Errorf("more than %d files in %s: %w", maxEntries, clean(name), paddock.Exhausted)
		case size > maxListed:
			return nil, tooLong(name)
		default:
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b paddock.FileInfo) int { return comparePaths(a.Name, b.Name) })
	list := make([]*envdpb.EntryInfo, 0, len(infos))
	for _, info := range infos {
		e, err := w.entry(ctx, info.Name, info)
		if err != nil {
			return nil, err
		}
		e.Path = clean(under(name, root, info.Name))
		if size += proto.Size(e); size > maxAnswer {
			return nil, tooLong(name)
		}
		if err := answering(ctx).hold(size); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

func tooLong(name string) error {
	return fmt.Errorf("the names of files in %s have more than %d bytes: %w", clean(name), maxListed, paddock.Exhausted)
}

// directory returns the resolved path of a directory.
func (w *walker) directory(ctx context.Context, name string) (string, error) {
	info, err := w.stat(ctx, name)
	at := name
	if err == nil && isLink(info) {
		at, info, err = w.real(ctx, name)
	}
	switch {
	case err != nil && paddock.KindOf(err) == paddock.NotFound:
		return "", missing(fmt.Sprintf("directory not found: %s", clean(name)))
	case err != nil:
		return "", err
	case !info.Mode.IsDir():
		return "", invalid(fmt.Sprintf("path is not a directory: %s", clean(name)))
	}
	return at, nil
}

// under replaces the resolved root in a name by the requested name of the root.
func under(asked, root, name string) string {
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/")
	if !ok {
		return name
	}
	return path.Join(asked, rest)
}

// comparePaths orders names as in a walk of the tree.
func comparePaths(a, b string) int {
	for {
		x, restA, moreA := strings.Cut(a, "/")
		y, restB, moreB := strings.Cut(b, "/")
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
		if !moreA || !moreB {
			return len(a) - len(b)
		}
		a, b = restA, restB
	}
}
