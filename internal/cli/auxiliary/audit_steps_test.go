package auxiliary

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// A chainedJournal is a journal with steps, and the record that tells of them.
type chainedJournal struct {
	t              *testing.T
	dir, work      string
	key            *chain.Key
	journal        *step.Journal
	out            bytes.Buffer
	chain          *chain.Writer
	record, public string // files
}

func newChainedJournal(t *testing.T) *chainedJournal {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &chainedJournal{t: t, dir: filepath.Join(dir, "steps"), work: filepath.Join(dir, "work"), record: filepath.Join(dir, "events"), public: filepath.Join(dir, "public.pem")}
	if err := os.Mkdir(c.work, 0o700); err != nil {
		t.Fatal(err)
	}
	if c.key, err = chain.MakeKey(filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	text, err := chain.PublicPEM(c.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	c.write(c.public, text)
	if c.journal, err = step.Open(c.dir, step.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.journal.Close() })
	if c.chain, err = chain.NewWriter(&c.out, c.key); err != nil {
		t.Fatal(err)
	}
	c.event(audit.Event{Sandbox: "s", Kind: audit.Started, Start: &audit.Start{Tier: "jail"}})
	return c
}

func (c *chainedJournal) write(name string, data []byte) {
	c.t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chainedJournal) event(e audit.Event) {
	c.t.Helper()
	line, err := audit.Line(e)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.chain.Write(line); err != nil {
		c.t.Fatal(err)
	}
}

// step makes a step that makes a file, and returns its record.
func (c *chainedJournal) step(sandbox string) *step.Record {
	c.t.Helper()
	r, err := c.journal.Begin(c.t.Context(), step.About{Sandbox: sandbox, Tier: "jail", Kind: "run", Command: []string{"make"}, Roots: []step.Root{{Path: step.Text(c.work)}}, Start: time.Now()})
	if err != nil {
		c.t.Fatal(err)
	}
	name := strconv.FormatInt(r.Number(), 10)
	if err := r.Create(0, name); err != nil {
		c.t.Fatal(err)
	}
	c.write(filepath.Join(c.work, name), []byte("made\n"))
	rec, err := r.End(c.t.Context(), step.Outcome{})
	if err != nil {
		c.t.Fatal(err)
	}
	return rec
}

// told is step with its event, at a time.
func (c *chainedJournal) told(at time.Time) *step.Record {
	c.t.Helper()
	rec := c.step("s")
	c.event(audit.Event{Time: at, Sandbox: "s", Kind: audit.Stepped, Args: []string{"make"}, Step: &audit.Step{Number: rec.Number, Record: "sha256:" + rec.Digest, Kind: rec.Kind, Changed: 1, Duration: 1}})
	return rec
}

// close ends the record.
func (c *chainedJournal) close() {
	c.t.Helper()
	if err := c.chain.Close(); err != nil {
		c.t.Fatal(err)
	}
	c.write(c.record, c.out.Bytes())
}

func (c *chainedJournal) verify(more ...string) (code int, stdout, stderr string) {
	c.t.Helper()
	v := invoke(filepath.Dir(c.dir), nil, nil, append([]string{"audit", "verify", c.record, "--key", c.public, "--steps=" + c.dir}, more...)...)
	code = v.Run(c.t.Context())
	return code, v.Stdout.String(), v.Stderr.String()
}

func (c *chainedJournal) file(r *step.Record) string {
	return filepath.Join(c.dir, "record", strconv.FormatInt(r.Number, 10))
}

func TestStepsAreComparedWithTheRecord(t *testing.T) {
	c := newChainedJournal(t)
	first, second, third := c.told(time.Now()), c.told(time.Now()), c.told(time.Now())
	c.step("another")
	c.close()
	if code, stdout, stderr := c.verify(); code != 0 || stderr != "" || !strings.Contains(stdout, "\n  steps:  3, each with the record that it had when it ended\n") || strings.Contains(stdout, "note:") {
		t.Fatalf("exit status %d, %q, %q", code, stdout, stderr)
	}
	if _, err := c.journal.Undo(t.Context(), step.Request{Steps: []int64{third.Number}, Sandbox: "s"}); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := c.verify(); code != 0 || stderr != "" || !strings.Contains(stdout, "  note:   1 record says that it is an undo") {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}

	data, err := os.ReadFile(c.file(first))
	if err != nil {
		t.Fatal(err)
	}
	for i := range data { // every byte counts
		changed := bytes.Clone(data)
		changed[i] ^= 1
		c.write(c.file(first), changed)
		if code, _, stderr := c.verify(); code != 1 || !strings.HasPrefix(stderr, "paddock: "+c.record+": step 1: the journal's record ") {
			t.Fatalf("byte %d, %q: exit status %d, %q", i, data[i], code, stderr)
		}
	}
	c.write(c.file(first), data)

	// The record of another step in its place, which is whole in itself.
	if err := os.Rename(c.file(second), c.file(second)+".away"); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := c.verify()
	if code != 1 || !strings.Contains(stderr, "step 2: the journal has no record of it") {
		t.Errorf("exit status %d, %q", code, stderr)
	}
	code, stdout, stderr := c.verify("--json")
	if code != 1 || stderr != "" || !strings.Contains(stdout, `"problem": "missing"`) || !strings.Contains(stdout, `"compared": 3`) {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}
	if err := os.Rename(c.file(second)+".away", c.file(second)); err != nil {
		t.Fatal(err)
	}

	added := c.step("s")
	if code, _, stderr := c.verify(); code != 1 || !strings.Contains(stderr, "step "+strconv.FormatInt(added.Number, 10)+": the journal has a record of it, and the record of events has not") {
		t.Errorf("exit status %d, %q", code, stderr)
	}
}

func TestARecordOfAStepThatWasWrittenAnewIsTold(t *testing.T) {
	c := newChainedJournal(t)
	c.told(time.Now())
	c.close()
	if err := c.journal.Remove(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	c.write(filepath.Join(c.dir, "number"), []byte("0\n"))
	if again := c.step("s"); again.Number != 1 {
		t.Fatalf("the step has the number %d", again.Number)
	}
	if code, _, stderr := c.verify(); code != 1 || !strings.Contains(stderr, "it was changed or replaced") {
		t.Errorf("exit status %d, %q", code, stderr)
	}
}

func TestWhatNobodyVouchesForIsToldOfSteps(t *testing.T) {
	c := newChainedJournal(t)
	old := c.told(time.Now().Add(-15 * 24 * time.Hour))
	if err := c.journal.Remove(t.Context(), old.Number); err != nil {
		t.Fatal(err)
	}
	if err := c.chain.Seal(); err != nil {
		t.Fatal(err)
	}
	unsigned := c.told(time.Now())
	c.write(c.record, c.out.Bytes())
	code, stdout, stderr := c.verify()
	if code != 2 || stderr != "" || !strings.Contains(stdout, "no signed line tells of step "+strconv.FormatInt(unsigned.Number, 10)) || !strings.Contains(stdout, "1 step is older than 14 days") {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}
	v := invoke(filepath.Dir(c.dir), nil, nil, "audit", "verify", c.record, "--key", c.public, "--steps="+c.dir+"/missing")
	if code := v.Run(t.Context()); code != 125 || !strings.Contains(v.Stderr.String(), "hint: name the directory of a journal") {
		t.Errorf("exit status %d, %q", code, v.Stderr.String())
	}
	if _, err := os.Stat(c.dir + "/missing"); !os.IsNotExist(err) {
		t.Errorf("verifying makes a journal: %v", err)
	}
}
