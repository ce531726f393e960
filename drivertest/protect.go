package drivertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func protectPromises() []group {
	return []group{{
		can:   []paddock.Capability{paddock.CanMountWrite},
		walls: []paddock.Control{paddock.ControlProtected},
		promises: []promise{
			{"a protected name that exists cannot be changed, moved, linked or removed", protectExisting},
			{"a protected name that does not exist cannot be made, and leaves no ghost on the host", protectMissing},
			{"protected names are protected at any depth", protectDeep},
			{"they are where a mount covers a directory of the sandbox's own, such as its home or /var/tmp", protectCovered},
			{"the caller's file calls respect protected names too", protectCalls},
			{"a protected directory cannot be moved away with what it is in", protectParent},
			{"a link that is called like a protected name opens no way", protectLinks},
			{"what a commit writes can be written", protectCommit},
			{"a repository of git gets a configuration only by a rename, and only one that cannot run anything", protectConfig},
			{"no number of steps leads git of the host elsewhere by keys that may be set", protectTurned},
			{"what becomes a configuration cannot be changed afterwards", protectLanded},
			{"a repository of git gets samples of hooks and nothing else that git obeys", protectSamples},
			{"no link can be made in a repository of git", protectNoLinks},
			{"nothing leads git of the host out of the working tree of a submodule", protectWays},
			{"git makes, clones, configures and removes repositories, submodules and working trees in a mount", protectGit},
			{"git believes the index that the host's git wrote, and leaves it as it is", protectIndex},
			{"a repository of another system can be used where it is, and not be made", protectOthers},
			{"a bare repository of git gets nothing by another name that one gets as .git", protectBare},
			{"a cache takes what packages contain, and nothing that version control obeys", protectCache},
			{"a directory above a protected name can be removed while it is empty", protectEmpty},
			{"names can be added to the protected ones, and taken away", protectChanged},
		},
	}}
}

// repository makes the relevant part of a git working tree.
func repository(t testing.TB) string {
	t.Helper()
	files := map[string]string{"README": "read me", "src/main.c": "int main;"}
	for _, at := range []string{"", "a/b/c/d/"} {
		files[at+".git/HEAD"] = "ref: refs/heads/main\n"
		files[at+".git/config"] = "[core]\n\teditor = ed\n"
		files[at+".git/hooks/post-commit"] = "#!/bin/sh\n"
		files[at+".git/refs/heads/main"] = "0000\n"
		files[at+".git/objects/info/x"] = ""
	}
	files[".mcp.json"] = "{}"
	files[".vscode/settings.json"] = "{}"
	return hostTree(t, files)
}

// attempt runs scripts that try forbidden operations. Their exit does not count, because
// the test then compares the host's files.
func (b box) attempt(t testing.TB, scripts ...string) {
	t.Helper()
	for _, script := range scripts {
		b.sh(t, script)
	}
}

func protectExisting(t *testing.T, s *suite) {
	dir := repository(t)
	before := tree(t, dir)
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.attempt(t,
		"echo x > .git/config", "echo x >> .git/config", "rm -f .git/config", "mv .git/config .git/config.old; mv .git/config.old .git/config",
		"echo x > .tmp; mv -f .tmp .git/config; rm -f .tmp", "ln -f .git/config .alias; echo x >> .alias; rm -f .alias",
		"ln -sf /etc/passwd .git/config", "truncate -s 0 .git/config", "chmod 777 .git/config",
		"echo x > .git/hooks/pre-commit", "rm -rf .git/hooks", "mv .git/hooks .git/hooks.old; mv .git/hooks.old .git/hooks",
		"chmod +x .git/hooks/post-commit", "ln README .git/hooks/pre-commit", "ln -s ../../README .git/hooks/pre-commit",
		"mkdir .git/hooks/dir", "cp README .git/hooks/pre-push", "echo x > .git/hooks/../config",
		"echo x > .mcp.json", "rm .mcp.json", "echo x > .tmp; mv -f .tmp .mcp.json; rm -f .tmp",
		"echo x > .vscode/tasks.json", "echo x > .vscode/settings.json", "rm -rf .vscode",
		"cd .git && echo x > config", "cd .git/hooks && echo x > pre-commit",
	)
	wantTree(t, dir, before)
}

func protectMissing(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"README": "read me", ".git/HEAD": "ref: refs/heads/main\n"})
	before := tree(t, dir)
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	for _, name := range []string{".mcp.json", ".bashrc", ".vscode/tasks.json", ".git/config", ".git/hooks/pre-commit"} {
		parent := filepath.Dir(name)
		b.attempt(t,
			fmt.Sprintf("mkdir -p %s; echo x > %s", parent, name),
			fmt.Sprintf("echo x > t; mv t %s; rm -f t", name),
			fmt.Sprintf("ln README %s", name),
			fmt.Sprintf("ln -s README %s", name),
			fmt.Sprintf("mkdir t; echo x > t/%s; [ -e %s ] || mv t %s; rm -rf t", filepath.Base(name), parent, parent),
			fmt.Sprintf("mkfifo %s", name),
			fmt.Sprintf("mkdir %s", name),
		)
	}
	wantTree(t, dir, before, ".git/hooks") // which may be there, and empty
	b.must(t, "echo fine > other; mkdir dir; echo fine > dir/file")
	if err := b.Remove(bounded(t)); err != nil {
		t.Fatal(err)
	}
	wantTree(t, dir, before, "other", "dir", "dir/file", ".git/hooks")
}

func protectCovered(t *testing.T, s *suite) {
	first := s.own(t, func(*paddock.Spec) {})
	home := strings.TrimSpace(first.must(t, `echo "$HOME"`))
	for _, own := range []string{home, "/var/tmp"} {
		inside := filepath.Base(own) + "/"
		dir := hostTree(t, map[string]string{"README": "read me", inside + "plain": "", inside + ".git/HEAD": "ref: refs/heads/main\n", inside + ".git/config": "[core]\n"})
		before := tree(t, dir)
		b := s.mounted(t, paddock.Mount{Source: dir, Target: filepath.Dir(own), Write: true})
		b.attempt(t,
			"mkdir -p "+inside+".git/hooks; echo x > "+inside+".git/hooks/pre-commit", "echo x >> "+inside+".git/config", "cd "+inside+"&& echo x > .git/config",
			"mkdir "+inside+".vscode; echo x > "+inside+".vscode/tasks.json", "echo x > "+inside+".mcp.json", "echo x > "+inside+".bashrc",
		)
		b.must(t, "rm -rf "+inside+"dt-*") // of this suite
		wantTree(t, dir, before, inside+".git/hooks", inside+".vscode")
		b.must(t, "echo fine > "+inside+"plain")
	}
}

