package segment_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/audit/segment"
)

func place(t *testing.T) (*os.Root, *chain.Key) {
	t.Helper()
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.Mkdir(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	key, err := chain.MakeKey(keys)
	if err != nil {
		t.Skipf("a key of one's own cannot be kept here: %v", err)
	}
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return dir, key
}

func writer(t *testing.T, o segment.Options) *segment.Writer {
	t.Helper()
	w, err := segment.NewWriter(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func line(t *testing.T, i int) []byte {
	t.Helper()
	b, err := audit.Line(audit.Event{Kind: audit.Did, Action: &audit.Action{What: fmt.Sprintf("test.%d", i), Result: "ok"}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// names gives what is in the directory, and below.
func names(t *testing.T, dir *os.Root) (all []string) {
	t.Helper()
	err := fs.WalkDir(dir.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// verify reads a segment: it is as said, and these are the actions in it.
func verify(t *testing.T, dir *os.Root, key *chain.Key, name string, want chain.State) (did []string, end string, begin audit.Action) {
	t.Helper()
	data, err := dir.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := chain.Verify(bytes.NewReader(data), chain.Options{Fingerprint: key.Fingerprint()})
	if err != nil || rep.State != want {
		t.Fatalf("%s: %+v, %v", name, rep, err)
	}
	for text := range bytes.Lines(data) {
		var e struct {
			audit.Event
			Seq  uint64 `json:"seq"`
			Hash string `json:"hash"`
		}
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		end = chain.Point{Seq: e.Seq, Hash: e.Hash}.String()
		switch {
		case e.Kind != audit.Did:
		case e.Action.What == "record.continue":
			begin = *e.Action
		default:
			did = append(did, e.Action.What)
		}
	}
	return did, end, begin
}

func TestARecordIsCutIntoChainsThatNameTheOneBefore(t *testing.T) {
	dir, key := place(t)
	w := writer(t, segment.Options{Dir: dir, Key: key, Size: 1000})
	var want []string
	var several []byte
	for i := range 50 {
		want = append(want, fmt.Sprintf("test.%d", i))
		several = append(several, line(t, i)...)
		if i%7 == 0 { // many lines at once, and single ones
			if n, err := w.Write(several); err != nil || n != len(several) {
				t.Fatalf("%d, %v", n, err)
			}
			several = nil
		}
	}
	if _, err := w.Write(several); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(line(t, 0)); !errors.Is(err, paddock.Conflict) {
		t.Errorf("write after close: %v", err)
	}
	all := names(t, dir)
	if len(all) < 4 {
		t.Fatalf("%q", all)
	}
	var got []string
	before, point := "", ""
	for _, name := range all {
		did, end, begin := verify(t, dir, key, name, chain.Whole)
		got = append(got, did...)
		if begin.Target != before || begin.Reason != point {
			t.Errorf("%s follows %q at %q, not %q at %q", name, begin.Target, begin.Reason, before, point)
		}
		before, point = name, end
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestWhatACrashLeftIsFinishedAsItIs(t *testing.T) {
	dir, key := place(t)
	w := writer(t, segment.Options{Dir: dir, Key: key})
	if _, err := w.Write(line(t, 1)); err != nil {
		t.Fatal(err)
	}
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	left := names(t, dir)[0]
	if !strings.HasSuffix(left, ".part") {
		t.Fatalf("%q", left)
	}
	next := writer(t, segment.Options{Dir: dir, Key: key})
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	all := names(t, dir)
	if len(all) != 2 || all[0]+".part" != left {
		t.Fatalf("%q", all)
	}
	if did, _, _ := verify(t, dir, key, all[0], chain.Open); len(did) != 1 {
		t.Errorf("%q", did)
	}
	if _, _, begin := verify(t, dir, key, all[1], chain.Whole); begin.Target != all[0] {
		t.Errorf("%+v", begin)
	}
}

func TestASegmentIsFinishedForItsAgeOnlyWithEvents(t *testing.T) {
	dir, key := place(t)
	synctest.Test(t, func(t *testing.T) {
		w := writer(t, segment.Options{Dir: dir, Key: key, Age: time.Minute})
		lines := audit.NewLines(w)
		<-time.After(time.Hour)
		synctest.Wait()
		if all := names(t, dir); len(all) != 1 {
			t.Errorf("without events: %q", all)
		}
		lines.Record(audit.Event{Kind: audit.Did, Action: &audit.Action{What: "test", Result: "ok"}})
		<-time.After(2 * time.Minute)
		synctest.Wait()
		all := names(t, dir)
		if len(all) != 2 || strings.HasSuffix(all[0], ".part") {
			t.Errorf("with one: %q", all)
		}
		select {
		case <-w.Finished():
		default:
			t.Error("nobody was told")
		}
		if err := errors.Join(lines.Close(), w.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	dir, key := place(t)
	for _, o := range []segment.Options{{Size: -1}, {Size: segment.MaxSize + 1}, {Age: -1}} {
		o.Dir, o.Key = dir, key
		if _, err := segment.NewWriter(o); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	good := segment.Bucket{Endpoint: "https://s3.example", Region: "r", Name: "abc", AccessKey: "a", SecretKey: "b"}
	for _, c := range []struct {
		change func(*segment.Bucket)
		kind   paddock.Kind
	}{
		{func(b *segment.Bucket) { b.Endpoint = "http://s3.example" }, paddock.Denied},
		{func(b *segment.Bucket) { b.Endpoint = "https://a:b@s3.example" }, paddock.Invalid},
		{func(b *segment.Bucket) { b.Endpoint = "https://s3.example/x" }, paddock.Invalid},
		{func(b *segment.Bucket) { b.Endpoint = "s3.example" }, paddock.Invalid},
		{func(b *segment.Bucket) { b.Name = "a/../b" }, paddock.Invalid},
		{func(b *segment.Bucket) { b.Prefix = "../" }, paddock.Invalid},
		{func(b *segment.Bucket) { b.Prefix = "a" }, paddock.Invalid},
		{func(b *segment.Bucket) { b.SecretKey = "" }, paddock.Invalid},
	} {
		b := good
		c.change(&b)
		if _, err := segment.NewUploader(dir, b, nil); !errors.Is(err, c.kind) {
			t.Errorf("%v: %v, want %v", b, err, c.kind)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", good, good, good); strings.Contains(text, `"b"`) || strings.Contains(text, "SecretKey") {
		t.Errorf("it tells its keys: %s", text)
	}
}

// finished gives a directory with two finished segments.
func finished(t *testing.T) (*os.Root, []string) {
	t.Helper()
	dir, key := place(t)
	for i := range 2 {
		w := writer(t, segment.Options{Dir: dir, Key: key})
		if _, err := w.Write(line(t, i)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir, names(t, dir)
}

func uploader(t *testing.T, dir *os.Root, b segment.Bucket) *segment.Uploader {
	t.Helper()
	u, err := segment.NewUploader(dir, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestWhatIsFinishedIsUploadedOnceAndKept(t *testing.T) {
	dir, all := finished(t)
	s, b := newStore(t)
	if err := dir.WriteFile(all[0]+".other", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	u := uploader(t, dir, b)
	if n, since, err := u.Waiting(); n != len(all) || since.IsZero() || since.After(time.Now()) || err != nil {
		t.Errorf("%d wait since %v: %v", n, since, err)
	}
	for range 2 {
		if err := u.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n, _, err := u.Waiting(); n != 0 || err != nil {
		t.Errorf("%d wait: %v", n, err)
	}
	if s.puts != 2 || len(s.objects) != 2 {
		t.Errorf("%d puts of %d objects", s.puts, len(s.objects))
	}
	for _, name := range all {
		data, err := dir.ReadFile("sent/" + name)
		if err != nil || !bytes.Equal(s.objects["/records/a/b/"+name], data) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUploadsFailInWordsAndLoseNothing(t *testing.T) {
	dir, all := finished(t)
	s, b := newStore(t)
	u := uploader(t, dir, b)
	for code, kind := range map[int]paddock.Kind{500: paddock.Unavailable, 403: paddock.Denied, 404: paddock.Unavailable, 307: paddock.Unavailable} {
		s.set(func() { s.answer = code })
		if err := u.Sweep(t.Context()); !errors.Is(err, kind) || !strings.Contains(err.Error(), all[0]) || strings.Contains(err.Error(), secretKey) {
			t.Errorf("%d: %v", code, err)
		}
	}
	s.set(func() { s.answer = 0 })
	wrong := b
	wrong.SecretKey = "other"
	if err := uploader(t, dir, wrong).Sweep(t.Context()); !errors.Is(err, paddock.Denied) {
		t.Errorf("with another key: %v", err)
	}
	// The answer is lost, and then the object is there.
	s.set(func() { s.forget = true })
	if err := u.Sweep(t.Context()); !errors.Is(err, paddock.Unavailable) {
		t.Errorf("without an answer: %v", err)
	}
	s.set(func() { s.forget = false })
	if err := u.Sweep(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
	if len(s.objects) != 2 {
		t.Errorf("%d objects", len(s.objects))
	}
}

func TestNothingInTheBucketIsOverwritten(t *testing.T) {
	dir, all := finished(t)
	s, b := newStore(t)
	s.objects["/records/a/b/"+all[0]] = []byte("someone else's")
	if err := uploader(t, dir, b).Sweep(t.Context()); !errors.Is(err, paddock.Exists) {
		t.Errorf("sweep: %v", err)
	}
	if got := names(t, dir); !slices.Equal(got, all) || string(s.objects["/records/a/b/"+all[0]]) != "someone else's" {
		t.Errorf("%q", got)
	}
}

// A transport is a store without a network, for bubbles.
type transport func(r *http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTheUploaderTriesAgainAndEndsWithItsContext(t *testing.T) {
	dir, all := finished(t)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var tries []time.Duration
		b := segment.Bucket{Endpoint: "https://s3.example", Region: "r", Name: "abc", AccessKey: "a", SecretKey: "b"}
		b.Client = &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
			tries = append(tries, time.Since(start))
			if len(tries) < 4 {
				return nil, errors.New("no route")
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
		})}
		u := uploader(t, dir, b)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { u.Run(ctx, nil) })
		<-time.After(time.Hour)
		synctest.Wait()
		cancel()
		wg.Wait()
		const s = time.Second
		if want := []time.Duration{0, s, 3 * s, 7 * s, 7 * s}; !slices.Equal(tries, want) {
			t.Errorf("tried at %v, want %v", tries, want)
		}
		if got := names(t, dir); !slices.Equal(got, []string{"sent/" + all[0], "sent/" + all[1]}) {
			t.Errorf("%q", got)
		}
	})
}
