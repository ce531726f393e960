package git_test

import (
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
