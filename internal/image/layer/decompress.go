package layer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/paddock-sandbox/paddock"
)

// maxWindow is how far back a layer in zstd may refer. All of it is in memory.
const maxWindow = 32 << 20

// Decompress returns the content of a layer: plain, or in gzip or zstd, which its first bytes tell. Reading ends with an
// error when ctx ends, because a few bytes can become many.
func Decompress(ctx context.Context, r io.Reader) (io.ReadCloser, error) {
	head := make([]byte, 4)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	all := io.MultiReader(bytes.NewReader(head[:n]), r)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(all)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
		}
		return &content{ctx, z, func() {}}, nil
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}), bytes.Equal(head[1:], []byte{0x2a, 0x4d, 0x18}) && head[0]&0xf0 == 0x50:
		z, err := zstd.NewReader(all, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
		}
		return &content{ctx, z, z.Close}, nil
	}
	return &content{ctx, all, func() {}}, nil
}

// A content is that of a layer.
type content struct {
	ctx context.Context //nolint:containedctx // a reader has no other way to be told
	r   io.Reader
	end func()
}

func (c *content) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return 0, fmt.Errorf("it takes longer than an image may: %w", paddock.Timeout)
		}
		return 0, fmt.Errorf("it was given up: %w", paddock.Canceled)
	}
	n, err := c.r.Read(p)
	switch {
	case err == nil, errors.Is(err, io.EOF):
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		err = fmt.Errorf("it is compressed with a window of more than %d MiB, which is the most that is held in memory: compress it with less: %w", maxWindow>>20, paddock.Unsupported)
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("it is damaged: %w: %w", err, paddock.Invalid)
	}
	return n, err
}

func (c *content) Close() error {
	c.end()
	return nil
}
