package gitlogin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// What the host's git obeys or runs is refused where a box could write it, also what is not there yet.
func TestAConfigurationInReachOfABoxIsRefused(t *testing.T) {
	for what, config := range map[string]string{
		"an included file":               "[include]\n\tpath = WORK/gitconfig\n",
		"an included file, not there":    "[include]\n\tpath = WORK/later\n",
		"an included file of some":       "[includeIf \"gitdir:/elsewhere/\"]\n\tpath = ../work/later\n",
		"a helper":                       "[credential]\n\thelper = WORK/git\n",
		"a helper of one host":           "[credential \"https://other.example\"]\n\thelper = \"!f() { ~/../work/git; }; f\"\n",
		"a helper of PATH that leads in": "[credential]\n\thelper = leads\n",
	} {
		u := newUser(t, "exit 1")
		u.write(t, "work/gitconfig", "[user]\n\tname = Box\n")
		u.write(t, "bin/other", "")
		if err := os.Symlink(u.work+"/git", u.top+"/bin/git-credential-leads"); err != nil {
			t.Fatal(err)
		}
		u.write(t, "home/.gitconfig", strings.ReplaceAll(config, "WORK", u.work))
		env := map[string]string{"PATH": u.top + "/bin:" + os.Getenv("PATH"), "HOME": filepath.Join(u.top, "home")}
		_, err := New(t.Context(), func(name string) (string, bool) { v, ok := env[name]; return v, ok }, u.reach, Read([]byte(origin)))
		if !errors.Is(err, paddock.Denied) {
			t.Errorf("%s: %v", what, err)
		}
	}
	u := newUser(t, "exit 1")
	if err := os.Rename(u.top+"/home/.gitconfig", u.work+"/dot"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../work/dot", u.top+"/home/.gitconfig"); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": filepath.Join(u.top, "home")}
	if _, err := New(t.Context(), func(name string) (string, bool) { v, ok := env[name]; return v, ok }, u.reach, Read([]byte(origin))); !errors.Is(err, paddock.Denied) {
		t.Errorf("a link to the workspace: %v", err)
	}
}
