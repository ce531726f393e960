package build

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/layer"
)

// unpack unpacks a file of the context, if it is an archive.
func (c *copier) unpack(name string) (done bool, err error) {
	raw, _, err := c.open(name)
	if err != nil {
		return false, err
	}
	defer raw.Close()
	in, err := expand(c.w.ctx, raw)
	if errors.Is(err, paddock.Invalid) {
		return false, nil // not an archive, but something that begins like one
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", clip(name), err)
	}
	defer in.Close()
	// What it has is at most what its files may have, with as much again for headers.
	r := tar.NewReader(&bounded{in, 2*c.w.size + 1<<20})
	h, err := r.Next()
	if err != nil {
		var k paddock.Kind
		if errors.As(err, &k) && k != paddock.Invalid {
			return false, err
		}
		return false, nil // it is a file, and is copied
	}
	to, err := c.w.directory(path.Clean(c.step.To))
	if err != nil {
		return true, err
	}
	for ; err == nil; h, err = r.Next() {
		if err := c.entry(to, h, r); err != nil {
			return true, fmt.Errorf("%s: %q: %w", clip(name), clip(h.Name), err)
		}
	}
	if !errors.Is(err, io.EOF) {
		return true, fmt.Errorf("%s: it is a damaged archive: %w: %w", clip(name), err, paddock.Invalid)
	}
	return true, nil
}

// expand returns what a file has in it: plain, or compressed by gzip, bzip2 or zstd.
func expand(ctx context.Context, raw io.Reader) (io.ReadCloser, error) {
	in := bufio.NewReader(raw)
	head, _ := in.Peek(6) // a shorter one is not compressed
	switch {
	case bytes.HasPrefix(head, []byte("BZh")):
		return io.NopCloser(&position{ctx: ctx, r: bzip2.NewReader(in)}), nil
	case bytes.HasPrefix(head, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		return nil, fmt.Errorf("archives in xz are not unpacked: use COPY, and RUN tar xf, or pack it with gzip or zstd: %w", paddock.Unsupported)
	}
	return layer.Decompress(ctx, in)
}

// A bounded reader gives no more than so much.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("it is larger than the disk of the build, see --disk: %w", paddock.Exhausted)
	}
	return n, err
}

// entry writes one file of an archive, below a directory of the image.
func (c *copier) entry(to string, h *tar.Header, in io.Reader) error {
	name, err := inside(h.Name)
	if err != nil || name == "" {
		return err
	}
	f := file{kind: h.Typeflag, mode: h.Mode & 0o7777, uid: h.Uid, gid: h.Gid, when: h.ModTime}
	switch h.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil
	case tar.TypeReg, tar.TypeGNUSparse, '\x00':
		f.kind, f.size = tar.TypeReg, h.Size
	case tar.TypeDir, tar.TypeFifo:
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) >= maxName {
			return fmt.Errorf("it is a link to nothing: %w", paddock.Invalid)
		}
		f.link, f.mode = h.Linkname, 0o777
	case tar.TypeLink:
		if f.link, err = c.linked(to, h.Linkname); err != nil {
			return err
		}
	case tar.TypeChar, tar.TypeBlock:
		if h.Devmajor == 0 && h.Devminor == 0 {
			return nil // it would stand for a removed file
		}
		if h.Devmajor < 0 || h.Devmajor >= 1<<12 || h.Devminor < 0 || h.Devminor >= 1<<20 {
			return fmt.Errorf("it is a device that no kernel has: %w", paddock.Invalid)
		}
		f.major, f.minor = h.Devmajor, h.Devminor
	default:
		return fmt.Errorf("it is of a kind, %q, that images do not have: %w", h.Typeflag, paddock.Unsupported)
	}
	dir, base := path.Split(path.Join(to, name))
	at, err := c.w.directory(dir)
	if err != nil {
		return err
	}
	at = path.Join(at, base)
	if f.kind == tar.TypeDir {
		if _, there, n, err := c.w.t.resolve(at, true); err != nil || there && n.isDir() {
			return err
		}
	}
	return c.w.put(at, f, in)
}

// linked returns the file of the image that another name of an archive is for.
func (c *copier) linked(to, name string) (string, error) {
	first, err := inside(name)
	if err != nil {
		return "", err
	}
	at, there, n, err := c.w.t.resolve(path.Join(to, first), false)
	if err != nil {
		return "", err
	}
	if !there || n.isDir() {
		return "", fmt.Errorf("it is another name of what is not there: %w", paddock.Invalid)
	}
	return at, nil
}
