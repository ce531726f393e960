package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/audit/segment"
	"github.com/paddock-sandbox/paddock/internal/cli"
)

// A journal is the directory in which a server records who did what. A nil one
// records nothing.
type journal struct {
	dir      *os.Root
	segments *segment.Writer
	lines    *audit.Lines
	build    func() audit.Build // of this program; the first call reads its file

	stop     context.CancelFunc // of the upload
	uploader *segment.Uploader  // nil where nothing is uploaded
	wg       sync.WaitGroup
}

// openJournal begins a segment in the directory; bucket is where finished ones go,
// as https://HOST/BUCKET/PREFIX, or empty.
func openJournal(a *cli.App, name, bucket string, log *slog.Logger) (_ *journal, err error) {
	if name == "" {
		if bucket != "" {
			return nil, cli.WithHint(fmt.Errorf("--audit-bucket without a directory to record in: %w", paddock.Invalid), "add --audit DIR")
		}
		return nil, nil
	}
	dir, err := a.Dir()
	if err != nil && !filepath.IsAbs(name) {
		return nil, err
	}
	path := cli.Absolute(name, dir)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("--audit %s: %w: %w", name, err, paddock.Denied)
	}
	signer, err := a.AuditKey(chain.MakeKey)
	if err != nil {
		return nil, fmt.Errorf("--audit %s: %w", name, err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("--audit %s: %w: %w", name, err, paddock.Denied)
	}
	j := &journal{dir: root, build: sync.OnceValue(a.BuildOf)}
	if bucket != "" {
		if j.uploader, err = uploader(a, root, bucket, log); err != nil {
			return nil, errors.Join(err, root.Close())
		}
	}
	if j.segments, err = segment.NewWriter(segment.Options{Dir: root, Key: signer}); err != nil {
		return nil, errors.Join(fmt.Errorf("--audit %s: %w", name, err), root.Close())
	}
	j.lines = audit.NewLines(j.segments)
	ctx, stop := context.WithCancel(context.Background())
	j.stop = stop
	if j.uploader != nil {
		j.wg.Go(func() { j.uploader.Run(ctx, j.segments.Finished()) })
	}
	return j, nil
}

// uploader makes what copies to a bucket.
func uploader(a *cli.App, dir *os.Root, bucket string, log *slog.Logger) (*segment.Uploader, error) {
	b, err := segment.ParseBucket(bucket, a.Lookup)
	if err != nil {
		return nil, cli.WithHint(fmt.Errorf("--audit-bucket: %w", err), segment.BucketHint)
	}
	up, err := segment.NewUploader(dir, b, log)
	if err != nil {
		return nil, cli.WithHint(fmt.Errorf("--audit-bucket: %w", err), "AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the server's environment are its region and keys")
	}
	return up, nil
}

// close finishes the last segment, and uploads it if that can be at once.
func (j *journal) close() error {
	if j == nil {
		return nil
	}
	err := j.lines.Close()
	if err == nil {
		err = j.segments.Close()
	}
	j.stop()
	j.wg.Wait()
	if err != nil {
		err = cli.WithHint(fmt.Errorf("--audit: %w", err), "actions were refused since then; is the disk full?")
	}
	if j.uploader != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*cli.Patience)
		defer cancel()
		_ = j.uploader.Sweep(ctx) // what is left is uploaded by the next server
	}
	return errors.Join(err, j.dir.Close())
}