func protectDeep(t *testing.T, s *suite) {
	dir := repository(t)
	before := tree(t, dir)
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.attempt(t,
		"echo x > a/b/c/d/.git/hooks/pre-commit", "echo x > a/b/c/d/.git/config", "rm -rf a/b/c/d/.git/hooks",
		"echo x > a/b/c/d/.mcp.json", "mkdir a/b/.vscode && echo x > a/b/.vscode/tasks.json",
	)
	wantTree(t, dir, before)
	// Directories made now must not bypass the protection.
	b.attempt(t, "mkdir -p n/e/w/.git/hooks; echo x > n/e/w/.git/hooks/pre-commit; echo x > n/e/w/.git/config; echo x > n/.mcp.json",
		"mkdir m; echo x > m/t; mv m/t m/.mcp.json", "mkdir -p q/x; echo x > q/x/config; mv q/x q/.git",
		"mkdir -p r/x/hooks; echo x > r/x/hooks/pre-commit; mv r/x r/.git")
	for name, what := range tree(t, dir) {
		for _, protected := range []string{".git/hooks/pre-commit", ".git/config", ".mcp.json"} {
			if _, old := before[name]; !old && (name == protected || strings.HasSuffix(name, "/"+protected)) {
				t.Errorf("on the host there is %s: %q", name, what)
			}
		}
	}
}

func protectCalls(t *testing.T, s *suite) {
	dir := repository(t)
	before := tree(t, dir)
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	ctx := bounded(t)
	write := func(name string) error {
		return b.write(ctx, b.in(name), strings.NewReader("x"), paddock.CreateOptions{Parents: true})
	}
	for _, name := range []string{".git/config", ".git/hooks/pre-commit", ".mcp.json", ".vscode/tasks.json", "src/.mcp.json", "a/b/c/d/.git/hooks/x", ".git/./hooks/x", "src/../.git/config"} {
		wantKind(t, "write "+name, write(name), paddock.Denied)
	}
	for what, err := range map[string]error{
		"rename over a protected file":   b.FS().Rename(ctx, b.in("README"), b.in(".git/config")),
		"rename to a protected name":     b.FS().Rename(ctx, b.in("README"), b.in("src/.mcp.json")),
		"rename of a protected file":     b.FS().Rename(ctx, b.in(".mcp.json"), b.in("free.json")),
		"rename of what holds one":       b.FS().Rename(ctx, b.in(".git"), b.in("free")),
		"removal":                        b.FS().Remove(ctx, b.in(".git/config"), false),
		"removal of all":                 b.FS().Remove(ctx, b.in(".git/hooks"), true),
		"a link with a protected name":   b.FS().Symlink(ctx, "README", b.in("src/.mcp.json")),
		"a directory with such a name":   b.FS().Mkdir(ctx, b.in("src/.vscode"), paddock.MkdirOptions{}),
		"a change of mode":               b.FS().Chmod(ctx, b.in(".git/hooks/post-commit"), 0o755),
		"an append to a protected file ": b.write(ctx, b.in(".mcp.json"), strings.NewReader("x"), paddock.CreateOptions{Append: true}),
	} {
		wantKind(t, what, err, paddock.Denied)
	}
	wantTree(t, dir, before)
	// git of the host writes to these, and would follow a link.
	git := []string{".git/COMMIT_EDITMSG", ".git/logs/HEAD", ".git/refs/heads/main"}
	for _, name := range git {
		b.must(t, `mkdir -p "${1%/*}" && echo x > "$1"`, name)
	}
	before = tree(t, dir)
	for _, name := range git {
		if r := b.sh(t, "ln -s /etc/hostname odd"); r.exit.Code == 0 { // where a mount can have one
			wantKind(t, "a link renamed to "+name, b.FS().Rename(ctx, b.in("odd"), b.in(name)), paddock.Denied)
			b.must(t, "rm odd")
		}
		b.must(t, "echo y > plain")
		if err := b.FS().Rename(ctx, b.in("plain"), b.in(name)); err != nil {
			t.Errorf("a file renamed to %s: %v", name, err)
		}
		b.must(t, `echo x > "$1"`, name)
	}
	wantTree(t, dir, before)
}

func protectParent(t *testing.T, s *suite) {
	dir := repository(t)
	before := tree(t, dir)
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.attempt(t,
		"mv .git moved && echo x > moved/config && mv moved .git",
		"mv .git moved && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
		"mv a moved && echo x > moved/b/c/d/.git/config && mv moved a",
		"mv a/b/c/d a/free && echo x > a/free/.git/hooks/pre-commit && mv a/free a/b/c/d",
		"rm -rf .git && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
	)
	// A tree that holds a repository may be moved, as long as the repository does not
	// change.
	wantSame(t, protectedIn(before), protectedIn(tree(t, dir)))
}

// protectedIn lists the protected files of a tree by the end of their paths, which makes
// them protected, with their descriptions.
func protectedIn(tree map[string]string) []string {
	var found []string
	for name, what := range tree {
		for _, end := range []string{".git/config", ".git/hooks"} {
			if i := strings.LastIndex("/"+name+"/", "/"+end+"/"); i >= 0 {
				found = append(found, name[i:]+" "+what)
			}
		}
	}
	slices.Sort(found)
	return found
}

func wantSame(t testing.TB, before, after []string) {
	t.Helper()
	if !slices.Equal(before, after) {
		t.Errorf("on the host there was\n\t%q\nand there is\n\t%q", before, after)
	}
}

func protectLinks(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"store/hooks/x.sample": "", "store/config": "[core]\n", "README": "read me"})
	if err := os.Symlink("store", filepath.Join(dir, ".git")); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.attempt(t, "echo x > .git/config", "echo x > .git/hooks/pre-commit", "rm .git; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
		"ln -sfn /tmp .git")
	wantTree(t, dir, before)
	b.attempt(t, "mkdir -p n/other/hooks; echo x > n/other/hooks/pre-commit; ln -s other n/.git",
		"mkdir -p m/.git; mkdir m/h; echo x > m/h/pre-commit; ln -s ../h m/.git/hooks",
		"echo x > target; ln -s target .mcp.json")
	for _, name := range []string{"n/.git/hooks/pre-commit", "m/.git/hooks/pre-commit", ".mcp.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("on the host %s can be read", name)
		}
	}
}

