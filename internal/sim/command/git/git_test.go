package git_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/file"
	"github.com/paddock-sandbox/paddock/internal/sim/command/git"
	"github.com/paddock-sandbox/paddock/internal/sim/command/text"
	"github.com/paddock-sandbox/paddock/internal/sim/shell"
)

func computer() []command.Command {
	return slices.Concat([]command.Command{{Name: "bash", Aliases: []string{"sh"}, Run: shell.Program}}, file.Commands(), text.Commands(), git.Commands())
}

const begin = `git init -q -b main r; cd r; git config user.name A; git config user.email a@b
`

const three = begin + `printf '1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n' > a.txt; mkdir d; echo x > d/b; git add .; git commit -q -m 'first line

body'; sed_() { printf '1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n11\n' > a.txt; }; sed_; echo new > c; chmod +x c; git add -A; git commit -q -m second; git rm -q d/b; printf 'last' > c; git commit -q -a -m third
`

func TestGitSaysWhatGitSays(t *testing.T) {
	var cases []commandtest.Case
	for _, script := range []string{
		begin + "git status; git log; echo $?",
		begin + "echo a > f; git status; git add f; git status; git commit -m one; git log; git status",
		begin + "mkdir -p x/y; echo a > x/y/f; echo b > g; git status -s; git status; git add g; echo c >> g; git status --porcelain -b; git diff; git diff --cached",
		begin + "echo '*.log' > .gitignore; touch a.log b; git status -s; git add .; git commit -q -m x; git ls-files; git add a.log 2>/dev/null; git status -s",
		three + "git log; git log --oneline; git log --format='%h %an <%ae> %ad %s%d' --date=short; git log -n 1 --pretty=format:%H; git log --reverse --oneline -- a.txt",
		three + "git log --stat; git log -p; git show --stat; git show HEAD~1; git log --name-status --oneline; git show HEAD:a.txt",
		three + "git diff HEAD~2; git diff HEAD~2 HEAD --stat; git diff --name-only HEAD~1; git diff --name-status HEAD~2 HEAD -- c; git diff --numstat HEAD~2",
		three + "git branch x HEAD~1; git branch; git checkout -q x; git branch --show-current; cat c; git checkout -q -b y; git branch -v; git switch -q main; git branch -d y x; git branch -D x; git branch",
		three + "echo junk > a.txt; git checkout -- a.txt; cat a.txt; echo junk > a.txt; git add a.txt; git restore --staged a.txt; git status -s; git restore a.txt; git status -s; git restore --source HEAD~1 c; cat c",
		three + "git reset -q --soft HEAD~1; git status -s; git reset -q; git status -s; git reset --hard HEAD~1; git log --oneline; ls",
		three + "git mv a.txt e.txt; git rm -q --cached c; git commit -q -m moved; git commit -q --amend -m again; git log --oneline | cat; git ls-files",
		three + "git tag v1; git tag -a v2 -m note HEAD~1; git tag; git rev-parse v1 HEAD HEAD~1 v2^{commit}; git rev-parse --abbrev-ref HEAD; git rev-parse --short HEAD; git tag -d v1; git cat-file -t v2; git cat-file -p v2",
		three + "git cat-file -p HEAD; git cat-file -p HEAD^{tree}; git ls-files -s; git hash-object a.txt; git cat-file -s HEAD:a.txt; git cat-file -t HEAD",
		three + "git checkout -q -b topic HEAD~1; echo t > t; git add t; git commit -q -m topic; git checkout -q main; git merge -q main; git checkout -q HEAD~1; git status; git switch -q topic; git log --oneline main..topic; git log --oneline --all",
		three + "git checkout -q -b ff; echo t > t; git add t; git commit -q -m ff; git switch -q main; git merge ff; git merge ff; git log --oneline --decorate",
		three + "git commit -m nothing; echo $?; git commit --allow-empty -m empty; git commit -q --allow-empty -m 'by other' --author 'B C <b@c>' --date '2020-02-03T04:05:06+01:00'; git log -1 --format='%an %ae %aI %cn'; git log --author=B --oneline; git log --grep=seco --oneline",
		three + "git config user.name; git config --get nothing.here; echo $?; git config --global core.x 1; git config core.x; git remote add origin https://example.com/x.git; git remote -v; git remote",
		"git status 2>&1; echo $?; git nonsense 2>/dev/null; echo $?",
		three + "echo dirty > a.txt; git checkout HEAD~1 2>/dev/null; echo $?; git checkout -q nowhere 2>/dev/null; echo $?; git log nowhere 2>/dev/null; echo $?; git add nothing 2>/dev/null; echo $?; git branch main 2>/dev/null; echo $?",
		three + "printf 'a\\0b' > bin; ln -s a.txt link; git add .; git commit -m bin; git show --stat; printf 'a\\0c' > bin; git diff; git diff --stat; rm link; git status -s",
		begin + "printf 'int f(void)\n{\n  a;\n  b;\n  c;\n  d;\n  e;\n  f;\n}\n' > x.c; git add .; git commit -q -m c; printf 'int f(void)\n{\n  a;\n  b;\n  c;\n  d;\n  e;\n  F;\n}\nmore' > x.c; git diff; git diff -U1; git commit -qam d; git log -p -1",
		begin + "mkdir deep; cd deep; echo a > f; git add f; git status; git commit -q -m x; cd ..; git ls-files; rm -r deep; git status -s; git add -A; git status -s",
	} {
		cases = append(cases, commandtest.Case{
			Args: []string{"bash", "-c", script},
			Env: []string{
				"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000", "GIT_PAGER=cat",
			},
		})
	}
	commandtest.Compare(t, computer(), cases)
}

func TestTheNetworkIsRefusedInWords(t *testing.T) {
	for _, c := range []string{"clone https://example.com/x", "clone git@example.com:x", "fetch https://example.com/x", "push ssh://example.com/x main"} {
		r := commandtest.Run(t, computer(), commandtest.Case{Args: []string{"bash", "-c", begin + "git " + c}})
		if r.Status != 128 || r.Stdout != "" {
			t.Errorf("%s: %+v", c, r)
		}
	}
}

func TestACorruptRepositoryIsToldInWords(t *testing.T) {
	// An index of version 4 whose second name takes more from the first than
	// that has.
	entry := func(name string) string {
		return strings.Repeat("\x00", 40) + strings.Repeat("a", 20) + "\x00\x01" + name + "\x00"
	}
	index := "DIRC\x00\x00\x00\x04\x00\x00\x00\x02" + entry("\x00a") + entry("\x7fb") + strings.Repeat("\x00", 40)
	r := commandtest.Run(t, computer(), commandtest.Case{
		Args: []string{"bash", "-c", begin + "cp ../index .git/index; git status; echo $?"}, Files: map[string]string{"index": index},
	})
	if r.Status != 0 || r.Stdout != "128\n" || !strings.HasPrefix(r.Stderr, "fatal: ") {
		t.Errorf("%+v", r)
	}
}
