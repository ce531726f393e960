package agentlogin

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

func FuzzGrant(f *testing.F) {
	f.Add("application/json", []byte(`{"grant_type":"refresh_token","refresh_token":"abc","client_id":"x"}`))
	f.Add("application/x-www-form-urlencoded; charset=utf-8", []byte("grant_type=refresh_token&refresh_token=a%20b&client_secret=y"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		g, err := parseGrant(contentType, body)
		if err != nil {
			if strings.Contains(err.Error(), string(body)) && len(body) > 40 {
				t.Errorf("the error quotes the body: %v", err)
			}
			return
		}
		kind, out, err := g.encode("the-real-token")
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseGrant(kind, out)
		if err != nil || again.refresh != "the-real-token" || again.kind != "refresh_token" || again.client != g.client || again.secret != g.secret {
			t.Errorf("%+v became %+v, %v", g, again, err)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"access_token":"abcdefghij","refresh_token":"klmnopqrst","expires_in":3600}`))
	f.Add([]byte(`{"access_token":"abcdefghij","expires_in":1e308,"error":{"type":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if name := errorName(data); len(name) < 3 || len(name) > 32 || strings.ContainsAny(name, "\"\\ \x1b\n") {
			t.Errorf("error %q", name)
		}
		was := tokens{access: "the-old-access", refresh: "the-old-refresh"}
		now, err := parseAnswer(data, was, time.Now())
		if err != nil {
			return
		}
		h := &held{}
		a := h.answer(now)
		if a.Status != http.StatusOK || !json.Valid(a.Body) {
			t.Fatalf("%d %q", a.Status, a.Body)
		}
		for _, real := range []string{now.access, now.refresh, now.id} {
			if len(real) > 16 && strings.Contains(string(a.Body), real) {
				t.Errorf("the box sees %q", real)
			}
		}
	})
}

func FuzzMask(f *testing.F) {
	f.Add("sk-ant-oat01-abcdefghijklmnopqrstuvwxyz")
	f.Add("eyJhbGciOiJSUzI1NiJ9.eyJleHAiOjE3MDAwMDAwMDB9.c2lnbmF0dXJlLW9mLXNvbWUtbGVuZ3Ro")
	f.Fuzz(func(t *testing.T, token string) {
		_ = jwtExpiry(token)
		if !isToken(token) {
			return
		}
		p, err := mask(token)
		if err != nil {
			t.Fatal(err)
		}
		if len(p) < 16 || !isToken(p) || p == token {
			t.Errorf("%q for %q", p, token)
		}
	})
}

func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"a":{"b":"token-token","c":1700000000000},"d":[1]}`), "a.b")
	f.Add([]byte(`{"a":null}`), "a.b.c")
	f.Fuzz(func(t *testing.T, data []byte, at string) {
		d, err := parseDocument(data)
		if err != nil {
			return
		}
		s := Section{Access: at, Expires: Expiry{At: "a.c", Unit: "ms"}}
		_, _ = d.tokens(s)
		if at == "" || d.store(s, tokens{access: "the-new-token", expires: time.Now()}, time.Now()) != nil {
			return
		}
		out, err := d.bytes()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseDocument(out)
		if err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if at != "a.c" && at != "a" && !strings.HasPrefix(at, "a.c.") && again.text(at) != "the-new-token" {
			t.Errorf("%q has not got the token at %q", out, at)
		}
	})
}
