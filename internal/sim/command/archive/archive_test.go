package archive

import (
	"archive/tar"
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"os"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

// outcome runs a real program in a directory of its own, and gives a file that it
// made.
func outcome(t *testing.T, script, name string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := commandtest.Command(t.Context(), t, dir, false, "bash", "-c", script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const tree = "mkdir -p d/e; echo hello > a; echo x > d/x; seq 1000 > d/e/y; ln -s a l; ln a h; touch -d '2020-01-02 03:04:05 UTC' a d/x d/e/y d/e d; touch -h -d '2020-01-02 03:04:05 UTC' l;"

func TestArchivesAreReadAsByGNUs(t *testing.T) {
	files := map[string]string{
		"t.tar":   outcome(t, tree+"tar --sort=name -cf t.tar --owner=me:1000 --group=us:1000 a d h l", "t.tar"),
		"t.tgz":   outcome(t, tree+"tar --sort=name -czf t.tgz --owner=me:1000 --group=us:1000 a d h l", "t.tgz"),
		"t.txz":   outcome(t, tree+"tar --sort=name -cJf t.txz a d", "t.txz"),
		"t.tbz":   outcome(t, tree+"tar --sort=name -cjf t.tbz a d", "t.tbz"),
		"t.tzst":  outcome(t, tree+"tar --sort=name --zstd -cf t.tzst a d", "t.tzst"),
		"pax.tar": outcome(t, tree+"tar --sort=name --format=pax -cf t.tar a d", "t.tar"),
		"abs.tar": outcome(t, tree+"tar -P --transform='s,^,/nowhere/,' -cf t.tar a d/x", "t.tar"),
		"up.tar":  outcome(t, tree+"tar -P --transform='s,^,../../up/,' -cf t.tar a d/x", "t.tar"),
		"a":       "mine\n", "junk": strings.Repeat("junk", 300), "short.tar": outcome(t, tree+"tar -cf t.tar a d; head -c 900 t.tar > s", "s"), "empty": "", "list": "a\nd/x\n",
	}
	var list []commandtest.Case
	for line := range strings.SplitSeq(`tar tf t.tar
tar -tvf t.tar
tar tzf t.tgz
tar tf t.tgz
tar tf t.txz
tar tJf t.txz
tar tf t.tbz
tar tjf t.tbz
tar tf t.tzst
tar tf pax.tar
tar -tvf t.tar --full-time
tar -tvf t.tar --numeric-owner
tar tf t.tar d
tar tf t.tar d/x nope
tar tf t.tar --wildcards *x
tar tf t.tar *x
tar tf t.tar --exclude=e
tar tf t.tar --exclude=*y
tar xf t.tar
tar xvf t.tar
tar xvzf t.tgz
tar -xf t.tar -C d
tar -xf t.tar -C nope
tar xf t.txz
tar xf t.tbz
tar xf t.tzst
tar xvf t.tar d/x
tar xf t.tar --strip-components=1
tar xvf t.tar --strip-components=1
tar xvf t.tar --transform=s/d/q/
tar xvf t.tar --transform=s,^,z/,
tar xOf t.tar a d/x
tar xvOf t.tar a
tar xkf t.tar
tar xf t.tar --skip-old-files
tar xf abs.tar
tar tf abs.tar
tar xf up.tar
tar tf up.tar
tar xf junk
tar tf empty
tar tf short.tar
tar xzf t.tar
tar xf nope.tar
tar x
tar
tar tf t.tar -T list
tar tf
tar --zzz
tar cf
tar cf x.tar
tar cf x.tar nope
tar cvf x.tar a
tar cvf x.tar a junk
tar cvzf x.tgz d a
tar cf x.tar -C d nope
tar -cvf x.tar -C / nope
tar cvf x.tar --exclude=a a junk
tar rvf t.tar junk
tar xf t.tar -t
tar cvf a.tar a a.tar
`, "\n") {
		if line == "" {
			continue
		}
		list = append(list, commandtest.Case{Args: strings.Fields(line), Files: files, Stderr: true, Look: []string{"a", "h", "d/x", "d/e/y", "x", "e/y", "q/x", "z/a", "up/a", "nowhere/a"}})
	}
	commandtest.Compare(t, Commands(), list)
}

func TestWhatIsPackedIsUnpackedByTheRealTools(t *testing.T) {
	big := strings.Repeat("the quick brown fox\n", 5000)
	files := map[string]string{"a": big, "d/b": "x\n", "d/c/long" + strings.Repeat("n", 120): "long\n", "d/é": "é\n", "l": "-> a"}
	for _, args := range [][]string{
		{"tar", "cf", "out", "a", "d", "l"}, {"tar", "czf", "out", "a", "d"}, {"tar", "cJf", "out", "a", "d"}, {"tar", "cjf", "out", "a", "d"}, {"tar", "--zstd", "-cf", "out", "a", "d"}, {"tar", "-H", "pax", "-cf", "out", "a", "d"}, {"tar", "-caf", "out.tgz", "a", "d"},
		{"gzip", "-k", "a"}, {"gzip", "-9", "-k", "a"}, {"bzip2", "-k", "a"}, {"xz", "-k", "a"}, {"xz", "-1k", "a"}, {"zstd", "a"}, {"zstd", "-19", "a"}, {"lzma", "-k", "a"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			look := []string{"out", "out.tgz", "a.gz", "a.bz2", "a.xz", "a.zst", "a.lzma"}
			r := commandtest.Run(t, Commands(), commandtest.Case{Args: args, Files: files, Look: look})
			if r.Status != 0 {
				t.Fatalf("status %d: %s", r.Status, r.Stderr)
			}
			dir := t.TempDir()
			for _, name := range look {
				if r.Files[name] == "missing" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(r.Files[name]), 0o644); err != nil {
					t.Fatal(err)
				}
				script := "tar xf " + name
				switch filepath.Ext(name) {
				case ".gz":
					script = "gzip -dc a.gz > a"
				case ".bz2":
					script = "bzip2 -dc a.bz2 > a"
				case ".xz":
					script = "xz -dc a.xz > a"
				case ".zst":
					script = "zstd -q -dc a.zst > a"
				case ".lzma":
					script = "lzma -dc a.lzma > a"
				}
				cmd := commandtest.Command(t.Context(), t, dir, false, "bash", "-c", script)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v %s", script, err, out)
				}
				b, err := os.ReadFile(filepath.Join(dir, "a"))
				if err != nil || string(b) != big {
					t.Errorf("a is %d bytes, %v", len(b), err)
				}
				if strings.HasPrefix(script, "tar") {
					if b, err := os.ReadFile(filepath.Join(dir, "d/é")); err != nil || string(b) != "é\n" {
						t.Errorf("d/é is %q, %v", b, err)
					}
				}
			}
		})
	}
}

