package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
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
		{Path: "a-b", Kind: Same},
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
		"a name of nothing":    {{Path: "a", Kind: Same}},
		"another name of less": {{Path: "a", Kind: File, Shared: true}, {Path: "b", Kind: Same, First: -1}},
		"a name of no link":    {{Path: "a", Kind: Same, Target: "b"}},
		"the number of a file": {{Path: "a", Kind: File, First: 1}},
		"a name of a later":    {{Path: "a", Kind: Same}, {Path: "b", Kind: File, Shared: true}},
		"a name of a link":     {{Path: "a", Kind: Link, Target: "x"}, {Path: "b", Kind: Same}},
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
		w, err := newWriter(&b, Meta{ID: id}, defaultList)
		must(t, err)
		for i := range all {
			must(t, w.entry(&all[i]))
		}
		must(t, w.finish(&b))
		must(t, os.WriteFile(filepath.Join(dir, dirLists, string(id)), b.Bytes(), 0o600))
		if all[0].Data != nil || what == "a name of no link" || what == "the number of a file" || what == "the size of a link" || what == "a device of a pipe" {
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
	must(t, s.Remove(two))
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
	w, err := newWriter(&b, Meta{ID: "snap-x"}, defaultList)
	must(f, err)
	for _, e := range sample() {
		must(f, w.entry(&e))
		if hasParts(&e) {
			must(f, w.part(chunk{0, 3, sum{1}}))
			must(f, w.part(chunk{4, 1, sum{2}}))
			must(f, w.parted())
		}
	}
	must(f, w.entry(&Entry{Path: "zz", Kind: Dir, Attributes: map[string]string{"user.a": "1", "user.b": "\x00"}}))
	must(f, w.finish(&b))
	f.Add(olderList(f))
	f.Add(b.Bytes())
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := newReader(bytes.NewReader(b))
		if err != nil {
			return
		}
		last, first := "", true
		for {
			e, err := r.next()
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
			for e.Size%3 > 0 { // of some, nobody asks for parts
				c, ok, err := r.part()
				if !ok {
					if err != nil && !errors.Is(err, paddock.Invalid) {
						t.Fatal(err)
					}
					break
				}
				if c.offset < end || c.size <= 0 || c.size > maxChunk || c.offset+c.size > e.Size {
					t.Fatalf("%q has %+v", e.Path, c)
				}
				end = c.offset + c.size
			}
		}
	})
}

// olderList is the list of a snapshot that was written before hard links said numbers. Its files are
// those of sample without the large ones.
func olderList(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/version1")
	must(t, err)
	return b
}

func TestAListOfVersion1IsRead(t *testing.T) {
	s, dir := open(t)
	must(t, os.WriteFile(filepath.Join(dir, dirLists, "snap-older"), olderList(t), 0o600))
	hello := []byte("hello")
	blob := filepath.Join(dir, sum(sha256.Sum256(hello)).path())
	must(t, os.MkdirAll(filepath.Dir(blob), 0o700))
	must(t, os.WriteFile(blob, hello, 0o600))
	for range 2 {
		_, err := s.Collect(t.Context())
		must(t, err)
		x, err := s.Read("snap-older")
		must(t, err)
		got, err := show(x.Entries())
		must(t, err)
		want, err := show(seq(olderSample()...))
		must(t, err)
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		n, err := x.Size(t.Context())
		must(t, err)
		if n != (Size{Bytes: 5, Files: 7}) {
			t.Errorf("its size is %+v", n)
		}
		must(t, x.Close())
	}
}

func olderSample() []Entry {
	return slices.Concat([]Entry{
		{Path: "a", Kind: Dir, Mode: 0o1777, Opaque: true, ModTime: time.Unix(-5, 999_999_999)},
		{Path: "a/one", Kind: Pipe, Shared: true},
		{Path: "a/\xff\xfe\n", Kind: File, Mode: 0o4755, UID: 1 << 31, GID: 7, Size: 5, Shared: true, Data: data(Extent{0, []byte("hello")})},
		{Path: "a-b", Kind: Same, First: 1},
		{Path: "a-c", Kind: Same, First: 0},
	}, sample()[6:])
}

// list tells the size of the list of a snapshot.
func list(t *testing.T, dir string, id paddock.SnapshotID) int64 {
	t.Helper()
	i, err := os.Stat(filepath.Join(dir, dirLists, string(id)))
	must(t, err)
	return i.Size()
}

// deepDir is a path of so many bytes, about.
func deepDir(size int) string {
	return strings.Repeat(strings.Repeat("d", 249)+"/", size/250)
}

