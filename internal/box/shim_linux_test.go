package box

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// plant makes files, and a directory for a name that ends with a slash.
func plant(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, name)
		made := filepath.Dir(at)
		if strings.HasSuffix(name, "/") {
			made = at
		}
		if err := os.MkdirAll(made, 0o755); err != nil {
			t.Fatal(err)
		}
		if made != at {
			if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestBeforeShimsComeThePrograms(t *testing.T) {
	home, workspace := t.TempDir(), t.TempDir()
	plant(t, home, map[string]string{
		".pyenv/shims/": "", ".pyenv/version": "# mine\n3.11.7\n", ".pyenv/versions/3.11.7/bin/": "", ".pyenv/versions/3.12.1/bin/": "",
		".rbenv/shims/": "", ".rbenv/version": "system\n3.3.0\n", ".rbenv/versions/3.3.0/bin/": "",
		".asdf/shims/": "", ".tool-versions": "nodejs 20.1.0 18.0.0\ngolang 1.22.0 # why\nmissing 1\n",
		".asdf/installs/nodejs/20.1.0/bin/": "", ".asdf/installs/nodejs/18.0.0/bin/": "", ".asdf/installs/golang/1.22.0/go/bin/": "",
		".local/share/mise/shims/": "", ".config/mise/config.toml": "[env]\nnode = \"1\"\n[tools]\nnode = \"22\" # x\n\"python\" = ['3.13', \"3.12\"]\n[settings]\ngo = \"1\"\n",
		".local/share/mise/installs/node/22.3.0/bin/": "", ".local/share/mise/installs/python/3.13/bin/": "", ".local/share/mise/installs/python/3.12/bin/": "",
	})
	if err := os.Symlink("22.3.0", filepath.Join(home, ".local/share/mise/installs/node/22")); err != nil {
		t.Fatal(err)
	}
	l := &Layout{env: environ{"HOME": home}}
	l.Config.Dir = workspace
	l.Mounts = []boxinit.Mount{{Kind: boxinit.MountBind, Source: workspace, Target: workspace}}
	ask := func(dir string, want ...string) {
		t.Helper()
		got := l.behind(filepath.Join(home, dir))
		for i := range want {
			want[i] = filepath.Join(home, want[i])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s leads to %q, want %q", dir, got, want)
		}
	}
	ask(".pyenv/shims", ".pyenv/versions/3.11.7/bin")
	ask(".pyenv/bin")
	ask(".rbenv/shims") // those of the system come first
	ask(".asdf/shims", ".asdf/installs/nodejs/20.1.0/bin", ".asdf/installs/nodejs/18.0.0/bin", ".asdf/installs/golang/1.22.0/go/bin")
	ask(".local/share/mise/shims", ".local/share/mise/installs/node/22.3.0/bin", ".local/share/mise/installs/python/3.13/bin",
		".local/share/mise/installs/python/3.12/bin")

	plant(t, workspace, map[string]string{".python-version": "3.12.1\n"})
	ask(".pyenv/shims", ".pyenv/versions/3.12.1/bin")
	l.env["PYENV_VERSION"] = "3.11.7:3.12.1"
	ask(".pyenv/shims", ".pyenv/versions/3.11.7/bin", ".pyenv/versions/3.12.1/bin")
	delete(l.env, "PYENV_VERSION")
	l.Config.Dir = "/elsewhere"
	ask(".pyenv/shims", ".pyenv/versions/3.11.7/bin")
}

// A sandbox can change the files of its workspace that select a version.
func TestAVersionFromTheWorkspaceLeadsNowhereElse(t *testing.T) {
	home, workspace := t.TempDir(), t.TempDir()
	plant(t, home, map[string]string{".pyenv/shims/": "", ".pyenv/versions/3.11.7/bin/": "", ".ssh/bin/": "", ".pyenv/bin/": "", "secret": "3.11.7\n"})
	if err := os.Symlink(home+"/.ssh", home+"/.pyenv/versions/out"); err != nil {
		t.Fatal(err)
	}
	l := &Layout{env: environ{"HOME": home}}
	l.Config.Dir = workspace
	l.Mounts = []boxinit.Mount{{Kind: boxinit.MountBind, Source: workspace, Target: workspace}}
	file := filepath.Join(workspace, ".python-version")
	for _, text := range []string{"../../.ssh", "/", home + "/.ssh", "out", "..", ".", "3.11.7/../../../.ssh", "\x00", strings.Repeat("x/", 5000)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := l.behind(home + "/.pyenv/shims"); len(got) > 0 {
			t.Errorf("%q leads to %q", text, got)
		}
	}
	for what, make := range map[string]func() error{
		"a link": func() error { return os.Symlink(home+"/secret", file) },
		"a pipe": func() error { return syscall.Mkfifo(file, 0o600) },
	} {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if got := l.behind(home + "/.pyenv/shims"); len(got) > 0 {
			t.Errorf("%s was read: %q", what, got)
		}
	}
}
