package auxiliary

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	hub "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// imageRun runs the command line, and gives what it answers and what it says.
func imageRun(t *testing.T, dir string, code int, args ...string) (answer, said string) {
	t.Helper()
	v := invoke(dir, nil, nil, append([]string{"image"}, args...)...)
	if got := v.Run(t.Context()); got != code {
		t.Fatalf("paddock image %q: exit %d: %s", args, got, v.Stderr.String())
	}
	return v.Stdout.String(), v.Stderr.String()
}

func TestImagesAreKeptByTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "tree/etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tree/etc/a"), []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	imageRun(t, dir, 125, "load", "tree")
	loaded, _ := imageRun(t, dir, 0, "load", "--tag", "own:1", "tree")
	label, digest, _ := strings.Cut(strings.TrimSpace(loaded), " ")
	if label != "docker.io/library/own:1" || !strings.HasPrefix(digest, "sha256:") {
		t.Errorf("it answers %q", loaded)
	}
	if list, _ := imageRun(t, dir, 0, "ls"); !strings.Contains(list, "docker.io/library/own:1") || !strings.Contains(list, digest[:19]) {
		t.Errorf("it lists %q", list)
	}
	text, _ := imageRun(t, dir, 0, "inspect", "--json", "own:1")
	var img store.Image
	if err := json.Unmarshal([]byte(text), &img); err != nil || img.Digest != digest || len(img.Layers) != 1 {
		t.Errorf("%s: %v", text, err)
	}
	imageRun(t, dir, 0, "save", "-o", "own.tar", "own:1")
	if again, _ := imageRun(t, dir, 0, "rm", "own:1"); !strings.HasPrefix(again, "docker.io/library/own:1: removed ") {
		t.Errorf("it answers %q", again)
	}
	if _, said := imageRun(t, dir, 125, "inspect", "own:1"); !strings.Contains(said, "is not here") || !strings.Contains(said, "hint: ") {
		t.Errorf("it says %q", said)
	}
	if again, _ := imageRun(t, dir, 0, "load", "own.tar"); again != loaded {
		t.Errorf("it answers %q", again)
	}
	if answer, _ := imageRun(t, dir, 0, "prune", "--keep-size", "1", "--json"); !strings.Contains(answer, digest) {
		t.Errorf("it answers %q", answer)
	}
	// The saved archive goes to a registry, and from there back.
	saved, err := tarball.ImageFromPath(filepath.Join(dir, "own.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(hub.New(hub.Logger(log.New(io.Discard, "", 0))))
	defer srv.Close()
	host := strings.TrimPrefix(srv.URL, "http://")
	at, err := name.ParseReference(host+"/own:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(at, saved); err != nil {
		t.Fatal(err)
	}
	if _, said := imageRun(t, dir, 125, "pull", "--registry", "registry.example.com", host+"/own:1"); !strings.Contains(said, "registry.example.com") {
		t.Errorf("it says %q", said)
	}
	if _, said := imageRun(t, dir, 125, "pull", "--require-digest", host+"/own:1"); !strings.Contains(said, "demands a digest") {
		t.Errorf("it says %q", said)
	}
	pulled, said := imageRun(t, dir, 0, "pull", "--registry", host, host+"/own:1")
	if !strings.HasPrefix(pulled, "sha256:") || said != "" {
		t.Errorf("it answers %q and says %q", pulled, said)
	}
	if text, _ = imageRun(t, dir, 0, "inspect", "--json", host+"/own:1"); !strings.Contains(text, host) || !strings.Contains(text, strings.TrimSpace(pulled)) {
		t.Errorf("it is described as %s", text)
	}
}

// A registry that the caller names may be anywhere. One at a public address leads to no private one.
func TestARegistryLeadsToNoPrivateAddress(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	at := strings.TrimPrefix(srv.URL, "http://")
	public := dialRegistry()
	if c, err := public(t.Context(), true, "registry.example.com", "tcp", at); !errors.Is(err, paddock.Denied) {
		t.Errorf("it was dialled: %v, %v", c, err)
	}
	private := dialRegistry()
	for _, home := range []string{at, "10.0.0.1:5000"} { // the registry itself, and where it leads to
		c, err := private(t.Context(), true, home, "tcp", at)
		if err != nil {
			t.Errorf("%s: %v", home, err)
			continue
		}
		c.Close()
	}
}

// A name that leads to a private network once, and to a public address before or after, is that of a public registry.
func TestARegistryIsInsideOnlyIfItIsNowhereElse(t *testing.T) {
	const private, public = "10.0.0.1:443", "93.184.215.14:443"
	for _, c := range []struct {
		seen []string
		want bool
	}{{nil, false}, {[]string{private}, true}, {[]string{public}, false}, {[]string{private, public}, false}, {[]string{public, private}, false}, {[]string{private, private}, true}} {
		var r registryPlace
		for _, at := range c.seen {
			r.saw(at)
		}
		if r.inside() != c.want {
			t.Errorf("%v: %v", c.seen, r.inside())
		}
	}
}
