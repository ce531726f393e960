package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A gallery has one image, and notes what it was asked.
type gallery struct{ asked []string }

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (g *gallery) List(context.Context) ([]api.Image, error) {
	return []api.Image{{Digest: someDigest, References: []string{"docker.io/library/own:1"}, Size: 7, Used: time.Unix(1e9, 0).UTC(), Shared: true}}, nil
}

func (g *gallery) Pull(_ context.Context, p api.ImagePull) (api.Image, error) {
	g.asked = append(g.asked, fmt.Sprintf("%s %s %s:%s", p.Reference, p.Pull, p.Username, p.Password))
	if p.Reference == "theirs" {
		return api.Image{}, fmt.Errorf("image theirs is not here: %w", paddock.NotFound)
	}
	return api.Image{Digest: someDigest, References: []string{}}, nil
}

func (g *gallery) Remove(_ context.Context, reference string) error {
	g.asked = append(g.asked, "remove "+reference)
	return nil
}

func TestImagesAreAskedForByTheContract(t *testing.T) {
	tr := newTrial(t)
	for _, op := range []string{"GET", "POST", "DELETE"} {
		tr.want(501, op, "/v1/images?reference=own", `{"reference":"own"}`)
	}
	g := &gallery{}
	tr.caller.Images = g
	var list api.Images
	if err := json.Unmarshal(tr.want(200, "GET", "/v1/images", ""), &list); err != nil || len(list.Images) != 1 || !list.Images[0].Shared {
		t.Errorf("%+v, %v", list, err)
	}
	tr.want(200, "POST", "/v1/images", `{"reference":"own"}`)
	tr.want(200, "POST", "/v1/images", `{"reference":"own","pull":"always","username":"u","password":"p"}`)
	tr.want(404, "POST", "/v1/images", `{"reference":"theirs"}`)
	tr.want(204, "DELETE", "/v1/images?reference="+url.QueryEscape("host/a:1"), "")
	if got := strings.Join(g.asked, ", "); got != "own  :, own always u:p, theirs  :, remove host/a:1" {
		t.Errorf("it was asked: %s", got)
	}
	g.asked = nil
	for _, bad := range []string{`{}`, `{"reference":""}`, `{"reference":"a","pull":"sometimes"}`, `{"reference":"a","tenant":"other"}`, `{"reference":"` + strings.Repeat("a", 1025) + `"}`, `{"reference":"a","username":"` + strings.Repeat("a", 1025) + `"}`} {
		tr.want(400, "POST", "/v1/images", bad)
	}
	tr.want(400, "DELETE", "/v1/images", "")
	tr.caller.ReadOnly = true
	tr.want(200, "GET", "/v1/images", "")
	tr.want(403, "POST", "/v1/images", `{"reference":"own"}`)
	tr.want(403, "DELETE", "/v1/images?reference=own", "")
	if len(g.asked) > 0 {
		t.Errorf("it was asked: %q", g.asked)
	}
}

// Whose an image is, the caller's driver knows, which gets the spec as it is. What is of the host is refused before.
func TestAnUntrustedCallerMayAskForAnImageButForNoDirectory(t *testing.T) {
	c := Caller{}
	for _, row := range []struct {
		root paddock.Root
		kind paddock.Kind
	}{
		{paddock.Root{Kind: paddock.RootImage, Image: "own"}, 0},
		{paddock.Root{Kind: paddock.RootImage, Image: "own", Path: "/etc"}, paddock.Denied},
		{paddock.Root{Kind: paddock.RootDir, Path: "/etc"}, paddock.Denied},
		{paddock.Root{Kind: paddock.RootOpen}, paddock.Denied},
		{paddock.Root{Kind: "other"}, paddock.Denied},
	} {
		err := c.Refuse(paddock.Spec{Root: row.root})
		if row.kind == 0 && err != nil || row.kind != 0 && paddock.KindOf(err) != row.kind {
			t.Errorf("%+v: %v", row.root, err)
		}
	}
}