func protectCommit(t *testing.T, s *suite) {
	dir := repository(t)
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.must(t, `set -e
echo changed > README
mkdir .git/objects/ab
echo object > .git/objects/ab/tmp_obj_1
chmod 444 .git/objects/ab/tmp_obj_1
ln .git/objects/ab/tmp_obj_1 .git/objects/ab/cdef
rm -f .git/objects/ab/tmp_obj_1
echo index > .git/index.lock; mv .git/index.lock .git/index
echo index2 > .git/index.lock; mv .git/index.lock .git/index
echo message > .git/COMMIT_EDITMSG
mkdir -p .git/logs/refs/heads; echo log >> .git/logs/HEAD
echo 1111 > .git/refs/heads/main.lock; mv .git/refs/heads/main.lock .git/refs/heads/main
echo 'ref: refs/heads/other' > .git/HEAD.lock; mv .git/HEAD.lock .git/HEAD
mkdir -p .git/refs/heads/topic; echo 2 > .git/refs/heads/topic/x; rm -r .git/refs/heads/topic`)
	after := tree(t, dir)
	for name, want := range map[string]string{
		"README": "changed\n", ".git/objects/ab/cdef": "object\n", ".git/index": "index2\n",
		".git/refs/heads/main": "1111\n", ".git/HEAD": "ref: refs/heads/other\n", ".git/logs/HEAD": "log\n",
	} {
		if _, text, _ := strings.Cut(after[name], " "); text != want {
			t.Errorf("on the host %s is %q", name, after[name])
		}
	}
}

// put is a script that writes a configuration as git does.
func put(name, text string) string {
	return fmt.Sprintf("printf '%%s' '%s' > %s.lock && mv -f %s.lock %s", text, name, name, name)
}

func protectConfig(t *testing.T, s *suite) {
	const plain = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
	const of = "[core]\n\tpager = less\n[remote \"origin\"]\n\turl = https://example.com/x\n"
	dir := hostTree(t, map[string]string{"README": "read me", ".git/HEAD": "ref: refs/heads/main\n", ".git/config": of, ".git/config.worktree": "", "sub/.git/HEAD": "x\n"})
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	for _, tc := range []struct{ name, text string }{
		{".git/config", of + "[user]\n\tname = Me\n[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n"},
		{".git/config", of}, {".git/config.worktree", "[core]\n\tbare = false\n\tsparseCheckout = true\n"}, {"sub/.git/config", plain},
		{"new/.git/config", plain}, {".git/modules/a/b/config", plain}, {".git/worktrees/w/config.worktree", "[core]\n\tsparseCheckoutCone = true\n"},
	} {
		b.must(t, "mkdir -p "+filepath.Dir(tc.name)+" && "+put(tc.name, tc.text))
		got, err := os.ReadFile(filepath.Join(dir, tc.name))
		if err != nil || string(got) != tc.text {
			t.Errorf("on the host %s is %q, %v", tc.name, got, err)
		}
	}
	before := tree(t, dir)
	// git sets it for each submodule. It is not written, and git does not need it.
	b.must(t, put(".git/modules/a/b/config", plain+"\tworktree = ../../../../lib\n"))
	for name, has := range map[string]string{".git/config": of, "sub/.git/config": plain, "other/.git/config": "", ".git/modules/a/b/config": plain, ".git/modules/c/config": ""} {
		for _, add := range []string{
			"[core]\n\tfsmonitor = touch x\n", "[core]\n\thooksPath = h\n", "[core]\n\tworktree = ../../../../../../home\n", "[include]\n\tpath = x\n", "[includeIf \"gitdir:/\"]\n\tpath = x\n",
			"[alias]\n\tx = !x\n", "[filter \"x\"]\n\tclean = x\n", "[credential]\n\thelper = x\n", "[url \"ext::x\"]\n\tinsteadOf = h\n", "[remote \"e\"]\n\turl = ext::sh -c x\n",
			"[remote \"origin\"]\n\tuploadpack = x\n", "[submodule \"x\"]\n\tupdate = !x\n", "[core] fsmonitor = x\n", "[core]\n\tbare = \\\nfalse\n", "no configuration\n",
		} {
			b.attempt(t, "mkdir -p "+filepath.Dir(name)+"; "+put(name, has+add)+"; rm -f "+name+".lock")
		}
		b.attempt(t, "mkdir -p "+filepath.Dir(name)+"; ln -s README l; mv l "+name+"; mkdir d; mv d "+name+"; cp README "+name+"; rm -rf l d; ln README "+name)
	}
	for _, text := range []string{"", "[core]\n", strings.Replace(of, "example.com", "example.org", 1), strings.Replace(of, "pager = less", "pager = more", 1)} {
		b.attempt(t, put(".git/config", text), "rm -f .git/config.lock .git/config")
	}
	wantTree(t, dir, before, "other", "other/.git", ".git/modules/c")
	for _, name := range []string{"other/.git/config", ".git/modules/c/config"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("on the host there is %s", name)
		}
	}
	if st, err := b.Status(bounded(t)); err != nil || !slices.ContainsFunc(st.Refused, func(r paddock.Refusal) bool {
		return strings.HasSuffix(r.Target, "/.git/config") && strings.HasSuffix(r.Rule, ": core.fsmonitor") && strings.Contains(r.Remedy, "core.fsmonitor")
	}) {
		t.Errorf("no refusal names the key: %+v, %v", st.Refused, err)
	}
}

