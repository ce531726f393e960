// Package imagestore stores pulled images per tenant, each unpacked in a directory that sandboxes use as
// their root.
//
// Tenants share no image, even if both name the same image or the same digest. A registry decides who
// may have an image, and another registry could name any digest that its owner knows. A tenant that
// asks for an image again asks its registry again, with the credentials of that request. The store
// returns stored content only for images that the registry grants.
package imagestore

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/layer"
	"github.com/paddock-sandbox/paddock/internal/image/registry"
)

// Options configure a Store.
type Options struct {
	Dir string // of its own

	// Dial connects to registries and decides which addresses are allowed. If private is true, private
	// addresses are allowed too. It must be set.
	Dial func(ctx context.Context, private bool, network, address string) (net.Conn, error)

	// Bounds. A zero field has its default.
	Sent     int64         // of an image, as its registry sends it
	Unpacked int64         // of an image
	All      int64         // of a tenant's
	Images   int           // of a tenant
	Time     time.Duration // that an image takes
}

// A Store is a directory of unpacked images. It is safe for concurrent use.
type Store struct {
	o Options

	mu   sync.Mutex
	busy map[string]chan struct{} // guarded by mu; by tenant
}

// A Request names the image to pull, and the tenant for which to pull it.
type Request struct {
	Tenant      string
	Reference   string
	Credentials registry.Credentials
	Private     bool         // the tenant may reach private addresses
	Say         func(string) // is told how far it is
}

// An Image is a stored image.
type Image struct {
	ID   string   `json:"id"`
	Size int64    `json:"size"`
	Env  []string `json:"env,omitempty"`
	Dir  string   `json:"-"` // holds its file tree, and is not written
}

const (
	about    = "image.json"
	unready  = ".new-"
	mostName = 500_000
)

// Open opens a store. It removes what interrupted pulls left in the directory.
func Open(o Options) (*Store, error) {
	if !filepath.IsAbs(o.Dir) || o.Dial == nil {
		return nil, fmt.Errorf("images: a directory and Dial are needed: %w", paddock.Invalid)
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
	left, err := filepath.Glob(filepath.Join(dir, "*", unready+"*"))
	for _, name := range left {
		err = errors.Join(err, os.RemoveAll(name))
	}
	if err != nil {
		return nil, fmt.Errorf("images: %w: %w", err, paddock.Denied)
	}
	return &Store{o: o, busy: map[string]chan struct{}{}}, nil
}

// place is a tenant's directory: no name of a tenant is part of a path.
func (s *Store) place(tenant string) string {
	sum := sha256.Sum256([]byte(tenant))
	return filepath.Join(s.o.Dir, hex.EncodeToString(sum[:16]))
}

// Pull returns an image, after pulling it if the tenant does not have it yet. Pulls of one tenant
// run one after the other. If ctx ends, the error is Canceled.
func (s *Store) Pull(ctx context.Context, q Request) (Image, error) {
	ref, err := registry.ParseReference(q.Reference)
	if err != nil {
		return Image{}, err
	}
	turn := s.turn(q.Tenant)
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return Image{}, fmt.Errorf("image %s: %w", ref, paddock.Canceled)
	}
	defer func() { <-turn }()
	ctx, cancel := context.WithTimeout(ctx, s.o.Time)
	defer cancel()
	c := &registry.Client{
		OS: "linux", Arch: runtime.GOARCH, Credentials: q.Credentials, Size: s.o.Sent,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return s.o.Dial(ctx, q.Private, network, address)
		},
	}
	found, err := c.Find(ctx, ref)
	if err != nil {
		return Image{}, err
	}
	id := strings.TrimPrefix(found.Digest, "sha256:")
	dir := filepath.Join(s.place(q.Tenant), id)
	if img, err := read(dir); err == nil {
		q.Say(fmt.Sprintf("%s is %s, which is here", ref, found.Digest))
		return img, nil
	}
	room, err := s.room(q.Tenant)
	if err != nil {
		return Image{}, fmt.Errorf("image %s: %w", ref, err)
	}
	q.Say(fmt.Sprintf("pulling %s, %s, %d MiB", ref, found.Digest, found.Size>>20))
	return s.make(ctx, found, room, dir, q.Say)
}

// Digest returns "sha256:" and the digest of the image whose file tree is at a path, or an empty string if the store in dir
// has no image there. The digest is the one that the registry granted when the image was pulled.
func Digest(dir, path string) string {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	own, base := filepath.Split(filepath.Clean(path))
	rel, err := filepath.Rel(real, filepath.Clean(own))
	if err != nil || base != "root" || !filepath.IsLocal(rel) || strings.Count(rel, "/") != 1 {
		return ""
	}
	img, err := read(filepath.Clean(own))
	if raw, wrong := hex.DecodeString(img.ID); err != nil || wrong != nil || len(raw) != sha256.Size || img.ID != filepath.Base(rel) {
		return ""
	}
	return "sha256:" + img.ID
}

// turn is what who pulls for a tenant, or sweeps, puts something into meanwhile.
func (s *Store) turn(tenant string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.busy[tenant]
	if turn == nil {
		turn = make(chan struct{}, 1)
		s.busy[tenant] = turn
	}
	return turn
}

// room is how much more a tenant's images may take.
func (s *Store) room(tenant string) (int64, error) {
	list, err := os.ReadDir(s.place(tenant))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	if len(list) >= s.o.Images {
		return 0, fmt.Errorf("there are %d images already, and there may be as many: delete templates that begin with others: %w", len(list), paddock.Exhausted)
	}
	left := s.o.All
	for _, e := range list {
		if img, err := read(filepath.Join(s.place(tenant), e.Name())); err == nil {
			left -= img.Size
		}
	}
	if left <= 0 {
		return 0, fmt.Errorf("the images that are here take %d MiB, which is all: delete templates that begin with them: %w", s.o.All>>20, paddock.Exhausted)
	}
	return min(left, s.o.Unpacked), nil
}

