package attestation

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const one, two = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"

// A repo is a repository that git itself made.
type repo struct {
	t   *testing.T
	git string
	dir string
}

func (r *repo) run(args ...string) string {
	r.t.Helper()
	c := exec.Command(r.git, args...)
	c.Dir = r.dir
	c.Env = []string{"HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com"}
	out, err := c.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestRevisionsAreThoseOfGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git here")
	}
	r := &repo{t, git, t.TempDir()}
	r.run("init", "-q", "-b", "main", ".")
	r.run("commit", "-q", "--allow-empty", "-m", "one")
	r.run("tag", "light")
	r.run("tag", "-a", "-m", "a tag", "heavy")
	r.run("tag", "-a", "-m", "a tag of a tag", "twice", "heavy")
	r.run("branch", "topic/one")
	r.run("commit", "-q", "--allow-empty", "-m", "two")
	check := func(when string) {
		t.Helper()
		for _, rev := range []string{"HEAD", "main", "topic/one", "light", "heavy", "twice", "refs/heads/main", "refs/tags/heavy"} {
			want := r.run("rev-parse", rev+"^{commit}")
			if got, err := Resolve(openRoot(t, r.dir), rev); err != nil || got != want {
				t.Errorf("%s: %s is %s, %v, want %s", when, rev, got, err, want)
			}
		}
	}
	check("loose")
	r.run("pack-refs", "--all")
	check("packed")
	r.run("commit", "-q", "--allow-empty", "-m", "three")
	r.run("checkout", "-q", "--detach")
	check("both, and no branch")
	r.run("worktree", "add", "-q", "--detach", "linked")
	linked := &repo{t, git, filepath.Join(r.dir, "linked")}
	linked.run("commit", "-q", "--allow-empty", "-m", "in the linked one")
	if linked.run("rev-parse", "HEAD") == r.run("rev-parse", "HEAD") {
		t.Fatal("both working trees have one commit")
	}
	for _, rev := range []string{"HEAD", "main", "heavy", "topic/one"} {
		if got, err := Resolve(openRoot(t, linked.dir), rev); err != nil || got != linked.run("rev-parse", rev+"^{commit}") {
			t.Errorf("linked: %s is %s, %v", rev, got, err)
		}
	}
	r.run("gc", "-q")
	check("all of it packed")
	for i := range 30 { // so many that git makes deltas of them
		r.run("tag", "-a", "-m", "a tag"+strings.Repeat("\nwith a long message of many lines", 30)+strconv.Itoa(i), "late"+strconv.Itoa(i), "HEAD")
	}
	r.run("repack", "-q", "-a", "-d", "-f", "--window=50")
	r.run("prune-packed")
	for i := range 30 {
		name := "late" + strconv.Itoa(i)
		if got, err := Resolve(openRoot(t, r.dir), name); err != nil || got != r.run("rev-parse", name+"^{commit}") {
			t.Errorf("%s in a pack is %s, %v", name, got, err)
		}
	}
	if !strings.Contains(r.run("verify-pack", "-v", onlyPack(t, r.dir)), "chain length = ") {
		t.Error("no object is a delta, so that none was read")
	}
}

func onlyPack(t *testing.T, dir string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, ".git/objects/pack/*.idx"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return list[0]
}

func TestARepositoryWithSHA256IsRead(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("there is no git here")
	}
	r := &repo{t, git, t.TempDir()}
	r.run("init", "-q", "-b", "main", "--object-format=sha256", ".")
	r.run("commit", "-q", "--allow-empty", "-m", "one")
	r.run("tag", "-a", "-m", "a tag", "heavy")
	for _, when := range []string{"loose", "packed"} {
		if got, err := Resolve(openRoot(t, r.dir), "heavy"); err != nil || got != r.run("rev-parse", "HEAD") || len(got) != 64 {
			t.Errorf("%s: %s, %v", when, got, err)
		}
		r.run("repack", "-q", "-a", "-d")
		r.run("prune-packed")
	}
}

// plant writes a loose object, under a digest or with an empty one under its own, which it returns.
func plant(t testing.TB, dir, digest, text string) string {
	t.Helper()
	if digest == "" {
		digest = fmt.Sprintf("%x", sha1.Sum([]byte(text)))
	}
	write(t, filepath.Join(dir, ".git/objects", digest[:2], digest[2:]), string(deflate(t, text)), 0o600)
	return digest
}