// protectTurned tries to lead git of the host elsewhere with keys that are on the list, by several steps.
func protectTurned(t *testing.T, s *suite) {
	const remote = "[remote \"origin\"]\n\turl = https://example.com/x\n"
	const evil = "[remote \"evil\"]\n\turl = https://evil.example/x\n"
	const two = "[remote \"a\"]\n\turl = https://a.example/x\n[remote \"b\"]\n\turl = https://b.example/x\n"
	dir := hostTree(t, map[string]string{
		"t/a/b/.git/HEAD": "x\n", "t/a/b/.git/config": remote, "t/plain/.git/config": "[core]\n\tbare = false\n", "t/plain/.git/HEAD": "x\n",
		"t/host.git/HEAD": "ref: refs/heads/main\n", "t/host.git/config": "[core]\n\thooksPath = h\n", "t/host.git/hooks/update": "#!/bin/sh\n", "t/host.git/objects/x": "", "t/host.git/refs/x": "",
		"t/bare.git/HEAD": "[core]\n\tbare = true\n", "t/bare.git/config": "[core]\n\tbare = true\n", "t/bare.git/objects/x": "", "t/bare.git/refs/x": "",
		"t/two/.git/config": two + "[branch \"main\"]\n\tremote = a\n",
	})
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.must(t, "mkdir -p .git/modules/a/b && "+put(".git/modules/a/b/config", "[core]\n\tbare = false\n"))
	// What is written over there is a configuration, and HEAD would be gone.
	b.must(t, "cp t/bare.git/HEAD t/x; echo x > t/bare.git/HEAD; cat t/x > t/bare.git/HEAD; rm t/x")
	before := tree(t, dir)
	b.attempt(t, "mv t/bare.git/HEAD t/bare.git/config", "mv -T t/bare.git/refs t/x; mv t/x t/bare.git/refs")
	wantTree(t, dir, before)
	// A branch of the host follows the remote that it followed, or none.
	b.attempt(t, put("t/two/.git/config", two+"[branch \"main\"]\n\tremote = b\n"), put("t/two/.git/config", two+"[push]\n\tdefault = current\n"))
	b.must(t, put("t/two/.git/config", two))
	b.attempt(t, put("t/two/.git/config", two+"[branch \"main\"]\n\tremote = b\n"), "rm -f t/two/.git/config.lock")
	b.must(t, put("t/two/.git/config", two+"[branch \"main\"]\n\tremote = a\n"))
	wantTree(t, dir, before)
	// So is what it says while the sandbox lives.
	b.must(t, "mkdir -p t/later/.git && "+put("t/later/.git/config", "[core]\n\tbare = false\n"))
	if err := os.WriteFile(filepath.Join(dir, "t/later/.git/config"), []byte(remote), 0o644); err != nil {
		t.Fatal(err)
	}
	b.attempt(t, put("t/later/.git/config", evil), put("t/later/.git/config", remote+evil+"[branch \"main\"]\n\tremote = evil\n"), "rm -f t/later/.git/config.lock t/later/.git/config")
	if got, err := os.ReadFile(filepath.Join(dir, "t/later/.git/config")); err != nil || string(got) != remote {
		t.Errorf("what the host wrote became %q, %v", got, err)
	}
	before = tree(t, dir)
	at := "t/a/b/.git/config"
	for _, worktree := range []string{remote + "\tpushurl = https://evil.example/x\n", evil, "[branch \"main\"]\n\tremote = .\n", "[user]\n\temail = a@b.c\n"} {
		b.attempt(t, put(at+".worktree", worktree)+"; rm -f "+at+".worktree.lock")
	}
	for _, text := range []string{
		evil, strings.Replace(remote, "example.com", "evil.example", 1), remote + evil + "[branch \"main\"]\n\tremote = evil\n", remote + "[remote \"origin\"]\n\tpromisor = true\n", remote + "[extensions]\n\tpartialClone = origin\n",
		remote + "[remote \"origin\"]\n\tpartialCloneFilter = blob:none\n", remote + "[fetch]\n\trecurseSubmodules = true\n", remote + "[submodule]\n\trecurse = true\n", remote + "[push]\n\tautoSetupRemote = true\n", remote + "[checkout]\n\tdefaultRemote = origin\n",
		remote + "[remote \"origin\"]\n\tgh-resolved = base\n", remote + "[submodule \"s\"]\n\tfetchRecurseSubmodules = true\n",
	} {
		b.attempt(t, put(at, text), "rm -f "+at+"; "+put(at, text), "rm -f "+at+".lock")
	}
	// What has no remote can be removed, and stays the host's.
	b.must(t, put("t/plain/.git/config", "[core]\n\tbare = false\n"+evil)+"; "+put("t/plain/.git/config", "[core]\n\tbare = false\n"))
	b.attempt(t, put("t/plain/.git/config", "[core]\n\tbare = false\n"+evil+"[branch \"main\"]\n\tremote = evil\n")+"; rm -f t/plain/.git/config.lock")
	// A bare repository of the host stays one.
	for _, name := range []string{"HEAD", "objects", "refs"} {
		b.attempt(t, "mv t/host.git/"+name+" t/x; mv t/x t/host.git/"+name, "rm t/host.git/"+name, "mv t/host.git/config t/x")
	}
	b.attempt(t, "ln -s x t/l; mv -T t/l t/host.git/HEAD; echo x >> t/host.git/config; echo x > t/host.git/hooks/post-update; echo 'ref: refs/heads/main' > t/l; mv -T t/l t/host.git/HEAD")
	wantTree(t, dir, before)
	// The way to a submodule's working tree would lead elsewhere from there.
	b.attempt(t, "mv .git/modules/a/b t/out", "mv .git/modules/a t/out", "mv .git/modules t/out")
	wantTree(t, dir, before)
}

