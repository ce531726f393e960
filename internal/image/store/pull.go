package store

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
	"github.com/paddock-sandbox/paddock/internal/image/registry"
	"github.com/paddock-sandbox/paddock/internal/image/shelf"
	"github.com/paddock-sandbox/paddock/internal/image/signature"
)

// parallel is how many layers of an image are downloaded at once.
const parallel = 4

// A Request names an image to pull, and the tenant for which to pull it.
type Request struct {
	Tenant    string
	Reference string

	// Credentials are asked for when a registry is about to be asked; nil is anonymous access.
	Credentials func(ctx context.Context, host string) (registry.Credentials, error)

	Private bool   // the registry may be at a private address
	Always  bool   // the registry is asked, whatever is here: it decides who may have an image
	Policy  Policy // beside that of the store
	Owner   string // who alone may remove the image, if nobody else asked for it; such an image gets no reference

	Say func(Progress) // is told how far it is, by one goroutine at a time; nil is nobody
}

// A Progress is how far a pull is.
type Progress struct {
	Reference, Digest string
	Layers            int   // of the image
	Have, Size        int64 // bytes of its layers
	Present           bool  // nothing had to be downloaded
}

// Pull returns an image, after pulling it if the tenant does not have it. Pulls of one tenant run one after the other.
// If ctx ends, the error is Canceled, and what was downloaded stays for the next pull.
func (s *Store) Pull(ctx context.Context, q Request) (Image, error) {
	if q.Say == nil {
		q.Say = func(Progress) {}
	}
	bare := strings.HasPrefix(q.Reference, "sha256:")
	if !q.Always || bare {
		img, err := s.resolve(q.Tenant, q.Reference, s.o.Policy, q.Policy)
		if err == nil {
			q.Say(Progress{Reference: q.Reference, Digest: img.Digest, Layers: len(img.Layers), Have: img.Size, Size: img.Size, Present: true})
			return img, nil
		}
		if bare {
			return Image{}, err
		}
	}
	ref, err := reference.Parse(q.Reference)
	if err != nil {
		return Image{}, err
	}
	if err := errors.Join(s.o.Policy.allows(ref), q.Policy.allows(ref)); err != nil {
		return Image{}, err
	}
	if s.o.Dial == nil {
		return Image{}, fmt.Errorf("image %s is not here, and nothing is pulled: %w", ref, paddock.NotFound)
	}
	img, err := s.pull(ctx, q, ref)
	if err != nil {
		return Image{}, full(err)
	}
	return img, nil
}

func (s *Store) pull(ctx context.Context, q Request, ref reference.Reference) (Image, error) {
	p := s.part(q.Tenant)
	done, err := p.turn(ctx)
	if err != nil {
		return Image{}, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, s.o.Time)
	defer cancel()
	if err := p.ready(); err != nil {
		return Image{}, err
	}
	lock, err := shelf.Await(ctx, p.At(lockFile), os.O_RDONLY|os.O_CREATE, true)
	if err != nil {
		return Image{}, err
	}
	defer lock.Close()
	if err := p.sweep(false); err != nil {
		return Image{}, err
	}
	found, err := s.ask(ctx, q, ref)
	if err != nil {
		return Image{}, err
	}
	img := Image{
		Digest: found.Digest, Size: found.Size, Pulled: time.Now().UTC().Truncate(time.Second), Origins: []string{ref.Host}, Owner: q.Owner,
		Manifest: Blob{Digest: found.Digest, Size: int64(len(found.Manifest)), MediaType: found.MediaType}, ConfigDigest: found.ConfigDigest,
	}
	for _, l := range found.Layers {
		img.Layers = append(img.Layers, Blob{Digest: l.Digest.String(), Size: l.Size, MediaType: string(l.MediaType)})
	}
	if img.Config, err = image.ParseConfig(found.Config); err != nil {
		return Image{}, fmt.Errorf("image %s: %w", ref, err)
	}
	if img.Signers, err = signers(ctx, found, append(s.o.Policy.Keys[:len(s.o.Policy.Keys):len(s.o.Policy.Keys)], q.Policy.Keys...)); err != nil {
		return Image{}, fmt.Errorf("image %s: %w", ref, err)
	}
	for _, policy := range []Policy{s.o.Policy, q.Policy} {
		if err := policy.holds(img.Digest, img); err != nil {
			return Image{}, err
		}
	}
	if err := p.fits(img); err != nil {
		return Image{}, fmt.Errorf("image %s: %w", ref, err)
	}
	if err := p.download(ctx, q, found); err != nil {
		return Image{}, fmt.Errorf("image %s: %w", ref, err)
	}
	if err := p.keep(ctx, img, found.Manifest, found.Config); err != nil {
		return Image{}, err
	}
	if q.Owner == "" {
		top := ""
		if found.Top != found.Digest {
			top = found.Top
		}
		if err := p.lead(shelf.Reference{Reference: ref.String(), Digest: found.Digest, Top: top, Time: img.Pulled}); err != nil {
			return Image{}, err
		}
	}
	return s.find(q.Tenant, img.Digest)
}

