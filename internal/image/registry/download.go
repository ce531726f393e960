package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of the download of a blob.
const (
	maxVain   = 4                      // attempts in a row that bring nothing new
	firstWait = 200 * time.Millisecond // after an attempt in vain; each next wait is twice as long
)

// A File is where a download goes. A download that was cut goes on behind what the file has.
type File interface {
	io.ReadWriteSeeker
	Truncate(size int64) error
}

// Download writes a blob of the image into a file, and checks its digest while it arrives. What the file has already is
// taken for the beginning of the blob. A cut download goes on where it ended if the registry can send a part, and else
// begins anew. say is told how many bytes arrived, less than nothing if they are dropped. If the blob is not what its
// digest says, the error is [paddock.Conflict] and the file is empty.
func (i *Image) Download(ctx context.Context, d v1.Descriptor, f File, say func(n int64)) error {
	g := &download{s: i.at, d: d, f: f, say: say, sum: sha256.New()}
	if err := g.begin(); err != nil {
		return err
	}
	old := g.have > 0
	err := g.run(ctx)
	if old && errors.Is(err, errOther) { // what was there before may have been damaged
		if err = g.restart(); err == nil {
			err = g.run(ctx)
		}
	}
	if errors.Is(err, errOther) {
		return errors.Join(err, g.restart())
	}
	return err
}

// errOther is that of a blob that is not the one of its digest.
var errOther = fmt.Errorf("it is not what the manifest says: %w", paddock.Conflict)

type download struct {
	s   *session
	d   v1.Descriptor
	f   File
	say func(int64)

	sum  hash.Hash
	have int64 // bytes in the file, which sum has seen
	best int64 // the most that have was
}

// begin reads what the file has.
func (g *download) begin() error {
	if _, err := g.f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	n, err := io.Copy(g.sum, io.LimitReader(g.f, g.d.Size+1))
	if err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	g.have = n
	g.say(min(n, g.d.Size))
	if n > g.d.Size {
		return g.restart()
	}
	g.best = n
	return nil
}

// restart drops what is there.
func (g *download) restart() error {
	g.say(-min(g.have, g.d.Size))
	g.have = 0
	g.sum.Reset()
	if _, err := g.f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	if err := g.f.Truncate(0); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	return nil
}

func (g *download) run(ctx context.Context) error {
	for vain := 0; g.have < g.d.Size; {
		before := g.best
		err := g.attempt(ctx)
		g.best = max(g.best, g.have)
		switch {
		case err == nil, g.best > before:
			vain = 0
		default:
			vain++
		}
		if err == nil {
			continue
		}
		var cut cutError
		if !errors.As(err, &cut) {
			return err
		}
		if vain >= maxVain {
			return cut.error
		}
		if vain > 0 && !wait(ctx, firstWait<<vain) {
			return ended(ctx)
		}
	}
	if "sha256:"+hex.EncodeToString(g.sum.Sum(nil)) != g.d.Digest.String() {
		return errOther
	}
	return nil
}

// A cutError is one after which it is worth to go on.
type cutError struct{ error }

func (c cutError) Unwrap() error { return c.error }

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt asks for what is missing, and takes what comes.
func (g *download) attempt(ctx context.Context) error {
	res, err := g.s.open(ctx, g.d, g.have)
	if err != nil {
		if ctx.Err() == nil && (errors.Is(err, paddock.Unavailable) || errors.Is(err, paddock.Timeout)) {
			return cutError{err}
		}
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusPartialContent && g.have > 0 {
		if err := g.restart(); err != nil {
			return err
		}
	}
	err = g.take(res.Body)
	var full diskError
	switch {
	case errors.As(err, &full):
		return full.error
	case g.have > g.d.Size, errors.Is(err, errLong):
		return errOther
	case err != nil && ctx.Err() != nil:
		return ended(ctx)
	case err != nil:
		return cutError{g.s.told(ctx, err)}
	case g.have < g.d.Size && res.ContentLength >= 0:
		return errOther // all that the registry has of it
	case g.have < g.d.Size:
		return cutError{errOther}
	}
	return nil
}

// A diskError is one of the file.
type diskError struct{ error }

func (e diskError) Unwrap() error { return e.error }

func (g *download) take(r io.Reader) error {
	buf := make([]byte, 128<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if _, err := g.f.Write(buf[:n]); err != nil {
				return diskError{err}
			}
			_, _ = g.sum.Write(buf[:n]) // it never fails
			g.have += int64(n)
			g.say(int64(n))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || g.have > g.d.Size {
			return err
		}
	}
}

// open asks for a blob, from a byte on. The answer is the whole blob or, with the status 206, what was asked for.
func (s *session) open(ctx context.Context, d v1.Descriptor, from int64) (*http.Response, error) {
	ctx = context.WithValue(ctx, blobBound{}, d.Size)
	scheme := "https"
	if s.ref.Plain() {
		scheme = s.repo.Scheme()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+s.repo.RegistryStr()+"/v2/"+s.ref.Name+"/blobs/"+d.Digest.String(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	if from > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, d.Size-1)) // not all registries know an open range
	}
	res, err := (&http.Client{Transport: s.wire}).Do(r)
	switch {
	case err != nil:
		return nil, s.told(ctx, err)
	case res.StatusCode == http.StatusOK:
		return res, nil
	case res.StatusCode == http.StatusPartialContent && from > 0 && strings.HasPrefix(res.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", from)):
		return res, nil
	}
	_ = res.Body.Close()
	if from > 0 && (res.StatusCode == http.StatusRequestedRangeNotSatisfiable || res.StatusCode == http.StatusPartialContent) {
		return s.open(ctx, d, 0)
	}
	if res.StatusCode >= http.StatusBadRequest {
		return nil, s.refused(res.StatusCode)
	}
	return nil, fmt.Errorf("the registry answers %d: %w", res.StatusCode, paddock.Unavailable)
}

// small gets a blob that is read in memory.
func (s *session) small(ctx context.Context, d v1.Descriptor) ([]byte, error) {
	res, err := s.open(ctx, d, 0)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, d.Size+1))
	if err != nil {
		return nil, s.told(ctx, err)
	}
	if int64(len(data)) != d.Size || sumOf(data) != d.Digest.String() {
		return nil, errOther
	}
	return data, nil
}

func ended(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("it takes longer than an image may: %w", paddock.Timeout)
	}
	return fmt.Errorf("it was given up: %w", paddock.Canceled)
}