func protectLanded(t *testing.T, s *suite) {
	const plain = "[core]\n\tbare = false\n"
	dir := hostTree(t, map[string]string{"README": "read me"})
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	for i, script := range []string{
		"printf '%s' \"$P\" > c; exec 3>>c; mv c .git/config; echo '[core] fsmonitor = x' >&3",
		"printf '%s' \"$P\" > c; exec 3<>c; mv c .git/config; echo '[core] fsmonitor = x' >&3",
		"printf '%s' \"$P\" > c; ln c d; mv c .git/config; echo '[core] fsmonitor = x' >> d",
		"printf '%s' \"$P\" > c; mv c .git/config; echo '[core] fsmonitor = x' >> .git/config",
		"printf '%s' \"$P\" > c; mv c .git/config; ln .git/config d; echo '[core] fsmonitor = x' >> d",
		"printf '%s' \"$P\" > c; mv c .git/config; mkdir .git/.paddock; echo '[core] fsmonitor = x' > .git/.paddock/x; mv .git/.paddock/x .git/config",
		"mkdir r; cd r; printf '%s' \"$P\" > config; exec 3>>config; echo x > HEAD; mkdir refs; mkdir objects; echo '[core] fsmonitor = x' >&3",
		"mkdir r; cd r; printf '%s' \"$P\" > config; ln config ../d; echo x > HEAD; mkdir refs; mkdir objects; echo '[core] fsmonitor = x' >> ../d",
		"mkdir r; cd r; printf '%s' \"$P\" > config; mkdir refs; mkdir objects; echo x > h; mv h HEAD; echo '[core] fsmonitor = x' >> config",
	} {
		at := fmt.Sprintf("case%d", i)
		b.attempt(t, "mkdir -p "+at+"/.git; cd "+at+"; P='"+plain+"'; "+script)
		name := filepath.Join(dir, at, ".git/config")
		if strings.HasPrefix(script, "mkdir r;") {
			name = filepath.Join(dir, at, "r/config")
			if _, err := os.Lstat(filepath.Join(dir, at, "r/objects")); err != nil {
				t.Errorf("%s: %v", script, err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != plain {
			t.Errorf("%s: on the host there is %q, %v", script, got, err)
		}
		if st, err := os.Stat(name); err == nil && st.Mode().Perm()&0o022 != 0 {
			t.Errorf("%s: others may write to it: %v", script, st.Mode())
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(name), ".paddock")); err == nil {
			t.Errorf("%s leaves something behind", script)
		}
	}
}

func protectSamples(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"README": "read me", "linked/.git/hooks/pre-commit.sample": "x", "old/.git/hooks/pre-commit.sample": "x", "linked/.git/hooks/x.sample": "x"})
	if err := os.Symlink("pre-commit.sample", filepath.Join(dir, "linked/.git/hooks/pre-commit")); err != nil {
		t.Fatal(err)
	}
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.must(t, `set -e
mkdir .git .git/hooks .git/branches .git/modules .git/worktrees
echo x > .git/hooks/pre-commit.sample; cp README .git/hooks/p4-changelist.sample
mkdir -p bare.git/hooks bare.git/refs bare.git/branches; echo x > bare.git/hooks/update.sample; echo x > bare.git/HEAD; mkdir bare.git/objects
echo y > .git/hooks/p4-changelist.sample; rm .git/hooks/p4-changelist.sample; rmdir .git/branches`)
	before := tree(t, dir)
	// The host may run a sample by another name, and reads those that git brought.
	b.attempt(t, "echo y > linked/.git/hooks/pre-commit.sample", "rm linked/.git/hooks/*.sample", "echo y > linked/.git/hooks/pre-push.sample", "echo y >> old/.git/hooks/pre-commit.sample", "truncate -s 0 old/.git/hooks/pre-commit.sample")
	wantTree(t, dir, before)
	for _, hooks := range []string{".git/hooks", "bare.git/hooks"} {
		b.attempt(t, "echo x > "+hooks+"/update", "mv "+hooks+"/update.sample "+hooks+"/update; mv "+hooks+"/pre-commit.sample "+hooks+"/pre-commit", "ln "+hooks+"/*.sample "+hooks+"/update",
			"ln -s ../../README "+hooks+"/x.sample", "mkdir "+hooks+"/x.sample", "mv README "+hooks+"/x.sample", "mv "+hooks+" x", "echo x > "+hooks+"/update:.sample", "echo x > '"+hooks+"/up date.sample'",
			"echo x > "+hooks+"/update.sample.", "echo x > "+hooks+"/UPDATE.sample")
	}
	b.attempt(t, "mkdir .git/branches; echo x > .git/branches/x; rmdir .git/branches", "mkdir .git/remotes; echo x > .git/remotes/x; rmdir .git/remotes", "echo x > .git/commondir",
		"mkdir .git/info; echo x > .git/info/attributes; rmdir .git/info", "ln -s ../README .git/modules/a", "mkdir .git/modules/a; ln -s ../../../README .git/modules/a/b; rmdir .git/modules/a",
		"mkdir -p l/a/b; ln -s /tmp l/a/b/c; mv l/a .git/modules/a; mkdir .git/modules/a; mv l/a/b .git/modules/a/b; mv l/a/b/c .git/modules/a/c; rm -rf l; rmdir .git/modules/a",
		"mkdir .git/worktrees/w; echo /tmp > .git/worktrees/w/commondir; rm -f .git/worktrees/w/commondir; rmdir .git/worktrees/w", "mkdir p; echo 'gitdir: /tmp' > p/.git; grep /tmp p/.git && mv p/.git p/x; rm p/.git; rmdir p", "rm -rf .git/.paddock", "mkdir -p .git/objects/info; echo /tmp > .git/objects/info/alternates; rmdir .git/objects/info .git/objects", "echo /tmp > bare.git/objects/info/alternates")
	wantTree(t, dir, before)
}

// protectNoLinks tries to have git of the host write through a link, as it does with .git/COMMIT_EDITMSG.
func protectNoLinks(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"README": "read me", ".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n", ".git/logs/HEAD": "x", ".git/x": "x", "d/plain": "x"})
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.must(t, "mkdir -p .git/modules/m .git/worktrees/w out/refs; ln -s /etc out/refs/heads; ln -s config out/l; ln -s out outl; ln -s ../d/plain d/l")
	before := tree(t, dir)
	for _, at := range []string{".git/COMMIT_EDITMSG", ".git/index", ".git/logs/x", ".git/objects", ".git/refs", ".git/modules/m/COMMIT_EDITMSG", ".git/worktrees/w/COMMIT_EDITMSG", ".git/modules/m/refs/x", ".git/deep/er"} {
		b.must(t, "mkdir -p $(dirname "+at+")")
		wantKind(t, "a link "+at, b.FS().Symlink(bounded(t), "config", b.in(at)), paddock.Denied)
		b.attempt(t, "ln -s ../README "+at, "ln -s config "+at, "ln -s x "+at, "mv -T out/l "+at, "ln out/l "+at, "mv -T out "+at, "mv -T out/refs "+at, "cp -P out/l "+at, "cp -a out "+at)
	}
	b.attempt(t, "mv --exchange out .git/logs", "python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"out\", -100, b\".git/logs\", 2)'", "cd out; ln -s x .git", "mv -T outl out/.git")
	for name := range tree(t, dir) {
		st, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, old := before[name]; !old && (st.Mode().Type()&os.ModeSymlink != 0 || !strings.HasPrefix(name, ".git/")) {
			t.Errorf("%s was made", name)
		}
	}
	// git finds out in this way whether there are links.
	b.must(t, "ln -s testing .git/tAbC123; test -L .git/tAbC123; rm .git/tAbC123; ln -s ../d/plain e; mv -T out out2; mv -T d/l l2; mv .git/x .git/y; mkdir .git/z; mv .git/z .git/zz")
}