// ask finds the image at its registry.
func (s *Store) ask(ctx context.Context, q Request, ref reference.Reference) (*registry.Image, error) {
	c := &registry.Client{
		OS: "linux", Arch: runtime.GOARCH, Size: s.o.Sent,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return s.o.Dial(ctx, q.Private, ref.Server(), network, address)
		},
	}
	if q.Credentials != nil {
		who, err := q.Credentials(ctx, ref.Host)
		if err != nil {
			return nil, fmt.Errorf("image %s: credentials for %s: %w", ref, ref.Host, err)
		}
		c.Credentials = who
	}
	return c.Find(ctx, ref)
}

// signers returns the fingerprints of the keys that signed an image, or the list of images that has it.
func signers(ctx context.Context, found *registry.Image, keys []crypto.PublicKey) ([]string, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	digests := []string{found.Digest}
	if found.Top != found.Digest {
		digests = append(digests, found.Top)
	}
	var by []string
	for _, digest := range digests {
		list, err := found.Signatures(ctx, digest)
		if err != nil {
			return nil, err
		}
		for _, sig := range list {
			for _, key := range keys {
				if signature.Verify(key, digest, sig.Payload, sig.Value) {
					by = append(by, signature.Fingerprint(key))
				}
			}
		}
	}
	if len(by) == 0 {
		return nil, fmt.Errorf("none of the keys that the policy demands signed %s: %w", found.Digest, paddock.Denied)
	}
	return union(by, nil), nil
}

// fits tells whether one more image may be kept.
func (p *part) fits(img Image) error {
	if exists(p.Image(img.Digest)) {
		return nil
	}
	if err := p.few(img.Digest); err != nil {
		return err
	}
	room, err := p.room()
	if err != nil {
		return err
	}
	for _, l := range img.Layers {
		if st, err := os.Stat(p.blob(l.Digest)); err == nil {
			room += st.Size()
		}
	}
	if img.Size > room {
		return fmt.Errorf("it has %d MiB, and there is room for %d MiB: remove other images: %w", img.Size>>20, room>>20, paddock.Exhausted)
	}
	return nil
}

// few tells whether the part may have one more image.
func (p *part) few(digest string) error {
	list, err := p.digests()
	if err == nil && len(list) >= p.s.o.Images && !exists(p.Image(digest)) {
		err = fmt.Errorf("there are %d images already, and there may be as many: remove some: %w", len(list), paddock.Exhausted)
	}
	return err
}

func (p *part) blob(digest string) string { return p.At(blobsDir, shelf.Bare(digest)) }

