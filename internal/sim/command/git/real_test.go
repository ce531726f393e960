package git_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/archive"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/number"
	"github.com/paddock-sandbox/paddock/internal/sim/command/sed"
)

// history makes a repository of two commits and a merge, with a tag, a branch
// that is merged and one that conflicts with main.
const history = begin + `seq 10 > a; mkdir d; echo x > d/b; git add .; git commit -qm first; git tag v1; git branch old
git checkout -qb side; echo s > s; git add s; git commit -qm side; git checkout -q main; echo 11 >> a; git commit -qam second; git merge -q --no-edit side
git checkout -qb clash v1; echo eleven >> a; git commit -qam clash; git checkout -q main; git status`

func environment() []string {
	return []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000", "GIT_PAGER=cat", "GIT_EDITOR=true"}
}

// repository has the real git make the history, once, and gives its files: so
// what the real one wrote is read by ours too.
func repository(t *testing.T) map[string]string {
	t.Helper()
	files, _ := made(t, history)
	return files
}

// made has the real git run a script, and gives the files and the output.
func made(t *testing.T, script string) (files map[string]string, output string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here to compare with")
	}
	at := t.TempDir()
	cmd := commandtest.Command(t.Context(), t, at, false, "bash", "-c", script)
	cmd.Env = append(cmd.Env, environment()...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files = map[string]string{}
	err = filepath.WalkDir(at, func(name string, d fs.DirEntry, err error) error {
		if err != nil || strings.Contains(name, "/hooks/") {
			return err
		}
		rel, err := filepath.Rel(at, name)
		if err != nil || d.IsDir() {
			files[rel+"/"] = ""
			return err
		}
		b, err := os.ReadFile(name)
		files[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	delete(files, "./")
	return files, string(out)
}

// Chains of deltas, by place and by name, and objects of all kinds.
func TestPacksOfTheRealGitAreRead(t *testing.T) {
	const show = `git log -p --format=%H; git cat-file -p v1; git ls-tree -r HEAD; git rev-parse HEAD~20^{tree}`
	for _, how := range []string{"git gc -q", "git repack -q -a -d -f --depth=60 --window=60; git prune-packed -q", "git -c repack.useDeltaBaseOffset=false repack -q -a -d -f"} {
		files, want := made(t, begin+`seq 3000 > a; mkdir d; seq 10 > d/b; git add .; git commit -qm first; git tag -a v1 -m words
for i in $(seq 40); do sed -i "$((i * 50))s/.*/changed $i/" a; echo $i >> d/b; git commit -qam "c$i"; done; `+how+`; `+show)
		packs := 0
		for name := range files {
			if strings.HasSuffix(name, ".pack") {
				packs++
			}
		}
		if packs == 0 {
			t.Fatal("there is no pack")
		}
		r := commandtest.Run(t, slices.Concat(computer(), number.Commands(), sed.Commands()), commandtest.Case{Args: []string{"bash", "-c", "cd r; " + show}, Files: files})
		if r.Stdout != want || r.Stderr != "" {
			t.Errorf("%s: %d bytes, want %d: %.300q", how, len(r.Stdout), len(want), r.Stderr)
		}
	}
}

// One command a row, with standard error and status: what a script or a model
// sees when it goes well and when it does not.
func TestMessagesAndStatusesAreGits(t *testing.T) {
	files, differ := repository(t), differences()
	var cases []commandtest.Case
	for _, script := range []string{
		// status
		`git status`, `git status -s`, `git status -sb`, `git status --porcelain=v2 --branch`, `echo y > d/b; git status`, `echo y > n; git status -uno`, `mkdir e; touch e/f e/g; git status -uall -s`, `echo y > d/b; cd d; git status -s; git status`, `git status d`, `git status nosuch`, `git status --nope`,
		`chmod +x a; git status -s`, `rm a; git status`, `git rm -q a; git status -s`, `git mv a z; git status --short`, `echo n > n; git add n; echo m >> n; git status --porcelain`, `printf '*.o\n' > .gitignore; touch x.o; git status -s --ignored`,
		// log and show
		`git log --oneline`, `git log -1`, `git log --format=%s%x09%an`, `git log --format='%h|%p|%T|%ct|%ar' -1 v1 | cut -d'|' -f1-4`, `git log --oneline -- s`, `git log --oneline v1..`, `git log --oneline main...clash`, `git log --oneline --all --graph`, `git log --no-merges --oneline`, `git log --merges --format=%s`, `git log --stat -1 clash`, `git log -p -1 v1 -- d/b`,
		`git log nosuch`, `git log -- nosuch`, `git log --oneline nosuch --`, `git log --skip=1 -n1 --oneline`, `git log --since=2030-01-01`, `git log --oneline --reverse`, `git log --pretty=fuller -1`, `git log --pretty=raw -1 v1`, `git log --decorate=short --oneline -1`, `git log --name-only --format=%s`, `git log --follow --oneline a`, `git log -S11 --oneline`, `git log -G11 --oneline`, `git log -L1,2:a --oneline -s`,
		`git show v1`, `git show v1 --stat`, `git show v1:a`, `git show v1:nosuch`, `git show nosuch`, `git show --format=%B -s`, `git show HEAD^2 --name-status --format=%s`, `git show :a`, `git shortlog -sn`, `git shortlog`, `git reflog`, `git reflog -1`,
		// diff
		`git diff`, `echo y >> a; git diff`, `echo y >> a; git diff --stat`, `echo y >> a; git diff --shortstat`, `echo y >> a; git diff --numstat`, `echo y >> a; git diff --exit-code`, `git diff --quiet; echo $?; echo y >> a; git diff --quiet`, `echo y >> a; git add a; git diff --cached`, `echo y >> a; git add a; git diff --staged --name-status`, `git diff v1`, `git diff v1 clash`, `git diff v1..clash -- a`, `git diff main...clash`, `git diff --name-only v1 main`, `git diff --summary v1 main`, `git diff -U0 v1 main -- a`, `sed -i 's/^/ /' a; git diff -w`, `sed -i 's/$/ /' a; git diff -b --stat`,
		`git diff nosuch`, `git diff -- nosuch`, `git diff --no-index a d/b`, `sed -i 's/5/five/' a; git diff --word-diff`, `git diff -R v1 -- a`, `git diff --check`, `echo 'x ' >> a; git diff --check`, `git mv a z; git diff --cached -M`, `git mv a z; git diff --cached --no-renames --stat`, `rm a; git diff`, `chmod +x a; git diff`, `git diff-tree -r v1 main`, `git diff-index HEAD`, `git diff-files`,
		// add, rm, mv
		`git add nosuch`, `git add`, `echo n > n; git add -n n`, `echo n > n; git add -v n`, `printf n > .gitignore; touch n; git add n`, `printf n > .gitignore; touch n; git add -f n; git status -s`, `rm a; echo z > d/b; git add -u; git status -s`, `rm a; touch n; git add .; git status -s`, `rm a; touch n; git add -A d; git status -s`, `cd d; touch n; git add -A; git status -s`,
		`git rm nosuch`, `git rm a`, `git rm d`, `git rm -r d`, `echo y >> a; git rm a`, `echo y >> a; git add a; git rm a`, `echo y >> a; git rm -f a`, `git rm --cached a; ls`, `git rm -n a; ls`, `git rm --ignore-unmatch nosuch`, `git rm`,
		`git mv a`, `git mv a d; git status -s`, `git mv a d/b`, `git mv -f a d/b; git status -s`, `git mv nosuch x`, `git mv d e; git status -s`, `touch n; git mv n m`, `git mv -n a z`, `git mv -v a z`, `git mv -k nosuch d`,
		// commit
		`git commit`, `git commit -m x`, `echo y >> a; git commit -m x`, `touch n; git commit -m x`, `echo y >> a; git commit -am x`, `echo y >> a; git commit -q -am x; git log -1 --format=%s`, `echo y >> a; git commit -m x a`, `git commit -m x nosuch`, `echo y >> a; git commit -a -m x -m y; git log -1 --format=%B`, `git commit --allow-empty -m x`, `git commit --amend -m x`, `git commit --amend --no-edit`, `echo y >> a; git add a; git commit --amend --no-edit; git show --stat`, `echo y >> a; git commit -a --dry-run`, `echo y >> a; git commit -am ''`, `echo y >> a; git commit -a -F nosuch`, `echo y >> a; echo msg | git commit -a -F -`, `echo y >> a; git commit -am x --author nobody`, `echo y >> a; git commit -am x --author 'N <n@x>'; git log -1 --format=%an`, `echo y >> a; git commit -a --fixup v1; git log -1 --format=%s`, `echo y >> a; git commit -am x -s; git log -1 --format=%B`, `git rm -q a; touch n; git add n; git commit -m x`,
		// branch
		`git branch`, `git branch -v`, `git branch -a`, `git branch new`, `git branch new v1; git branch -v`, `git branch old`, `git branch -f old main; git branch -v`, `git branch -f main 2>&1 | sed "s, at .*,,"`, `git branch 'bad name'`, `git branch new nosuch`, `git branch -d old`, `git branch -d clash`, `git branch -D clash`, `git branch -d main 2>&1 | sed "s, at .*,,"`, `git branch -d nosuch`, `git branch -m old older; git branch`, `git branch -m nosuch x`, `git branch -m old side`, `git branch -M old side; git branch`, `git branch -c old copy; git branch`, `git branch --merged`, `git branch --no-merged`, `git branch --contains v1`, `git branch --show-current`, `git branch --list 'o*'`, `git branch --sort=-refname`, `git branch --format='%(refname:short) %(objectname:short)'`, `git branch -r`, `git branch --points-at v1`,
		// checkout, switch, restore
		`git checkout old`, `git checkout main`, `git checkout nosuch`, `git checkout -b new`, `git checkout -b old`, `git checkout -B old; git status -sb`, `git checkout -b new nosuch`, `git checkout v1`, `git checkout -q v1; git status`, `git checkout -q v1; git checkout main`, `git checkout -q v1; git commit -q --allow-empty -m x; git checkout main`, `echo y >> a; git checkout clash`, `echo y >> a; git checkout side`, `echo y >> a; git checkout a; git status -s`, `echo y >> a; git checkout -- a`, `git checkout v1 -- a; git status -s`, `git checkout -- nosuch`, `git checkout v1 nosuch`, `git status -s; rm -r d; git checkout .`, `git checkout -`, `git checkout old; git checkout -`, `git checkout --orphan new; git status -sb`, `echo y >> a; git checkout -f clash`, `touch s2; git checkout v1 -- s`, `git checkout --detach`,
		`git switch old`, `git switch nosuch`, `git switch v1`, `git switch -d v1`, `git switch -c new`, `git switch -c old`, `git switch -C old`, `git switch -`, `echo y >> a; git switch clash`, `git switch`, `git switch main`,
		`git restore`, `git restore a`, `echo y >> a; git restore a; git status -s`, `echo y >> a; git add a; git restore --staged a; git status -s`, `git restore nosuch`, `git restore --source v1 a; git status -s`, `git restore --source nosuch a`, `rm -r d a; git restore .; git status -s`, `echo y >> a; git add a; git restore -SW a; git status -s`,
		// merge
		`git merge old`, `git merge clash`, `git merge clash; git status`, `git merge clash; git diff`, `git merge clash; git merge --abort; git status -s`, `git merge clash; git commit -m x`, `git merge clash; git checkout old`, `git merge nosuch`, `git merge`, `git checkout -q old; git merge side`, `git checkout -q old; git merge --ff-only main`, `git merge --ff-only clash`, `git checkout -q old; git merge --no-ff -m mm side; git log --oneline`, `git checkout -q old; git merge --squash side; git status -s`, `git checkout -q clash; git merge side -m mm`, `git merge --abort`, `git merge --continue`, `echo y >> a; git merge clash`, `git merge -s ours -m mm clash; cat a | tail -1`, `git merge -X theirs -m mm clash; tail -1 a`, `git merge-base main clash; git merge-base --is-ancestor v1 main; echo $?`, `git merge clash >/dev/null; git add a; git commit --no-edit; git log -1 --format=%B`, `git merge clash > /dev/null; git checkout --ours a; cat a | tail -1`, `git merge clash > /dev/null; git checkout --theirs a; tail -1 a`, `git merge --no-commit --no-ff clash`,
		// rebase, cherry-pick, revert
		`git checkout -q side; git rebase main`, `git checkout -q clash; git rebase main`, `git checkout -q clash; git rebase main; git status`, `git checkout -q clash; git rebase main 2>/dev/null; git rebase --abort; git status -sb`, `git checkout -q clash; git rebase main 2>/dev/null; git rebase --skip; git log --oneline`, `git checkout -q clash; git rebase main 2>/dev/null; git rebase --continue`, `git rebase --abort`, `git rebase --continue`, `git rebase nosuch`, `git rebase main`, `echo y >> a; git rebase old`, `git checkout -q clash; git rebase --onto side v1; git log --oneline`,
		`git cherry-pick clash`, `git cherry-pick nosuch`, `git cherry-pick side`, `git cherry-pick --abort`, `git checkout -q old; git cherry-pick side`, `git checkout -q old; git cherry-pick -n side; git status -s`, `git checkout -q old; git cherry-pick -x side; git log -1 --format=%B`, `git cherry-pick main`, `git cherry-pick clash; git cherry-pick --skip; git status -s`,
		`git revert HEAD`, `git revert HEAD --no-edit -m 1`, `git revert HEAD~1 --no-edit`, `git revert v1 --no-edit`, `git revert nosuch`, `git revert -n HEAD~1; git status -s`, `git revert --abort`,
		// stash
		`git stash`, `git stash list`, `git stash pop`, `git stash apply`, `git stash drop`, `git stash show`, `echo y >> a; git stash`, `echo y >> a; git stash; git stash list; git stash show -p`, `echo y >> a; git stash -m words; git stash pop`, `echo y >> a; git stash -q; git stash pop -q; git status -s`, `touch n; git stash`, `touch n; git stash -u; git status -s; git stash pop`, `echo y >> a; git stash -q; echo z >> a; git stash pop`, `echo y >> a; git stash -q; git stash drop`, `echo y >> a; git stash -q; git stash drop stash@{3}`, `echo y >> a; git stash -q; git stash branch new`, `echo y >> a; git add a; git stash --keep-index -q; git status -s`, `echo y >> a; echo z > d/b; git stash push -q a; git status -s`, `echo y >> a; git stash -q; git stash clear; git stash list`, `git stash nope`, `echo y >> a; git stash create | wc -c`,
		// reset, clean
		`git reset`, `echo y >> a; git reset`, `echo y >> a; git add a; git reset`, `echo y >> a; git reset --hard`, `git reset --hard v1`, `git reset --soft v1; git status -s`, `git reset v1`, `git reset -q v1; git status -s`, `git reset --hard nosuch`, `git reset nosuch`, `git reset HEAD a`, `echo y >> a; git add a; git reset a; git status -s`, `git reset --hard HEAD a`, `git status -s; git reset --keep v1; git log --oneline`, `git status -s; git reset --merge v1; git log --oneline`, `echo y >> a; git reset --keep v1`, `git reset -- nosuch`,
		`touch n; git clean`, `touch n; git clean -n`, `touch n; git clean -f; git status -s`, `mkdir e; touch e/f; git clean -n`, `mkdir e; touch e/f; git clean -fd`, `touch n m; git clean -f n; ls`, `echo n > .gitignore; touch n; git clean -nX`, `git clean -f nosuch`,
		// following a file, and its lines
		`git mv a z; git commit -qm moved; seq 3 >> z; git commit -qam more; git log --follow --oneline z; git log --follow --format=%s --name-status -- z; git log --follow --format=%s --stat z; git log --follow -p --format=%s z; git blame -s z; git blame --porcelain z; git log --oneline z`,
		`git mv a d/z; git commit -qm moved; cd d; git log --follow --format=%s z; git blame -f -n z; git log --follow --oneline -2 z`,
		`git log --follow`, `git log --follow a d`, `git log --follow nosuch`, `git log --follow --oneline a`, `git log --follow --oneline s`,
		`git blame s`, `git checkout -q v1; git checkout -qb two; sed -i 's/^9$/nine/' a; git commit -qam nine; git checkout -q main; sed -i 's/^2$/two/' a; git commit -qam two; git merge -q --no-edit two >/dev/null; git blame -s a; git blame --line-porcelain -L1,10 a`,
		`echo y >> a; git blame -s a; sed -i 's/5/five/' a; git blame -s -L5,6 a; git blame HEAD -s -- a`, `git blame -L /5/,+2 a`, `git blame -L 3 -s a`, `git blame -L ,2 -s a`, `git blame -L 4,-2 -s a`, `git blame -L /nosuch/ a`, `git blame -t a`, `git blame -l a`, `git annotate a`, `git blame -b -s a`, `rm a; git blame a`, `git blame v1 -s -- a`, `git blame -L 9,/1/ -s a`,
		// tag, blame, describe and plumbing
		`git tag`, `git tag v2; git tag`, `git tag v1`, `git tag -f v1`, `git tag -f v1 side`, `git tag -d v1`, `git tag -d nosuch`, `git tag 'bad name'`, `git tag -a v2 -m words; git show v2 -s`, `git tag v2 nosuch`, `git tag -l 'v*' -n`, `git tag --contains v1`, `git tag --points-at v1`, `git tag -v v1`, `git tag --sort=-v:refname`,
		`git blame a`, `git blame -L 10,11 a`, `git blame -s d/b`, `git blame nosuch`, `git blame -L 20,30 a`, `git blame -e -L1,1 a`, `git blame --porcelain -L11,11 a`, `echo y >> a; git blame -L12,12 a | cut -c1-30`, `git blame v1 -- a | tail -1`,
		`git describe`, `git describe --tags`, `git describe --tags --long v1`, `git describe --always old`, `git describe --all clash`, `git rev-parse HEAD`, `git rev-parse --short v1 main`, `git rev-parse nosuch`, `git rev-parse --verify nosuch`, `git rev-parse --show-toplevel | sed 's,.*/,,'`, `git rev-parse --git-dir`, `cd d; git rev-parse --show-prefix`, `git rev-parse --is-inside-work-tree`, `git rev-parse HEAD^2 HEAD~1 HEAD^{tree}`, `git rev-parse HEAD^3`, `git rev-list --count HEAD`, `git rev-list v1..main`, `git name-rev v1`, `git ls-files`, `git ls-files -s`, `touch n; git ls-files -o`, `git ls-files nosuch --error-unmatch`, `git ls-tree HEAD`, `git ls-tree -r --name-only HEAD`, `git ls-tree nosuch`, `git cat-file -p HEAD`, `git cat-file -t v1`, `git cat-file -e nosuch`, `git cat-file -p v1:a`, `git show-ref`, `git show-ref nosuch`, `git for-each-ref`, `git symbolic-ref HEAD`, `git update-ref refs/heads/new v1; git branch`, `git hash-object a`, `git grep 11`, `git grep -n 1 -- a`, `git grep -c x`, `git grep -l nosuch`, `git grep`, `git grep x v1`, `git archive --format=tar HEAD | tar tf -`, `git bisect start`, `git worktree list | sed 's,.*/,,'`, `git count-objects | wc -l`,
		// config, remotes and the rest
		`git config user.name`, `git config --get nosuch.x`, `git config nosuch`, `git config x.y z; git config x.y`, `git config --list --local`, `git config --unset nosuch.x`, `git config --bool core.bare`, `git config alias.st 'status -s'; touch n; git st`, `git config --get-regexp '^user'`, `git remote`, `git remote add o url; git remote -v`, `git remote add o url; git remote add o url`, `git remote remove nosuch`, `git remote get-url nosuch`, `git push`, `git pull`, `git fetch`, `git fetch nosuch`, `git nosuch`, `git stats`, `git --nope`, `git -C d status -s`, `git -C nosuch status`, `git --version | cut -c1-11`, `git init | sed "s, in .*,,"`, `cd ..; git status`, `cd ..; git log`, `git init -q ../b; cd ../b; git log`, `git init -q ../b; cd ../b; git diff HEAD`, `git init -q ../b; cd ../b; git commit -m x 2>&1 | head -3`, `cd ..; git clone -q r c; cd c; git log --oneline; git branch -a; git status -sb`, `cd ..; git clone r c`, `cd ..; git clone nosuch c`, `cd ..; git clone -q r c; cd c; git config user.name A; git config user.email a@b; echo y >> a; git commit -qam x; git push -q origin HEAD:new; cd ../r; git branch`, `cd ..; git clone -q r c; cd r; git commit -q --allow-empty -m x; cd ../c; git fetch -q; git status -sb; git pull -q; git log --oneline -1`, `git apply nosuch`, `echo junk | git apply`, `git diff v1 clash | git apply --check`, `git format-patch -1 clash`, `git am nosuch`, `git notes list`, `git check-ignore a`, `echo n > .gitignore; git check-ignore -v n`, `git cherry main clash`, `git range-diff v1 v1 v1`, `git var GIT_AUTHOR_IDENT`, `git whatchanged --oneline -1 v1`,
	} {
		cases = append(cases, commandtest.Case{
			Args: []string{"bash", "-c", "cd r; " + script}, Files: files, Env: environment(), Stderr: true, Why: differ[script],
		})
	}
	commandtest.Compare(t, slices.Concat(computer(), number.Commands(), sed.Commands(), archive.Commands()), cases)
}

// differences are the rows that are known to differ, with the reason.
func differences() map[string]string {
	why := map[string]string{}
	for reason, rows := range map[string][]string{
		"the options of a usage message are not listed": {`git status --nope`, `git mv a`, `git --nope`, `git stats`},
		"not built, and says so": {
			`git log -G11 --oneline`, `git log -L1,2:a --oneline -s`, `sed -i 's/^/ /' a; git diff -w`, `sed -i 's/$/ /' a; git diff -b --stat`, `git diff --no-index a d/b`, `sed -i 's/5/five/' a; git diff --word-diff`,
			`git diff --check`, `echo 'x ' >> a; git diff --check`, `git diff-index HEAD`, `git diff-files`, `echo y >> a; git commit -a --dry-run`, `git merge -s ours -m mm clash; cat a | tail -1`, `git merge -X theirs -m mm clash; tail -1 a`,
			`echo y >> a; git stash create | wc -c`, `git tag -v v1`, `git bisect start`, `git worktree list | sed 's,.*/,,'`, `git count-objects | wc -l`, `git config --get-regexp '^user'`, `git remote remove nosuch`, `git notes list`,
			`echo n > .gitignore; git check-ignore -v n`, `git cherry main clash`, `git range-diff v1 v1 v1`, `git reflog -1`, `git mv -k nosuch d`, `echo y >> a; git blame -L12,12 a | cut -c1-30`,
		},
		"there is no editor":                                        {`git commit`},
		"ignored files are not listed":                              {`printf '*.o\n' > .gitignore; touch x.o; git status -s --ignored`},
		"a merge is shown by its files, not by hunks of both sides": {`git merge clash; git diff`, `echo y >> a; git add a; git commit --amend --no-edit; git show --stat`},
		"said in other words, or to the other stream": {
			`git log --oneline nosuch --`, `git commit -m x nosuch`, `git restore --source nosuch a`, `git merge clash; git checkout old`, `git checkout -q old; git merge --squash side; git status -s`,
			`git merge clash >/dev/null; git add a; git commit --no-edit; git log -1 --format=%B`, `git checkout -q side; git rebase main`, `git revert HEAD --no-edit -m 1`, `git revert HEAD~1 --no-edit`, `touch n; git stash -u; git status -s; git stash pop`,
			`echo y >> a; git stash -q; echo z >> a; git stash pop`, `git reset -- nosuch`, `git blame -L 20,30 a`, `git blame --porcelain -L11,11 a`, `git rev-parse --short v1 main`, `git pull`, `git whatchanged --oneline -1 v1`, `git diff -R v1 -- a`,
		},
	} {
		for _, row := range rows {
			why[row] = reason
		}
	}
	return why
}
