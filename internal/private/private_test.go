package private

import (
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestWhatIsPrivateIsFoundInEachMountThatContainsIt(t *testing.T) {
	f := Files{Paths: []string{"/srv/state", "/etc/paddock", "/home/u/key"}, Shown: []string{"/srv/state/images"}}
	for _, row := range []struct {
		source, target string
		want           []string
	}{
		{"/etc", "/etc", []string{"/etc/paddock"}},
		{"/", "/", []string{"/srv/state", "/etc/paddock", "/home/u/key"}},
		{"/", "/host", []string{"/host/srv/state", "/host/etc/paddock", "/host/home/u/key"}},
		{"/srv", "/in/there", []string{"/in/there/state"}},
		{"/srv/state", "/x", []string{"/x"}},
		{"/srv/stat", "/x", nil},
		{"/srv/state/images/one", "/", nil},
		{"/home/u/key", "/key", []string{"/key"}},
	} {
		if got := f.In(row.source, row.target); !slices.Equal(got, row.want) {
			t.Errorf("%s at %s: %q, not %q", row.source, row.target, got, row.want)
		}
	}
	for source, refused := range map[string]bool{
		"/srv/state": true, "/srv/state/server.db": true, "/srv/state/images/one": false, "/srv/state/images": false, "/srv": false, "/etc/paddock/key": true, "/etc/paddocks": false,
	} {
		if err := f.Refuse("mount", source); (err != nil) != refused || err != nil && paddock.KindOf(err) != paddock.Denied {
			t.Errorf("%s: %v", source, err)
		}
	}
}

func TestADirectoryThatIsForSecretsAloneIsHiddenWhole(t *testing.T) {
	for file, want := range map[string]string{
		"/etc/paddock/key": "/etc/paddock", "/etc/paddock-key/key": "/etc/paddock-key", "/opt/paddock.d/tls/key.pem": "/opt/paddock.d/tls/key.pem", "/etc/default/paddock.yaml": "/etc/default/paddock.yaml",
		"/etc/key": "/etc/key", "/etc/ssl/certs/a.pem": "/etc/ssl/certs/a.pem",
		"/etc/pki/tls/a.pem": "/etc/pki/tls/a.pem", "/opt/key": "/opt/key", "/home/u/project/key": "/home/u/project/key", "/usr/share/x/key": "/usr/share/x/key",
	} {
		if got := Place(file); got != want {
			t.Errorf("%s: %s, not %s", file, got, want)
		}
	}
}