// protectWays moves the working tree of a submodule of the host away, and puts a link in its place. git of the host would
// write through it for whoever enters the repository by the file .git that was moved.
func protectWays(t *testing.T, s *suite) {
	const lib = "[core]\n\trepositoryformatversion = 0\n\tworktree = "
	dir := hostTree(t, map[string]string{
		"README": "read me", ".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n", ".gitmodules": "",
		".git/modules/lib/HEAD": "x\n", ".git/modules/lib/config": lib + "../../../lib\n", "lib/.git": "gitdir: ../.git/modules/lib\n", "lib/a": "a",
		".git/modules/v/logs/HEAD": "x\n", ".git/modules/v/logs/config": lib + "../../../../v/logs\n", "v/logs/.git": "gitdir: ../../.git/modules/v/logs\n", "v/logs/a": "a",
		".git/modules/lib/modules/in/HEAD": "x\n", ".git/modules/lib/modules/in/config": lib + "../../../../../lib/in\n", "lib/in/.git": "gitdir: ../../.git/modules/lib/modules/in\n",
		"n/e/.git/HEAD": "x\n", "n/e/.git/config": "[core]\n", "n/e/.git/modules/s/HEAD": "x\n", "n/e/.git/modules/s/config": lib + "../../../s\n", "n/e/s/.git": "gitdir: ../.git/modules/s\n",
	})
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	for _, way := range []string{"lib", "v/logs", "lib/in", "n/e/s"} {
		up := filepath.Dir(way)
		b.must(t, "mv "+way+" away; ln -s /tmp link; mkdir with; ln -s /tmp with/"+filepath.Base(way))
		b.attempt(t, "ln -s /tmp "+way, "mv -T link "+way, "cp -P link "+way, "ln link "+way, "chmod 0 .git/modules; ln -s /tmp "+way+"; chmod 755 .git/modules", "chmod 0 .git/modules/*/config; ln -s /tmp "+way+"; chmod 644 .git/modules/*/config")
		if up != "." {
			b.attempt(t, "mv "+up+" up; mv with "+up+"; ln -s with "+up+"; mv "+up+" with; mv up "+up)
		}
		if way == "n/e/s" { // the repository itself may be moved, and the way goes with it
			b.attempt(t, "mv n n2; ln -s /tmp n2/e/s; mv n2 n")
		}
		if st, err := os.Lstat(filepath.Join(dir, way)); err == nil {
			t.Errorf("%s became %v", way, st.Mode())
		}
		if name, err := filepath.EvalSymlinks(filepath.Join(dir, up)); err != nil || name != filepath.Join(dir, up) {
			t.Errorf("%s leads to %s, %v", up, name, err)
		}
		b.must(t, "mv away "+way+"; rm -rf link with; ln -s README "+way+"/fine; rm "+way+"/fine")
	}
	if got := b.must(t, "ln -s lib l; ln -s /tmp libs; mkdir -p v2; mv v2 v3; cat lib/a v/logs/a"); got != "aa" {
		t.Errorf("%q", got)
	}
}

// gitJob is what people do with git in a directory. It says "done" at its end.
const gitJob = `set -e
export HOME=/tmp GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_ALLOW_PROTOCOL=file
git init -q one
cd one
git config user.name "Me You"; git config user.email me@example.com
[ "$(git config core.filemode)" = true ]
echo a > a; git add a; git commit -qm a
! git config core.fsmonitor x 2> /dev/null
! git config alias.x '!id' 2> /dev/null
cd ..
git clone -q one two
git -C two checkout -q -b topic; git -C two push -q -u origin topic; git -C two checkout -q -; git -C two branch -q -D topic
echo z > two/z; git -C two add z; git -C two stash -q; git -C two stash pop -q; git -C two gc -q
git init -q --bare bare.git; git -C bare.git config receive.denyNonFastForwards true; git -C two remote add bare ../bare.git; git -C two push -q bare HEAD
git clone -q --mirror one mirror.git
cd one
git submodule --quiet add ../two libs/sub; git commit -qm sub
[ "$(cat libs/sub/.git)" = "gitdir: ../../.git/modules/libs/sub" ]
cd ..
git clone -q --recurse-submodules one three
cd three
git -C libs/sub log --oneline > /dev/null
git worktree add -q wt; git -C wt status > /dev/null; echo b > wt/b; git -C wt add b; git -C wt commit -qm b
git worktree remove wt; git worktree prune
cd ..
rm -rf three
! [ -e three ]
echo done`

func protectGit(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"README": "read me"})
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	if b.sh(t, "git --version").exit.Code != 0 {
		t.Skip("there is no git inside")
	}
	r := b.sh(t, gitJob)
	if r.exit.Code != 0 || !strings.HasSuffix(r.out, "done\n") {
		t.Fatalf("%d: %s%s", r.exit.Code, r.out, r.err)
	}
	st, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range st.Refused {
		if !strings.HasSuffix(r.Rule, "core.fsmonitor") && !strings.HasSuffix(r.Rule, "alias.x") {
			t.Errorf("a false alarm: %+v", r)
		}
	}
}

func protectIndex(t *testing.T, s *suite) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git on the host")
	}
	dir := hostTree(t, map[string]string{"a": "a", "b/c": "c"})
	for _, name := range []string{"a", "b/c"} {
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	before := tree(t, dir)[".git/index"]
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	if b.sh(t, "git --version").exit.Code != 0 {
		t.Skip("there is no git inside")
	}
	if got := b.must(t, "git status --short"); got != "A  a\nA  b/c\n" {
		t.Errorf("%q", got)
	}
	if tree(t, dir)[".git/index"] != before {
		t.Error("the index of the host was written")
	}
}

