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

// A helper or a file whose place is not known beforehand may be a box's own, and one that is written plainly is used.
func TestAHelperWhosePathIsNotPlainIsRefused(t *testing.T) {
	origins := Read([]byte(origin))
	login := func(u user, t *testing.T, config string) error {
		u.write(t, ".gitconfig", config)
		env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": u.top}
		b, err := New(t.Context(), func(name string) (string, bool) { v, ok := env[name]; return v, ok }, u.reach, origins)
		if err != nil {
			return err
		}
		defer b.Close()
		u.write(t, "work/cred", "#!/bin/sh\ntouch "+u.top+"/planted\n") // the box exchanges its own file, and asks
		_ = ask(t, b, "git.example", "GET", "/team/one.git/info/refs?service=git-upload-pack")
		return nil
	}
	for _, helper := range []string{
		`!$HOME/work/cred`, `!\"$HOME/work/cred\"`, `!${HOME}/work/cred`, `!cd ~ && work/cred`, `!sh -c 'exec \"$HOME\"/work/cred \"$@\"' x`,
		"!`echo ~`/work/cred", `!~/wo'rk'/cred`, `!~/w*k/cred`, `!~root/cred`, `!~/wo\\rk/cred`, `!PATH=/usr/bin cred`, `!'/tmp/a b'`, `!'~/work/cred`,
		`!sh -c '. ./cred'`, `!cd; cd work; sh cred`,
	} {
		u := newUser(t, "exit 1")
		if err := login(u, t, "[credential]\n\thelper = \""+helper+"\"\n"); !errors.Is(err, paddock.Denied) {
			t.Errorf("%s: %v", helper, err)
		}
		if _, err := os.Lstat(filepath.Join(u.top, "planted")); err == nil {
			t.Errorf("%s: the box's program ran on the host", helper)
		}
	}
	for _, path := range []string{"~root/later", "%(prefix)/later"} {
		if err := login(newUser(t, "exit 1"), t, "[include]\n\tpath = "+path+"\n"); !errors.Is(err, paddock.Denied) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, helper := range []string{"store", "cache --timeout=3600", "store --file ~/.keys/git", `!f() { test \"$1\" = get && echo username=bob; }; f`, "!/usr/bin/gh auth git-credential"} {
		if err := login(newUser(t, "exit 1"), t, "[credential]\n\thelper = \""+helper+"\"\n"); err != nil {
			t.Errorf("%s: %v", helper, err)
		}
	}
}