func TestFilesAreCompressedAsByTheRealTools(t *testing.T) {
	files := map[string]string{
		"a": "hello\n", "d/": "", "x.gz": outcome(t, "echo hi | gzip -n > x.gz", "x.gz"), "two.gz": outcome(t, "(echo hi | gzip -n; echo ho | gzip -n) > x.gz", "x.gz"), "cut.gz": outcome(t, "seq 1000 | gzip -n | head -c 100 > x.gz", "x.gz"),
		"x.bz2": outcome(t, "echo hi | bzip2 > x", "x"), "x.xz": outcome(t, "echo hi | xz > x", "x"), "big.xz": outcome(t, "seq 100000 | xz --block-size=100000 > x", "x"), "two.xz": outcome(t, "(echo hi | xz; echo ho | xz -C sha256) > x", "x"), "x.zst": outcome(t, "echo hi | zstd -q > x", "x"), "x.lzma": outcome(t, "echo hi | lzma > x", "x"), "cut.xz": outcome(t, "seq 1000 | xz | head -c 200 > x", "x"),
		"x": "there", "bad.gz": "not gzip at all\n", "y.tgz": outcome(t, "echo hi | gzip -n > x.gz", "x.gz"),
	}
	var list []commandtest.Case
	for line := range strings.SplitSeq(`gunzip -c x.gz
gzip -dc x.gz
zcat x.gz
zcat x
zcat two.gz
zcat cut.gz
zcat bad.gz
zcat nope
gzip -t x.gz
gzip -tv x.gz
gzip -t bad.gz
gzip -l x.gz
gzip -l x.gz two.gz
gunzip x.gz
gunzip -f x.gz
gunzip -k two.gz
gunzip y.tgz
gunzip a
gunzip nope
gzip x.gz
gzip nope
gzip d
gzip -k a
gzip a
gzip -S .z a
gzip --zzz
zcat -f a
bunzip2 -c x.bz2
bzcat x.bz2
bzcat a
bzip2 -d x.bz2
bzip2 nope
bzip2 d
bzip2 a
bzip2 x.bz2
bzip2 -t x.bz2
xzcat x.xz
xzcat big.xz
xzcat two.xz
xzcat x.lzma
xzcat a
unxz x.xz
unxz two.xz
xz nope
xz d
xz x.xz
xz -t x.xz
xz -d a
xz --zzz
lzcat x.lzma
zstdcat x.zst
zstd -dc x.zst
zstd -t x.zst
`, "\n") {
		if line == "" {
			continue
		}
		list = append(list, commandtest.Case{Args: strings.Fields(line), Files: files, Stderr: !strings.HasPrefix(line, "zstd"), Look: []string{"x", "two", "a", "x.gz", "x.bz2", "x.xz", "y.tar"}})
	}
	commandtest.Compare(t, Commands(), list)
}

