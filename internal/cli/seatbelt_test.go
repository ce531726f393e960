package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
)

// seatbeltOf runs the command in a project of a home, both without links in their paths.
func seatbeltOf(t *testing.T, args ...string) (code int, home, out, said string) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"project/secret", "outside", "temp"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"project/link": "secret", "way": "project"} {
		if err := os.Symlink(to, filepath.Join(home, link)); err != nil {
			t.Fatal(err)
		}
	}
	v := clitest.Invoke(filepath.Join(home, "project"), map[string]string{"HOME": home}, nil, append([]string{"policy", "seatbelt"}, args...)...)
	code = v.Run(t.Context())
	return code, home, v.Stdout.String(), v.Stderr.String()
}

func TestASeatbeltProfileIsPrintedWithWhatItLacks(t *testing.T) {
	code, home, out, said := seatbeltOf(t, "-w", "../way", "--temp", "../temp", "--proxy", "8080", "--deny-read", "../way/link")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	for _, want := range []string{
		"(deny default)", `(allow file-write*` + "\n  (subpath \"" + home + "/project\"))", `(allow file-write*` + "\n  (subpath \"" + home + "/temp\"))",
		`(remote tcp "localhost:8080")`, "never run by us",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	if strings.Contains(out, "/way") {
		t.Error("a path is that of a link, which Seatbelt would never compare")
	}
	if n := strings.Count(out, "(deny file-read* file-write* process-exec*"); n != 2 {
		t.Errorf("%d paths are denied, and not a link and what it leads to", n)
	}
	for _, want := range []string{"paddock: note: never run by us", "no limit of memory", "no undo"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
}

func TestASeatbeltProfileThatCannotBeIsRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"has all of the home":    {"--write", ".."},
		"at another path":        {"--read", "../outside:/srv"},
		"no such file":           {"--temp", "missing"},
		"unknown flag: --memory": {"--memory", "1G"},
		"unknown flag: --allow":  {"--allow", "example.com"},
		"there is no such port":  {"--proxy", "0"},
		"lie in each other":      {"-w", ".", "--temp", "secret"},
	} {
		code, _, out, said := seatbeltOf(t, args...)
		if code != 125 || out != "" || !strings.Contains(said, name) {
			t.Errorf("%s: exit %d: %s", name, code, said)
		}
	}
}
