package secret

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestATokenIsPutIntoItsHeaderAlone(t *testing.T) {
	const (
		signature = "dGhlLXJlYWwtc2lnbmF0dXJlLW9mLWl0"
		real      = "eyJh.eyJi." + signature
		older     = "placeholder-number-1"
		newer     = "eyJh.eyJi.YW5vdGhlci1zaWduYXR1cmUtb2YtaXQ"
	)
	bound, p := one(t)
	for name, base := range map[string]*Set{"alone": nil, "beside a secret": bound} {
		set := base.With([]Token{{Name: "login", Value: real, Placeholders: []string{older, newer}, Headers: []string{"authorization"}}})
		r := request(t, "POST", "https://a.example/?q="+newer, newer)
		r.Header = http.Header{"Authorization": {"Bearer " + newer}, "X-Other": {older, p}, "Connection": {newer}}
		names, err := set.Head(r)
		if err != nil || names[len(names)-1] != "login" {
			t.Errorf("%s: %q, %v", name, names, err)
		}
		if got := r.Header.Get("Authorization"); got != "Bearer "+real {
			t.Errorf("%s: %q", name, got)
		}
		if r.Header.Get("X-Other") != older || r.Header.Get("Connection") != newer || strings.Contains(r.URL.RawQuery, signature) {
			t.Errorf("%s: %v %s", name, r.Header, r.URL)
		}
		if base != nil && r.Header.Values("X-Other")[1] != value {
			t.Errorf("%s: the secret is not put in: %v", name, r.Header)
		}
		body, _, _ := set.Body(http.Header{"Content-Type": {"text/plain"}}, r.Body, func(string) {})
		if sent, err := io.ReadAll(body); err != nil || string(sent) != newer {
			t.Errorf("%s: the body became %q, %v", name, sent, err)
		}
		r.Header.Set("Authorization", older)
		if _, err := set.Head(r); err != nil || r.Header.Get("Authorization") != real {
			t.Errorf("%s: an older placeholder became %q, %v", name, r.Header, err)
		}
		answer := "you sent " + real + ", signed " + signature
		got, err := readAll(t, set.Scrub(io.NopCloser(strings.NewReader(answer))))
		if err != nil || strings.Contains(string(got), signature) || !strings.Contains(string(got), newer) {
			t.Errorf("%s: the answer is %q, %v", name, got, err)
		}
	}
	if bound.With(nil) == bound {
		t.Error("a set is shared")
	}
	var none *Set
	if none.With(nil) != nil || none.With([]Token{{Name: "x"}}) != nil {
		t.Error("no tokens make a set")
	}
}
