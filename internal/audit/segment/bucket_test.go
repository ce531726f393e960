package segment_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/audit/segment"
)

// uploaded is a record in a bucket, with the paths of its objects in their order.
func uploaded(t *testing.T) (*store, segment.Bucket, *chain.Key, []string) {
	t.Helper()
	dir, key := place(t)
	record(t, dir, key)
	s, b := newStore(t)
	u, err := segment.NewUploader(dir, b, nil)
	must(t, err)
	must(t, u.Sweep(t.Context()))
	var paths []string
	s.set(func() {
		for path := range s.objects {
			paths = append(paths, path)
		}
		s.objects["/records/other"] = []byte("x")
		s.objects["/records/a/b/notes.txt"] = []byte("x")
		s.objects["/records/a/b/deeper/actions-20300101T000000.000000000Z-0.jsonl"] = []byte("x")
		s.objects["/records/a/bc/actions-20300101T000000.000000000Z-0.jsonl"] = []byte("x")
	})
	slices.Sort(paths)
	if len(paths) < 4 {
		t.Fatalf("%d segments", len(paths))
	}
	return s, b, key, paths
}

func inBucket(t *testing.T, b segment.Bucket, key *chain.Key, seen *chain.Point) segment.Series {
	t.Helper()
	s, err := segment.VerifyBucket(t.Context(), b, chain.Options{Fingerprint: key.Fingerprint(), Seen: seen})
	must(t, err)
	return s
}

func TestARecordInABucketIsWhole(t *testing.T) {
	s, b, key, paths := uploaded(t)
	for _, page := range []int{0, 1, 3} {
		s.set(func() { s.page = page })
		got := inBucket(t, b, key, nil)
		if got.State != chain.Whole || len(got.Segments) != len(paths) || got.Begins != "" {
			t.Fatalf("%d names at once: %+v", page, got)
		}
		for i, v := range got.Segments {
			if "/records/a/b/"+v.Name != paths[i] {
				t.Errorf("segment %d is %s", i, v.Name)
			}
		}
	}
	middle := inBucket(t, b, key, nil).Segments[2].Head.Point
	if got := inBucket(t, b, key, &middle); got.State != chain.Whole {
		t.Errorf("with a line that is there: %+v", got)
	}
	if got := inBucket(t, b, key, &chain.Point{Seq: 3, Hash: strings.Repeat("0", 64)}); got.State != chain.Wrong {
		t.Errorf("with a line that is not there: %s", got.State)
	}
}

func TestWhatIsDoneToObjectsIsFound(t *testing.T) {
	for name, row := range map[string]struct {
		do   func(objects map[string][]byte, paths []string)
		want chain.State
		why  string
	}{
		"one was removed":       {func(o map[string][]byte, p []string) { delete(o, p[2]) }, chain.Wrong, "stands before it"},
		"the first was removed": {func(o map[string][]byte, p []string) { delete(o, p[0]) }, chain.Open, "which is not here"},
		"a byte was changed": {func(o map[string][]byte, p []string) {
			o[p[3]] = bytes.Replace(o[p[3]], []byte(`"test.`), []byte(`"tset.`), 1)
		}, chain.Wrong, "line "},
		"two changed places": {func(o map[string][]byte, p []string) { o[p[1]], o[p[2]] = o[p[2]], o[p[1]] }, chain.Wrong, "it follows"},
		"one lost its last line": {func(o map[string][]byte, p []string) {
			o[p[1]] = o[p[1]][:bytes.LastIndexByte(o[p[1]][:len(o[p[1]])-1], '\n')+1]
		}, chain.Wrong, "has not the line"},
		"one is empty": {func(o map[string][]byte, p []string) { o[p[1]] = nil }, chain.Wrong, ""},
		"one is there twice": {func(o map[string][]byte, p []string) {
			o[strings.TrimSuffix(p[1], ".jsonl")+"0.jsonl"] = o[p[1]]
		}, chain.Wrong, "it follows"},
		"one is of somebody else": {func(o map[string][]byte, p []string) { o[p[1]] = []byte("{}\n") }, chain.Wrong, "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s, b, key, paths := uploaded(t)
			s.set(func() { row.do(s.objects, paths) })
			got := inBucket(t, b, key, nil)
			if got.State != row.want || !strings.Contains(got.Why, row.why) || (got.State == chain.Wrong) != (got.Wrong != "") {
				t.Errorf("%s (%s: %s), want %s with %q", got.State, got.Wrong, got.Why, row.want, row.why)
			}
		})
	}
}