func TestAnArchiveDoesNotLeadOutOfItsDirectory(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Name: "in/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "in/out", Typeflag: tar.TypeSymlink, Linkname: "../../victim"},
		{Name: "in/out/file", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "in/abs", Typeflag: tar.TypeSymlink, Linkname: "/tmp/case/victim"},
		{Name: "in/abs/file", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "in/abs/dir/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "in/hard", Typeflag: tar.TypeLink, Linkname: "in/abs/secret"},
		{Name: "../victim/file", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "/tmp/case/victim/file", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "in/a/../../../victim/file", Typeflag: tar.TypeReg, Mode: 0o644},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := commandtest.Run(t, Commands(), commandtest.Case{
		Args: []string{"tar", "xf", "evil.tar", "-C", "here"}, Files: map[string]string{"evil.tar": b.String(), "here/": "", "victim/secret": "s"},
		Look: []string{"victim/file", "here/in/hard", "victim/dir", "here/victim/file"},
	})
	for name, text := range r.Files {
		if name != "here/victim/file" && text != "missing" {
			t.Errorf("%s is %q\n%s", name, text, r.Stderr)
		}
	}
}

func TestZipsAreReadAndMadeAsByInfoZip(t *testing.T) {
	files := map[string]string{
		"x.zip": outcome(t, tree+"zip -qr x.zip a d", "x.zip"), "a": "mine\n", "junk": "nothing", "n": "new\n", "big": strings.Repeat("abc\n", 500), "D/f": "1\n",
		"up.zip": outcome(t, tree+"mkdir s; cd s; zip -q ../x.zip ../a", "x.zip"),
	}
	var list []commandtest.Case
	for line := range strings.SplitSeq(`unzip -l x.zip
unzip -v x.zip
unzip -l x
unzip -lq x.zip
unzip -Z1 x.zip
unzip -p x.zip a
unzip -p x.zip d/*
unzip x.zip
unzip -o x.zip
unzip -n x.zip
unzip -q -o x.zip
unzip -o x.zip a
unzip -o x.zip nope
unzip -o x.zip -x a
unzip -o x.zip -x d/*
unzip -d new x.zip
unzip x.zip -d new
unzip -j -d fl x.zip
unzip -t x.zip
unzip nope
unzip junk
unzip -l x.zip d/*
zip z.zip n
zip -q z.zip n
zip x.zip n a
zip -r z.zip D n
zip -j z.zip D/f
zip z.zip nope
zip z.zip
zip -0 z.zip big
zip z big
zip -r z.zip D -x *f
zip -r z.zip . -i D/*
zip -d x.zip a
zip -d x.zip nope
zip -T x.zip
`, "\n") {
		if line == "" {
			continue
		}
		list = append(list, commandtest.Case{Args: strings.Fields(line), Files: files, Stderr: !strings.HasPrefix(line, "zip z.zip nope"), Look: []string{"a", "d/x", "d/e/y", "new/a", "new/d/x", "fl/x"}})
	}
	commandtest.Compare(t, Commands(), list)
	r := commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"unzip", "-o", "up.zip", "-d", "in"}, Files: files, Look: []string{"a", "in/a"}})
	if r.Files["a"] != "mine\n" || r.Files["in/a"] != "hello\n" {
		t.Errorf("%q\n%s", r.Files, r.Stderr)
	}
}

func TestABombIsEnded(t *testing.T) {
	for _, c := range []struct{ script, tool string }{
		{"head -c 50000000 /dev/zero | gzip > x", "zcat"}, {"head -c 50000000 /dev/zero | bzip2 > x", "bzcat"}, {"head -c 50000000 /dev/zero | xz > x", "xzcat"}, {"head -c 50000000 /dev/zero | zstd -q > x", "zstdcat"},
	} {
		r := commandtest.RunWithin(t, Commands(), commandtest.Case{Args: []string{c.tool}, Stdin: outcome(t, c.script, "x")}, budget.Limits{Archive: 1 << 20})
		if r.Status != 137 || !strings.Contains(r.Stderr, `"archive"`) {
			t.Errorf("%s: status %d: %s", c.tool, r.Status, r.Stderr)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F"))
	f.Add([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3})
	f.Add([]byte("BZh91AY&SY"))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x24, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, args := range [][]string{{"zcat", "-f", "in"}, {"bzcat", "in"}, {"xzcat", "in"}, {"zstdcat", "in"}, {"tar", "xf", "in"}} {
			commandtest.RunWithin(t, Commands(), commandtest.Case{Args: args, Files: map[string]string{"in": string(b)}}, budget.Limits{Archive: 1 << 20, Input: 1 << 20})
		}
	})
}