// download gets the layers that are not here, several at once.
func (p *part) download(ctx context.Context, q Request, found *registry.Image) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	now := Progress{Reference: q.Reference, Digest: found.Digest, Layers: len(found.Layers), Size: found.Size, Present: true}
	var mu sync.Mutex
	say := func(n int64, present bool) {
		mu.Lock()
		defer mu.Unlock()
		now.Have += n
		now.Present = now.Present && present
		q.Say(now)
	}
	say(0, true)
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	errs := make([]error, len(found.Layers))
	for n, d := range found.Layers {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := p.layer(ctx, found, d, say); err != nil {
				errs[n] = fmt.Errorf("layer %d of %d: %w", n+1, len(found.Layers), err)
				cancel() // the others are of no use
			}
		})
	}
	wg.Wait()
	return first(errs)
}

// first returns the error that was not caused by that another was given up.
func first(errs []error) error {
	var given error
	for _, err := range errs {
		if err != nil && !errors.Is(err, paddock.Canceled) {
			return err
		}
		if given == nil {
			given = err
		}
	}
	return given
}

// layer gets one layer, if it is not here.
func (p *part) layer(ctx context.Context, found *registry.Image, d v1.Descriptor, say func(int64, bool)) error {
	if p.has(d.Digest.String(), d.Size) {
		say(d.Size, true)
		return nil
	}
	name := p.At(tmpDir, "part-"+shelf.Bare(d.Digest.String()))
	f, err := shelf.Await(ctx, name, os.O_RDWR|os.O_CREATE, false)
	if err != nil {
		return err
	}
	defer f.Close()
	if p.has(d.Digest.String(), d.Size) { // another process was faster, or the image has the layer twice
		say(d.Size, true)
		return os.Remove(name)
	}
	if err := found.Download(ctx, d, f, func(n int64) { say(n, false) }); err != nil {
		if told := full(err); told.Error() != err.Error() {
			return errors.Join(told, os.Remove(name)) // it gives back what it took
		}
		return err
	}
	if err := os.Rename(name, p.blob(d.Digest.String())); err != nil {
		return fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	return nil
}

// has tells whether a blob is here.
func (p *part) has(digest string, size int64) bool {
	st, err := os.Lstat(p.blob(digest))
	return err == nil && st.Mode().IsRegular() && st.Size() == size
}

// keep puts an image whose layers are here into the store.
func (p *part) keep(ctx context.Context, img Image, manifest, config []byte) error {
	for digest, data := range map[string][]byte{img.Digest: manifest, img.ConfigDigest: config} {
		if err := p.put(digest, data); err != nil {
			return err
		}
	}
	return p.record(ctx, img)
}

// put keeps a small blob.
func (p *part) put(digest string, data []byte) error {
	if p.has(digest, int64(len(data))) {
		return nil
	}
	sum := sha256.Sum256(data)
	if digest != "sha256:"+hex.EncodeToString(sum[:]) {
		return fmt.Errorf("%s is the digest of another: %w", digest, paddock.Conflict)
	}
	f, err := p.temp()
	if err != nil {
		return err
	}
	name := f.Name()
	defer f.Close()
	if _, err = f.Write(data); err == nil {
		err = os.Rename(name, p.blob(digest))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("images: %w: %w", full(err), paddock.Internal), os.Remove(name))
	}
	return nil
}

// open opens a blob for reading. Reading ends with an error if it is not what its digest says.
func (p *part) open(b Blob) (*checked, error) {
	f, err := os.Open(p.blob(b.Digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("a layer of the image is not here any more: pull it again with --always: %w", paddock.NotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	return &checked{f: f, sum: sha256.New(), want: b.Digest}, nil
}

// A checked reader compares a blob with its digest when all of it was read.
type checked struct {
	f    *os.File
	sum  hash.Hash
	want string
}

func (c *checked) Read(b []byte) (int, error) {
	n, err := c.f.Read(b)
	_, _ = c.sum.Write(b[:n]) // it never fails
	if errors.Is(err, io.EOF) && c.want != "sha256:"+hex.EncodeToString(c.sum.Sum(nil)) {
		return n, fmt.Errorf("a layer of the image is damaged on the disk: remove the image and pull it again: %w", paddock.Conflict)
	}
	return n, err
}

func (c *checked) Close() error { return c.f.Close() }
