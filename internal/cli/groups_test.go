package cli

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/paddock-sandbox/paddock/internal/packageregistry"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// Who wrote the directory may want the user to allow a host.
func TestHostsThatTheDirectoryNamesAreNotAllowed(t *testing.T) {
	list := func(env map[string]string) string {
		v := invoke("/work", nil, nil)
		err := v.App.groups(packageregistry.Read(packageregistry.Machine{
			Dir: "/work", Env: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
			Files: fstest.MapFS{"work/.npmrc": {Data: []byte("@x:registry=https://evil.example\n")}},
		}))
		if err != nil {
			t.Fatal(err)
		}
		return v.Stdout.String()
	}
	first := "# Groups that there are without a file: " + strings.Join(policy.Groups(), ", ") + "\n"
	const comments = `# Files of this directory name more hosts. Whoever wrote the files chose them, so nothing allows them here.
# Move hosts that you know into a group above.
#   npm-sources-of-this-directory: # from /work/.npmrc
#     - "evil.example"
`
	want := first + `version: 1
network:
  mode: list
  rules:
    - allow: {group: npm-sources}
  groups:
    npm-sources: # from npm_config_registry
      - "npm.example"
` + comments
	if got := list(map[string]string{"npm_config_registry": "https://npm.example/"}); got != want {
		t.Errorf("%s", got)
	}
	want = first + "# No package client of yours is configured to use hosts of its own; `paddock policy learn` finds out where one goes.\n" + comments
	if got := list(nil); got != want {
		t.Errorf("without hosts of the user: %s", got)
	}
}
