package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/client"
)

func TestImagesAreAskedForByReference(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	told, asked := digest, ""
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body)
		w.Header().Set("Content-Type", "application/json")
		switch r.Method {
		case http.MethodGet:
			fmt.Fprintf(w, `{"images":[{"digest":%q,"references":["a:1"],"size":7,"shared":true}]}`, told)
		case http.MethodPost:
			fmt.Fprintf(w, `{"digest":%q,"references":[],"size":7}`, told)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer web.Close()
	d := connect(t, client.Options{Address: web.URL})
	list, err := d.Images(bounded(t))
	if err != nil || len(list) != 1 || list[0].Digest != digest || !list[0].Shared || list[0].Size != 7 {
		t.Errorf("%+v, %v", list, err)
	}
	img, err := d.PullImage(bounded(t), client.ImagePull{Reference: "h/a:1", Pull: client.PullAlways, Username: "u", Password: "p"})
	if want := `POST /v1/images {"reference":"h/a:1","pull":"always","username":"u","password":"p"}`; err != nil || img.Digest != digest || asked != want {
		t.Errorf("%+v, %v: asked %s", img, err, asked)
	}
	if err := d.RemoveImage(bounded(t), "h/a:1&x"); err != nil || asked != "DELETE /v1/images?reference=h%2Fa%3A1%26x " {
		t.Errorf("%v: asked %q", err, asked)
	}
	for _, bad := range []string{"", "latest", "sha256:", digest + "0", strings.ToUpper(digest), digest[:70] + "\x1b"} {
		told = bad
		if _, err := d.PullImage(bounded(t), client.ImagePull{Reference: "a"}); err == nil || paddock.KindOf(err) != paddock.Internal {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