// A store that serves one thing to be verified, and another one to be read on in, is
// found out: what a segment follows is of the same reading as its signature, and what
// is read again is what was read before.
func TestAStoreThatServesSomethingElseTheNextTimeIsFoundOut(t *testing.T) {
	dir, key := place(t)
	for i := range 2 { // the first is left without its closing head, as by a crash
		w := writer(t, segment.Options{Dir: dir, Key: key})
		_, err := w.Write(line(t, i))
		must(t, err)
		must(t, w.Seal())
		if i == 1 {
			must(t, w.Close())
		}
	}
	s, b := newStore(t)
	all := names(t, dir)
	for _, name := range all {
		data, err := dir.ReadFile(name)
		must(t, err)
		s.set(func() { s.objects["/records/a/b/"+name] = data })
	}
	if got := inBucket(t, b, key, nil); got.State != chain.Whole {
		t.Fatalf("%s, %s", got.State, got.Why)
	}
	s.set(func() {
		clear(s.gets)
		path := "/records/a/b/" + all[0]
		other := s.objects[path]
		s.second = map[string][]byte{path: append(bytes.Clone(other), []byte("{\"cut")...)}
	})
	_, err := segment.VerifyBucket(t.Context(), b, chain.Options{Fingerprint: key.Fingerprint()})
	if err == nil || !strings.Contains(err.Error(), "another object") {
		t.Errorf("%v", err)
	}
}

func TestABucketThatCannotBeReadIsNotVerified(t *testing.T) {
	const head = `<?xml version="1.0"?><ListBucketResult>`
	segmentOf := func(n string) string {
		return "<Contents><Key>a/b/actions-2030010" + n + "T000000.000000000Z-0.jsonl</Key></Contents>"
	}
	for name, row := range map[string]struct {
		do   func(s *store, b *segment.Bucket)
		want error
	}{
		"nothing is there":          {func(s *store, _ *segment.Bucket) { clear(s.objects) }, paddock.NotFound},
		"another prefix":            {func(_ *store, b *segment.Bucket) { b.Prefix = "c/" }, paddock.NotFound},
		"the key is wrong":          {func(_ *store, b *segment.Bucket) { b.SecretKey = "no" }, paddock.Denied},
		"the store is ill":          {func(s *store, _ *segment.Bucket) { s.answer = 503 }, paddock.Unavailable},
		"it leads elsewhere":        {func(s *store, _ *segment.Bucket) { s.answer = 307 }, paddock.Unavailable},
		"no keys":                   {func(_ *store, b *segment.Bucket) { b.AccessKey = "" }, paddock.Invalid},
		"the list is no XML":        {func(s *store, _ *segment.Bucket) { s.listing = "{}" }, paddock.Invalid},
		"the list is another thing": {func(s *store, _ *segment.Bucket) { s.listing = "<Error/>" }, paddock.Invalid},
		"the list does not go on": {func(s *store, _ *segment.Bucket) {
			s.listing = head + "<IsTruncated>true</IsTruncated></ListBucketResult>"
		}, paddock.Invalid},
		"the list is out of order": {func(s *store, _ *segment.Bucket) {
			s.listing = head + segmentOf("2") + segmentOf("1") + "</ListBucketResult>"
		}, paddock.Invalid},
		"the list goes in circles": {func(s *store, _ *segment.Bucket) {
			s.listing = head + segmentOf("1") + "<IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>"
		}, paddock.Invalid},
		"the list has what is not there": {func(s *store, _ *segment.Bucket) {
			s.listing = head + segmentOf("1") + "</ListBucketResult>"
		}, paddock.Unavailable},
		"the list is a bomb": {func(s *store, _ *segment.Bucket) {
			s.listing = head + strings.Repeat(" ", 9<<20) + "</ListBucketResult>"
		}, paddock.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			s, b, key, _ := uploaded(t)
			s.set(func() { row.do(s, &b) })
			got, err := segment.VerifyBucket(t.Context(), b, chain.Options{Fingerprint: key.Fingerprint()})
			if !errors.Is(err, row.want) {
				t.Errorf("%v (%+v), want %v", err, got, row.want)
			}
			if err != nil && strings.Contains(err.Error(), secretKey) {
				t.Errorf("it has the secret: %v", err)
			}
		})
	}
}

func TestAVerificationEndsWithItsContextAndDoesNotReadForEver(t *testing.T) {
	s, b, key, paths := uploaded(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := segment.VerifyBucket(ctx, b, chain.Options{Fingerprint: key.Fingerprint()}); !errors.Is(err, paddock.Canceled) {
		t.Errorf("%v", err)
	}
	// An object without an end is wrong at its first line that is none, or too large.
	s.set(func() { s.held, s.objects[paths[0]] = true, bytes.Repeat([]byte("x"), 1<<20) })
	if got := inBucket(t, b, key, nil); got.State != chain.Wrong {
		t.Errorf("%+v", got)
	}
}