func TestManyNamesOfAFileTakeLittle(t *testing.T) {
	s, dir := open(t)
	far := deepDir(4000) + "f"
	id := NewID()
	must(t, s.Write(t.Context(), Meta{ID: id}, func(yield func(Entry, error) bool) {
		if !yield(Entry{Path: far, Kind: File, Shared: true}, nil) {
			return
		}
		for i := range 10_000 {
			if !yield(Entry{Path: fmt.Sprintf("z%05d", i), Kind: Same}, nil) {
				return
			}
		}
	}))
	if size := list(t, dir, id); size > 200_000 {
		t.Errorf("10,000 names of one file take %d bytes", size)
	}
}

func TestAListHasABound(t *testing.T) {
	_, dir := open(t)
	s, err := Open(dir, Options{List: 100_000})
	must(t, err)
	defer s.Close()
	text := strings.Repeat("x", 60_000)
	asked := 0
	for what, entry := range map[string]func(i int) Entry{
		"texts of links": func(i int) Entry { return Entry{Path: fmt.Sprintf("%09d", i), Kind: Link, Target: text} },
		"names":          func(i int) Entry { return Entry{Path: fmt.Sprintf("%09d", i), Kind: Gone} },
		"parts": func(i int) Entry {
			return Entry{Path: fmt.Sprintf("%09d", i), Kind: File, Size: 1 << 30, Data: func(yield func(Extent, error) bool) {
				for i := range int64(10_000) {
					if asked++; !yield(Extent{i * 2, []byte("x")}, nil) {
						return
					}
				}
			}}
		},
	} {
		id := NewID()
		err := s.Write(t.Context(), Meta{ID: id}, func(yield func(Entry, error) bool) {
			for i := 0; yield(entry(i), nil); i++ {
				asked++
			}
		})
		if !errors.Is(err, paddock.Exhausted) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := s.Read(id); !errors.Is(err, paddock.NotFound) {
			t.Errorf("%s: there is one: %v", what, err)
		}
	}
	if asked > 40_000 {
		t.Errorf("it took %d entries and parts", asked)
	}
	if size := used(t, dir); size > 1<<20 {
		t.Errorf("%d bytes are left", size)
	}
}

// Each file with several names once cost its path until the end.
func TestManyFilesWithSeveralNamesTakeLittleMemory(t *testing.T) {
	s, _ := open(t)
	far := deepDir(1<<20 - 300)
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	id := NewID()
	must(t, s.Write(t.Context(), Meta{ID: id}, func(yield func(Entry, error) bool) {
		for i := range 100 {
			if !yield(Entry{Path: fmt.Sprintf("%s%03d", far, i), Kind: Pipe, Shared: true}, nil) {
				return
			}
		}
		if more := live() - before; more > 16<<20 {
			t.Errorf("a writer holds %d MiB", more>>20)
		}
	}))
	x, err := s.Read(id)
	must(t, err)
	defer x.Close()
	n := 0
	for _, err := range x.Entries() {
		must(t, err)
		if n++; n == 100 {
			if more := live() - before; more > 16<<20 {
				t.Errorf("a reader holds %d MiB", more>>20)
			}
		}
	}
}

// asking is a context that tells when it is asked whether it has ended.
type asking struct {
	context.Context
	asked func()
}

func (a asking) Err() error {
	a.asked()
	return nil
}

func TestAWriterDoesNotWaitForOneThatReads(t *testing.T) {
	s, _ := open(t)
	must(t, s.Write(t.Context(), Meta{ID: "snap-one"}, file("one")))
	must(t, s.Write(t.Context(), Meta{ID: "snap-two"}, file("two")))
	must(t, s.Remove("snap-two"))
	var once sync.Once
	_, err := s.Collect(asking{context.Background(), func() {
		once.Do(func() { must(t, s.Write(t.Context(), Meta{ID: "snap-new"}, file("two"))) })
	}})
	must(t, err)
	for _, id := range []paddock.SnapshotID{"snap-one", "snap-new"} {
		x, err := s.Read(id)
		must(t, err)
		if _, err := show(x.Entries()); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		must(t, x.Close())
	}
}

func TestAWriterWaitsNoLongerThanItsCaller(t *testing.T) {
	s, _ := open(t)
	held, err := s.tryLock(fileLock, true)
	must(t, err)
	defer held.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Write(ctx, Meta{ID: NewID()}, seq(Entry{Path: "f", Kind: Pipe})); !errors.Is(err, context.Canceled) {
		t.Errorf("it waited: %v", err)
	}
}

// file gives one file.
func file(text string) iter.Seq2[Entry, error] {
	return seq(Entry{Path: "f", Kind: File, Size: int64(len(text)), Data: data(Extent{0, []byte(text)})})
}

