package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// serveRegistry is the command "registry DIR" of scripts: until the script ends, it serves the one image of an OCI layout
// under each name and tag, and sets REGISTRY to its address.
func serveRegistry(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: registry DIR")
	}
	dir := ts.MkAbs(args[0])
	var index struct {
		Manifests []struct{ Digest, MediaType string }
	}
	data, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err == nil {
		err = json.Unmarshal(data, &index)
	}
	if ts.Check(err); len(index.Manifests) != 1 {
		ts.Fatalf("%s has %d images", args[0], len(index.Manifests))
	}
	only := index.Manifests[0]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		digest := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		switch {
		case r.URL.Path == "/v2/":
			return
		case strings.Contains(r.URL.Path, "/manifests/"):
			if digest = only.Digest; strings.Contains(r.URL.Path, "/manifests/sha256-") {
				http.NotFound(w, r) // there are no signatures
				return
			}
			w.Header().Set("Content-Type", only.MediaType)
			w.Header().Set("Docker-Content-Digest", digest)
		}
		http.ServeFile(w, r, filepath.Join(dir, "blobs", "sha256", filepath.Base(strings.TrimPrefix(digest, "sha256:"))))
	}))
	ts.Defer(s.Close)
	ts.Setenv("REGISTRY", strings.TrimPrefix(s.URL, "http://"))
}
