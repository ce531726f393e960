package envd

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b/envd/envdpb"
)

// Bounds of one request that resolves links in the sandbox.
const (
	maxLinks = 40 // as in the kernel
	maxStats = 50_000
)

// A walker resolves links by asking the sandbox for their targets. It caches the answers
// for one request.
type walker struct {
	b    *Box
	seen map[string]paddock.FileInfo
	left int
}

func (b *Box) walker() *walker {
	return &walker{b: b, seen: map[string]paddock.FileInfo{}, left: maxStats}
}

func (w *walker) stat(ctx context.Context, name string) (paddock.FileInfo, error) {
	if info, ok := w.seen[name]; ok {
		return info, nil
	}
	if w.left--; w.left < 0 {
		return paddock.FileInfo{}, fmt.Errorf("too many links for one request: %w", paddock.Exhausted)
	}
	info, err := w.b.files(ctx).Stat(ctx, name)
	if err == nil {
		w.seen[name] = info
	}
	return info, err
}

func isLink(i paddock.FileInfo) bool { return i.Mode.Type() == fs.ModeSymlink }

// real resolves all links of a name, and returns the path and its FileInfo.
func (w *walker) real(ctx context.Context, name string) (string, paddock.FileInfo, error) {
	at, links := "/", 0
	info, err := w.stat(ctx, at)
	rest := parts(name)
	for err == nil && len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			at = path.Dir(at)
			info, err = w.stat(ctx, at)
			continue
		}
		next := path.Join(at, part)
		if info, err = w.stat(ctx, next); err != nil {
			break
		}
		if !isLink(info) {
			at = next
			continue
		}
		if links++; links > maxLinks || len(info.Link) > maxName || len(rest) > maxName {
			return "", info, tooManyLinks(name)
		}
		if path.IsAbs(info.Link) {
			at = "/"
		}
		rest = append(parts(info.Link), rest...)
		if len(rest) == 0 {
			info, err = w.stat(ctx, at)
		}
	}
	return at, info, err
}

func tooManyLinks(name string) error {
	return refuse(http.StatusBadRequest, connect.CodeFailedPrecondition, fmt.Sprintf("too many levels of symbolic links: %s", clean(name)))
}

// parts returns the components of a name.
func parts(name string) []string {
	var list []string
	for part := range strings.SplitSeq(name, "/") {
		if part != "" && part != "." {
			list = append(list, part)
		}
	}
	return list
}

// clean converts a name, which may be any bytes, to UTF-8.
func clean(name string) string { return strings.ToValidUTF8(name, "\ufffd") }

// entry describes a file as E2B does: for a link, the target.
func (w *walker) entry(ctx context.Context, name string, info paddock.FileInfo) (*envdpb.EntryInfo, error) {
	e := &envdpb.EntryInfo{
		Name: clean(path.Base(name)), Path: clean(name), Size: info.Size,
		Owner: account(info.User, info.UID), Group: account(info.Group, info.GID),
		ModifiedTime: timestamppb.New(info.ModTime),
	}
	mode := info.Mode
	if isLink(info) {
		at, target, err := w.real(ctx, name)
		switch {
		case err == nil:
			mode = target.Mode
		case paddock.KindOf(err) == paddock.Exhausted, ctx.Err() != nil:
			return nil, err
		default:
			at = name // the link is broken
		}
		at = clean(at)
		e.SymlinkTarget = &at
	}
	switch {
	case mode.IsDir():
		e.Type = envdpb.FileType_FILE_TYPE_DIRECTORY
	case mode.IsRegular():
		e.Type = envdpb.FileType_FILE_TYPE_FILE
	case mode.Type() == fs.ModeSymlink:
		e.Type = envdpb.FileType_FILE_TYPE_SYMLINK
	}
	e.Mode, e.Permissions = uint32(mode.Perm()), mode.String()
	if e.Type == envdpb.FileType_FILE_TYPE_FILE && !w.b.metadata.empty() {
		if at, _, err := w.real(ctx, name); err == nil {
			e.Metadata = w.b.metadata.get(at)
		}
	}
	return e, nil
}

func account(name string, number int) string {
	if name == "" {
		return strconv.Itoa(number)
	}
	return clean(name)
}

// described returns the entry for a name.
func (b *Box) described(ctx context.Context, name string) (*envdpb.EntryInfo, error) {
	w := b.walker()
	info, err := w.stat(ctx, name)
	if err != nil {
		return nil, notThere(err, name)
	}
	return w.entry(ctx, name, info)
}

// notThere returns the agent's error for a missing file.
func notThere(err error, name string) error {
	if paddock.KindOf(err) != paddock.NotFound {
		return err
	}
	return missing(fmt.Sprintf("file not found: lstat %s: no such file or directory", clean(name)))
}