// then gives what comes with entries, and calls do before their end.
func then(entries iter.Seq2[Entry, error], do func() error) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e, err := range entries {
			if !yield(e, err) {
				return
			}
		}
		if err := do(); err != nil {
			yield(Entry{}, err)
		}
	}
}

func whole(t *testing.T, s *Store, id paddock.SnapshotID) {
	t.Helper()
	x, err := s.Read(id)
	must(t, err)
	defer x.Close()
	if _, err := show(x.Entries()); err != nil {
		t.Errorf("%s: %v", id, err)
	}
}

func TestAWriteThatFailsLeavesNothing(t *testing.T) {
	s, dir := open(t)
	must(t, s.Write(t.Context(), Meta{ID: "snap-kept"}, file("kept")))
	must(t, s.free(t.Context())) // its file has its size from now on
	before := used(t, dir)
	boom := errors.New("boom")
	fails := func() error { return boom }
	ctx, cancel := context.WithCancel(t.Context())
	tests := map[string]func() error{
		"at its end":       func() error { return s.Write(t.Context(), Meta{ID: NewID()}, then(file("new"), fails)) },
		"with known bytes": func() error { return s.Write(t.Context(), Meta{ID: NewID()}, then(file("kept"), fails)) },
		"as its caller goes": func() error {
			return s.Write(ctx, Meta{ID: NewID()}, then(file("new"), func() error { cancel(); return nil }))
		},
		// The other one needs the same bytes, and fails later.
		"beside another one": func() error {
			return s.Write(t.Context(), Meta{ID: NewID()}, then(file("new"), func() error {
				return cmp.Or(s.Write(t.Context(), Meta{ID: NewID()}, then(file("new"), fails)), boom)
			}))
		},
		// Where one of its blobs belongs is something else.
		"at its last step": func() error {
			var all []Entry
			for i := range 20 {
				text := fmt.Sprintf("%02d", i)
				all = append(all, Entry{Path: text, Kind: File, Size: 2, Data: data(Extent{0, []byte(text)})})
			}
			must(t, os.MkdirAll(filepath.Join(dir, sum(sha256.Sum256([]byte("11"))).path()), 0o700))
			return s.Write(t.Context(), Meta{ID: NewID()}, seq(all...))
		},
	}
	for name, try := range tests {
		if err := try(); err == nil {
			t.Errorf("%s: it does not fail", name)
		}
		if after := used(t, dir); after != before {
			t.Errorf("%s: there are %d bytes instead of %d", name, after, before)
		}
	}
	whole(t, s, "snap-kept")
}

func TestCollectDoesNotWaitForAWriter(t *testing.T) {
	s, dir := open(t)
	must(t, s.Write(t.Context(), Meta{ID: "snap-one"}, file("one")))
	must(t, s.Write(t.Context(), Meta{ID: "snap-two"}, file("two")))
	one := filepath.Join(dir, sum(sha256.Sum256([]byte("one"))).path())
	two := filepath.Join(dir, sum(sha256.Sum256([]byte("two"))).path())
	must(t, s.Write(t.Context(), Meta{ID: "snap-new"}, then(file("two"), func() error {
		must(t, s.Discard(t.Context(), "snap-one"))
		must(t, s.Discard(t.Context(), "snap-two"))
		for _, path := range []string{one, two} {
			if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("while another one is written, the bytes of a removed one stay: %v", err)
			}
		}
		return nil
	})))
	whole(t, s, "snap-new")
}

func TestARemovalGoesOnWithoutItsCaller(t *testing.T) {
	s, dir := open(t)
	must(t, s.Write(t.Context(), Meta{ID: "snap-one"}, file("one")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, s.Discard(ctx, "snap-one"))
	if n := used(t, filepath.Join(dir, dirBlobs)); n != 0 {
		t.Errorf("%d bytes of it stay", n)
	}
}

func TestARemovalWaitsForOneThatCollects(t *testing.T) {
	s, dir := open(t)
	must(t, s.Write(t.Context(), Meta{ID: "snap-one"}, file("one")))
	only, err := s.tryLock(fileOnly, true)
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- s.Discard(t.Context(), "snap-one") }()
	for {
		if _, err := s.Read("snap-one"); errors.Is(err, paddock.NotFound) {
			break
		}
		runtime.Gosched()
	}
	must(t, only.Close()) // that one may have read the list before
	must(t, <-done)
	if n := used(t, filepath.Join(dir, dirBlobs)); n != 0 {
		t.Errorf("%d bytes of it stay", n)
	}
}

