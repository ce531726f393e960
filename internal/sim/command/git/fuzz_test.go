package git_test

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func FuzzPatchesOfGit(f *testing.F) {
	const hunk = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n 1\n-2\n+x\n"
	f.Add(hunk)
	f.Add("diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\n")
	f.Add("diff --git a/n b/n\nnew file mode 100755\nindex 0000000..e69de29\nGIT binary patch\nliteral 0\nHcmV?d00001\n\n")
	f.Add("From 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001\nFrom: A <a@b>\nDate: Tue, 14 Nov 2023 22:13:20 +0000\nSubject: [PATCH 1/2] =?UTF-8?q?x=C3=A9?=\n\nbody\n---\n f | 2 +-\n\n" + hunk + "-- \n2.39\n")
	f.Fuzz(func(t *testing.T, patch string) {
		for _, do := range []string{"git apply p; git apply --stat p; git apply -R --3way p", "git am p; git am --abort"} {
			commandtest.RunWithin(t, computer(), commandtest.Case{
				Args: []string{"bash", "-c", begin + "printf '1\\n2\\n' > f; git add f; git commit -qm f; cp ../p p; " + do}, Files: map[string]string{"p": patch},
			}, budget.Limits{Steps: 5_000_000, Heap: 64 << 20})
		}
	})
}

func FuzzPacksAreReadWithinLimits(f *testing.F) {
	files := emptied()
	hostilePack(files, 3, 3_000_000)
	for name, b := range files {
		if strings.HasSuffix(name, ".pack") {
			f.Add([]byte(b), byte(0))
			f.Add([]byte(b), byte(40))
		}
	}
	f.Fuzz(func(t *testing.T, pack []byte, shift byte) {
		files := emptied()
		hostilePack(files, 3, 3_000_000)
		for name := range files {
			if strings.HasSuffix(name, ".pack") {
				files[name] = string(pack[min(int(shift), len(pack)):])
			}
		}
		commandtest.RunWithin(t, computer(), commandtest.Case{Args: []string{"bash", "-c", "cd r; git cat-file -p ff010203 | wc -c"}, Files: files}, budget.Limits{Heap: 64 << 20})
	})
}

func FuzzAnIndexIsReadWithinLimits(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01" + strings.Repeat("\x00", 62) + "\x00a\x00TREE\x00\x00\x00\x04abcd"))
	f.Add([]byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff" + strings.Repeat("\x00", 62)))
	f.Fuzz(func(t *testing.T, index []byte) {
		files := emptied()
		files["r/.git/index"] = string(index)
		commandtest.RunWithin(t, computer(), commandtest.Case{Args: []string{"bash", "-c", "cd r; git ls-files; git status"}, Files: files}, budget.Limits{Heap: 16 << 20})
	})
}
