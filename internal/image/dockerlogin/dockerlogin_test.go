package dockerlogin_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/image/dockerlogin"
	"github.com/paddock-sandbox/paddock/internal/image/registry"
)

// Credentials are those of the configuration, and of the helper that it names for a registry. No other registry gets them.
func TestCredentialsAreThoseOfTheRegistry(t *testing.T) {
	dir := t.TempDir()
	for name, value := range map[string]string{"HOME": dir, "DOCKER_CONFIG": dir, "XDG_RUNTIME_DIR": dir, "XDG_CONFIG_HOME": dir, "REGISTRY_AUTH_FILE": "", "DOCKER_AUTH_CONFIG": "", "PATH": dir + ":" + os.Getenv("PATH")} {
		t.Setenv(name, value)
	}
	if got, err := dockerlogin.Credentials(t.Context(), "registry.example.com"); err != nil || got != (registry.Credentials{}) {
		t.Errorf("without a configuration: %v, %v", got.Username, err)
	}
	auth := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	config := fmt.Sprintf(`{"auths":{"registry.example.com":{"auth":%q},"https://index.docker.io/v1/":{"auth":%q}},"credHelpers":{"helped.example.com":"test","token.example.com":"test"}}`, auth("me:one"), auth("hub:two"))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	helper := `#!/bin/sh
read host
case "$host" in
token.*) echo '{"Username":"<token>","Secret":"four"}' ;;
*) echo '{"Username":"helped","Secret":"three"}' ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "docker-credential-test"), []byte(helper), 0o700); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]registry.Credentials{
		"registry.example.com": {Username: "me", Password: "one"},
		"docker.io":            {Username: "hub", Password: "two"},
		"helped.example.com":   {Username: "helped", Password: "three"},
		"token.example.com":    {Token: "four"},
		"other.example.com":    {},
	} {
		if got, err := dockerlogin.Credentials(t.Context(), host); err != nil || got != want {
			t.Errorf("%s: the user is %q, with a password %v and a token %v: %v", host, got.Username, got.Password != "", got.Token != "", err)
		}
	}
}
