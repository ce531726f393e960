package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/audit/segment"
)

// A journal is the directory in which a server records who did what. A nil one
// records nothing.
type journal struct {
	dir      *os.Root
	segments *segment.Writer
	lines    *audit.Lines

	stop     context.CancelFunc // of the upload
	uploader *segment.Uploader  // nil where nothing is uploaded
	wg       sync.WaitGroup
}

// openJournal begins a segment in the directory; bucket is where finished ones go,
// as https://HOST/BUCKET/PREFIX, or empty.
func (a *app) openJournal(name, bucket string, log *slog.Logger) (_ *journal, err error) {
	if name == "" {
		if bucket != "" {
			return nil, withHint(fmt.Errorf("--audit-bucket without a directory to record in: %w", paddock.Invalid), "add --audit DIR")
		}
		return nil, nil
	}
	dir, err := a.dir()
	if err != nil && !filepath.IsAbs(name) {
		return nil, err
	}
	path := absolute(name, dir)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("--audit %s: %w: %w", name, err, paddock.Denied)
	}
	signer, err := a.auditKey(chain.MakeKey)
	if err != nil {
		return nil, fmt.Errorf("--audit %s: %w", name, err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("--audit %s: %w: %w", name, err, paddock.Denied)
	}
	j := &journal{dir: root}
	if bucket != "" {
		if j.uploader, err = a.uploader(root, bucket, log); err != nil {
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

// bucket takes the address of a bucket apart; its keys are those of the environment.
func (a *app) bucket(address string) (segment.Bucket, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return segment.Bucket{}, withHint(fmt.Errorf("it is no address: %w", paddock.Invalid), "write https://HOST/BUCKET or https://HOST/BUCKET/PREFIX/")
	}
	name, prefix, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	value := func(name string) string { text, _ := a.lookup(name); return text }
	return segment.Bucket{
		Endpoint: u.Scheme + "://" + u.Host, Name: name, Prefix: prefix,
		Region: value("AWS_REGION"), AccessKey: value("AWS_ACCESS_KEY_ID"), SecretKey: value("AWS_SECRET_ACCESS_KEY"),
	}, nil
}

// uploader makes what copies to a bucket.
func (a *app) uploader(dir *os.Root, bucket string, log *slog.Logger) (*segment.Uploader, error) {
	b, err := a.bucket(bucket)
	if err != nil {
		return nil, fmt.Errorf("--audit-bucket: %w", err)
	}
	up, err := segment.NewUploader(dir, b, log)
	if err != nil {
		return nil, withHint(fmt.Errorf("--audit-bucket: %w", err), "AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the server's environment are its region and keys")
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
		err = withHint(fmt.Errorf("--audit: %w", err), "actions were refused since then; is the disk full?")
	}
	if j.uploader != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		_ = j.uploader.Sweep(ctx) // what is left is uploaded by the next server
	}
	return errors.Join(err, j.dir.Close())
}