func protectOthers(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{
		"README": "read me", "low/README": "read me",
		".hg/requires": "share-safe\n", ".hg/store/00changelog.i": "", ".hg/hgrc": "[ui]\n", ".bzr/branch/branch.conf": "", ".jj/repo/config-id": "1",
		"_darcs/prefs/defaults": "", ".pijul/config": "", ".sl/config": "", ".svn/wc.db": "", ".fslckout": "",
	})
	before := tree(t, dir)
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.attempt(t,
		"echo '[hooks]' > .hg/hgrc", "echo '[hooks]' > .hg/hgrc-not-shared", "echo /tmp > .hg/sharedpath", "echo shared >> .hg/requires",
		"mv .hg .hg.old", "rm -rf .hg/hgrc", "echo post_commit=x > .bzr/branch/branch.conf", "echo x > .jj/repo/config-id", "echo x > .jj/repo/config.toml",
		"echo x > .jj/workspace-config.toml", "echo ALL posthook x > _darcs/prefs/defaults", "echo x > .pijul/config", "echo x > .sl/config", "echo x > .svn/wc.db", "echo x > .fslckout",
	)
	for _, name := range []string{".hg", ".bzr", ".jj", "_darcs", ".pijul", ".sl", ".svn", ".got"} {
		b.attempt(t, "mkdir low/"+name, "mkdir -p low/new/"+name, "mkdir low/x; mv low/x low/"+name+"; rmdir low/x", "ln -s ../README low/"+name, "echo x > low/"+name)
		wantKind(t, "make low/"+name, b.FS().Mkdir(bounded(t), b.in("low/"+name), paddock.MkdirOptions{}), paddock.Denied)
	}
	for _, name := range []string{"_FOSSIL_", ".fslckout", ".fslckout-journal"} {
		b.attempt(t, "echo x > low/"+name, "cp README low/"+name)
	}
	wantTree(t, dir, before, "low/new")
	b.must(t, `set -e
mkdir -p .hg .hg/store/data .jj/repo/op_store .bzr/checkout _darcs/patches .sl/store
echo x > .hg/dirstate; echo x >> .hg/store/00changelog.i; echo x > .hg/store/data/a.i; echo x > .hg/x; mv .hg/x .hg/last-message.txt
for d in .jj/repo/op_store .bzr/checkout _darcs/patches .sl/store; do echo x > $d/x; mv $d/x $d/y; rm $d/y; done
chmod 700 .hg`)
}

func protectBare(t *testing.T, s *suite) {
	bare := func(at string, files map[string]string) map[string]string {
		for _, name := range []string{"HEAD", "objects/info/x", "refs/heads/main", "hooks/x.sample"} {
			files[at+name] = "x\n"
		}
		return files
	}
	dir := hostTree(t, bare("there.git/", bare("plain/", map[string]string{"README": "read me", "there.git/config": "[core]\n\teditor = ed\n"})))
	before := tree(t, dir)
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.attempt(t,
		"echo x > there.git/config", "echo x > there.git/hooks/pre-receive", "rm there.git/config", "mv there.git/hooks there.git/old", "echo x > there.git/commondir",
		"echo x > plain/config", "echo x > plain/c; mv plain/c plain/config; rm -f plain/c", "ln -s ../README plain/config", "mkdir plain/config", "echo x > plain/hooks/update",
		"mkdir -p there.git/info; echo x > there.git/info/attributes",
	)
	wantTree(t, dir, before, "there.git/info")
	// In any order, the last of the names is refused.
	for i, script := range []string{
		"mkdir objects refs hooks; echo x > config; echo x > HEAD", "echo x > HEAD; echo x > config; mkdir refs; mkdir objects",
		"echo x > HEAD; mkdir refs objects; echo x > config", "mkdir refs objects; echo x > c; mv c config; echo x > h; ln h HEAD",
		"echo x > config; mkdir refs objects; ln -s refs/x HEAD", "echo x > config; echo x > HEAD; mkdir r o; mv r refs; mv o objects",
		"echo x > config; echo x > HEAD; echo .. > commondir", "echo .. > commondir; echo x > config; echo x > HEAD", "mkdir hooks objects refs; echo x > hooks/update; echo x > HEAD",
		"echo x > HEAD; mkdir refs objects hooks; echo x > hooks/update",
	} {
		at := fmt.Sprintf("made%d", i)
		b.attempt(t, "mkdir "+at+"; cd "+at+"; "+script)
		has := func(name string) bool { _, err := os.Lstat(filepath.Join(dir, at, name)); return err == nil }
		if has("HEAD") && (has("commondir") || has("objects") && has("refs")) && (has("config") || has("commondir") || has("hooks/update")) {
			t.Errorf("%s made a bare repository", script)
		}
	}
	b.must(t, `set -e
echo y > there.git/HEAD; mkdir there.git/objects/ab; echo y > there.git/refs/heads/topic; echo y > there.git/l; mv there.git/l there.git/packed-refs
mkdir config hooks objects refs; echo y > config/hooks; echo y > hooks/config; mkdir -p src/config src/HEAD; echo y > src/config/x`)
}

func protectCache(t *testing.T, s *suite) {
	work, dir := hostTree(t, map[string]string{"README": "read me"}), hostTree(t, map[string]string{"old": "x"})
	b := s.mounted(t, paddock.Mount{Source: work, Target: "/mnt/desk", Write: true}, paddock.Mount{Source: dir, Target: "~/.cache", Write: true, Cache: true})
	if got := b.must(t, `set -e
cat ~/.cache/old
mkdir -p ~/.cache/m/.vscode ~/.cache/m/.claude; echo x > ~/.cache/m/.vscode/tasks.json; echo x > ~/.cache/m/.envrc; echo x > ~/.cache/m/.bashrc
chmod 555 ~/.cache/m/.vscode; echo done`); got != "xdone\n" {
		t.Errorf("%q", got)
	}
	// uv makes such a file, and opens it to write each time it begins. What is written into it is dropped.
	b.must(t, `mkdir ~/.cache/uv; cd ~/.cache/uv; : >> .git; : > .git; echo "gitdir: ../evil" > .git; [ ! -s .git ]`)
	if data, err := os.ReadFile(filepath.Join(dir, "uv/.git")); err != nil || len(data) > 0 {
		t.Errorf("the file .git of the cache: %q, %v", data, err)
	}
	before := tree(t, dir)
	b.attempt(t, "cd ~/.cache; mkdir .git; "+put(".git/config", "[core]\n\tfsmonitor = x\n"), "cd ~/.cache; mkdir .hg", "cd ~/.cache; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
		"cd ~/.cache; mkdir r r/refs r/objects; echo '[core]' > r/config; echo 'fsmonitor = x' >> r/config; echo x > r/HEAD")
	for name := range tree(t, dir) {
		if _, old := before[name]; !old && !slices.Contains([]string{".git", ".git/hooks", ".git/config.lock", "r", "r/refs", "r/objects", "r/config"}, name) {
			t.Errorf("on the host there is %s", name)
		}
	}
	for _, bad := range []paddock.Mount{{Source: dir, Target: "~/.cache", Write: true}, {Source: dir, Target: "~/.cache", Cache: true}, {Source: dir, Target: "~/../x", Write: true, Cache: true}} {
		spec := s.spec()
		spec.Mounts = []paddock.Mount{bad}
		if sb, err := s.driver.Create(bounded(t), spec); err == nil {
			t.Errorf("%+v is accepted", bad)
			if err := sb.Remove(bounded(t)); err != nil {
				t.Error(err)
			}
		}
	}
	// What the caller shows counts more than a cache of the same place, of one above and of one below.
	for at, caches := range map[string]string{"/.cache/x": "~/.cache", "/.cache": "~/.cache", "": "~/.cache"} {
		home := strings.TrimSpace(b.must(t, "echo ~"))
		c := s.mounted(t, paddock.Mount{Source: work, Target: home + at, Write: true}, paddock.Mount{Source: dir, Target: caches, Write: true, Cache: true})
		c.must(t, "[ ! -e ~/.cache/old ]")
	}
	b.must(t, "chmod 755 ~/.cache/m/.vscode") // for the removal of the directory
}