func deflate(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tagOf is a tag of an object, as it is stored.
func tagOf(digest, kind string) string {
	text := "object " + digest + "\ntype " + kind + "\ntag x\n\nmessage\n"
	return fmt.Sprintf("tag %d\x00%s", len(text), text)
}

// A command in the sandbox may have written any of it.
func TestAHostileRepositoryIsRefusedWithTheReason(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, two+"\n", 0o600)
	for _, row := range []struct {
		name, rev string
		make      func(dir string)
		want      string
	}{
		{"no repository", "HEAD", func(string) {}, "there is no .git"},
		{"a file that leads elsewhere", "HEAD", func(dir string) { write(t, filepath.Join(dir, ".git"), "gitdir: /", 0o600) }, "it names no directory below worktrees"},
		{"a file without a directory", "HEAD", func(dir string) { write(t, filepath.Join(dir, ".git"), "hello", 0o600) }, "it names no directory"},
		{"the working tree of another", "HEAD", func(dir string) {
			linkedTree(t, filepath.Join(dir, "main"), filepath.Join(dir, "theirs"))
			write(t, filepath.Join(dir, "theirs/.git"), "gitdir: x", 0o600)
			write(t, filepath.Join(dir, ".git"), "gitdir: "+filepath.Join(dir, "main/.git/worktrees/theirs"), 0o600)
		}, "another working tree"},
		{"a directory that only looks like a working tree's", "HEAD", func(dir string) {
			write(t, filepath.Join(dir, "worktrees/x/HEAD"), two, 0o600)
			write(t, filepath.Join(dir, ".git"), "gitdir: worktrees/x", 0o600)
		}, "it leads to no repository"},
		{"a FIFO in place of a working tree's directory", "HEAD", func(dir string) {
			write(t, filepath.Join(dir, ".git"), "gitdir: worktrees/x", 0o600)
			write(t, filepath.Join(dir, "worktrees/y"), "", 0o600)
			if err := syscall.Mkfifo(filepath.Join(dir, "worktrees/x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "worktrees/x is no directory"},
		{"a link in place of a working tree's directory", "HEAD", func(dir string) {
			write(t, filepath.Join(dir, ".git"), "gitdir: worktrees/x", 0o600)
			write(t, filepath.Join(dir, "worktrees/y"), "", 0o600)
			if err := os.Symlink(filepath.Dir(secret), filepath.Join(dir, "worktrees/x")); err != nil {
				t.Fatal(err)
			}
		}, "worktrees/x is no directory"},
		{"a link that leads elsewhere", "HEAD", func(dir string) {
			if err := os.Symlink(filepath.Dir(secret), filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		}, ".git is no directory"},
		{"a reference by a link to a file outside", "main", func(dir string) {
			write(t, filepath.Join(dir, ".git/HEAD"), "ref: refs/heads/main\n", 0o600)
			write(t, filepath.Join(dir, ".git/refs/heads/other"), one+"\n", 0o600)
			if err := os.Symlink(secret, filepath.Join(dir, ".git/refs/heads/main")); err != nil {
				t.Fatal(err)
			}
		}, "path escapes"},
		{"a name that leads outside", "../../secret", func(dir string) { write(t, filepath.Join(dir, ".git/HEAD"), one, 0o600) }, "neither HEAD nor"},
		{"a reference that leads outside", "HEAD", func(dir string) { write(t, filepath.Join(dir, ".git/HEAD"), "ref: refs/../../x\n", 0o600) }, `a reference leads to "refs/../../x"`},
		{"references in a circle", "HEAD", func(dir string) {
			write(t, filepath.Join(dir, ".git/HEAD"), "ref: refs/heads/a\n", 0o600)
			write(t, filepath.Join(dir, ".git/refs/heads/a"), "ref: refs/heads/a\n", 0o600)
		}, "lead to each other"},
		{"no digest", "HEAD", func(dir string) { write(t, filepath.Join(dir, ".git/HEAD"), "hello", 0o600) }, "has no digest"},
		{"a FIFO", "HEAD", func(dir string) {
			write(t, filepath.Join(dir, ".git/config"), "", 0o600)
			if err := syscall.Mkfifo(filepath.Join(dir, ".git/HEAD"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "no plain file"},
		{"a huge file", "HEAD", func(dir string) { write(t, filepath.Join(dir, ".git/HEAD"), strings.Repeat("1", maxRef+1), 0o600) }, "no plain file of at most"},
		{"a branch that is not there", "main", func(dir string) {
			write(t, filepath.Join(dir, ".git/packed-refs"), "# pack-refs\n"+one+" refs/heads/other\n", 0o600)
		}, "has no reference main"},
		{"a branch and a tag", "x", func(dir string) {
			write(t, filepath.Join(dir, ".git/packed-refs"), "# pack-refs with: peeled fully-peeled sorted \n"+one+" refs/heads/x\n"+two+" refs/tags/x\n", 0o600)
		}, "is a branch and a tag"},
		{"a tag of a file", "x", func(dir string) {
			write(t, filepath.Join(dir, ".git/refs/tags/x"), plant(t, dir, "", "blob 2\x00hi"), 0o600)
		}, "names no commit"},
		{"an object under another name", "x", func(dir string) {
			write(t, filepath.Join(dir, ".git/refs/tags/x"), one, 0o600)
			plant(t, dir, one, tagOf(two, "commit"))
		}, "has another digest"},
		{"a tag that is missing", "x", func(dir string) { write(t, filepath.Join(dir, ".git/refs/tags/x"), one, 0o600) }, "has no reference"},
		{"an object that is a bomb", "x", func(dir string) {
			write(t, filepath.Join(dir, ".git/refs/tags/x"), one, 0o600)
			plant(t, dir, one, "tag 9\x00"+strings.Repeat("x", maxObject+1))
		}, "more than 1048576 bytes"},
		{"an object elsewhere", "x", func(dir string) {
			write(t, filepath.Join(dir, ".git/refs/tags/x"), one, 0o600)
			write(t, filepath.Join(dir, ".git/objects/info/alternates"), "/elsewhere\n", 0o600)
		}, "which is not read"},
		{"a tag of tags without end", "x", func(dir string) {
			at := one
			for range maxHops + 1 {
				at = plant(t, dir, "", tagOf(at, "tag"))
			}
			write(t, filepath.Join(dir, ".git/refs/tags/x"), at, 0o600)
		}, "a tag leads to more than 5 others"},
		{"a damaged object", "x", func(dir string) {
			write(t, filepath.Join(dir, ".git/refs/tags/x"), one, 0o600)
			write(t, filepath.Join(dir, ".git/objects/11", one[2:]), "x", 0o600)
		}, "the object " + one},
		{"an expression", "HEAD~1", func(dir string) { write(t, filepath.Join(dir, ".git/HEAD"), one, 0o600) }, "neither HEAD nor"},
	} {
		dir := t.TempDir()
		row.make(dir)
		if got, err := Resolve(openRoot(t, dir), row.rev); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %s, %v, want %q", row.name, got, err, row.want)
		}
	}
}

// linkedTree makes a repository and a linked working tree of it, as git does.
func linkedTree(t *testing.T, main, tree string) {
	t.Helper()
	own := filepath.Join(main, ".git/worktrees", filepath.Base(tree))
	for name, text := range map[string]string{
		filepath.Join(own, "HEAD"): two, filepath.Join(own, "commondir"): "../..\n", filepath.Join(own, "gitdir"): filepath.Join(tree, ".git") + "\n",
		filepath.Join(main, ".git/HEAD"): one, filepath.Join(tree, ".git"): "gitdir: " + own + "\n",
	} {
		write(t, name, text, 0o600)
	}
}

func TestALinkedWorkingTreeMayMoveWithItsRepository(t *testing.T) {
	dir := t.TempDir()
	linkedTree(t, filepath.Join(dir, "main"), filepath.Join(dir, "tree"))
	root := openRoot(t, filepath.Join(dir, "tree"))
	if got, err := Resolve(root, "HEAD"); err != nil || got != two {
		t.Errorf("%s, %v", got, err)
	}
	write(t, filepath.Join(dir, "tree/.git"), "gitdir: ../main/.git/worktrees/tree\n", 0o600)
	write(t, filepath.Join(dir, "main/.git/worktrees/tree/gitdir"), "../../../../tree/.git\n", 0o600)
	if got, err := Resolve(root, "HEAD"); err != nil || got != two {
		t.Errorf("with relative paths: %s, %v", got, err)
	}
}

func TestAWholeDigestIsTakenAsItIs(t *testing.T) {
	for _, text := range []string{one, strings.Repeat("0123456789abcdef", 4)} {
		if got, err := Resolve(openRoot(t, t.TempDir()), text); err != nil || got != text {
			t.Errorf("%s, %v", got, err)
		}
	}
	for _, text := range []string{"", one[1:], strings.ToUpper(two[:39] + "a"), one + one} {
		if IsCommit(text) {
			t.Errorf("%q is a digest", text)
		}
	}
}

func FuzzPackedReferences(f *testing.F) {
	f.Add([]byte("# pack-refs with: peeled fully-peeled sorted \n"+one+" refs/heads/x\n"+two+" refs/tags/x\n^"+one+"\n"), "x")
	f.Add([]byte("ref: refs/heads/x"), "HEAD")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte, rev string) {
		for _, name := range []string{".git/packed-refs", ".git/HEAD"} {
			write(t, filepath.Join(dir, name), string(data), 0o600)
		}
		if got, err := Resolve(openRoot(t, dir), rev); err == nil && !IsCommit(got) {
			t.Errorf("%q in %q is %q", rev, data, got)
		}
	})
}

func TestADirectoryIsOpenedAndNothingInItsPlace(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := openBelow(openRoot(t, dir), "fifo"); !errors.Is(err, syscall.ENOTDIR) { // the look before it saw a directory
		t.Errorf("%v, %v", got, err)
	}
}
