package jail

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/protect"
)

// hostsVariable is set where the programs below are installed: make matrix does both.
const hostsVariable = "PADDOCK_TEST_HOSTS"

// An obeyed is a program of the host that obeys files of a workspace. All are scripts of bash
// that run on the host, except for works.
type obeyed struct {
	name    string
	program string
	setup   string // makes the workspace as the host has it
	plant   string // makes in another directory what is then planted; it runs "touch $MARK" or the like
	run     string // in the workspace: what a user does for another purpose
	works   string // in the sandbox, in the workspace: what must go on working
}

func obeyedPrograms() []obeyed {
	const (
		gitRepository = "git init -q . && echo a > a && git add a && git commit -qm a"
		fsmonitor     = `core.fsmonitor "touch $MARK; false"`
	)
	return []obeyed{
		{name: "git, its configuration", program: "git", setup: gitRepository, plant: "git init -q . && git config " + fsmonitor, run: "git status",
			works: "echo b >> a && git add a && git -c user.name=a -c user.email=a@b commit -qm b"},
		{name: "git, where there is none", program: "git", plant: "git init -q . && git config " + fsmonitor, run: "git status"},
		{name: "git, a repository below", program: "git", setup: gitRepository, plant: "git init -q sub && git -C sub config " + fsmonitor, run: "cd sub && git status"},
		{name: "git, a hook", program: "git", setup: gitRepository,
			plant: `mkdir -p .git/hooks && printf '#!/bin/sh\ntouch %s\n' "$MARK" > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit`, run: "git commit -qm x --allow-empty"},
		{name: "git, a bare repository", program: "git", setup: gitRepository,
			plant: "git init -q --bare assets && cd assets && git config core.bare false && git config core.worktree . && git config " + fsmonitor, run: "cd assets && git status"},
		{name: "git, a .git file", program: "git",
			plant: `git init -q --bare data && echo "gitdir: data" > .git && git -C data config core.bare false && git -C data config ` + fsmonitor, run: "git status"},
		{name: "git, a common directory elsewhere", program: "git", setup: gitRepository,
			plant: "git init -q --bare data && mkdir .git && echo ../data > .git/commondir && git -C data config core.bare false && git -C data config " + fsmonitor, run: "git status"},

		{name: "Mercurial, hgrc", program: "hg", setup: "hg init && echo a > a && hg commit -qAm a",
			plant: `mkdir .hg && printf '[hooks]\npre-status = touch %s\n' "$MARK" > .hg/hgrc`, run: "hg status", works: "echo b >> a && hg commit -u me -m b && hg status"},
		{name: "Mercurial, hgrc-not-shared", program: "hg", setup: "hg init",
			plant: `mkdir .hg && printf '[hooks]\npre-status = touch %s\n' "$MARK" > .hg/hgrc-not-shared`, run: "hg status"},
		{name: "Mercurial, where git is", program: "hg", setup: gitRepository,
			plant: `hg init && printf '[hooks]\npre-status = touch %s\n' "$MARK" > .hg/hgrc`, run: "hg status"},
		{name: "Mercurial, shared from elsewhere", program: "hg", setup: "hg init",
			plant: `hg init data && printf '[hooks]\npre-status = touch %s\n' "$MARK" > data/.hg/hgrc && mkdir .hg && printf 'shared\nrevlogv1\nstore\nshare-safe\n' > .hg/requires && printf data/.hg > .hg/sharedpath`,
			run:   "hg status"},

		// Breezy is linked with the system's Python, and looks for its own modules beside the first Python of PATH.
		{name: "Breezy, branch.conf", program: "brz", setup: "brz init -q . && brz whoami --branch 'a <a@b>' && echo a > a && brz add -q a && brz commit -qm a",
			plant: `brz init -q . && brz whoami --branch 'a <a@b>' && echo "post_commit = (lambda*a:__import__('os').mkdir('$MARK'))" >> .bzr/branch/branch.conf`,
			run:   "brz commit -qm x --unchanged", works: "export PATH=/usr/bin:/bin; echo b >> a && brz commit -qm b && brz status"},
		{name: "Breezy, where there is none", program: "brz",
			plant: `brz init -q . && brz whoami --branch 'a <a@b>' && echo "post_commit = (lambda*a:__import__('os').mkdir('$MARK'))" >> .bzr/branch/branch.conf`,
			run:   "brz commit -qm x --unchanged"},

		{name: "darcs, defaults", program: "darcs", setup: "darcs init -q && echo a > a && darcs add -q a && darcs record -qa -A me -m a",
			plant: `mkdir -p _darcs/prefs && printf 'ALL posthook touch %s\nALL run-posthook\n' "$MARK" > _darcs/prefs/defaults`, run: "darcs show repo",
			works: "echo b >> a && darcs record -qa -A me -m b && darcs log -q > /dev/null"},
		{name: "darcs, where there is none", program: "darcs",
			plant: `darcs init -q && printf 'ALL posthook touch %s\nALL run-posthook\n' "$MARK" > _darcs/prefs/defaults`, run: "darcs show repo"},

		{name: "Subversion, the place of the repository", program: "svn", setup: `svnadmin create "$OTHER/good" && svn checkout -q "file://$OTHER/good" . && echo a > a && svn add -q a`,
			plant: evilSubversion, run: "svn commit -qm x", works: "svn status && svn info > /dev/null"},
		{name: "Subversion, where there is none", program: "svn", plant: evilSubversion, run: "svn commit -qm x"},

		{name: "Fossil, the file of the repository", program: "fossil", setup: `fossil init -A me "$OTHER/good.fossil" && fossil open "$OTHER/good.fossil" --user me && echo a > a && fossil add a`,
			plant: evilFossil, run: "fossil commit --user me -m x --no-warnings"},
		{name: "Fossil, where there is none", program: "fossil", plant: evilFossil, run: "fossil commit --user me -m x --no-warnings"},

		{name: "bash in a home", program: "bash", plant: `echo 'touch "'"$MARK"'"' > .bashrc`, run: `HOME=$PWD bash -ic true`},
		{name: "zsh in a home", program: "zsh", plant: `echo 'touch "'"$MARK"'"' > .zshenv`, run: `HOME=$PWD zsh -c true`},
		{name: "vim with exrc", program: "vim", plant: `echo "call mkdir('$MARK')" > .exrc`, run: "echo 'set exrc' > ~/.vimrc && timeout 20 vim --not-a-term -T dumb -c q"},
		{name: "gdb", program: "gdb", plant: `echo "shell touch $MARK" > .gdbinit`, run: "gdb -batch -iex 'set auto-load safe-path /' -ex 'show version'"},
		{name: "pdb of Python", program: "python3", plant: `echo "__import__('os').mkdir('$MARK')" > .pdbrc`, run: "python3 -c 'import pdb; pdb.set_trace(); print()'"},
		{name: "perl -d", program: "perl", plant: `echo "mkdir '$MARK'; 1;" > .perldb`, run: "PERLDB_OPTS=NonStop perl -d -e 1"},
		{name: "irb", program: "irb", plant: `echo "Dir.mkdir('$MARK')" > .irbrc`, run: "echo exit | irb"},
		{name: "msmtp in a home", program: "msmtp", plant: `printf 'defaults\naccount default\nhost 127.0.0.1\nport 9\nfrom a@b\nauth on\nuser a\npasswordeval touch %s\n' "$MARK" > .msmtprc && chmod 600 .msmtprc`,
			run: "echo x | HOME=$PWD msmtp a@b"},
		{name: "mbsync in a home", program: "mbsync",
			plant: `printf 'IMAPStore s\nTunnel "touch %s"\n\nMaildirStore m\nPath ./\n\nChannel c\nFar :s:\nNear :m:\n' "$MARK" > .mbsyncrc`, run: "HOME=$PWD mbsync c"},
		{name: "WeeChat in a home", program: "weechat-headless", plant: `printf '#!/bin/sh\ntouch %s\n' "$MARK" > "$OTHER/x" && chmod +x "$OTHER/x" && mkdir -p .config/weechat &&
printf '[startup]\ncommand_after_plugins = "/upgrade %s"\n' "$OTHER/x" > .config/weechat/weechat.conf`, run: "HOME=$PWD timeout 60 weechat-headless --no-connect -r /quit"},
		{name: "R, .Rprofile", program: "R", plant: `echo "dir.create('$MARK')" > .Rprofile`, run: "R --no-save -q -e 1"},
		{name: "R, .RData", program: "R", plant: `R --vanilla -q -e ".First <- function() dir.create('$MARK')" -e 'save.image(".RData")'`, run: "R --no-save -q -e 1"},
	}
}

