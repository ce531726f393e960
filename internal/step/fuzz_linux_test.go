package step

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// Whatever is on the disk as a record, reading it ends, and what it gives is valid and can be written again.
func FuzzReadRecord(f *testing.F) {
	rec := &Record{
		Number: 3, Sandbox: "box", Kind: "exec", Command: []Text{"sh", "\xff"}, Roots: []Root{{Path: "/w"}}, Begin: time.Unix(1, 0).UTC(),
		Changes: []Change{
			{Path: "a", Before: State{Kind: File, Size: 3, Digest: "x"}, Kept: 1, Seen: true},
			{Path: "\xfe\n", Moved: true, From: "b", Before: State{Kind: Symlink, Target: "\xff"}, After: State{Kind: Symlink, Target: "\xff"}},
		},
		Left: []Left{{Path: "node_modules", Why: "x"}},
	}
	write := func(rec *Record) []byte {
		rec.Changed, rec.Missed = len(rec.Changes), len(rec.Left)
		p := f.TempDir() + "/r"
		file, err := os.Create(p)
		must(f, err)
		_, err = writeRecord(file, rec)
		must(f, err)
		must(f, file.Close())
		b, err := os.ReadFile(p)
		must(f, err)
		return b
	}
	whole := write(rec)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte(recordMagic + strings.Repeat("0", 64) + "\n{\"number\":1,\"roots\":[{}],\"changed\":-1}\n"))
	f.Add([]byte("paddock step 9 "))
	if read, err := readRecord(bytes.NewReader(whole), true, 10); err != nil || len(read.Changes) != 2 || read.Changes[1] != rec.Changes[1] || read.Command[1] != "\xff" {
		f.Fatalf("%+v %v", read, err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := readRecord(bytes.NewReader(b), true, 1000)
		if err != nil {
			return
		}
		for i := range rec.Changes {
			must(t, rec.Changes[i].valid(len(rec.Roots)))
		}
		// The same without the checksum, so that the parser behind it is tried too.
		_, _ = readRecord(bytes.NewReader(b), false, 1000)
	})
}

// Whatever is in a log, it can be applied, and no name in it leads out of a root.
func FuzzReadLog(f *testing.F) {
	var b bytes.Buffer
	for _, v := range []any{
		header{Version: 1, Number: 1, Roots: []Root{{Path: "/w"}, {Path: "/v"}}},
		entry{Op: opSave, From: "a", State: State{Kind: File, Links: 2, Ino: 4}, Kept: 1, Seen: true},
		entry{Op: opRemove, Path: "a", Inos: [2]uint64{4}},
		entry{Op: opCreate, Path: "d"},
		entry{Op: opMove, From: "d", Root: 1, Path: "e/f", How: Replace},
		entry{Op: opMove, FromRoot: 1, From: "e", Path: "x", How: Exchange},
		entry{Op: opLink, From: "x/f", Path: "l"},
		entry{Op: opFail, Path: "x"},
		entry{Op: opLeft, Path: "y", Why: whyMany},
	} {
		must(f, line(&b, v))
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()-9])
	f.Add([]byte("00000000 {}\n"))
	// A checksum is no obstacle for whoever means harm, so the fuzzer's lines get theirs here.
	f.Fuzz(func(t *testing.T, b []byte) {
		try(t, b)
		var summed bytes.Buffer
		for l := range bytes.SplitSeq(b, []byte{'\n'}) {
			if len(l) > 9 {
				_ = line(&summed, raws(l[9:]))
			}
		}
		try(t, summed.Bytes())
	})
}

// raws is JSON as it is.
type raws []byte

func (r raws) MarshalJSON() ([]byte, error) { return r, nil }

func try(t *testing.T, b []byte) {
	j := &Journal{opts: Options{Changes: 50}}
	var r *Recorder
	_ = readLog(bytes.NewReader(b), func(h *header) error {
		r = newRecorder(j, *h)
		return nil
	}, func(e *entry) error {
		if err := e.valid(len(r.head.Roots)); err != nil {
			return err
		}
		r.apply(e)
		return nil
	})
	if r == nil {
		return
	}
	seen := 0
	for _, top := range r.names.tops {
		top.walk(func(n *node) {
			if n.up == nil {
				return
			}
			seen++
			at := n.at()
			if at.root < 0 || at.root >= len(r.head.Roots) || len(at.path) <= maxPath && validPath(at.path) != nil {
				t.Fatalf("a node at %v", at)
			}
			if is, _, found := r.names.find(at); found != n || is == inherited {
				t.Fatalf("%v is not found", at)
			}
		})
	}
	if seen != r.names.count {
		t.Fatalf("%d nodes are counted as %d", seen, r.names.count)
	}
}
