package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The file .git of a workspace could name any repository.
func TestARepositoryIsShownOnlyToWhatItLeadsBackTo(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + top, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_ALLOW_PROTOCOL=file", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	repo := filepath.Join(top, "repo")
	run(top, "init", "-q", "lib")
	run(filepath.Join(top, "lib"), "commit", "-q", "--allow-empty", "-m", "a")
	run(top, "init", "-q", "repo")
	run(repo, "commit", "-q", "--allow-empty", "-m", "a")
	run(repo, "worktree", "add", "-q", filepath.Join(top, "wt"))
	run(repo, "submodule", "--quiet", "add", "../lib", "sub/lib")
	put(filepath.Join(top, "forged/.git"), "gitdir: "+repo+"/.git/worktrees/wt\n")
	put(filepath.Join(top, "module/.git"), "gitdir: "+repo+"/.git/modules/sub/lib\n")
	put(filepath.Join(top, "direct/.git"), "gitdir: "+repo+"/.git\n")
	put(filepath.Join(top, "own/.git"), "gitdir: inner/.git/worktrees/x\n")
	if err := os.MkdirAll(filepath.Join(top, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(repo, "worktree", "add", "-q", filepath.Join(repo, "inner"))
	run(filepath.Join(repo, "sub/lib"), "worktree", "add", "-q", filepath.Join(top, "subwt"))
	run(top, "clone", "-q", "--bare", "repo", "bare")
	run(filepath.Join(top, "bare"), "worktree", "add", "-q", filepath.Join(top, "barewt"), "-b", "x")
	run(filepath.Join(top, "bare"), "worktree", "add", "-q", filepath.Join(top, "bare/below"), "-b", "y")

	// fake makes what a repository has of the working tree at work, with a file .git that leads there.
	fake := func(work, own string) {
		t.Helper()
		put(filepath.Join(top, work, ".git"), "gitdir: "+filepath.Join(top, own)+"\n")
		put(filepath.Join(top, own, "commondir"), "../..\n")
		put(filepath.Join(top, own, "gitdir"), filepath.Join(top, work, ".git")+"\n")
	}
	whole := func(dir string) {
		t.Helper()
		for _, name := range []string{"HEAD", "config", "objects/x", "refs/x"} {
			put(filepath.Join(top, dir, name), "x\n")
		}
	}
	put(filepath.Join(top, "archive/worktrees/p/.git"), "gitdir: .\n") // by paths of the archive alone
	put(filepath.Join(top, "archive/worktrees/p/commondir"), "../..\n")
	put(filepath.Join(top, "archive/worktrees/p/gitdir"), ".git\n")
	put(filepath.Join(top, "archive2/worktrees/p/.git"), "gitdir: own/worktrees/q\n") // own is below the workspace, too
	put(filepath.Join(top, "archive2/worktrees/p/own/worktrees/q/commondir"), "../..\n")
	put(filepath.Join(top, "archive2/worktrees/p/own/worktrees/q/gitdir"), "../../../.git\n")
	whole("archive2/worktrees/p/own")
	put(filepath.Join(top, "archive3/worktrees/p/.git"), "gitdir: .\n") // and with what a repository has
	put(filepath.Join(top, "archive3/worktrees/p/commondir"), "../..\n")
	put(filepath.Join(top, "archive3/worktrees/p/gitdir"), ".git\n")
	whole("archive3")
	fake("elsewhere", "x/worktrees/b")
	fake("good", "y/worktrees/b")
	whole("y")
	for _, name := range []string{"HEAD", "config", "objects", "refs"} {
		fake("without-"+name, "z-"+name+"/worktrees/b")
		whole("z-" + name)
		if err := os.RemoveAll(filepath.Join(top, "z-"+name, name)); err != nil {
			t.Fatal(err)
		}
		fake("link-"+name, "l-"+name+"/worktrees/b")
		whole("l-" + name)
		at := filepath.Join(top, "l-"+name, name)
		if err := os.Rename(at, at+".real"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(name+".real", at); err != nil {
			t.Fatal(err)
		}
	}
	fake("athome", "home/worktrees/b")
	whole("home")
	fake("abovehome", "users/worktrees/b")
	whole("users")
	home := map[string]string{"athome": "home", "abovehome": "users/me"}
	if err := os.MkdirAll(filepath.Join(top, "users/me"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(top, "inmodule/.git/modules/x/.git"), "gitdir: ..\n") // which is .git/modules, above the workspace
	put(filepath.Join(top, "module2/.git/modules/x/w/.git"), "gitdir: ..\n")
	whole("module2/.git/modules/x")
	put(filepath.Join(top, "module2/.git/modules/x/config"), "[core]\n\tworktree = w\n")

	for work, want := range map[string]string{
		"wt": repo + "/.git", "repo/sub/lib": repo + "/.git/modules/sub/lib", "repo/inner": repo + "/.git", "subwt": repo + "/.git/modules/sub/lib",
		"barewt": top + "/bare", "good": top + "/y",
		"repo": "", "forged": "", "module": "", "direct": "", "own": "", "none": "", "missing": "",
		"archive/worktrees/p": "", "archive2/worktrees/p": "", "archive3/worktrees/p": "", "bare/below": "", "elsewhere": "",
		"without-HEAD": "", "without-config": "", "without-objects": "", "without-refs": "", "link-HEAD": "", "link-config": "", "link-objects": "", "link-refs": "",
		"athome": "", "abovehome": "", "inmodule/.git/modules/x": "", "module2/.git/modules/x/w": "",
	} {
		at := ""
		if home[work] != "" {
			at = filepath.Join(top, home[work])
		}
		if got, ok := commonDir(filepath.Join(top, work), at); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", work, got, ok, want)
		}
	}
}

// A file of an archive that was unpacked in the home must not have the home mounted.
func TestAWorkspaceDoesNotHaveTheHomeMounted(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(home, "worktrees", "p")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".git": "gitdir: .\n", "commondir": "../..\n", "gitdir": ".git\n"} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := planOf(t, work, map[string]string{"HOME": home}, "--workspace", ".")
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.Mounts) != 1 || spec.Mounts[0].Source != work {
		t.Errorf("mounted are %+v", spec.Mounts)
	}
}