func protectEmpty(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"README": "read me", ".github/workflows/x.yml": "x", ".config/a": "x"})
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk", Write: true})
	b.must(t, "rm -r .github .config; mkdir .github; rmdir .github")
	wantTree(t, dir, map[string]string{".": tree(t, dir)["."], "README": tree(t, dir)["README"]})
}

func protectChanged(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"README": "read me", "locked/file": "old"})
	before := tree(t, dir)
	policy := paddock.FilePolicy{Protect: []string{"locked", ".never-made"}, Unprotect: []string{".mcp.json"}}
	b := s.policed(t, policy, s.desk(dir))
	b.must(t, "echo free > .mcp.json")
	b.attempt(t, "echo x > locked/file", "echo x > locked/new", "mv locked unlocked", "echo x > .never-made", "mkdir d; echo x > d/.never-made")
	wantTree(t, dir, before, ".mcp.json", "d")
	if got := tree(t, dir)[".mcp.json"]; !strings.HasSuffix(got, " free\n") {
		t.Errorf("%q", got)
	}
}

func denyPromises() []group {
	return []group{{
		can:   []paddock.Capability{paddock.CanMount},
		walls: []paddock.Control{paddock.ControlMountNS},
		promises: []promise{
			{"a path that may not be read can be neither read, listed, written nor moved", denyRead},
			{"a path that may not be written can be read, and nothing else", denyWrite},
		},
	}}
}

func denyRead(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"open": "open", "secret.env": "TOPSECRET", "private/key": "TOPSECRET", "private/deep/key": "TOPSECRET"})
	before := tree(t, dir)
	policy := paddock.FilePolicy{DenyRead: []string{"/mnt/desk/secret.env", "/mnt/desk/private"}}
	b := s.policed(t, policy, s.desk(dir))
	var said strings.Builder
	for _, script := range []string{
		"cat secret.env", "cat private/key", "ls -R private", "cat private/deep/key", "cat /proc/self/root/mnt/desk/secret.env",
		"cat /proc/self/cwd/secret.env", "ln -s secret.env l; cat l; rm -f l", "ln secret.env h; cat h; rm -f h",
		"mv secret.env x; cat x; mv x secret.env", "mv private x; cat x/key; mv x private", "cp -r private x; cat x/key; rm -rf x",
		"echo x > secret.env", "echo x > private/new", "rm -f secret.env", "rm -rf private", "mv open secret.env; mv secret.env open",
		"cd .. && mv work x && cat x/secret.env; mv x work",
	} {
		r := b.sh(t, script)
		said.WriteString(r.out + r.err)
	}
	if strings.Contains(said.String(), "TOPSECRET") {
		t.Error("the secret was read")
	}
	for _, name := range []string{"secret.env", "private/key"} {
		got, err := b.read(bounded(t), b.in(name), paddock.OpenOptions{})
		if strings.Contains(string(got), "TOPSECRET") {
			t.Errorf("the caller reads %s", name)
		}
		wantKind(t, "open "+name, err, paddock.Denied, paddock.NotFound)
		wantKind(t, "write "+name, b.write(bounded(t), b.in(name), strings.NewReader("x"), paddock.CreateOptions{}), paddock.Denied, paddock.NotFound)
	}
	if found, err := b.list(bounded(t), b.in("private"), 9); len(found) > 0 {
		t.Errorf("the caller lists %v, %v", found, err)
	}
	if got := b.must(t, "cat open"); got != "open" {
		t.Errorf("%q", got)
	}
	wantTree(t, dir, before)
}

func denyWrite(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"free": "free", "fixed": "fixed", "dir/fixed": "fixed", "up/in/fixed": "fixed"})
	before := tree(t, dir)
	denied := []string{"/mnt/desk/fixed", "/mnt/desk/dir", "/mnt/desk/up/in/fixed", "/mnt/desk/never"}
	b := s.policed(t, paddock.FilePolicy{DenyWrite: denied}, s.desk(dir))
	b.attempt(t,
		"echo x > fixed", "echo x >> fixed", "rm -f fixed", "mv fixed x; mv x fixed", "mv free fixed; mv fixed free", "chmod 777 fixed",
		"ln fixed h; echo x >> h; rm -f h", "echo x > dir/new", "echo x > dir/fixed", "rm -rf dir", "mv dir x; echo x > x/fixed; mv x dir",
		"mv up x; echo x > x/in/fixed; mv x up", "echo x > never", "mkdir never", "ln -s free never", "echo x > t; mv t never; rm -f t",
	)
	for _, name := range []string{"fixed", "dir/new", "dir/fixed", "never"} {
		err := b.write(bounded(t), b.in(name), strings.NewReader("x"), paddock.CreateOptions{})
		wantKind(t, "write "+name, err, paddock.Denied)
	}
	wantTree(t, dir, before)
	if got := b.must(t, "cat fixed dir/fixed; echo new > free; echo new > other"); got != "fixedfixed" {
		t.Errorf("%q", got)
	}
	if got := b.must(t, "cat free other"); got != "new\nnew\n" {
		t.Errorf("%q", got)
	}
}
