package dockerlogin_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/dockerlogin"
	"github.com/paddock-sandbox/paddock/internal/image/registry"
)

// Credentials are those of the configuration, and of the helper that it names for a registry. No other registry gets them.
func TestCredentialsAreThoseOfTheRegistry(t *testing.T) {
	dir := t.TempDir()
	helpers := t.TempDir()
	env := map[string]string{"HOME": dir, "DOCKER_CONFIG": dir, "XDG_RUNTIME_DIR": dir, "XDG_CONFIG_HOME": dir}
	r := dockerlogin.Reader{Env: []string{"PATH=/nowhere"}, Dirs: []string{helpers, "/usr/bin", "/bin"}, Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	if got, err := r.Credentials(t.Context(), "registry.example.com"); err != nil || got != (registry.Credentials{}) {
		t.Errorf("without a configuration: %v, %v", got.Username, err)
	}
	auth := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	config := fmt.Sprintf(`{"auths":{"registry.example.com":{"auth":%q},"https://index.docker.io/v1/":{"auth":%q}},"credHelpers":{"helped.example.com":"test","token.example.com":"test","none.example.com":"test"}}`, auth("me:one"), auth("hub:two"))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	helper := `#!/bin/sh
read host
case "$host" in
none.*) echo 'credentials not found in native keychain'; exit 1 ;;
token.*) echo '{"Username":"<token>","Secret":"four"}' ;;
*) echo '{"Username":"helped","Secret":"three"}' ;;
esac
`
	if err := os.WriteFile(filepath.Join(helpers, "docker-credential-test"), []byte(helper), 0o700); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]registry.Credentials{
		"registry.example.com": {Username: "me", Password: "one"},
		"docker.io":            {Username: "hub", Password: "two"},
		"helped.example.com":   {Username: "helped", Password: "three"},
		"token.example.com":    {Token: "four"},
		"other.example.com":    {},
		"none.example.com":     {},
	} {
		if got, err := r.Credentials(t.Context(), host); err != nil || got != want {
			t.Errorf("%s: the user is %q, with a password %v and a token %v: %v", host, got.Username, got.Password != "", got.Token != "", err)
		}
	}
}

// A helper that a sandbox planted where PATH leads is not run, and the registry is asked without credentials.
func TestAPlantedHelperIsNotRun(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"credsStore":"planted-by-test","credHelpers":{"x.example.com":"../x"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-planted-by-test"), []byte("#!/bin/sh\ntouch "+dir+"/ran\necho '{\"Username\":\"a\",\"Secret\":\"b\"}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var said []string
	r := dockerlogin.Reader{Env: os.Environ(), Say: func(text string) { said = append(said, text) }, Lookup: func(name string) (string, bool) { return dir, name == "DOCKER_CONFIG" }}
	for _, host := range []string{"docker.io", "x.example.com"} {
		if got, err := r.Credentials(t.Context(), host); err != nil || got != (registry.Credentials{}) {
			t.Errorf("%s: %q, %v", host, got.Username, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("it ran")
	}
	if len(said) != 2 || !strings.Contains(said[0], "docker-credential-planted-by-test is in none of") {
		t.Errorf("%q", said)
	}
}

// A configuration that cannot be read is told, and holds nobody up.
func TestABadConfigurationIsTold(t *testing.T) {
	for name, make := range map[string]func(string) error{
		"fifo":  func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"dir":   func(p string) error { return os.Mkdir(p, 0o700) },
		"text":  func(p string) error { return os.WriteFile(p, []byte("not JSON"), 0o600) },
		"large": func(p string) error { return os.WriteFile(p, bytes.Repeat([]byte(" "), 2<<20), 0o600) },
		"auth": func(p string) error {
			return os.WriteFile(p, []byte(`{"auths":{"a.example.com":{"auth":"!"}}}`), 0o600)
		},
	} {
		dir := t.TempDir()
		if err := make(filepath.Join(dir, "config.json")); err != nil {
			t.Fatal(err)
		}
		r := dockerlogin.Reader{Lookup: func(name string) (string, bool) { return dir, name == "DOCKER_CONFIG" }}
		if _, err := r.Credentials(t.Context(), "a.example.com"); paddock.KindOf(err) != paddock.Invalid || !strings.Contains(err.Error(), "config.json") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
