package git_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	be "encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

// deflated compresses what is written piece by piece.
func deflated(write func(w io.Writer)) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	write(z)
	_ = z.Close() // in memory
	return b.Bytes()
}

func named(kind string, content []byte) [20]byte {
	return sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...))
}

// object gives the file of an object, under a name that need not be its own.
func object(files map[string]string, name [20]byte, kind string, size int, write func(w io.Writer)) {
	b := deflated(func(w io.Writer) {
		fmt.Fprintf(w, "%s %d\x00", kind, size)
		write(w)
	})
	s := fmt.Sprintf("%x", name)
	files["r/.git/objects/"+s[:2]+"/"+s[2:]] = string(b)
}

func plainObject(files map[string]string, kind string, content []byte) [20]byte {
	h := named(kind, content)
	object(files, h, kind, len(content), func(w io.Writer) { _, _ = w.Write(content) })
	return h
}

// emptied is a repository without a commit.
func emptied() map[string]string {
	return map[string]string{
		"r/.git/HEAD": "ref: refs/heads/main\n", "r/.git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n", "r/.git/refs/heads/": "", "r/.git/objects/": "",
	}
}

// commit makes a commit of a tree and main of that.
func commit(files map[string]string, tree [20]byte) {
	h := plainObject(files, "commit", fmt.Appendf(nil, "tree %x\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\n\nx\n", tree))
	files["r/.git/refs/heads/main"] = fmt.Sprintf("%x\n", h)
}

// leb is a size in a delta.
func leb(n int) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// packedHead is what stands before an object in a pack.
func packedHead(kind, size int) []byte {
	b := []byte{byte(kind<<4 | size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		b[len(b)-1] |= 0x80
		b = append(b, byte(size&0x7f))
	}
	return b
}

// hostilePack is a pack of one mebibyte of zeros, and of what a delta makes of it that copies more than it says.
func hostilePack(files map[string]string, copies, claimed int) {
	base := make([]byte, 1<<20)
	delta := append(leb(len(base)), leb(claimed)...)
	for range copies {
		delta = append(delta, 0xf0, 0x40, 0x42, 0x0f) // 1,000,000 from the beginning
	}
	pack := []byte("PACK\x00\x00\x00\x02\x00\x00\x00\x02")
	first := len(pack)
	pack = append(append(pack, packedHead(3, len(base))...), deflated(func(w io.Writer) { _, _ = w.Write(base) })...)
	second := len(pack)
	name := named("blob", base)
	pack = append(append(append(pack, packedHead(7, len(delta))...), name[:]...), deflated(func(w io.Writer) { _, _ = w.Write(delta) })...)
	sum := sha1.Sum(pack)
	pack = append(pack, sum[:]...)
	bomb := [20]byte{0xff, 1, 2, 3}
	idx := []byte("\377tOc\x00\x00\x00\x02")
	for i := range 256 {
		n := uint32(0)
		if i >= int(name[0]) {
			n++
		}
		if i == 255 {
			n++
		}
		idx = be.BigEndian.AppendUint32(idx, n)
	}
	idx = append(append(idx, name[:]...), bomb[:]...)
	idx = be.BigEndian.AppendUint32(be.BigEndian.AppendUint32(idx, crc32.ChecksumIEEE(pack)), 0)
	idx = be.BigEndian.AppendUint32(be.BigEndian.AppendUint32(idx, uint32(first)), uint32(second))
	idx = append(idx, sum[:]...)
	all := sha1.Sum(idx)
	idx = append(idx, all[:]...)
	at := fmt.Sprintf("r/.git/objects/pack/pack-%x.", sum)
	files[at+"pack"], files[at+"idx"] = string(pack), string(idx)
}

// watched runs a script under a small heap and gives how much memory the process came to hold meanwhile.
func watched(t *testing.T, files map[string]string, script string) (r commandtest.Result, most uint64) {
	t.Helper()
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	now := func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64() + sample[1].Value.Uint64()
	}
	before := now()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				most = max(most, now())
			}
		}
	}()
	r = commandtest.RunWithin(t, computer(), commandtest.Case{Args: []string{"bash", "-c", "cd r; " + script}, Files: files}, budget.Limits{Heap: 16 << 20})
	close(quit)
	<-done
	return r, most - min(most, before)
}

