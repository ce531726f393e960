package box

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/erofs"
	"github.com/paddock-sandbox/paddock/internal/private"
)

// Either of the names that lead to the images may be a link.
func TestTheImagesAreHiddenWhereTheyReallyAre(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root's data has a place of its own: /var/lib/paddock")
	}
	for _, name := range []string{"paddock", "paddock-images"} {
		home := t.TempDir()
		share, big := filepath.Join(home, "share"), filepath.Join(home, "big", name)
		if err := errors.Join(os.MkdirAll(share, 0o700), os.MkdirAll(big, 0o700), os.Symlink(big, filepath.Join(share, name))); err != nil {
			t.Fatal(err)
		}
		s, err := NewSite(paddock.Jail, Options{State: filepath.Join(home, "state"), Environ: []string{"HOME=" + home, "XDG_DATA_HOME=" + share}})
		if err != nil {
			t.Fatal(err)
		}
		store := private.Images(filepath.Join(share, "paddock"))
		if list := s.images(); !slices.Contains(list, store) || !slices.Contains(list, filepath.Join(share, "paddock-images")) {
			t.Errorf("%s is a link: of %s, it hides %v", name, store, list)
		}
	}
}

// An image names variables of secrets, of certificates, and others.
func TestAnImageSetsNoVariableOfTheNetwork(t *testing.T) {
	config := image.Config{Env: []string{"TOKEN=theirs", "SSL_CERT_FILE=/theirs", "NODE_EXTRA_CA_CERTS=/theirs", "A=b", "C=theirs"}}
	secret := paddock.Secret{Name: "TOKEN", Value: "v", Hosts: []string{"api.example.com"}}
	list := paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "api.example.com"}}}
	with := list
	with.Secrets = []paddock.Secret{secret}
	for _, c := range []struct {
		network paddock.NetworkPolicy
		gone    bool
	}{{paddock.NetworkPolicy{}, false}, {list, false}, {with, true}} {
		spec := paddock.Spec{Env: map[string]string{"C": "own"}}
		spec.Policy.Network = c.network
		if err := configure(&spec, config, false); err != nil {
			t.Fatal(err)
		}
		if spec.Env["A"] != "b" || spec.Env["C"] != "own" {
			t.Errorf("%v", spec.Env)
		}
		for _, name := range []string{"TOKEN", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
			if _, there := spec.Env[name]; there == c.gone {
				t.Errorf("%s, with %d secrets: %v", name, len(c.network.Secrets), there)
			}
		}
	}
}

// What is added for the network goes where the root's links lead.
func TestNoFileForTheNetworkIsInAMount(t *testing.T) {
	l := &Layout{ownTree: true, Mounts: []boxinit.Mount{{Target: "/work"}}}
	for _, kind := range []boxinit.MountKind{boxinit.MountFile, boxinit.MountReplace, boxinit.MountAppend, boxinit.MountCopy, boxinit.MountKeys} {
		l.Config.Mounts = []boxinit.Mount{{Kind: boxinit.MountBind, Target: "/work"}, {Kind: kind, Target: "/work/lib/x"}}
		if err := l.apart(1); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%v: %v", kind, err)
		}
		l.Config.Mounts[1].Target = "/worker/x"
		if err := l.apart(1); err != nil {
			t.Errorf("%v beside it: %v", kind, err)
		}
	}
}

// The links of an image lead up and down again through the deepest directories that an image may have.
func TestANameIsFollowedWithFewLooks(t *testing.T) {
	const depth = 198
	r, w := io.Pipe()
	go func() {
		tw := tar.NewWriter(w)
		at := strings.Repeat("d/", depth)
		put := func(name, to string) error {
			return tw.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to, Mode: 0o777})
		}
		err := put("etc/passwd", "/"+at+"l0")
		for i := range linksMax {
			err = errors.Join(err, put(fmt.Sprint(at, "l", i), strings.Repeat("../", depth)+at+fmt.Sprint("l", i+1)))
		}
		w.CloseWithError(errors.Join(err, tw.Close()))
	}()
	name := filepath.Join(t.TempDir(), "image")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	layer := func() (io.ReadCloser, error) { return r, nil }
	if _, err := erofs.Convert(context.Background(), f, []func() (io.ReadCloser, error){layer}, erofs.Bounds{Bytes: 1 << 30, Names: 10_000}); err != nil {
		t.Fatal(err)
	}
	i, err := openImageFile(name)
	if err != nil {
		t.Fatal(err)
	}
	tr := tree{base: name, own: true, image: i}
	defer tr.close()
	for range 10 {
		if at, there := tr.find("/etc/passwd"); there {
			t.Errorf("it leads to %s", at)
		}
	}
	if looks := len(i.stats); looks == 0 || looks > depth+linksMax+10 {
		t.Errorf("it looked at %d names", looks)
	}
}
