package image_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
)

func TestAConfigurationIsBoundedAndChecked(t *testing.T) {
	c, err := image.ParseConfig([]byte(`{"config":{"Env":["A=b","NAMEONLY","=x","PATH=/bin"],"WorkingDir":"../../srv","User":"www:1000","Entrypoint":["/e"],"Cmd":["a","b"],"Shell":["/bin/sh","-c"],
		"ExposedPorts":{"80/tcp":{},"53/udp":{}},"Volumes":{"/data":{}},"Labels":{"a":"b"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%q %s %s %q %q %q %q %q %q", c.Env, c.Dir, c.User, c.Entrypoint, c.Command, c.Shell, c.Ports, c.Volumes, c.Labels); got !=
		`["A=b" "PATH=/bin"] /srv www:1000 ["/e"] ["a" "b"] ["/bin/sh" "-c"] ["53/udp" "80/tcp"] ["/data"] map["a":"b"]` {
		t.Error(got)
	}
	many := strings.Repeat(`"A=b",`, 2001)
	for _, row := range []struct {
		text string
		kind error
	}{
		{`[]`, paddock.Invalid},
		{`{"config":{"Env":["A=\u0000"]}}`, paddock.Invalid},
		{`{"config":{"WorkingDir":"/a\u0000b"}}`, paddock.Invalid},
		{`{"config":{"User":"root:0:0"}}`, paddock.Invalid},
		{`{"config":{"User":"root:"}}`, paddock.Invalid},
		{`{"config":{"User":"a\nb"}}`, paddock.Invalid},
		{`{"config":{"User":"../root"}}`, paddock.Invalid},
		{`{"config":{"Env":[` + many + `"A=b"]}}`, paddock.Exhausted},
		{`{"config":{"Labels":{"a":"` + strings.Repeat("x", 300_000) + `"}}}`, paddock.Exhausted},
	} {
		if c, err := image.ParseConfig([]byte(row.text)); !errors.Is(err, row.kind) {
			t.Errorf("%.60s: %+v, %v", row.text, c, err)
		}
	}
	if c, err := image.ParseConfig([]byte(`{}`)); err != nil || c.Dir != "" || c.Env != nil {
		t.Errorf("%+v, %v", c, err)
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"config":{"Env":["A=b"],"WorkingDir":"..","User":"a:b"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := image.ParseConfig(data)
		if err != nil {
			return
		}
		if c.Dir != "" && (!strings.HasPrefix(c.Dir, "/") || strings.Contains(c.Dir, "/../")) || strings.ContainsAny(c.Dir+c.User, "\x00") || strings.Count(c.User, ":") > 1 {
			t.Errorf("%+v", c)
		}
		for _, v := range c.Env {
			if i := strings.IndexByte(v, '='); i < 1 || strings.Contains(v, "\x00") {
				t.Errorf("%q", v)
			}
		}
	})
}