const (
	evilSubversion = `svnadmin create "$OTHER/evil" && printf '#!/bin/sh\ntouch %s\n' "$MARK" > "$OTHER/evil/hooks/start-commit" && chmod +x "$OTHER/evil/hooks/start-commit" &&
svn checkout -q "file://$OTHER/evil" . && echo a > a && svn add -q a`
	evilFossil = `fossil init -A me "$OTHER/evil.fossil" && fossil open "$OTHER/evil.fossil" --user me &&
fossil hook add --command "touch $MARK" --type before-commit && echo a > a && fossil add a`
)

// planting copies what is to be planted as a whole, and then file by file.
const planting = `cp -rf /mnt/plant/. .; cd /mnt/plant; find . -type f | while read -r f; do mkdir -p "/mnt/work/${f%/*}"; cat "$f" > "/mnt/work/$f"; done`

// Each program obeys what a sandbox without protected names plants. A sandbox cannot plant it, and can
// work in the repository that the host has.
func TestWhatProgramsOfTheHostObeyCannotBePlanted(t *testing.T) {
	if os.Getenv(hostsVariable) == "" {
		t.Skip("make matrix installs the programs, and sets " + hostsVariable)
	}
	d, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	weak := drivertest.Weak(t, open)
	names, roots := protect.Split()
	for _, o := range obeyedPrograms() {
		t.Run(o.name, func(t *testing.T) {
			if _, err := exec.LookPath(o.program); err != nil {
				t.Fatal(err)
			}
			top, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			mark, plant := filepath.Join(top, "mark"), filepath.Join(top, "plant")
			on := func(dir, script string) string {
				t.Helper()
				for _, d := range []string{dir, filepath.Join(top, "home"), filepath.Join(top, "other")} {
					if err := os.MkdirAll(d, 0o755); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
				cmd.Dir = dir
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(top, "home"), "MARK=" + mark, "OTHER=" + filepath.Join(top, "other"), "TERM=dumb", "LANG=C.UTF-8",
					"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "HGUSER=me", "BRZ_EMAIL=a <a@b>", "LOGNAME=me"}
				out, err := cmd.CombinedOutput()
				if err != nil {
					return string(out) + err.Error()
				}
				return string(out)
			}
			obeys := func(dir string) bool {
				t.Helper()
				out := on(dir, o.run)
				_, err := os.Lstat(mark)
				if err == nil {
					if err := os.Remove(mark); err != nil {
						t.Fatal(err)
					}
					return true
				}
				t.Logf("%s: %s", o.run, out)
				return false
			}
			run := func(dir, script string, unprotect ...string) (int, string) {
				t.Helper()
				sb, err := d.Create(t.Context(), paddock.Spec{Ephemeral: true, AllowMissing: weak, Mounts: []paddock.Mount{
					{Source: dir, Target: "/mnt/work", Write: true}, {Source: plant, Target: "/mnt/plant"}},
					Policy: paddock.Policy{Files: paddock.FilePolicy{Unprotect: unprotect}}})
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := sb.Remove(t.Context()); err != nil {
						t.Error(err)
					}
				}()
				var out bytes.Buffer
				p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", "cd /mnt/work && " + script}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
				if err != nil {
					t.Fatal(err)
				}
				exit, err := p.Wait(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return exit.Code, out.String()
			}

			said := on(plant, o.plant)
			open, kept, used := filepath.Join(top, "open"), filepath.Join(top, "kept"), filepath.Join(top, "used")
			said += on(open, "set -e; "+setup(o))
			_, out := run(open, planting, append(names, roots...)...)
			if !obeys(open) {
				t.Fatalf("without protection the program does not obey what is planted: %s%s", said, out)
			}
			on(kept, "rm -rf ../other/good*; set -e; "+setup(o))
			_, out = run(kept, planting)
			if obeys(kept) {
				t.Errorf("the program obeyed what was planted from inside: %s", out)
			}
			if o.works != "" {
				on(used, "rm -rf ../other/good*; set -e; "+setup(o))
				if code, said := run(used, o.works); code != 0 {
					t.Errorf("in a repository of the host %s failed with %d: %s", o.works, code, said)
				}
			}
		})
	}
}

// setup returns the script that makes a workspace as the host has it.
func setup(o obeyed) string {
	if o.setup == "" {
		return "echo a > README"
	}
	return o.setup
}

func TestWhatProgramsOfTheHostObeyCannotBePlantedByAUser(t *testing.T) {
	if os.Getenv(hostsVariable) == "" {
		t.Skip("make matrix installs the programs, and sets " + hostsVariable)
	}
	drivertest.SomeAsUser(t, "^TestWhatProgramsOfTheHostObeyCannotBePlanted$", len(obeyedPrograms()))
}
