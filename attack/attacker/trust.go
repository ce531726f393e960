//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

func inWork(rel string) func(*protocol.Brief) string {
	return func(b *protocol.Brief) string { return filepath.Join(b.Work, rel) }
}

// everyName tries every way on each of several names. Each name is a technique.
func everyName(rels ...string) []probe {
	var ps []probe
	for _, rel := range rels {
		ps = append(ps, probe{rel, func(b *protocol.Brief) protocol.Try {
			p := filepath.Join(b.Work, rel)
			// Make missing parents. For a protected name this is already refused.
			_ = os.MkdirAll(filepath.Dir(p), 0o755)
			t := throughAll(b, p)
			if _, err := os.Lstat(filepath.Dir(p)); err != nil && t.Outcome == protocol.Denied {
				t.Detail = "the directory could not even be made"
				if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
					t.Errno = errnoName(err)
				}
			}
			return t
		}})
	}
	return ps
}

// trustExisting is C01: hooks of the existing repository.
func trustExisting() []probe {
	ps := everyWay(inWork(".git/hooks/pre-commit"))
	for _, w := range ways() {
		if w.once() && !w.foreign() {
			continue
		}
		ps = append(ps, probe{"existing: " + w.name, func(b *protocol.Brief) protocol.Try {
			return changed(b, w, b.Work+"/.git/hooks/post-checkout")
		}})
	}
	hook := inWork(".git/hooks/pre-push")
	return append(ps,
		probe{"race of the name in memory", func(b *protocol.Brief) protocol.Try { return raceName(b, hook(b)) }},
		probe{"race of a link and a directory", func(b *protocol.Brief) protocol.Try { return raceLink(b, hook(b)) }},
		probe{"race of a moving directory", raceMove},
		probe{"very many at once", func(b *protocol.Brief) protocol.Try { return many(b, hook(b)) }},
	)
}

// raceName changes the name between check and use, against a checker that reads it from our
// memory and then lets the kernel read it again.
func raceName(b *protocol.Brief, p string) protocol.Try {
	good := []byte(filepath.Join(b.Work, strings.Repeat("g", len(p)-len(b.Work)-1)) + "\x00")
	bad := []byte(p + "\x00")
	buf := make([]byte, len(bad))
	copy(buf, good)
	n := len(b.Work)
	f := newFlip(func(i int) {
		if i%2 == 0 {
			copy(buf[n:], bad[n:])
		} else {
			copy(buf[n:], good[n:])
		}
	})
	defer f.end()
	var last error
	calls := []func() error{
		func() error { return write(openRaw(buf, creat, 0o755)) },
		func() error { return mkdirRaw(buf) },
		func() error { return renameRaw(append([]byte(b.Work+"/README.copy"), 0), buf) },
	}
	for i := range 6000 {
		if i%3 == 2 {
			_ = os.WriteFile(b.Work+"/README.copy", []byte(payload), 0o644)
		}
		if err := calls[i%3](); err != nil {
			last = err
		}
		if i%3 == 2 {
			_ = os.RemoveAll(string(good[:len(good)-1]))
		}
		if _, err := os.Lstat(p); err == nil {
			return reached("won the race after %d calls", i+1)
		}
	}
	return refusedOr(last)
}

func refusedOr(err error) protocol.Try {
	if err == nil {
		return inside("never refused, and nothing reached")
	}
	return refused(err)
}

// raceLink swaps a directory with a link to the protected one.
func raceLink(b *protocol.Brief, p string) protocol.Try {
	dir := fmt.Sprintf("%s/race%d", b.Work, scratchCount())
	real, link := dir+"/a", dir+"/b"
	if err := os.MkdirAll(real, 0o755); err != nil {
		return refused(err)
	}
	if err := unix.Symlink(filepath.Dir(p), link); err != nil {
		return refused(err)
	}
	f := newFlip(func(int) { _ = unix.Renameat2(unix.AT_FDCWD, real, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE) })
	defer f.end()
	var last error
	name := real + "/" + filepath.Base(p)
	for i := range 6000 {
		var err error
		switch i % 3 {
		case 0:
			err = write(unix.Open(name, creat, 0o755))
		case 1:
			err = unix.Symlink(b.Work+"/README.md", name)
		default:
			err = unix.Mknod(name, unix.S_IFREG|0o755, 0)
		}
		if err != nil {
			last = err
		}
		if _, err := os.Lstat(p); err == nil {
			return reached("won the race after %d calls", i+1)
		}
		_ = unix.Unlink(name)
	}
	return refusedOr(last)
}

