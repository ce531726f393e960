package access

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/store"
)

func (y *yard) sign(t *testing.T, port int) string {
	t.Helper()
	text, _, err := y.access.Sign(t.Context(), "acme", "key-acme", "box", port, api.Link{Lifetime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Clients of Daytona show a signature in a header or a parameter of their own.
func TestASignatureIsShownAsDaytonasClientsDo(t *testing.T) {
	y := newYard(t, domain)
	text := y.sign(t, 8080)
	for _, at := range []string{host, "api.test"} {
		flat := func(header ...string) []string {
			if at == host {
				return header
			}
			return append(header, SandboxHeader, "box", PortHeader, "8080")
		}
		res, _ := y.wants(t, 200, "GET", at, "/?a=b", flat("x-daytona-preview-token", text)...)
		if r := <-y.seen; len(r.Header[PreviewHeader]) > 0 || r.URL.RawQuery != "a=b" || len(res.Cookies()) > 0 {
			t.Errorf("the guest sees %v %s, the client gets %v", r.Header, r.URL, res.Cookies())
		}
		y.wants(t, 200, "GET", at, "/?DAYTONA_SANDBOX_AUTH_KEY="+text+"&a=b", flat()...)
		if r := <-y.seen; r.URL.RawQuery != "a=b" {
			t.Errorf("the guest sees %s", r.URL)
		}
		before := y.dials.Load()
		for _, bad := range []string{text[:len(text)-1], text + "A", strings.Replace(text, "key-acme", "key-other", 1), "", "v2.1.k..x"} {
			y.wants(t, 403, "GET", at, "/", flat("x-daytona-preview-token", bad)...)
			y.wants(t, 403, "GET", at, "/?DAYTONA_SANDBOX_AUTH_KEY="+url.QueryEscape(bad), flat()...)
		}
		y.wants(t, 400, "GET", at, "/?paddock-token="+text, flat("x-daytona-preview-token", text)...)
		y.wants(t, 400, "GET", at, "/", flat("x-daytona-preview-token", text, "x-daytona-preview-token", text)...)
		y.wants(t, 400, "GET", at, "/?DAYTONA_SANDBOX_AUTH_KEY="+text+"&paddock-token="+text, flat()...)
		if at == "api.test" {
			y.wants(t, 403, "GET", at, "/", flat("x-daytona-preview-token", text, "Sec-Fetch-Mode", "cors", "Sec-Fetch-Site", "same-origin")...)
		}
		if y.dials.Load() != before {
			t.Error("a port was reached")
		}
		y.wants(t, 200, "GET", at, "/", flat("x-daytona-preview-token", text, "Sec-Fetch-Mode", "cors")...) // as Node's fetch says
	}
	y.wants(t, 403, "GET", "8081-box.example.com", "/", PreviewHeader, text)
	y.wants(t, 403, "GET", "8080-theirs.example.com", "/", PreviewHeader, text)
	y.shift.Store(int64(2 * time.Minute))
	y.wants(t, 403, "GET", host, "/", PreviewHeader, text)
}

func TestASignatureEndsAlone(t *testing.T) {
	y := newYard(t, domain)
	one, two := y.sign(t, 8080), ""
	y.shift.Store(int64(time.Second)) // so that it is another text
	two = y.sign(t, 8080)
	for _, c := range []struct {
		tenant, text string
		port         int
	}{{"other", one, 8080}, {"acme", one, 8081}, {"acme", "v2.1.k..x", 8080}, {"acme", one[:len(one)-1], 8080}} {
		if err := y.access.End(t.Context(), c.tenant, "box", c.port, c.text); paddock.KindOf(err) != paddock.NotFound {
			t.Errorf("%+v: %v", c, err)
		}
	}
	y.wants(t, 200, "GET", host, "/", PreviewHeader, one)
	if err := y.access.End(t.Context(), "acme", "box", 8080, one); err != nil {
		t.Fatal(err)
	}
	y.wants(t, http.StatusForbidden, "GET", host, "/", PreviewHeader, one)
	y.wants(t, http.StatusForbidden, "GET", host, "/", "Cookie", plainCookie+"="+one, "Accept", "text/html")
	y.wants(t, 200, "GET", host, "/", PreviewHeader, two)
	y.shift.Store(int64(2 * time.Minute))
	if err := y.access.End(t.Context(), "acme", "box", 8080, two); err != nil {
		t.Errorf("one that expired: %v", err)
	}
}

func TestEveryPortCanBePublic(t *testing.T) {
	y := newYard(t, domain)
	if _, err := y.access.SetPublic(t.Context(), "acme", "box", store.EveryPort, true); err != nil {
		t.Fatal(err)
	}
	y.wants(t, 200, "GET", host, "/")
	y.wants(t, 200, "GET", "9-box.example.com", "/")
	if p, err := y.access.Port(t.Context(), "acme", "box", 9); err != nil || !p.Public {
		t.Errorf("its owner is told %+v, %v", p, err)
	}
	y.wants(t, 401, "GET", "8080-theirs.example.com", "/")
	if _, err := y.access.SetPublic(t.Context(), "acme", "box", store.EveryPort, false); err != nil {
		t.Fatal(err)
	}
	y.wants(t, 401, "GET", host, "/")
}
