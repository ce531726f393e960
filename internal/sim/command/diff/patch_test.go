package diff

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func TestPatchesAreAppliedAsByGNUs(t *testing.T) {
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	five := strings.Replace(ten, "5", "five", 1)
	uni := "--- f\n+++ g\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
	ctx := "*** f\n--- g\n***************\n*** 2,8 ****\n  2\n  3\n  4\n! 5\n  6\n  7\n  8\n--- 2,8 ----\n  2\n  3\n  4\n! five\n  6\n  7\n  8\n"
	files := map[string]string{
		"f": ten, "g": five, "uni": uni, "ctx": ctx, "norm": "5c5\n< 5\n---\n> five\n", "add": "2a3\n> x\n", "del": "2,3d1\n< 2\n< 3\n",
		"far": "a\nb\nc\n" + ten, "fuzzy": strings.Replace(ten, "2", "two", 1), "other": "50\n51\n52\n53\n54\n55\n56\n", "near": strings.Replace(ten, "4", "four", 1),
		"new": "--- /dev/null\n+++ b/dir/x\n@@ -0,0 +1,2 @@\n+a\n+b\n", "gone": "--- a/g\n+++ /dev/null\n@@ -1,10 +0,0 @@\n-1\n-2\n-3\n-4\n-five\n-6\n-7\n-8\n-9\n-10\n",
		"missing": "--- a/nope\n+++ b/nope\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n", "bad": "--- f\n+++ f\n@@ -1,3 +1,3 @@\n 1\n-2\n", "up": "--- ../f\n+++ ../f\n@@ -1,3 +1,3 @@\n 1\n-2\n+x\n 3\n", "garbage": "nothing\nhere\n",
		"two":   "--- f\n+++ f\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -8,3 +9,4 @@\n 8\n 9\n 10\n+11\n--- g\n+++ g\n@@ -1,2 +1,2 @@\n 1\n-2\n+TWO\n 3\n",
		"mixed": "--- f\n+++ f\n@@ -1,3 +1,3 @@\n 1\n-X\n+Y\n 3\n@@ -8,3 +8,3 @@\n 8\n-9\n+nine\n 10\n",
		"nonl":  "--- n\n+++ n\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n", "n": "a\nb",
		"git": "diff --git a/f b/f2\nsimilarity index 90%\nrename from f\nrename to f2\n--- a/f\n+++ b/f2\n@@ -4,3 +4,3 @@\n 4\n-5\n+five\n 6\n", "gitnew": "diff --git a/q b/q\nnew file mode 100755\nindex 0000000..1\n--- /dev/null\n+++ b/q\n@@ -0,0 +1 @@\n+hi\n", "gitdel": "diff --git a/f b/f\ndeleted file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1,10 +0,0 @@\n-1\n-2\n-3\n-4\n-5\n-6\n-7\n-8\n-9\n-10\n",
		"made": "--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", "same": "--- x\n+++ x\n@@ -0,0 +1 @@\n+a\n", "dated": "--- x\t2020-01-02 03:04:05.0 +0000\n+++ x\t2020-01-02 03:04:06.0 +0000\n@@ -0,0 +1 @@\n+a\n",
		"deep": "--- a/dir/x\n+++ b/dir/x\n@@ -0,0 +1 @@\n+a\n", "svn": "Index: x\n===\n--- x (revision 0)\n+++ x (working copy)\n@@ -0,0 +1 @@\n+a\n", "emptied": "--- one\n+++ one\n@@ -1 +0,0 @@\n-a\n", "one": "a\n",
		"sub/f": ten, "empty": "", "zero": "--- f\n+++ f\n@@ -5,0 +6,2 @@\n+a\n+b\n", "text": "From: me\nSubject: x\n\nsome text\n---\n f | 2 +-\n\n" + uni + "-- \n2.0\n", "ws": strings.ReplaceAll(ten, "\n", " \n"),
	}
	var list []commandtest.Case
	add := func(stdin, line string) {
		list = append(list, commandtest.Case{
			Args: strings.Fields(line), Files: files, Stdin: stdin, Stderr: true,
			Look: []string{"f", "g", "f.rej", "f.orig", "g.orig", "dir/x", "out", "far", "far.orig", "fuzzy", "other", "other.orig", "other.rej", "n", "f2", "q", "sub/f", "near", "near.rej", "ws", "r", "x", "one"},
		})
	}
	for line := range strings.SplitSeq(`patch f uni
patch f ctx
patch f norm
patch -p1 -i made
patch -p0 -i same
patch -i same
patch -p0 -i dated
patch -p1 -i deep
patch -p0 -i svn
patch -p0 -i emptied
patch -p0 -E -i emptied
patch -p0 -R -i emptied
patch f add
patch f del
patch -R g uni
patch -R g ctx
patch -R g norm
patch g uni
patch -N g uni
patch -t g uni
patch -f g uni
patch far uni
patch fuzzy uni
patch -F0 fuzzy uni
patch near uni
patch other uni
patch other ctx
patch other norm
patch -r r other uni
patch --no-backup-if-mismatch far uni
patch -b f uni
patch -b -z .bak f uni
patch -o out f uni
patch -s f uni
patch -s other uni
patch --dry-run f uni
patch --dry-run other uni
patch -p1 -i missing
patch -p0 -i new
patch -p1 -i new
patch -i new
patch -p1 -i gone
patch -p0 -i bad
patch -p0 -i up
patch -i garbage
patch -p0 -i two
patch -p0 -i mixed
patch -p0 -i nonl
patch -p1 -i git
patch -p1 -i gitnew
patch -p1 -i gitdel
patch -d sub -i ../uni
patch -d nope
patch -i empty
patch -p0 -i zero
patch -p0 -i text
patch -l ws uni
patch -u f uni
patch f nope
patch --zzz
patch -p x
patch a b c`, "\n") {
		add("", line)
	}
	add(uni, "patch f")
	add(uni, "patch -p0")
	add(uni, "patch")
	commandtest.Compare(t, Commands(), list)
}