func TestOneCollectionIsForAllThatWait(t *testing.T) {
	s, dir := open(t)
	count, err := os.OpenFile(filepath.Join(dir, fileOnly), os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	defer count.Close()
	for n := range uint64(3) {
		if begun, whole := passes(count); begun != n || whole != n {
			t.Errorf("after %d: %d, %d", n, begun, whole)
		}
		must(t, s.free(t.Context()))
	}
	must(t, os.WriteFile(filepath.Join(dir, dirLists, "snap-bad"), []byte("nonsense"), 0o600))
	if err := s.free(t.Context()); !errors.Is(err, paddock.Invalid) {
		t.Errorf("with a list that cannot be read: %v", err)
	}
	if begun, whole := passes(count); begun != 4 || whole != 3 {
		t.Errorf("after one that did not come to its end: %d, %d", begun, whole)
	}
	must(t, os.Remove(filepath.Join(dir, dirLists, "snap-bad")))
	only, err := s.tryLock(fileOnly, true)
	must(t, err)
	done := make(chan error, 4)
	for range cap(done) {
		go func() { done <- s.free(t.Context()) }()
	}
	must(t, only.Close())
	for range cap(done) {
		must(t, <-done)
	}
	if begun, whole := passes(count); begun != whole || begun > 4+uint64(cap(done)) {
		t.Errorf("after %d that waited: %d, %d", cap(done), begun, whole)
	}
}

func TestAWriterWaitsBehindACollectorThatWaits(t *testing.T) {
	s, _ := open(t)
	held, err := s.share(t.Context()) // somebody puts a snapshot in its place
	must(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := s.Collect(t.Context())
		done <- err
	}()
	for {
		turn, err := s.tryLock(fileTurn, false)
		if errors.Is(err, paddock.Conflict) {
			break // it waits
		}
		must(t, err)
		must(t, turn.Close())
		runtime.Gosched()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.share(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("another one is before it: %v", err)
	}
	must(t, held.Close())
	must(t, <-done)
}

func TestCollectTakesWhatKilledWritersLeft(t *testing.T) {
	s, dir := open(t)
	must(t, os.MkdirAll(filepath.Join(dir, dirDraft, "killed", "ab"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, dirDraft, "killed", "ab", "cd"), []byte("left"), 0o600))
	must(t, s.Write(t.Context(), Meta{ID: "snap-new"}, then(file("new"), func() error {
		_, err := s.Collect(t.Context())
		if list, _ := os.ReadDir(filepath.Join(dir, dirDraft)); len(list) != 1 || list[0].Name() == "killed" {
			t.Errorf("there are %v", list)
		}
		return err
	})))
	whole(t, s, "snap-new")
	if list, _ := os.ReadDir(filepath.Join(dir, dirDraft)); len(list) != 0 {
		t.Errorf("after it, there are %v", list)
	}
}

// Each of the 256 shelves once cost two looks at each snapshot.
func TestCollectReadsEachListOnce(t *testing.T) {
	s, _ := open(t)
	const many = 200
	for i := range many {
		must(t, s.Write(t.Context(), Meta{ID: paddock.SnapshotID(fmt.Sprintf("snap-%d", i))}, file(fmt.Sprint(i))))
	}
	n := testing.AllocsPerRun(1, func() {
		_, err := s.Collect(t.Context())
		must(t, err)
	})
	if each := n / many; each > 300 {
		t.Errorf("%.0f allocations for each of %d snapshots", each, many)
	}
}

func TestAnOlderListNamesOnlySoManyFiles(t *testing.T) {
	var b bytes.Buffer
	w, err := newWriter(&b, Meta{ID: "snap-older"}, 1<<30)
	must(t, err)
	for i := range maxShared + 1 {
		must(t, w.entry(&Entry{Path: fmt.Sprintf("%07d", i), Kind: Pipe, Shared: true}))
	}
	must(t, w.finish(&b))
	r, err := newReader(strings.NewReader(older + strings.TrimPrefix(b.String(), magic)))
	must(t, err)
	for n := 0; ; n++ {
		if _, err := r.next(); err != nil {
			if !errors.Is(err, paddock.Exhausted) || n != 500_000 {
				t.Errorf("after %d files: %v", n, err)
			}
			return
		}
	}
}

func TestContentsAreReadWithTheirEntry(t *testing.T) {
	s, _ := open(t)
	id := NewID()
	must(t, s.Write(t.Context(), Meta{ID: id}, seq(sample()...)))
	x, err := s.Read(id)
	must(t, err)
	defer x.Close()
	var late iter.Seq2[Extent, error]
	for e, err := range x.Entries() {
		must(t, err)
		if late != nil {
			for _, err := range late {
				if err == nil {
					t.Errorf("at %q there are contents of an entry before", e.Path)
				}
			}
		}
		late = e.Data
	}
}
