// Package store keeps images: one content store for the user of a machine or for a server.
//
// A store has blobs by digest, a record of each image by the digest of its manifest, references that lead to digests,
// and forms: what tiers need, derived from an image on first need. Tenants share nothing: each has a store of its own
// below the directory, because knowing a digest is not being allowed the image.
//
// Several processes may use a directory at once. What is not finished stands beside what is, and is renamed into its
// place when it is whole, so that a process may be killed at any moment. Locks are those of flock(2), which end with
// their process.
package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/shelf"
)

// Options configure a Store.
type Options struct {
	Dir string // of its own, absolute

	// Dial connects to registries and decides which addresses are allowed. home is the registry's own host and port:
	// other addresses are those that the registry leads to. If private is true, the registry may be at a private
	// address. A store without Dial pulls nothing.
	Dial func(ctx context.Context, private bool, home, network, address string) (net.Conn, error)

	// Converters make forms, beside that of directories, which the store makes itself.
	Converters []Converter

	// Policy bounds what anybody may pull or resolve.
	Policy Policy

	// Bounds. A zero field has its default.
	Sent     int64         // of an image, as its registry sends it
	Unpacked int64         // of a form
	All      int64         // of a tenant's: blobs and forms
	Images   int           // of a tenant
	Time     time.Duration // that a pull takes
}

// A Store is a directory of images. It is safe for concurrent use.
type Store struct {
	o Options

	mu   sync.Mutex
	busy map[string]chan struct{} // guarded by mu; by the directory of a tenant
}

// Names in the directory of a tenant.
const (
	blobsDir = "blobs" // by digest, as registries send them
	tmpDir   = "tmp"   // what is not finished, or going
	lockFile = "lock"  // shared by who adds; exclusive by who removes blobs
)

const mostNames = 1_000_000 // files of an image

// Open opens a store, and makes its directory if there is none.
func Open(o Options) (*Store, error) {
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("images: an absolute directory is needed: %w", paddock.Invalid)
	}
	for _, b := range []struct {
		v     *int64
		usual int64
	}{{&o.Sent, 4 << 30}, {&o.Unpacked, 8 << 30}, {&o.All, 32 << 30}} {
		if *b.v == 0 {
			*b.v = b.usual
		}
	}
	if o.Images == 0 {
		o.Images = 32
	}
	if o.Time == 0 {
		o.Time = 30 * time.Minute
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("images: %w: %w", err, paddock.Denied)
	}
	dir, err := filepath.EvalSymlinks(o.Dir) // boxes begin with real paths
	if err != nil {
		return nil, fmt.Errorf("images: %w: %w", err, paddock.Denied)
	}
	o.Dir = dir
	return &Store{o: o, busy: map[string]chan struct{}{}}, nil
}

// A tenant's part of the store.
type part struct {
	s *Store
	shelf.Part
}

// Shelf is what a tenant has ready.
func (s *Store) Shelf(tenant string) shelf.Shelf { return shelf.Shelf{Part: s.part(tenant).Part} }

func (s *Store) part(tenant string) *part { return &part{s, shelf.PartOf(s.o.Dir, tenant)} }

// ready makes the directories of the part.
func (p *part) ready() error {
	for _, name := range []string{blobsDir, shelf.ImagesDir, shelf.RefsDir, tmpDir} {
		if err := os.MkdirAll(p.At(name), 0o700); err != nil {
			return fmt.Errorf("images: %w: %w", full(err), paddock.Internal)
		}
	}
	return nil
}

// turn waits until nobody of this process adds to the part, because bounds are of all that a tenant has.
func (p *part) turn(ctx context.Context) (done func(), err error) {
	turn := p.busy()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("images: it was given up: %w", paddock.Canceled)
	}
}

func (p *part) busy() chan struct{} {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	turn := p.s.busy[string(p.Part)]
	if turn == nil {
		turn = make(chan struct{}, 1)
		p.s.busy[string(p.Part)] = turn
	}
	return turn
}

// room is how much more the part may take.
func (p *part) room() (int64, error) {
	u, err := p.usage()
	if err != nil {
		return 0, err
	}
	if p.s.o.All == math.MaxInt64 {
		return p.s.o.All, nil
	}
	if left := p.s.o.All - u; left > 0 {
		return left, nil
	}
	return 0, fmt.Errorf("the images that are here take %d MiB, which is all that they may: remove some: %w", p.s.o.All>>20, paddock.Exhausted)
}

// usage is what blobs, finished or not, and forms take.
func (p *part) usage() (n int64, err error) {
	for _, dir := range []string{blobsDir, tmpDir} {
		list, err := os.ReadDir(p.At(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("images: %w: %w", err, paddock.Internal)
		}
		for _, e := range list {
			if st, err := e.Info(); err == nil && st.Mode().IsRegular() {
				n += st.Size()
			}
		}
	}
	names, err := p.digests()
	for _, digest := range names {
		for _, f := range p.Forms(digest) {
			n += f.Size
		}
	}
	return n, err
}

// fresh makes a directory in tmp, and locks it: what has no lock is nobody's, and is swept.
func (p *part) fresh() (dir string, lock *os.File, err error) {
	for range 100 {
		dir = p.At(tmpDir, "new-"+random())
		if err := os.Mkdir(dir, 0o700); err != nil {
			return "", nil, fmt.Errorf("images: %w: %w", full(err), paddock.Internal)
		}
		if lock, err = shelf.Claim(dir, os.O_RDONLY); err == nil {
			return dir, lock, nil
		}
		if !errors.Is(err, shelf.ErrBusy) {
			return "", nil, err
		}
	}
	return "", nil, fmt.Errorf("images: what is made in %s is removed at once: %w", p.At(tmpDir), paddock.Internal)
}

// temp makes a file in tmp, and locks it.
func (p *part) temp() (*os.File, error) {
	for range 100 {
		f, err := shelf.Hold(p.At(tmpDir, "file-"+random()), os.O_CREATE|os.O_EXCL|os.O_RDWR, false)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, shelf.ErrBusy) {
			return nil, fmt.Errorf("images: %w: %w", full(err), paddock.Internal)
		}
	}
	return nil, fmt.Errorf("images: what is made in %s is removed at once: %w", p.At(tmpDir), paddock.Internal)
}

func random() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// sweep removes from tmp what nobody holds. Parts of blobs stay for a day, so that the next pull goes on with them.
func (p *part) sweep(parts bool) error {
	list, err := os.ReadDir(p.At(tmpDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	var errs []error
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "part-") && !parts {
			if st, err := e.Info(); err != nil || time.Since(st.ModTime()) < 24*time.Hour {
				continue
			}
		}
		name := p.At(tmpDir, e.Name())
		lock, err := shelf.Claim(name, os.O_RDONLY)
		if err != nil {
			continue // somebody's, or gone
		}
		errs = append(errs, os.RemoveAll(name), lock.Close())
	}
	return errors.Join(errs...)
}

// full says in words that the disk is, which an image's own bounds do not tell.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the disk of the images has no room for it: make some, `paddock image prune` may help: %w (%w)", paddock.Exhausted, err)
	}
	return err
}
