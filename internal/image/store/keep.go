package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/shelf"
)

// A Keeper keeps images although no process holds them: of paused sandboxes and snapshots. It is a file in the
// directory of the image, so it outlives processes.
type Keeper struct {
	Mark  string `json:"mark"`  // unique to the keeper, and the same after its restart
	Words string `json:"words"` // for people: "the server of …"
}

// A Kept is an image that a keeper keeps for a tenant.
type Kept struct{ Tenant, Digest string }

// keptPrefix begins the names of the files of keepers.
const keptPrefix = "kept-"

func (k Keeper) file() string {
	sum := sha256.Sum256([]byte(k.Mark))
	return keptPrefix + hex.EncodeToString(sum[:16])
}

// Keep keeps a tenant's image until Free: nobody removes it. An image that is not there is [paddock.NotFound].
func (s *Store) Keep(ctx context.Context, k Keeper, i Kept) error {
	p := s.part(i.Tenant)
	dir := p.Image(i.Digest)
	// Nobody removes the image while the file is made.
	lock, err := shelf.Await(ctx, filepath.Join(dir, shelf.HoldFile), os.O_RDONLY, true)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("image %s is not here: %w", shelf.Clip(i.Digest), paddock.NotFound)
	}
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Digest, err)
	}
	defer lock.Close()
	if exists(filepath.Join(dir, k.file())) {
		return nil
	}
	if err := p.ready(); err != nil {
		return err
	}
	return p.write(filepath.Join(dir, k.file()), k)
}

// Free ends Keep. An image that was not kept, or is not there, is no error.
func (s *Store) Free(k Keeper, i Kept) error {
	err := os.Remove(filepath.Join(s.part(i.Tenant).Image(i.Digest), k.file()))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	return nil
}

// Settle frees every image that the keeper kept and that is not in the list, of any tenant: a crash left it.
func (s *Store) Settle(k Keeper, list []Kept) error {
	want := make(map[string]bool, len(list))
	for _, i := range list {
		want[s.part(i.Tenant).Image(i.Digest)] = true
	}
	parts, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	var errs []error
	for _, e := range parts {
		p := &part{s, shelf.Part(filepath.Join(s.o.Dir, e.Name()))}
		digests, err := p.digests()
		if err != nil {
			continue // it is no part of a tenant
		}
		for _, digest := range digests {
			if want[p.Image(digest)] {
				continue
			}
			if err := os.Remove(filepath.Join(p.Image(digest), k.file())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, fmt.Errorf("images: %w: %w", err, paddock.Internal))
			}
		}
	}
	return errors.Join(errs...)
}

// keepers says in words who keeps an image. Who cannot be read keeps it too.
func (p *part) keepers(digest string) []string {
	list, _ := os.ReadDir(p.Image(digest)) // one that is not there is kept by nobody
	var who []string
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), keptPrefix) {
			continue
		}
		name := filepath.Join(p.Image(digest), e.Name())
		k := Keeper{}
		if data, err := os.ReadFile(name); err != nil || json.Unmarshal(data, &k) != nil || k.Words == "" {
			k.Words = "a server"
		}
		who = append(who, k.Words+" (if that is no more: rm "+name+")")
	}
	return who
}
