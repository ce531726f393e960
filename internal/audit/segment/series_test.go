package segment_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/audit/segment"
)

// record writes a record of several segments, in two runs of its writer.
func record(t *testing.T, dir *os.Root, key *chain.Key) {
	t.Helper()
	for range 2 {
		w := writer(t, segment.Options{Dir: dir, Key: key, Size: 600})
		for i := range 8 {
			if _, err := w.Write(line(t, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func series(t *testing.T, dir *os.Root, key *chain.Key, seen *chain.Point) segment.Series {
	t.Helper()
	s, err := segment.Verify(dir, chain.Options{Fingerprint: key.Fingerprint(), Seen: seen})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestARecordInSegmentsIsWholeWhereverItsPartsAre(t *testing.T) {
	dir, key := place(t)
	record(t, dir, key)
	all := names(t, dir)
	must(t, dir.Rename(all[0], "sent/"+all[0]))
	must(t, dir.Rename(all[1], "sent/"+all[1]))
	s := series(t, dir, key, nil)
	if s.State != chain.Whole || len(s.Segments) != len(all) || len(all) < 4 || s.Segments[0].Name != "sent/"+all[0] {
		t.Errorf("%+v", s)
	}
	middle := s.Segments[2].Head.Point
	if s := series(t, dir, key, &middle); s.State != chain.Whole {
		t.Errorf("with a line that is there: %+v", s)
	}
	if s := series(t, dir, key, &chain.Point{Seq: 3, Hash: strings.Repeat("0", 64)}); s.State != chain.Wrong {
		t.Errorf("with a line that is not there: %s", s.State)
	}
}

func TestWhatIsDoneToSegmentsIsFound(t *testing.T) {
	for name, row := range map[string]struct {
		do   func(t *testing.T, dir *os.Root, all []string, key *chain.Key)
		want chain.State
		why  string
	}{
		"one is missing":       {func(t *testing.T, dir *os.Root, all []string, _ *chain.Key) { must(t, dir.Remove(all[2])) }, chain.Wrong, "stands before it"},
		"the first is missing": {func(t *testing.T, dir *os.Root, all []string, _ *chain.Key) { must(t, dir.Remove(all[0])) }, chain.Open, "which is not here"},
		"two changed places": {func(t *testing.T, dir *os.Root, all []string, _ *chain.Key) {
			must(t, dir.Rename(all[1], "x"))
			must(t, dir.Rename(all[2], all[1]))
			must(t, dir.Rename("x", all[2]))
		}, chain.Wrong, "it follows"},
		"one was replaced by another of the same key": {func(t *testing.T, dir *os.Root, all []string, key *chain.Key) {
			other, err := os.OpenRoot(t.TempDir())
			must(t, err)
			defer other.Close()
			record(t, other, key)
			data, err := other.ReadFile(names(t, other)[1])
			must(t, err)
			must(t, dir.WriteFile(all[1], data, 0o600))
		}, chain.Wrong, "it follows"},
		"the first was replaced": {func(t *testing.T, dir *os.Root, all []string, key *chain.Key) {
			other, err := os.OpenRoot(t.TempDir())
			must(t, err)
			defer other.Close()
			record(t, other, key)
			data, err := other.ReadFile(names(t, other)[0])
			must(t, err)
			must(t, dir.WriteFile(all[0], data, 0o600))
		}, chain.Wrong, "does not end as it did"},
		"one lost its end":               {func(t *testing.T, dir *os.Root, all []string, _ *chain.Key) { cut(t, dir, all[1], 1) }, chain.Wrong, "has not the line"},
		"the last of a run lost its end": {func(t *testing.T, dir *os.Root, all []string, _ *chain.Key) { cut(t, dir, all[len(all)/2-1], 1) }, chain.Wrong, "has not the line"},
		"the last lost its end":          {func(t *testing.T, dir *os.Root, all []string, _ *chain.Key) { cut(t, dir, all[len(all)-1], 1) }, chain.Open, "no closing head"},
		"a byte was changed": {func(t *testing.T, dir *os.Root, all []string, _ *chain.Key) {
			data, err := dir.ReadFile(all[3])
			must(t, err)
			must(t, dir.WriteFile(all[3], bytes.Replace(data, []byte(`"test.`), []byte(`"tset.`), 1), 0o600))
		}, chain.Wrong, "line "},
		"one is there twice": {func(t *testing.T, dir *os.Root, all []string, _ *chain.Key) {
			data, err := dir.ReadFile(all[1])
			must(t, err)
			must(t, dir.WriteFile("sent/"+all[1], data, 0o600))
		}, chain.Wrong, "it follows"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, key := place(t)
			record(t, dir, key)
			row.do(t, dir, names(t, dir), key)
			s := series(t, dir, key, nil)
			if s.State != row.want || !strings.Contains(s.Why, row.why) || (s.State == chain.Wrong) != (s.Wrong != "") {
				t.Errorf("%s (%s: %s), want %s with %q", s.State, s.Wrong, s.Why, row.want, row.why)
			}
		})
	}
}

// cut takes lines from the end of a segment.
func cut(t *testing.T, dir *os.Root, name string, lines int) {
	t.Helper()
	data, err := dir.ReadFile(name)
	must(t, err)
	for range lines {
		data = data[:bytes.LastIndexByte(data[:len(data)-1], '\n')+1]
	}
	must(t, dir.WriteFile(name, data, 0o600))
}

func TestASegmentThatACrashLeftIsWholeAsFarAsTheNextOneSays(t *testing.T) {
	dir, key := place(t)
	w := writer(t, segment.Options{Dir: dir, Key: key})
	for i := range 3 {
		_, err := w.Write(line(t, i))
		must(t, err)
		must(t, w.Seal())
	}
	next := writer(t, segment.Options{Dir: dir, Key: key})
	if s := series(t, dir, key, nil); s.State != chain.Open || !strings.Contains(s.Why, "no closing head") {
		t.Errorf("while it is written: %s, %s", s.State, s.Why)
	}
	must(t, next.Close())
	if s := series(t, dir, key, nil); s.State != chain.Whole || s.Segments[0].State != chain.Open {
		t.Errorf("%s, %s", s.State, s.Why)
	}
	cut(t, dir, names(t, dir)[0], 2)
	if s := series(t, dir, key, nil); s.State != chain.Wrong || !strings.Contains(s.Why, "has not the line") {
		t.Errorf("cut short: %s, %s", s.State, s.Why)
	}
}

func TestAClockThatWasSetBackKeepsTheOrder(t *testing.T) {
	dir, key := place(t)
	ahead := "actions-29990101T000000.000000000Z-00000000.jsonl"
	w := writer(t, segment.Options{Dir: dir, Key: key})
	must(t, w.Close())
	must(t, dir.Rename(names(t, dir)[0], ahead))
	record(t, dir, key)
	if s := series(t, dir, key, nil); s.State != chain.Whole || s.Segments[0].Name != ahead {
		t.Errorf("%s (%s)", s.State, s.Why)
	}
}

func TestWhereThereAreNoSegmentsNothingIsVerified(t *testing.T) {
	dir, key := place(t)
	must(t, dir.WriteFile("other.jsonl", []byte("x"), 0o600))
	if _, err := segment.Verify(dir, chain.Options{Fingerprint: key.Fingerprint()}); !errors.Is(err, paddock.NotFound) {
		t.Errorf("%v", err)
	}
	must(t, dir.Symlink("/etc/hostname", fmt.Sprintf("actions-%s-0.jsonl", "20300101T000000.000000000Z")))
	if _, err := segment.Verify(dir, chain.Options{Fingerprint: key.Fingerprint()}); !errors.Is(err, paddock.NotFound) {
		t.Errorf("a link: %v", err)
	}
}
