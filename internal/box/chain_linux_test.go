package box

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
)

// Each tool chain has an example of what is private beside it, which drivertest.ToolChains looks
// for from inside.
func TestEachToolChainIsTriedAndDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/toolchains.md")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for _, c := range chains() {
		if len(c.in) == 0 || len(c.shows) == 0 {
			t.Errorf("%q shows %q", c.in, c.shows)
		}
		for _, in := range c.in {
			if !strings.Contains(string(page), "`"+in+"`") {
				t.Errorf("docs/reference/toolchains.md does not name %s", in)
			}
		}
		if c.only == "" && !slices.ContainsFunc(drivertest.HomeTools(), func(tool drivertest.HomeTool) bool {
			_, root := chainOf(home, tool.Path)
			return slices.Contains(c.in, root) && len(tool.Private) > 0
		}) {
			t.Errorf("drivertest.HomeTools has no directory of %q", c.in)
		}
		for _, name := range c.shows {
			if path.Clean(name) != name || path.IsAbs(name) || strings.Count(name, "*") > 3 {
				t.Errorf("%s is no pattern below a home", name)
			}
			if slices.Contains(c.in, name) {
				t.Errorf("%s is shown whole", name)
			}
		}
	}
}

// Go unpacked into a home is told from a GOPATH of the same name.
func TestAGoInTheHomeIsNotAGOPATH(t *testing.T) {
	home := t.TempDir()
	if c, _ := chainOf(home, "go/bin"); slices.Contains(c.shows, "go/src") {
		t.Error("the source in a GOPATH is shown")
	}
	if err := os.MkdirAll(home+"/go", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(home+"/go/VERSION", []byte("go1.26.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, _ := chainOf(home, "go/bin")
	if !slices.Contains(c.shows, "go/src") || slices.ContainsFunc(c.shows, func(s string) bool { return hostroot.Within("go/pkg/mod", s) }) {
		t.Errorf("of a Go in the home are shown %q", c.shows)
	}
}

// A link in a tool chain leads to what is shown, or nowhere.
func TestALinkOfAToolChainShowsNothingElse(t *testing.T) {
	home := t.TempDir()
	for _, dir := range []string{".cargo/bin", "private/toolchains", ".nvm/versions/node/v22/bin"} {
		if err := os.MkdirAll(path.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{".rustup": "private", ".nvm/versions/node/now": "v22"} {
		if err := os.Symlink(to, path.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	l := &Layout{env: environ{"HOME": home, "PATH": path.Join(home, ".cargo/bin") + ":" + path.Join(home, ".nvm/versions/node/now/bin")}}
	l.toolchains(nil)
	var shown []string
	for _, m := range l.Config.Mounts {
		shown = append(shown, string(m.Kind)+" "+strings.TrimPrefix(m.Target, home+"/"))
	}
	want := []string{"bind .cargo/bin", "link .nvm/versions/node/now", "bind .nvm/versions/node/v22/bin"}
	if !slices.Equal(shown, want) {
		t.Errorf("shown is %q, want %q", shown, want)
	}
	if at, ok := l.inside(path.Join(home, ".nvm/versions/node/now/bin")); !ok || at != path.Join(home, ".nvm/versions/node/v22/bin") {
		t.Errorf("the directory in PATH is %q, %v", at, ok)
	}
}

// A directory of PATH may be in the workspace of an earlier sandbox, which made a link of it.
func TestALinkInPathShowsNoOtherPartOfTheHome(t *testing.T) {
	home := t.TempDir()
	for _, dir := range []string{".ssh", "documents/bin", "project/real", ".cargo/bin", ".cargo/registry", ".nvm/versions/node/v22/bin"} {
		if err := os.MkdirAll(path.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var dirs []string
	for name, to := range map[string]string{
		"project/keys": home + "/.ssh", "project/up": "../documents", "project/cargo": "../.cargo/bin", "project/registry": "../.cargo/registry",
		".cargo/now": "registry", ".nvm/versions/node/now": "../../../.ssh",
	} {
		if err := os.Symlink(to, path.Join(home, name)); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, path.Join(home, name))
	}
	dirs = append(dirs, path.Join(home, "project/up/bin"), path.Join(home, "project/real"))
	l := &Layout{env: environ{"HOME": home, "PATH": strings.Join(dirs, ":")}}
	l.toolchains(nil)
	for _, m := range l.Config.Mounts {
		switch shown := strings.TrimPrefix(m.Target, home+"/"); shown {
		case "project/real", ".cargo/bin":
		default:
			t.Errorf("shown is %s", shown)
		}
	}
	if len(l.Config.Mounts) == 0 {
		t.Error("a directory that PATH names is not shown")
	}
}
