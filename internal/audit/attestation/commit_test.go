package attestation

import (
	"bytes"
	"compress/zlib"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
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
	if _, err := Resolve(openRoot(t, filepath.Join(r.dir, "linked")), "HEAD"); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("of a linked worktree: %v", err)
	}
	r.run("gc", "-q")
	check("all of it packed")
	r.run("tag", "-a", "-m", "a tag", "late")
	r.run("repack", "-q", "-a", "-d")
	r.run("prune-packed")
	if _, err := Resolve(openRoot(t, r.dir), "late"); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("of a tag in a pack: %v", err)
	}
}

func object(t *testing.T, dir, digest, text string) {
	t.Helper()
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, ".git/objects", digest[:2], digest[2:]), b.String(), 0o600)
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
		{"a file that leads elsewhere", "HEAD", func(dir string) { write(t, filepath.Join(dir, ".git"), "gitdir: /", 0o600) }, ".git is no directory"},
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
			write(t, filepath.Join(dir, ".git/refs/tags/x"), one, 0o600)
			object(t, dir, one, "blob 2\x00hi")
		}, "names no commit"},
		{"tags in a circle", "x", func(dir string) {
			write(t, filepath.Join(dir, ".git/refs/tags/x"), one, 0o600)
			object(t, dir, one, "tag 99\x00object "+one+"\ntype tag\n")
		}, "tags lead to each other"},
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
