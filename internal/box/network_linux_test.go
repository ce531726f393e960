package box

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestANameLeadsToARealPlaceInTheTree(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{"etc/deep", "usr/share"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, "usr/share/file"), []byte("here"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{
		"etc/absolute": "/usr/share/file", "etc/relative": "../usr/share/file", "etc/above": "../../../../usr/share/file",
		"etc/twice": "absolute", "etc/loop": "loop", "etc/run": "/run/systemd/resolve/stub.conf", "etc/nowhere": "/usr/none", "etc/dir": "/usr",
	} {
		if err := os.Symlink(to, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	tr := tree{base: base, own: true}
	for name, want := range map[string]string{
		"/etc/absolute": "/usr/share/file true", "/etc/relative": "/usr/share/file true", "/etc/above": "/usr/share/file true",
		"/etc/twice": "/usr/share/file true", "/etc/loop": "/etc/loop false", "/etc/run": "/run/systemd/resolve/stub.conf false",
		"/etc/nowhere": "/usr/none false", "/etc/dir/share/file": "/usr/share/file true", "/etc/dir": "/usr false", "/etc/none": "/etc/none false",
	} {
		real, there := tr.find(name)
		if got := fmt.Sprint(real, " ", there); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestHostsAreLookedUpInFilesAndByDNS(t *testing.T) {
	got := withoutDaemons("# a comment\npasswd: files systemd\n hosts :  mymachines resolve [!UNAVAIL=return] files\nhosts_x: y")
	if want := "# a comment\npasswd: files systemd\nhosts: files dns\nhosts_x: y"; got != want {
		t.Errorf("%q", got)
	}
}
