package auxiliary

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
	"github.com/paddock-sandbox/paddock/internal/mcpclient"
)

func TestAClientsConfigurationComesBackToTheByte(t *testing.T) {
	for _, c := range mcpclient.Clients() {
		for _, before := range []string{"", before(c.Name)} {
			home := t.TempDir()
			env := map[string]string{"HOME": home}
			do := func(want int, args ...string) string {
				t.Helper()
				v := invoke(home, env, nil, append([]string{"mcp"}, args...)...)
				if code := v.Run(t.Context()); code != want {
					t.Fatalf("%s: %v: %d, %s%s", c.Name, args, code, v.Stdout.String(), v.Stderr.String())
				}
				return v.Stdout.String() + v.Stderr.String()
			}
			dir, name := c.UserFile(mcpclient.Machine{Home: home, System: "linux", Lookup: func(string) (string, bool) { return "", false }})
			path := filepath.Join(dir, name)
			if before != "" {
				clitest.Plant(t, path, before, 0o640)
			}
			if out := do(125, "install", c.Name); !strings.Contains(out, "--yes") || !strings.Contains(out, "paddock") {
				t.Errorf("%s: without being asked: %s", c.Name, out)
			}
			do(0, "install", "--yes", c.Name)
			out := do(0, "install", "--yes", c.Name, "--", "--single", "--allow", "listed.example")
			with, err := os.ReadFile(path)
			if err != nil || strings.Count(string(with), "listed.example") != 1 {
				t.Errorf("%s: %q, %v, %s", c.Name, with, err, out)
			}
			if before != "" {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
					t.Errorf("%s: %v, %v", c.Name, info, err)
				}
			}
			do(0, "remove", "--yes", c.Name)
			left, err := os.ReadFile(path)
			if before == "" && !os.IsNotExist(err) || before != "" && string(left) != before {
				t.Errorf("%s: %q is left of %q, %v", c.Name, left, before, err)
			}
			if out := do(0, "remove", "--yes", c.Name); !strings.Contains(out, "there is no server") {
				t.Errorf("%s: %s", c.Name, out)
			}
		}
	}
}

// before is what a client's file has.
func before(name string) string {
	switch name {
	case "codex":
		return "# mine\nmodel = \"x\" # too\n\n[mcp_servers.z]\ncommand = \"z\""
	case "goose":
		return "# mine\nextensions:\n  z:\n    cmd: z # too\nb: 1"
	}
	return "{\n\t// mine\n\t\"a\": 1, /* too */\n\t\"mcpServers\": {\"z\": {}, }\n}"
}

func TestFlagsThatPaddockMCPWouldRefuseAreNotInstalled(t *testing.T) {
	home := t.TempDir()
	for _, args := range [][]string{
		{"claude", "--", "--no-such-flag"}, {"claude", "--", "word"}, {"claude", "--", "--tier", "none"}, {"claude", "--", "--read", "relative"}, {"claude", "--", "--workspace", "sub"},
		{"claude", "codex"}, {"emacs"}, {"--project", "goose"}, {"claude", "--", "--mode", "workspace-write"}, {"claude", "--", "--undo", "often"},
	} {
		v := invoke(home, map[string]string{"HOME": home}, nil, append([]string{"mcp", "install", "--yes"}, args...)...)
		if code := v.Run(t.Context()); code != 125 || !strings.Contains(v.Stderr.String(), "hint: ") {
			t.Errorf("%v: %d, %s", args, code, v.Stderr.String())
		}
	}
	if list, err := os.ReadDir(home); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestAProjectsFileNamesNoPathOfThisMachine(t *testing.T) {
	home := t.TempDir()
	work := filepath.Join(home, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	v := invoke(work, map[string]string{"HOME": home}, nil, "mcp", "install", "--project", "--yes", "claude")
	if code := v.Run(t.Context()); code != 0 {
		t.Fatal(v.Stderr.String())
	}
	data, err := os.ReadFile(filepath.Join(work, ".mcp.json"))
	if want := "{\n  \"mcpServers\": {\n    \"paddock\": {\n      \"type\": \"stdio\",\n      \"command\": \"paddock\",\n      \"args\": [\n        \"mcp\"\n      ]\n    }\n  }\n}\n"; err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
}
