package git_test

import (
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/number"
	"github.com/paddock-sandbox/paddock/internal/sim/command/sed"
)

// Merges, rebases, stashes and the rest of daily work, message by message.
func TestDailyWorkIsAsGits(t *testing.T) {
	var cases []commandtest.Case
	for _, script := range []string{
		`git init -q r; cd r; seq 1 20 > f; git add f; git commit -m one; git checkout -b x; sed -i 's/^5$/five/' f; git commit -am x5; git checkout main; sed -i 's/^15$/fifteen/' f; git commit -am m15; git merge x -m 'mm'; git log --oneline; cat f; git status`,
		`git init -q r; cd r; seq 1 20 > f; git add f; git commit -qm one; git checkout -q -b x; sed -i 's/^5$/five/' f; git commit -qam x5; git checkout -q main; sed -i 's/^5$/cinq/' f; git commit -qam m5; git merge x; echo $?; cat f; git status; git status -s; git diff --name-only; git ls-files -u; git commit -m nope; echo $?; git merge --abort; git status; cat f | head -5; git merge x >/dev/null; seq 1 20 > f; git add f; git status; git commit -m done; git log --oneline; git log -1 --format=%P`,
		`git init -q r; cd r; echo a > a; git add a; git commit -qm one; echo b >> a; git stash; git stash list; cat a; git stash pop; cat a; git stash push -m 'my words'; echo c > c; git stash -u; git stash list; git stash show; git stash apply stash@{1}; git status -s; git checkout a; git stash drop; git stash pop; git stash list; git stash pop; git stash drop; echo $?; git stash clear`,
		`git init -q r; cd r; for i in 1 2 3 4; do echo $i >> f; git add f; git commit -qm "c$i"; done; git checkout -q -b t HEAD~2; echo t > t; git add t; git commit -qm t1; echo t2 >> t; git commit -qam t2; git checkout -q main; git cherry-pick t; git cherry-pick t~1; ls; git cherry-pick t; git log --oneline; git revert HEAD --no-edit; git revert HEAD~2; git log --format='%h %s%n%b'; git status`,
		`git init -q r; cd r; echo base > f; git add f; git commit -qm base; git checkout -q -b t; echo t > t; git add t; git commit -qm t1; echo t2 >> t; git commit -qam t2; git checkout -q main; echo m > m; git add m; git commit -qm m1; git checkout -q t; git rebase main; git log --oneline; git status; git rebase main; git reflog`,
		`git init -q r; cd r; echo base > f; git add f; git commit -qm base; git checkout -q -b t; echo t > f; git commit -qam t1; echo t2 > g; git add g; git commit -qm t2; git checkout -q main; echo m > f; git commit -qam m1; git checkout -q t; git rebase main; echo $?; git status; cat f; echo both > f; git add f; git rebase --continue; git log --oneline; git status; git rebase --abort; echo $?`,
		`git init -q r; cd r; echo base > f; git add f; git commit -qm base; git checkout -q -b t; echo t > f; git commit -qam t1; git checkout -q main; echo m > f; git commit -qam m1; git checkout -q t; git rebase main >/dev/null; git rebase --abort; git status; git log --oneline; git cherry-pick main; echo $?; git status; git cherry-pick --abort; git status -s; git revert HEAD~1; echo $?; git status; git revert --abort`,
		`git init -q r; cd r; mkdir d; seq 30 > a.txt; cp a.txt d/b.txt; echo x >> d/b.txt; git add .; git commit -m one; git mv a.txt d/c.txt; git status; git status -s; git commit -m 'mv'; seq 29 > d/e.txt; git rm -q d/c.txt; git add -A; git status --porcelain=v2; git commit -m again; git log --stat; git log --name-status --oneline; git show -p; git diff HEAD~2 --stat; git log --summary --oneline`,
		`git init -q r; cd r; seq 20 > f; git add f; git commit -qm one; sed -i 's/^7$/seven/; s/^18$/x/' f; echo n > n; git add n; git diff > ../p; git diff --cached >> ../p; git commit -qm n; git checkout -q f; git apply --stat ../p; git apply --check ../p; echo $?; git apply --include=f ../p 2>/dev/null; git rm -q n; git commit -qm rmn; git checkout -q f;  git apply ../p; git status -s; git diff; git apply ../p; git apply -R ../p; git status -s; git add -A; git format-patch -2; cat 0001*; git format-patch -1 --stdout > ../m; git reset -q --hard HEAD~1; git am ../m; git log --oneline`,
		`git init -q r; cd r; touch a b c; mkdir d; touch d/e; git add a; git commit -qm a; git clean; git clean -n; git clean -nd; git clean -f; git clean -fd; ls; echo '*.o' > .gitignore; touch x.o; git clean -fdx; ls -A`,
		`git init -q r; cd r; echo a > a; git add a; git commit -qm a; git branch b; git branch c; git branch -m c d; git branch; git branch -v; git branch --merged; git branch --no-merged; git branch --contains HEAD; git checkout -; git checkout b; git checkout -; git switch -; git switch -c e; git branch -d main; git branch -D nope; git checkout nope; git checkout HEAD~0; git checkout -b f; git switch nope; git checkout --detach; git status; git branch; git symbolic-ref HEAD; git checkout main; git reflog`,
		`git init -q r; cd r; echo 1 > f; git add f; git commit -qm one; echo 2 >> f; git add f; git commit -qm two; git reset --soft HEAD~1; git status -s; git reset; git reset --hard; git log --oneline; echo z > z; git add z; git reset z; git status -s; git reset --hard ORIG_HEAD; git log --oneline; git reset HEAD~5; echo $?; git reset --hard HEAD@{1}; git log --oneline; git rm f; git status; git restore --staged f; git restore f; git status; git mv nope x; git rm nope; git add nope; git commit -m x; git log --oneline -- f; git checkout HEAD -- f`,
		`git init -q r; cd r; for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm c$i; done; git checkout -q -b x HEAD~1; echo x > x; git add x; git commit -qm x1; git checkout -q main; git merge -q --no-edit x; git log --graph --oneline; git log --graph; git log --graph --oneline --all --decorate; git checkout -q -b y HEAD~1; echo y > y; git add y; git commit -qm y; git log --graph --oneline --all; git checkout -q main; git merge -q --no-edit y; git log --graph --oneline; git log --oneline --first-parent; git log --merges --oneline; git show`,
		`git init -q r; cd r; seq 5 > f; git add f; git commit -qm 1; git rm -q --cached f; git status; git add f; chmod +x f; git status; git diff; git commit -am mode; ln -s f l; git add l; git commit -m l; rm l; echo x > l; git status -s; git diff; echo "a b" > "sp ace"; git add "sp ace"; git status -s; git status; git ls-files; git config --list --local; git config x.y z; git config --get x.y; git config --unset x.y; git config x.y; echo $?; cat .git/config`,
		`git init -q r; cd r; mkdir a b; seq 10 > a/x; seq 20 > b/y; git add -A; git commit -qm i; git rm -r -q a; git status -s; git reset -q --hard; git rm --cached -r b; git status -s; git reset -q; echo x >> a/x; git commit -m "part" a/x; echo z >> b/y; git add b/y; echo w >> a/x; git commit -qm 'only' -- a/x; git status -s; git commit -q --amend -m 'amended msg'; git log --oneline; git commit --amend --no-edit -a; git show --name-status --format=%s; git tag -n; git tag -a v1 -m 'msg here'; git tag -n; git show v1; git tag -l 'v*'; git tag -d v1; git tag bad..name; echo $?; git log -S z --oneline; git log -p -1 -- a/x; git diff HEAD~1 HEAD --name-status; git diff HEAD~1...HEAD --stat; git stash -q; git log --all --oneline | wc -l`,
	} {
		cases = append(cases, commandtest.Case{
			Args: []string{"bash", "-c", "exec 2>&1; git config --global user.name A; git config --global user.email a@b; git config --global init.defaultBranch main; mkdir w; cd w; " + script},
			Env: []string{
				"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000", "GIT_PAGER=cat", "GIT_EDITOR=true",
			},
		})
	}
	commandtest.Compare(t, slices.Concat(computer(), number.Commands(), sed.Commands()), cases)
}

// Repositories meet by paths alone; where they are is in what git says.
func TestRepositoriesMeetByPaths(t *testing.T) {
	script := "exec 2>&1; git config --global user.name A; git config --global user.email a@b; git init -q -b main --bare o.git; git clone -q o.git w; cd w; echo a > a; git add a; git commit -qm a; git push -q -u origin main; git clone -q ../o.git ../v; cd ../v; echo b > b; git add b; git commit -qm b; git push -q; cd ../w; git fetch -q; git status -sb; git pull -q; git log --oneline --decorate; git branch -a -vv; echo c > c; git add c; git commit -qm c; git status; cd ../v; echo d > d; git add d; git commit -qm d; git push -q; git log -1 --format=%s origin/main"
	commandtest.Compare(t, computer(), []commandtest.Case{{
		Args: []string{"bash", "-c", script},
		Env:  []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000", "GIT_PAGER=cat"},
	}})
}
