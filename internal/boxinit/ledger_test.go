package boxinit

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func TestALedgerTellsWhatWasRefusedAsFarAsItHasRoom(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(LedgerSize); err != nil {
		t.Fatal(err)
	}
	l := &ledger{file: f}
	now := time.Now().Round(0)
	for i := range 1000 {
		l.add(paddock.Refusal{Time: now, What: "write", Target: strings.Repeat("x", i%300) + "\nname", Rule: "r", Remedy: "m", Count: 1})
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	list := ReadLedger(f)
	if len(list) < 100 || len(list) >= 1000 {
		t.Fatalf("%d refusals", len(list))
	}
	if r := list[1]; r.Target != "x\nname" || !r.Time.Equal(now) || r.What != "write" || r.Rule != "r" || r.Remedy != "m" || r.Count != 1 {
		t.Errorf("%+v", r)
	}
	(&ledger{}).add(paddock.Refusal{}) // a box without one
}

// A hostile box writes lines that grow when they are written again.
func TestALedgerIsNoLongerAgainThanItsFile(t *testing.T) {
	for _, line := range []string{"{}\n", `{"target":"` + strings.Repeat("<", 1000) + "\"}\n"} {
		list := ReadLedger(strings.NewReader(strings.Repeat(line, LedgerSize)))
		if data, err := json.Marshal(list); err != nil || len(data) > LedgerSize || len(list) == 0 {
			t.Errorf("%.20q: %d refusals of %d bytes, %v", line, len(list), len(data), err)
		}
	}
	if list := Fit(make([]paddock.Refusal, 3), 1<<20); len(list) != 3 {
		t.Errorf("%d of 3 fit into a megabyte", len(list))
	}
}

func FuzzLedger(f *testing.F) {
	f.Add([]byte(`{"what":"write","target":"/x","rule":"r","count":-1}` + "\n\x00"))
	f.Add([]byte("{}\n{\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, r := range ReadLedger(bytes.NewReader(data)) {
			if r.Count < 1 || len(r.Target) > 4096 || len(r.What) > 8192 || strings.ContainsAny(r.What+r.Rule+r.Remedy, "\n\x1b\x00") {
				t.Errorf("%+v", r)
			}
		}
	})
}
