package box

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

func events(t *testing.T, path string) []audit.Event {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []audit.Event
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e audit.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %q: %v", path, lines.Text(), err)
		}
		all = append(all, e)
	}
	return all
}

func TestAFullLogBecomesTheOlderOneAndWhatIsGoneIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), auditName)
	l, err := openAuditLog(path, "box")
	if err != nil {
		t.Fatal(err)
	}
	l.max = 1000
	const n = 100
	for i := range n {
		line, err := audit.Line(audit.Event{Time: time.Now(), Sandbox: "box", Kind: audit.Exec, Path: fmt.Sprintf("/%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	kept, gone := 0, uint64(0)
	for _, name := range []string{path + auditOlder, path} {
		st, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if st.Size() > l.max || st.Mode() != 0o600 {
			t.Errorf("%s: %d bytes, mode %v", name, st.Size(), st.Mode())
		}
		for _, e := range events(t, name) {
			if e.Kind == audit.Lost {
				gone = e.Dropped
			} else {
				kept++
			}
		}
	}
	// The removed lines include one such line for each file except the first two.
	if last := events(t, path); last[len(last)-1].Path != "/99" {
		t.Errorf("the last is %+v", last[len(last)-1])
	}
	if gone == 0 || uint64(kept)+gone < n {
		t.Errorf("%d kept and %d told to be gone, of %d", kept, gone, n)
	}
}

func TestALogThatIsThereAlreadyIsNotTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), auditName)
	if err := os.Symlink("/nowhere", path); err != nil {
		t.Fatal(err)
	}
	if _, err := openAuditLog(path, "box"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
}

// A log whose next file cannot be made behaves like one on a full disk.
func TestABoxWhoseEventsCannotBeWrittenIsNoLongerHeard(t *testing.T) {
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	heard := make(chan error, 1)
	s := Plan{Name: "box", Runtime: &Runtime{Receive: func(f *os.File, _ string, sink audit.Sink) error {
		for range auditMax>>12 + 2 { // more than one file holds
			sink.Record(audit.Event{Kind: audit.Exec, Sandbox: "box", Path: strings.Repeat("p", audit.MaxPath)})
			time.Sleep(10 * time.Microsecond) // otherwise some would be lost
		}
		_, err := f.Read(make([]byte, 1)) // until it is closed
		heard <- err
		return err
	}}}
	done, err := keepAudit(&s, filepath.Join(dir, auditName), false)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = done() }() // its error is the one below
	if s.Audit == nil {
		t.Error("nothing would be told")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	err = s.Runtime.Receive(r, "box", s.Audit)
	if err == nil || !strings.Contains(err.Error(), "write events: ") {
		t.Errorf("%v", err)
	}
	if err := <-heard; !errors.Is(err, os.ErrClosed) {
		t.Errorf("it went on to hear: %v", err)
	}
}
