package store

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
	"github.com/paddock-sandbox/paddock/internal/image/shelf"
)

// pack writes the files of a directory as an archive. It follows no link. Sockets are left out, and so are extended
// attributes.
func pack(ctx context.Context, root *os.Root, out io.Writer) error {
	w := tar.NewWriter(out)
	seen := map[fileID]string{}
	err := fs.WalkDir(dirs{root}, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", err, paddock.Denied)
		case ctx.Err() != nil:
			return fmt.Errorf("it was given up: %w", paddock.Canceled)
		case name == "." || e.Type()&fs.ModeSocket != 0:
			return nil
		}
		st, err := root.Lstat(name)
		if err != nil {
			return fmt.Errorf("%w: %w", err, paddock.Denied)
		}
		return packOne(root, w, name, st, seen)
	})
	return errors.Join(err, w.Close())
}

func packOne(root *os.Root, w *tar.Writer, name string, st fs.FileInfo, seen map[fileID]string) error {
	to := ""
	if st.Mode()&fs.ModeSymlink != 0 {
		var err error
		if to, err = root.Readlink(name); err != nil {
			return fmt.Errorf("%w: %w", err, paddock.Denied)
		}
	}
	h, err := tar.FileInfoHeader(st, to)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", name, err, paddock.Unsupported)
	}
	h.Name, h.Uname, h.Gname = name, "", "" // names of this machine's accounts say nothing about the image's
	if st.IsDir() {
		h.Name += "/"
	}
	if id, ok := idOf(st); ok && st.Mode().IsRegular() {
		if first, again := seen[id]; again {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		}
		seen[id] = name
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	f, err := openPlain(root, name)
	if err != nil {
		return fmt.Errorf("%s: %w", shelf.Clip(name), err)
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(st, now) {
		return errors.Join(err, fmt.Errorf("%s became another file meanwhile: %w", shelf.Clip(name), paddock.Conflict))
	}
	if _, err := io.CopyN(w, f, h.Size); errors.Is(err, io.EOF) {
		return fmt.Errorf("%s became shorter meanwhile: %w", name, paddock.Conflict)
	} else if err != nil {
		return err
	}
	return nil
}

// Save writes images as an archive with an OCI layout, which also has the manifest.json of `docker save`.
func (s *Store) Save(ctx context.Context, tenant string, names []string, out io.Writer) error {
	p := s.part(tenant)
	w := &layoutWriter{p: p, w: tar.NewWriter(out), has: map[string]bool{}}
	for _, dir := range []string{"blobs/", "blobs/sha256/"} {
		if err := w.w.WriteHeader(&tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
			return err
		}
	}
	for _, name := range names {
		img, err := s.Resolve(ctx, tenant, name)
		if err != nil {
			return err
		}
		if err := w.image(ctx, img, name); err != nil {
			return fmt.Errorf("image %s: %w", shelf.Clip(name), err)
		}
	}
	return w.end()
}

type layoutWriter struct {
	p   *part
	w   *tar.Writer
	has map[string]bool

	index  []v1.Descriptor
	docker []dockerImage
}

// A dockerImage is an entry of the manifest.json of `docker save`.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func (l *layoutWriter) image(ctx context.Context, img Image, name string) error {
	lock, err := shelf.Await(ctx, filepath.Join(l.p.Image(img.Digest), shelf.HoldFile), os.O_RDONLY, true)
	if err != nil {
		return err
	}
	defer lock.Close()
	config, err := os.Stat(l.p.blob(img.ConfigDigest))
	if err != nil {
		return fmt.Errorf("images: %w: %w", err, paddock.Internal)
	}
	blobs := append([]Blob{img.Manifest, {Digest: img.ConfigDigest, Size: config.Size()}}, img.Layers...)
	one := dockerImage{Config: blobName(img.ConfigDigest)}
	for n, b := range blobs {
		if n > 1 {
			one.Layers = append(one.Layers, blobName(b.Digest))
		}
		if err := l.blob(ctx, b); err != nil {
			return err
		}
	}
	d, err := described(img.Manifest, types.MediaType(img.Manifest.MediaType))
	if err != nil {
		return err
	}
	if d.MediaType == "" {
		d.MediaType = types.OCIManifestSchema1
	}
	d.Platform = &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	if !strings.HasPrefix(name, "sha256:") {
		ref, err := reference.Parse(name)
		if err != nil {
			return err
		}
		if ref.Digest = ""; ref.Tag != "" {
			d.Annotations = map[string]string{"io.containerd.image.name": ref.String(), "org.opencontainers.image.ref.name": ref.Tag}
			one.RepoTags = []string{ref.String()}
		}
	}
	l.index, l.docker = append(l.index, d), append(l.docker, one)
	return nil
}

func blobName(digest string) string { return path.Join("blobs/sha256", shelf.Bare(digest)) }

func (l *layoutWriter) blob(ctx context.Context, b Blob) error {
	if l.has[b.Digest] {
		return nil
	}
	l.has[b.Digest] = true
	f, err := l.p.open(b)
	if err != nil {
		return err
	}
	err = l.w.WriteHeader(&tar.Header{Name: blobName(b.Digest), Typeflag: tar.TypeReg, Mode: 0o644, Size: b.Size})
	if err == nil {
		_, err = io.Copy(l.w, &ends{ctx, f})
	}
	return errors.Join(err, f.Close())
}

func (l *layoutWriter) end() error {
	for _, doc := range []struct {
		name string
		v    any
	}{
		{"oci-layout", map[string]string{"imageLayoutVersion": "1.0.0"}},
		{"index.json", v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: l.index}},
		{"manifest.json", l.docker},
	} {
		data, err := json.Marshal(doc.v)
		if err != nil {
			return fmt.Errorf("%w: %w", err, paddock.Internal)
		}
		if err := l.w.WriteHeader(&tar.Header{Name: doc.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		if _, err := l.w.Write(data); err != nil {
			return err
		}
	}
	return l.w.Close()
}