// raceMove moves a repository while a hook is made in it.
func raceMove(b *protocol.Brief) protocol.Try {
	a, c := b.Work+"/nested", b.Work+"/nested-moved"
	hook := "/.git/hooks/pre-push"
	f := newFlip(func(i int) {
		if i%2 == 0 {
			_ = unix.Rename(a, c)
		} else {
			_ = unix.Rename(c, a)
		}
	})
	defer func() {
		f.end()
		_ = unix.Rename(c, a)
	}()
	var last error
	for i := range 4000 {
		for _, p := range []string{a + hook, c + hook} {
			if err := write(unix.Open(p, creat, 0o755)); err != nil {
				last = err
			} else {
				return reached("won the race after %d calls", i+1)
			}
		}
	}
	return refused(last)
}

// many makes the protected name from many threads at once, in case an overloaded supervisor
// lets one through.
func many(_ *protocol.Brief, p string) protocol.Try {
	var wg sync.WaitGroup
	errs := make([]error, 64)
	for i := range errs {
		wg.Go(func() {
			for range 40 {
				if errs[i] = write(unix.Open(p, creat, 0o755)); errs[i] == nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err == nil {
			return reached("one of 64 threads came through")
		}
	}
	return refused(errs[0])
}

// trustConfig is C02.
func trustConfig() []probe {
	ps := everyWay(inWork(".git/config"))
	git := func(args ...string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			if b.Unconfined {
				// The ways above have written no valid configuration.
				_ = os.RemoveAll(b.Work + "/.git/config")
				_ = os.RemoveAll(b.Work + "/.git/config.worktree")
				_ = os.WriteFile(b.Work+"/.git/config", []byte("[core]\n\trepositoryformatversion = 0\n[extensions]\n\tworktreeConfig = true\n"), 0o644)
			}
			before := state(b.Work + "/.git/config")
			worktree := state(b.Work + "/.git/config.worktree")
			t := runGit(b, b.Work, args...)
			if state(b.Work+"/.git/config") != before || state(b.Work+"/.git/config.worktree") != worktree {
				return reached("git changed the configuration")
			}
			return t
		}
	}
	return slices.Concat(ps, []probe{
		{"git config core.fsmonitor", git("config", "core.fsmonitor", "touch /tmp/x")},
		{"git config core.hooksPath", git("config", "core.hooksPath", "hooks-of-mine")},
		{"git config alias", git("config", "alias.st", "!touch /tmp/x")},
		{"git config --worktree", git("config", "--worktree", "core.fsmonitor", "touch /tmp/x")},
		{"git remote add ext::", git("remote", "add", "evil", "ext::sh -c x")},
		{".git/config.worktree", func(b *protocol.Brief) protocol.Try { return throughAll(b, b.Work+"/.git/config.worktree") }},
	}, gitKeyProbes())
}

func runGit(b *protocol.Brief, dir string, args ...string) protocol.Try {
	git, err := exec.LookPath("git")
	if err != nil {
		return absent("no git inside")
	}
	cmd := exec.Command(git, args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=/tmp", "PATH=/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = bytes.TrimSpace(out)
		if len(out) > 300 {
			out = out[:300]
		}
		return protocol.Try{Outcome: protocol.Denied, Errno: "git", Detail: string(out)}
	}
	return inside("git %s succeeded", args[0])
}

// trustNested is C03.
func trustNested() []probe {
	ps := everyName("nested/.git/hooks/pre-commit", "nested/.git/config", "a/b/c/d/.git/hooks/pre-commit", "a/b/c/d/.git/config")
	for _, p := range []string{"nested/.git/hooks/pre-push", "a/b/c/d/.git/hooks/pre-push"} {
		ps = append(ps, probe{"race to " + p, func(b *protocol.Brief) protocol.Try { return raceLink(b, b.Work+"/"+p) }})
	}
	return ps
}

// trustNewRepo is C04: a new repository with a hook.
func trustNewRepo() []probe {
	hooked := func(b *protocol.Brief, repo string, err error) protocol.Try {
		p := filepath.Join(b.Work, repo, ".git/hooks/pre-commit")
		if data, e := os.ReadFile(p); e == nil && strings.Contains(string(data), "planted") {
			return reached("a new repository with a hook at %s", repo)
		}
		if err != nil {
			return refused(err)
		}
		return inside("no error, no hook")
	}
	build := func(b *protocol.Brief, git string) error {
		for _, d := range []string{"objects", "refs/heads", "hooks"} {
			if err := os.MkdirAll(git+"/"+d, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(git+"/HEAD", []byte("ref: refs/heads/main\n"), 0o644); err != nil {
			return err
		}
		return os.WriteFile(git+"/hooks/pre-commit", []byte(payload), 0o755)
	}
	aside := func(b *protocol.Brief, name string) (string, error) {
		p := b.Work + "/" + name
		return p, build(b, p)
	}
	return []probe{
		{"git init", func(b *protocol.Brief) protocol.Try {
			d := b.Work + "/fresh-init"
			_ = os.Mkdir(d, 0o755)
			t := runGit(b, d, "init", "-q")
			err := os.WriteFile(d+"/.git/hooks/pre-commit", []byte(payload), 0o755)
			if t.Outcome == protocol.Absent {
				return t
			}
			return hooked(b, "fresh-init", err)
		}},
		{"git init with a template", func(b *protocol.Brief) protocol.Try {
			tmpl, err := aside(b, "template")
			if err != nil {
				return refused(err)
			}
			_ = os.Mkdir(b.Work+"/fresh-template", 0o755)
			t := runGit(b, b.Work+"/fresh-template", "init", "-q", "--template="+tmpl)
			if t.Outcome == protocol.Absent {
				return t
			}
			h := hooked(b, "fresh-template", unix.EPERM)
			if h.Outcome == protocol.Denied {
				h.Errno, h.Detail = t.Errno, t.Detail
			}
			return h
		}},
		{"by hand", func(b *protocol.Brief) protocol.Try {
			return hooked(b, "fresh-hand", build(b, b.Work+"/fresh-hand/.git"))
		}},
		{"built aside and renamed to .git", func(b *protocol.Brief) protocol.Try {
			s, err := aside(b, "built1")
			if err != nil {
				return refused(err)
			}
			_ = os.Mkdir(b.Work+"/fresh-rename", 0o755)
			return hooked(b, "fresh-rename", unix.Rename(s, b.Work+"/fresh-rename/.git"))
		}},
		{"hooks built aside and moved in", func(b *protocol.Brief) protocol.Try {
			s, err := aside(b, "built2")
			if err != nil {
				return refused(err)
			}
			_ = os.MkdirAll(b.Work+"/fresh-hooks/.git", 0o755)
			return hooked(b, "fresh-hooks", unix.Rename(s+"/hooks", b.Work+"/fresh-hooks/.git/hooks"))
		}},
		{"exchange with .git", func(b *protocol.Brief) protocol.Try {
			s, err := aside(b, "built3")
			if err != nil {
				return refused(err)
			}
			_ = os.MkdirAll(b.Work+"/fresh-exchange/.git", 0o755)
			return hooked(b, "fresh-exchange", unix.Renameat2(unix.AT_FDCWD, s, unix.AT_FDCWD, b.Work+"/fresh-exchange/.git", unix.RENAME_EXCHANGE))
		}},
		{".git is a link", func(b *protocol.Brief) protocol.Try {
			s, err := aside(b, "built4")
			if err != nil {
				return refused(err)
			}
			_ = os.Mkdir(b.Work+"/fresh-link", 0o755)
			return hooked(b, "fresh-link", unix.Symlink(s, b.Work+"/fresh-link/.git"))
		}},
		{"hooks is a link", func(b *protocol.Brief) protocol.Try {
			s, err := aside(b, "built5")
			if err != nil {
				return refused(err)
			}
			_ = os.MkdirAll(b.Work+"/fresh-hooklink/.git", 0o755)
			return hooked(b, "fresh-hooklink", unix.Symlink(s+"/hooks", b.Work+"/fresh-hooklink/.git/hooks"))
		}},
		{".git is a file", func(b *protocol.Brief) protocol.Try {
			s, err := aside(b, "built6")
			if err != nil {
				return refused(err)
			}
			_ = os.Mkdir(b.Work+"/fresh-file", 0o755)
			if err := os.WriteFile(b.Work+"/fresh-file/.git", []byte("gitdir: "+s+"\n"), 0o644); err != nil {
				return refused(err)
			}
			return reached("a .git file points to hooks of ours")
		}},
		{"a parent is moved", func(b *protocol.Brief) protocol.Try {
			s, err := aside(b, "built7/x")
			if err != nil {
				return refused(err)
			}
			if err := unix.Rename(s, b.Work+"/built7/.git"); err != nil {
				return refused(err)
			}
			return hooked(b, "built7", nil)
		}},
		{"bare repository", func(b *protocol.Brief) protocol.Try {
			s, err := aside(b, "bare")
			if err != nil {
				return refused(err)
			}
			cfg := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = touch planted\n"
			if err := os.WriteFile(s+"/config", []byte(cfg), 0o644); err != nil {
				return refused(err)
			}
			return reached("a directory that git takes for a repository")
		}},
		{"bare repository, its HEAD last", func(b *protocol.Brief) protocol.Try {
			p := b.Work + "/bare2"
			for _, d := range []string{"objects", "r"} {
				if err := os.MkdirAll(p+"/"+d, 0o755); err != nil {
					return refused(err)
				}
			}
			for _, f := range []string{"config", "head"} {
				if err := os.WriteFile(p+"/"+f, []byte("[core]\n\tfsmonitor = touch planted\n"), 0o644); err != nil {
					return refused(err)
				}
			}
			if err := errors.Join(unix.Rename(p+"/r", p+"/refs"), unix.Rename(p+"/head", p+"/HEAD")); err != nil {
				return refused(err)
			}
			return reached("a directory that git takes for a repository")
		}},
		{"bare repository below a directory that nobody may search, its HEAD last", func(b *protocol.Brief) protocol.Try {
			above := b.Work + "/bare4"
			p := above + "/x"
			for _, d := range []string{"objects", "refs"} {
				if err := os.MkdirAll(p+"/"+d, 0o755); err != nil {
					return refused(err)
				}
			}
			if err := os.WriteFile(p+"/config", []byte("[core]\n\tfsmonitor = touch planted\n"), 0o644); err != nil {
				return refused(err)
			}
			dir, err := unix.Open(p, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return refused(err)
			}
			defer unix.Close(dir)
			// Whoever looks for the other names by their paths does not find them.
			if err := unix.Fchmodat(dir, "..", 0, 0); err != nil {
				return refused(err)
			}
			err = write(unix.Openat(dir, "HEAD", creat, 0o644))
			if e := os.Chmod(above, 0o755); err == nil {
				err = e
			}
			if err != nil {
				return refused(err)
			}
			return reached("a directory that git takes for a repository")
		}},
		{"bare repository with a common directory", func(b *protocol.Brief) protocol.Try {
			p := b.Work + "/bare3"
			if err := os.MkdirAll(p, 0o755); err != nil {
				return refused(err)
			}
			for _, f := range []string{"HEAD", "commondir"} {
				if err := os.WriteFile(p+"/"+f, []byte("..\n"), 0o644); err != nil {
					return refused(err)
				}
			}
			return reached("a directory whose configuration git looks for elsewhere")
		}},
	}
}

// trustGitRest is C05.
func trustGitRest() []probe {
	ps := everyName(
		".git/modules/sub/hooks/post-checkout", ".git/modules/sub/hooks/pre-commit", ".git/modules/sub/config",
		".git/info/attributes", ".git/commondir", ".git/worktrees/wt/commondir", ".git/worktrees/wt/gitdir", ".git/worktrees/wt/config.worktree")
	for _, w := range ways() {
		if w.once() {
			continue
		}
		name := "file .git: " + w.name
		if w.name == "chmod" {
			name = "metadata: chmod of a file .git"
		}
		ps = append(ps, probe{name, func(b *protocol.Brief) protocol.Try { return changed(b, w, b.Work+"/wt/.git") }})
	}
	return ps
}

// trustMissing is C06: missing names that the host's tools trust.
func trustMissing() []probe {
	return everyName(
		".mcp.json", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zprofile", ".gitconfig", ".ripgreprc",
		".vscode/settings.json", ".vscode/tasks.json", ".idea/workspace.xml", ".claude/settings.json", ".claude/settings.local.json",
		".claude/commands/x.md", ".claude/agents/x.md", "src/.claude/settings.json", "src/deep/er/.mcp.json", "src/.vscode/tasks.json", "src/.bashrc",
		".hg/hgrc", ".hg/hgrc-not-shared", ".hg/sharedpath", "src/.hg/hgrc", ".jj/repo/config.toml", ".jj/workspace-config.toml", ".sl/config", ".svn/wc.db", "_FOSSIL_", ".fslckout", ".bzr/branch/branch.conf", "_darcs/prefs/defaults",
		".pijul/config", ".github/hooks/x.json", ".mise.toml", ".Rprofile", ".helix/languages.toml", "crush.json")
}

// trustAgents is C07.
func trustAgents() []probe {
	return everyName(".codex/config.toml", ".agents/skill.md", ".aws/config", "src/.codex/config.toml", "src/.agents/skill.md")
}

// trustScripts is C08: files that the user runs later. Names that the caller asked to
// protect have the prefix "asked: ".
func trustScripts() []probe {
	var ps []probe
	for _, n := range []string{"ci/deploy.yaml", "Justfile"} {
		ps = append(ps, probe{"asked: " + n, func(b *protocol.Brief) protocol.Try {
			_ = os.MkdirAll(filepath.Dir(b.Work+"/"+n), 0o755)
			return throughAll(b, b.Work+"/"+n)
		}})
	}
	for _, n := range []string{".envrc", ".husky/pre-commit", "package.json", "Makefile", "scripts/build.sh", ".github/workflows/ci.yml"} {
		ps = append(ps, probe{"unasked: " + n, func(b *protocol.Brief) protocol.Try {
			p := b.Work + "/" + n
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				return refused(err)
			}
			before := state(p)
			err := os.WriteFile(p, []byte(payload), 0o755)
			if err != nil {
				return refused(err)
			}
			if state(p) == before {
				return inside("nothing changed")
			}
			return reached("changed %s", n)
		}})
	}
	return ps
}

// trustBinaries is C09: programs that the host will run.
func trustBinaries() []probe {
	outside := func(path func(*protocol.Brief) string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try { return plant(path(b), unix.O_CREAT|unix.O_APPEND) }
	}
	within := func(rel string) func(*protocol.Brief) protocol.Try {
		return func(b *protocol.Brief) protocol.Try {
			p := b.Work + "/" + rel
			before := state(p)
			if err := write(unix.Open(p, creat|unix.O_APPEND, 0o755)); err != nil {
				return refused(err)
			}
			if state(p) == before {
				return inside("nothing changed")
			}
			return reached("changed %s", rel)
		}
	}
	return []probe{
		{"directory of PATH in the home", outside(func(b *protocol.Brief) string { return b.Home + "/.local/bin/tool" })},
		{"new program in it", outside(func(b *protocol.Brief) string { return b.Home + "/.local/bin/" + b.Marker + "-c09" })},
		{"the sandbox's own program", outside(func(b *protocol.Brief) string { return b.Place + "/bin/paddock" })},
		{"the attacker's own program", outside(func(b *protocol.Brief) string { return b.Self })},
		{"the driver's state", outside(func(b *protocol.Brief) string { return b.State + "/" + b.Marker + "-c09" })},
		{"python site directory", outside(func(b *protocol.Brief) string { return "/usr/lib/python3/dist-packages/" + b.Marker + "-c09" })},
		{"unasked: venv/bin/python", within("venv/bin/python")},
		{"unasked: node_modules/.bin/tool", within("node_modules/.bin/tool")},
	}
}
