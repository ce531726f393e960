package reference

import (
	"strings"
	"testing"
)

func TestReferencesAreReadAsDockersToolsDo(t *testing.T) {
	sum := "sha256:" + strings.Repeat("a", 64)
	for text, want := range map[string]string{
		"debian": "docker.io/library/debian:latest", "debian:12": "docker.io/library/debian:12", "a/b": "docker.io/a/b:latest",
		"images.example.com/a/b:c": "images.example.com/a/b:c", "localhost/a": "localhost/a:latest", "127.0.0.1:5000/a/b@" + sum: "127.0.0.1:5000/a/b@" + sum,
		"index.docker.io/a": "docker.io/library/a:latest", "[::1]:5000/a": "[::1]:5000/a:latest",
	} {
		if r, err := Parse(text); err != nil || r.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, r, err, want)
		}
	}
	for _, text := range []string{"", " ", "A", "a//b", "a/../b", "a:", "a@b", "a@sha256:a", "a.b:0/c", "a.b:99999/c", "u@a.b/c", "a.b/c?d", "a.b/c#d", "http://a.b/c", "a.b:80:80/c", "-a.b/c", "a/b:c/d", strings.Repeat("a", 2000)} {
		if r, err := Parse(text); err == nil {
			t.Errorf("%q is taken for %s", text, r)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("images.example.com/a/b:c@sha256:" + strings.Repeat("a", 64))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(r.String()); err != nil || again != r {
			t.Errorf("%q: %v, then %v, %v", text, r, again, err)
		}
		if strings.Contains(r.Name, "..") || strings.ContainsAny(r.Host, "/@?#") {
			t.Errorf("%q: %+v", text, r)
		}
	})
}
