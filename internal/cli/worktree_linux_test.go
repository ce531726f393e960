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
	for work, want := range map[string]string{
		"wt": repo + "/.git", "repo/sub/lib": repo + "/.git/modules/sub/lib",
		"repo": "", "forged": "", "module": "", "direct": "", "own": "", "none": "", "missing": "",
	} {
		if got, ok := commonDir(filepath.Join(top, work)); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v; want %q", work, got, ok, want)
		}
	}
}
