package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB) (*Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Open(dir, Options{})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s, dir
}

// seq gives entries one by one.
func seq(all ...Entry) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, e := range all {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// data gives extents, a few bytes at a time.
func data(all ...Extent) iter.Seq2[Extent, error] {
	return func(yield func(Extent, error) bool) {
		for _, x := range all {
			for i := 0; i < len(x.Bytes); i += 70_001 {
				if !yield(Extent{x.Offset + int64(i), x.Bytes[i:min(len(x.Bytes), i+70_001)]}, nil) {
					return
				}
			}
		}
	}
}

// show describes entries with what they hold.
func show(entries iter.Seq2[Entry, error]) (string, error) {
	var b strings.Builder
	for e, err := range entries {
		if err != nil {
			return b.String(), err
		}
		var d iter.Seq2[Extent, error]
		d, e.Data = e.Data, nil
		e.ModTime = e.ModTime.UTC()
		fmt.Fprintf(&b, "%q", fmt.Sprintf("%+v", e))
		if d != nil {
			whole := make([]byte, e.Size)
			for x, err := range d {
				if err != nil {
					return b.String(), err
				}
				copy(whole[x.Offset:], x.Bytes)
			}
			fmt.Fprintf(&b, " %d %x", len(whole), sumOf(whole))
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

func sumOf(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

func sample() []Entry {
	now := time.Unix(-5, 999_999_999)
	big := bytes.Repeat([]byte("0123456789abcdef"), 200_000)
	return []Entry{
		{Kind: Dir, Mode: 0o755},
		{Path: "a", Kind: Dir, Mode: 0o1777, Opaque: true, ModTime: now},
		{Path: "a/big", Kind: File, Size: 3_300_000, Data: data(Extent{100_000, big})},
		{Path: "a/\xff\xfe\n", Kind: File, Mode: 0o4755, UID: 1 << 31, GID: 7, ModTime: now, Size: 5, Shared: true, Data: data(Extent{0, []byte("hello")})},
		{Path: "a-b", Kind: Same, Target: "a/\xff\xfe\n"},
		{Path: "copy", Kind: File, Size: 3_300_000, Data: data(Extent{100_000, big})},
		{Path: "dev", Kind: Char, Mode: 0o666, Device: 1<<32 | 3},
		{Path: "hole", Kind: File, Size: 1 << 40, Mode: 0o600, ModTime: time.Unix(1<<40, 0)},
		{Path: "link", Kind: Link, Mode: 0o777, Target: "../\xff/../../etc/passwd"},
		{Path: "pipe", Kind: Pipe},
		{Path: "was", Kind: Gone},
	}
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	s, dir := open(t)
	m := Meta{ID: NewID(), Tier: "sim", Base: "sim/1", Parent: "snap-x", Name: "first\xff", Created: time.Unix(1e9, 5).UTC()}
	all := sample()
	all[7].Size = 1 << 20
	must(t, s.Write(t.Context(), m, seq(all...)))
	x, err := s.Read(m.ID)
	must(t, err)
	defer x.Close()
	want, err := show(seq(all...))
	must(t, err)
	for range 2 {
		got, err := show(x.Entries())
		must(t, err)
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	m.Name = "first\ufffd" // names are text
	if x.Meta != m {
		t.Errorf("got %+v, want %+v", x.Meta, m)
	}
	for _, name := range []string{dir, dir + "/blob", dir + "/snapshot"} {
		i, err := os.Stat(name)
		must(t, err)
		if i.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", name, i.Mode())
		}
	}
	if size := used(t, dir); size > 3_400_000 {
		t.Errorf("two files of 3.2 MB with the same bytes take %d", size)
	}
	if err := s.Write(t.Context(), m, seq()); !errors.Is(err, paddock.Exists) {
		t.Errorf("a name that is taken: %v", err)
	}
	if _, err := s.Read("snap-none"); !errors.Is(err, paddock.NotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	if _, err := s.Read("../x"); !errors.Is(err, paddock.Invalid) {
		t.Errorf("a name that is none: %v", err)
	}
}

// used tells the bytes of all files in a directory.
func used(t *testing.T, dir string) int64 {
	t.Helper()
	var n int64
	must(t, filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		if err == nil {
			n += i.Size()
		}
		return err
	}))
	return n
}

func TestAListThatCannotBeATreeIsRefused(t *testing.T) {
	s, dir := open(t)
	boom := errors.New("boom")
	bad := func(yield func(Extent, error) bool) { yield(Extent{}, boom) }
	tests := map[string][]Entry{
		"upwards":              {{Path: "../x", Kind: File}},
		"upwards in between":   {{Path: "a/../../x", Kind: File}},
		"absolute":             {{Path: "/x", Kind: File}},
		"a dot":                {{Path: "a/./x", Kind: File}},
		"a slash at the end":   {{Path: "a/", Kind: Dir}},
		"a NUL":                {{Path: "a\x00", Kind: File}},
		"a long name":          {{Path: strings.Repeat("n", 256), Kind: File}},
		"twice":                {{Path: "a", Kind: File}, {Path: "a", Kind: Dir}},
		"out of order":         {{Path: "b", Kind: File}, {Path: "a", Kind: File}},
		"below a link":         {{Path: "a", Kind: Link, Target: "/etc"}, {Path: "a/passwd", Kind: File}},
		"below a file":         {{Path: "a", Kind: File}, {Path: "a/b/c", Kind: File}},
		"a name of nothing":    {{Path: "a", Kind: Same, Target: "b"}},
		"a name of a later":    {{Path: "a", Kind: Same, Target: "b"}, {Path: "b", Kind: File, Shared: true}},
		"a name of a link":     {{Path: "a", Kind: Link, Target: "x"}, {Path: "b", Kind: Same, Target: "a"}},
		"no kind":              {{Path: "a"}},
		"a root that is none":  {{Kind: File}},
		"a mode":               {{Path: "a", Kind: File, Mode: 0o100644}},
		"a size":               {{Path: "a", Kind: File, Size: -1}},
		"the size of a link":   {{Path: "a", Kind: Link, Target: "x", Size: 1}},
		"an empty link":        {{Path: "a", Kind: Link}},
		"a device of a pipe":   {{Path: "a", Kind: Pipe, Device: 5}},
		"bytes after the end":  {{Path: "a", Kind: File, Size: 2, Data: data(Extent{0, []byte("abc")})}},
		"bytes before":         {{Path: "a", Kind: File, Size: 2, Data: data(Extent{-1, []byte("a")})}},
		"bytes twice":          {{Path: "a", Kind: File, Size: 9, Data: data(Extent{0, []byte("abc")}, Extent{2, []byte("d")})}},
		"an error of the data": {{Path: "a", Kind: File, Size: 9, Data: bad}},
	}
	for what, all := range tests {
		id := NewID()
		err := s.Write(t.Context(), Meta{ID: id}, seq(all...))
		if !errors.Is(err, paddock.Invalid) && !errors.Is(err, boom) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := s.Read(id); !errors.Is(err, paddock.NotFound) {
			t.Errorf("%s: it is there: %v", what, err)
		}
		// The same, by somebody who writes what they like.
		var b bytes.Buffer
		w, err := newWriter(&b, Meta{ID: id})
		must(t, err)
		for i := range all {
			must(t, w.entry(&all[i], nil))
		}
		must(t, w.end(&b))
		must(t, os.WriteFile(filepath.Join(dir, dirLists, string(id)), b.Bytes(), 0o600))
		if all[0].Data != nil || what == "the size of a link" || what == "a device of a pipe" {
			continue // there is no way to write it
		}
		x, err := s.Read(id)
		must(t, err)
		if text, err := show(x.Entries()); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: read as %s %v", what, text, err)
		}
		must(t, x.Close())
	}
}

func TestEveryDamageIsFound(t *testing.T) {
	s, dir := open(t)
	id := NewID()
	all := []Entry{
		{Path: "a", Kind: Dir, Mode: 0o755},
		{Path: "a/f", Kind: File, Size: 5, Data: data(Extent{0, []byte("hello")})},
		{Path: "a/l", Kind: Link, Target: "f"},
	}
	must(t, s.Write(t.Context(), Meta{ID: id, Created: time.Unix(1, 0)}, seq(all...)))
	name := filepath.Join(dir, dirLists, string(id))
	whole, err := os.ReadFile(name)
	must(t, err)
	try := func(what string, b []byte) {
		t.Helper()
		must(t, os.WriteFile(name, b, 0o600))
		x, err := s.Read(id)
		if err == nil {
			_, err = show(x.Entries())
			x.Close()
		}
		if !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1
		try(fmt.Sprint("byte ", i), b)
		try(fmt.Sprint("cut at ", i), whole[:i])
	}
	try("one more byte", append(bytes.Clone(whole), 0))
	must(t, os.WriteFile(name, whole, 0o600))
	blobs, err := filepath.Glob(dir + "/blob/*/*")
	must(t, err)
	for _, b := range [][]byte{[]byte("hellp"), []byte("hell"), nil} {
		must(t, os.WriteFile(blobs[0], b, 0o600))
		x, err := s.Read(id)
		must(t, err)
		if _, err = show(x.Entries()); !errors.Is(err, paddock.Invalid) {
			t.Errorf("a blob that holds %q: %v", b, err)
		}
		must(t, x.Close())
	}
	must(t, s.Write(t.Context(), Meta{ID: NewID()}, seq(all...)))
	x, err := s.Read(id)
	must(t, err)
	defer x.Close()
	if _, err := show(x.Entries()); err != nil {
		t.Errorf("a damaged blob is not written anew: %v", err)
	}
}

func TestCollectTakesOnlyWhatNobodyHas(t *testing.T) {
	s, dir := open(t)
	file := func(text string) Entry {
		return Entry{Path: "f", Kind: File, Size: int64(len(text)), Data: data(Extent{0, []byte(text)})}
	}
	one, two := NewID(), NewID()
	must(t, s.Write(t.Context(), Meta{ID: one, Created: time.Unix(2, 0)}, seq(file("one"))))
	both := file("one")
	both.Path = "g"
	must(t, s.Write(t.Context(), Meta{ID: two, Created: time.Unix(1, 0)}, seq(file("other"), both)))
	must(t, os.WriteFile(dir+"/temp/left", []byte("behind"), 0o600))
	list, err := s.List()
	must(t, err)
	if len(list) != 2 || list[0].ID != two || list[1].ID != one {
		t.Errorf("listed as %+v", list)
	}
	must(t, s.Remove(two))
	must(t, s.Remove(two))
	freed, err := s.Collect(t.Context())
	must(t, err)
	if freed != int64(len("other")+len("behind")) {
		t.Errorf("freed %d", freed)
	}
	x, err := s.Read(one)
	must(t, err)
	defer x.Close()
	if _, err := show(x.Entries()); err != nil {
		t.Error(err)
	}
	must(t, os.WriteFile(filepath.Join(dir, dirLists, string(two)), []byte("nonsense"), 0o600))
	if _, err := s.Collect(t.Context()); !errors.Is(err, paddock.Invalid) {
		t.Errorf("with a list that cannot be read: %v", err)
	}
	if list, err := s.List(); len(list) != 1 || !errors.Is(err, paddock.Invalid) {
		t.Errorf("listed as %+v, %v", list, err)
	}
	// While one is written, nothing is taken.
	must(t, s.Remove(two))
	slow := func(yield func(Entry, error) bool) {
		if _, err := s.Collect(t.Context()); !errors.Is(err, paddock.Conflict) {
			t.Errorf("while one is written: %v", err)
		}
		yield(file("slow"), nil)
	}
	must(t, s.Write(t.Context(), Meta{ID: two}, slow))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Write(ctx, Meta{ID: NewID()}, seq(file("x"))); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

func TestManyWriteAndCollectAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			s, err := Open(dir, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			for n := range 30 {
				id := NewID()
				text := bytes.Repeat([]byte{byte(n)}, 1000)
				e := Entry{Path: "f", Kind: File, Size: 1000, Data: data(Extent{0, text})}
				if err := s.Write(t.Context(), Meta{ID: id}, seq(e)); err != nil {
					t.Error(err)
				}
				if _, err := s.Collect(t.Context()); err != nil && !errors.Is(err, paddock.Conflict) {
					t.Error(err)
				}
				x, err := s.Read(id)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := show(x.Entries()); err != nil {
					t.Error(err)
				}
				_ = x.Close()
				if i%2 == 0 {
					if err := s.Remove(id); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestPathsAreOrderedAsAWalkMeetsThem(t *testing.T) {
	want := []string{"", "a", "a/b", "a/b/c", "a/c", "a!", "a-b", "ab", "b"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Compare)
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, a := range want {
		for _, b := range want {
			x := slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
			if cmp.Compare(Compare(a, b), 0) != cmp.Compare(x, 0) {
				t.Errorf("%q and %q: %d", a, b, Compare(a, b))
			}
		}
	}
}

func FuzzReadingAListNeverHarms(f *testing.F) {
	var b bytes.Buffer
	w, err := newWriter(&b, Meta{ID: "snap-x"})
	must(f, err)
	for _, e := range sample() {
		must(f, w.entry(&e, []chunk{{0, 3, sum{1}}, {4, 1, sum{2}}}))
	}
	must(f, w.end(&b))
	f.Add(b.Bytes())
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := newReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		last, first := "", true
		for {
			e, chunks, err := r.next()
			if err != nil {
				if err != io.EOF && !errors.Is(err, paddock.Invalid) && !errors.Is(err, paddock.Exhausted) {
					t.Fatal(err)
				}
				return
			}
			for name := range strings.SplitSeq(e.Path, "/") {
				if name == ".." || name == "." || strings.ContainsRune(name, 0) {
					t.Fatalf("the path %q", e.Path)
				}
			}
			if !first && Compare(last, e.Path) >= 0 || strings.HasPrefix(e.Path, "/") {
				t.Fatalf("%q after %q", e.Path, last)
			}
			first, last = false, e.Path
			end := int64(0)
			for _, c := range chunks {
				if c.offset < end || c.size <= 0 || c.size > maxChunk || c.offset+c.size > e.Size {
					t.Fatalf("%q has %+v", e.Path, c)
				}
				end = c.offset + c.size
			}
		}
	})
}
