package cli

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestPublicationsAreReadAsElsewhere(t *testing.T) {
	for text, want := range map[string]publication{
		"8080":                {local: 8080, port: 8080},
		"8080/tcp":            {local: 8080, port: 8080},
		"80:8080":             {local: 80, port: 8080},
		"0:8080":              {port: 8080},
		"localhost:80:8080":   {local: 80, port: 8080},
		"127.0.0.1:80:8080":   {addr: netip.MustParseAddr("127.0.0.1"), local: 80, port: 8080},
		"0.0.0.0:80:8080":     {addr: netip.MustParseAddr("0.0.0.0"), local: 80, port: 8080},
		"127.0.0.1::8080":     {addr: netip.MustParseAddr("127.0.0.1"), port: 8080},
		"[::1]:80:8080":       {addr: netip.MustParseAddr("::1"), local: 80, port: 8080},
		"[fe80::1%lo]:80:443": {addr: netip.MustParseAddr("fe80::1%lo"), local: 80, port: 443},
	} {
		if got, err := parsePublication(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for text, kind := range map[string]paddock.Kind{
		"": paddock.Invalid, "0": paddock.Invalid, "-1": paddock.Invalid, "+80": paddock.Invalid, "65536": paddock.Invalid, "80:": paddock.Invalid, ":80": paddock.Invalid,
		"a:80:80": paddock.Invalid, "::1:80:80": paddock.Invalid, "[127.0.0.1]:80:80": paddock.Invalid, "224.0.0.1:80:80": paddock.Invalid, "1.2.3.4:x:80": paddock.Invalid,
		"example.com:80:80": paddock.Invalid, "80-90:80-90": paddock.Invalid, "53/udp": paddock.Unsupported,
	} {
		if p, err := parsePublication(text); !errors.Is(err, kind) {
			t.Errorf("%q: %+v, %v; want %v", text, p, err, kind)
		}
	}
}