func read(dir string) (Image, error) {
	data, err := os.ReadFile(filepath.Join(dir, about))
	if err != nil {
		return Image{}, err
	}
	img := Image{Dir: filepath.Join(dir, "root")}
	return img, json.Unmarshal(data, &img)
}

// make unpacks an image beside its place, and puts it there when it is whole.
func (s *Store) make(ctx context.Context, found *registry.Image, room int64, dir string, say func(string)) (_ Image, err error) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	fresh := filepath.Join(filepath.Dir(dir), unready+hex.EncodeToString(b[:]))
	if err := os.MkdirAll(filepath.Join(fresh, "root"), 0o700); err != nil {
		return Image{}, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	defer func() {
		if err != nil {
			err = errors.Join(full(err), os.RemoveAll(fresh))
		}
	}()
	if err := os.Chmod(filepath.Join(fresh, "root"), 0o755); err != nil {
		return Image{}, err
	}
	root, err := os.OpenRoot(filepath.Join(fresh, "root"))
	if err != nil {
		return Image{}, err
	}
	defer root.Close()
	t := &layer.Tree{Root: root, Owners: os.Geteuid() == 0, Bytes: room, Names: mostName}
	err = found.Layers(ctx, func(n, of int, r io.Reader) error {
		say(fmt.Sprintf("unpacking layer %d of %d", n, of))
		return t.Unpack(r)
	})
	if err != nil {
		return Image{}, err
	}
	if _, st, ok := t.Find("bin/bash"); !ok || !st.Mode().IsRegular() {
		return Image{}, fmt.Errorf("the image has no /bin/bash, with which steps and clients' commands are run: begin with one that has: %w", paddock.Unsupported)
	}
	if err := errors.Join(users(t), network(t)); err != nil {
		return Image{}, err
	}
	img := Image{ID: filepath.Base(dir), Size: room - t.Bytes, Env: found.Config.Config.Env}
	data, err := json.Marshal(img)
	if err != nil {
		return Image{}, err
	}
	if err := os.WriteFile(filepath.Join(fresh, about), data, 0o600); err != nil {
		return Image{}, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	if err := os.Rename(fresh, dir); err != nil {
		return Image{}, fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	img.Dir = filepath.Join(dir, "root")
	return img, nil
}

// full says in words that the disk is, which the image's own bounds do not tell.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the server's disk has no room for it: let who runs the server make some: %w (%w)", paddock.Exhausted, err)
	}
	return err
}

// users adds the accounts that sandboxes have: root, and user.
func users(t *layer.Tree) error {
	for _, f := range []struct{ name, root, user string }{
		{"etc/passwd", "root:x:0:0:root:/root:/bin/bash\n", "user:x:N:N::/home/user:/bin/bash\n"},
		{"etc/group", "root:x:0:\n", "user:x:N:\n"},
	} {
		at, st, ok := t.Find(f.name)
		text := ""
		if ok {
			if !st.Mode().IsRegular() || st.Size() > 1<<20 {
				return fmt.Errorf("/%s of the image is no file of accounts: %w", f.name, paddock.Invalid)
			}
			data, err := t.Root.ReadFile(at)
			if err != nil {
				return err
			}
			text = string(data)
		} else if err := t.Root.MkdirAll("etc", 0o755); err != nil {
			return fmt.Errorf("/etc of the image: %w: %w", err, paddock.Invalid)
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		names, numbers := map[string]bool{}, map[string]bool{}
		for line := range strings.Lines(text) {
			if p := strings.Split(line, ":"); len(p) > 2 {
				names[p[0]], numbers[p[2]] = true, true
			}
		}
		if !names["root"] {
			text = f.root + text
		}
		if !names["user"] {
			n := 1000
			for numbers[strconv.Itoa(n)] {
				n++
			}
			text += strings.ReplaceAll(f.user, "N", strconv.Itoa(n))
		}
		if err := t.Root.WriteFile(at, []byte(text), 0o644); err != nil {
			return fmt.Errorf("/%s of the image: %w: %w", f.name, err, paddock.Invalid)
		}
	}
	return nil
}

// network makes the files over which a sandbox puts its own, where the image has
// none: its tree cannot be written any more then.
func network(t *layer.Tree) error {
	dir, st, ok := t.Find("etc")
	if !ok || !st.IsDir() {
		return fmt.Errorf("/etc of the image is no directory: %w", paddock.Invalid)
	}
	for _, name := range []string{"resolv.conf", "hosts", "nsswitch.conf"} {
		if _, st, ok := t.Find("etc/" + name); ok && st.Mode().IsRegular() {
			continue
		}
		at := path.Join(dir, name) // nothing, or a link that leads to nothing
		if err := errors.Join(t.Root.RemoveAll(at), t.Root.WriteFile(at, nil, 0o644)); err != nil {
			return fmt.Errorf("/etc/%s of the image: %w: %w", name, err, paddock.Invalid)
		}
	}
	return nil
}

// Sweep removes the tenant's images for which used returns false. It does nothing while an image of
// the tenant is being pulled.
func (s *Store) Sweep(tenant string, used func(id string) bool) error {
	turn := s.turn(tenant)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	default:
		return nil // one is being pulled: another time
	}
	list, err := os.ReadDir(s.place(tenant))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		if !used(e.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.place(tenant), e.Name())))
		}
	}
	return err
}