func TestARepositoryIsWhatAStrangerMadeOfIt(t *testing.T) {
	const zeros = 1 << 20
	repeat := func(w io.Writer, n int) {
		for range n {
			_, _ = w.Write(make([]byte, zeros))
		}
	}
	for _, row := range []struct {
		what   string
		make   func(files map[string]string)
		script string
		stderr string // of each line that says something
	}{
		{"a delta that copies more than it says", func(f map[string]string) { hostilePack(f, 3000, 1_000_001) }, "git cat-file -p ff010203 | wc -c", "corrupt"},
		{"a delta that claims what no memory holds", func(f map[string]string) { hostilePack(f, 3000, 3_000_000_000) }, "git cat-file -p ff010203 | wc -c", ""},
		{"an object that is longer than it says", func(f map[string]string) {
			object(f, [20]byte{1, 2, 3, 4}, "blob", 5, func(w io.Writer) { repeat(w, 600) })
		}, "git cat-file -p 01020304 | wc -c", "corrupt"},
		{"an object that says what no memory holds", func(f map[string]string) {
			object(f, [20]byte{1, 2, 3, 4}, "blob", 1<<40, func(w io.Writer) { repeat(w, 1) })
		}, "git cat-file -p 01020304 | wc -c", "corrupt"},
		{"an object that is another", func(f map[string]string) {
			object(f, [20]byte{1, 2, 3, 4}, "blob", 2, func(w io.Writer) { fmt.Fprint(w, "x\n") })
		}, "git cat-file -p 01020304", "corrupt"},
		{"a tree that contains itself", func(f map[string]string) {
			h := [20]byte{9, 9, 9}
			entry := "40000 a\x00" + string(h[:])
			object(f, h, "tree", 2*len(entry), func(w io.Writer) { fmt.Fprint(w, entry+strings.Replace(entry, "a", "b", 1)) })
			commit(f, h)
		}, "git status; git show --stat; git ls-tree -r HEAD", "corrupt|unable to read tree|not a tree"},
		{"trees that share their trees", func(f map[string]string) {
			h := plainObject(f, "blob", []byte("x\n"))
			mode := "100644"
			for range 24 {
				h = plainObject(f, "tree", []byte(mode+" a\x00"+string(h[:])+mode+" b\x00"+string(h[:])))
				mode = "40000"
			}
			commit(f, h)
		}, "git status; git show --stat", ""},
		{"an index of long names that share their beginnings", func(f map[string]string) {
			const files = 20_000
			var b bytes.Buffer
			fmt.Fprint(&b, "DIRC\x00\x00\x00\x04")
			_ = be.Write(&b, be.BigEndian, uint32(files)) // in memory
			for i := range files {
				b.Write(make([]byte, 60))
				b.Write([]byte{0x0f, 0xff})
				if i == 0 {
					b.WriteString("\x00" + strings.Repeat("n", 1<<20) + "\x00")
					continue
				}
				fmt.Fprintf(&b, "\x05%05d\x00", i)
			}
			sum := sha1.Sum(b.Bytes())
			f["r/.git/index"] = b.String() + string(sum[:])
		}, "git status; git ls-files | wc -c", ""},
		{"a branch of much", func(f map[string]string) { f["r/.git/HEAD"] = "ref: " + strings.Repeat("x", 20<<20) }, "git status", "does not exist"},
		{"files that are held", func(map[string]string) {}, "truncate -s 200M f; for i in 1 2 3 4 5 6; do git add f & done; wait", ""},
	} {
		t.Run(row.what, func(t *testing.T) {
			files := emptied()
			row.make(files)
			r, most := watched(t, files, row.script)
			t.Logf("%d %q %q, %d MiB", r.Status, r.Stdout, r.Stderr, most>>20)
			if most > 8*16<<20 {
				t.Errorf("the process held %d MiB", most>>20)
			}
			if row.stderr == "" {
				if r.Status != 137 {
					t.Errorf("it ended with %d, not by a limit", r.Status)
				}
				return
			}
			for l := range strings.Lines(r.Stderr) {
				found := false
				for _, w := range strings.Split(row.stderr, "|") {
					found = found || strings.Contains(l, w)
				}
				if !found {
					t.Errorf("it says %q", l)
				}
			}
			if r.Stderr == "" {
				t.Error("it says nothing")
			}
		})
	}
}
