package attestation

import (
	"bytes"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
)

func begun(id string) audit.Event {
	e := audit.StartOf(paddock.Status{
		ID: paddock.ID(id), Tier: paddock.GVisor, Enforced: []paddock.Finding{{Control: paddock.ControlSeccomp, Strength: paddock.Full, How: "a filter"}},
	}, paddock.Spec{Policy: paddock.Policy{Audit: []paddock.AuditKind{paddock.AuditExec}}}, audit.Build{Version: "v1", Digest: "sha256:" + strings.Repeat("d", 64)})
	e.Time = time.Unix(100, 0)
	return e
}

func ofSandbox(id string, kind audit.Kind, amend func(*audit.Event)) audit.Event {
	e := audit.Event{Time: time.Unix(200, 0), Sandbox: id, Kind: kind}
	if amend != nil {
		amend(&e)
	}
	return e
}

func action(id, what, result string) audit.Event {
	return ofSandbox(id, audit.Did, func(e *audit.Event) { e.Action = &audit.Action{Who: "k", What: what, Result: result} })
}

// A book is a record that a test writes.
type book struct {
	t    *testing.T
	key  *chain.Key
	data bytes.Buffer
	w    *chain.Writer
}

func newBook(t *testing.T) *book {
	t.Helper()
	b := &book{t: t}
	var err error
	if b.key, err = chain.MakeKey(filepath.Join(t.TempDir(), "audit")); err != nil {
		t.Fatal(err)
	}
	if b.w, err = chain.NewWriter(&b.data, b.key); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *book) write(events ...audit.Event) {
	b.t.Helper()
	for _, e := range events {
		line, err := audit.Line(e)
		if err == nil {
			_, err = b.w.Write(line)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *book) close() {
	b.t.Helper()
	if err := b.w.Close(); err != nil {
		b.t.Fatal(err)
	}
}

// read verifies the record and has it counted.
func (b *book) read(tally *Tally) (Predicate, error) {
	b.t.Helper()
	rep, err := chain.Verify(bytes.NewReader(b.data.Bytes()), chain.Options{Fingerprint: b.key.Fingerprint(), Each: tally.Line})
	if err != nil || rep.State == chain.Wrong {
		b.t.Fatalf("%+v, %v", rep, err)
	}
	return tally.Predicate()
}

func TestAPredicateSaysWhatTheRecordHas(t *testing.T) {
	b := newBook(t)
	flow := func(f audit.Flow) audit.Event {
		return ofSandbox("a", audit.Network, func(e *audit.Event) { e.Network = &f })
	}
	use := func(verdict string, n int64) audit.Event {
		return ofSandbox("a", audit.KeyAgent, func(e *audit.Event) { e.KeyUse = &audit.KeyUse{Verdict: verdict, Count: n} })
	}
	b.write(
		probed("a"),
		begun("a"),
		ofSandbox("a", audit.Exec, nil), ofSandbox("a", audit.Exec, func(e *audit.Event) { e.Dropped = 7 }), ofSandbox("b", audit.Exec, nil),
		flow(audit.Flow{Verdict: "allow", Secrets: []string{"TOKEN", "OTHER"}}), flow(audit.Flow{Verdict: "allow", Secrets: []string{"TOKEN"}}),
		flow(audit.Flow{Verdict: "deny", Count: 3}), flow(audit.Flow{Verdict: "deny"}),
		use("allow", 0), use("deny", 2),
		stepped("a", audit.Step{Changed: 5, Removed: 3, Left: 1}), stepped("b", audit.Step{Changed: 50}), stepped("a", audit.Step{Changed: 2, Removed: -1 << 40}),
		ofSandbox("a", "to-come", nil),
		action("a", "process.start", "ok"), action("a", "process.start", "not found"), action("a", "file.read", "denied"), action("a", "sandbox.update", "ok"),
		ofSandbox("", audit.Lost, func(e *audit.Event) { e.Dropped = 2 }),
	)
	b.close()
	p, err := b.read(NewTally(""))
	if err != nil {
		t.Fatal(err)
	}
	if p.Counts.Exec == nil || *p.Counts.Exec != 2 {
		t.Errorf("exec: %v", p.Counts.Exec)
	}
	if r, k := p.Counts.Refusals, p.Counts.KeyUses; r == nil || *r != 3+1+2 || k == nil || *k != 1 {
		t.Errorf("refusals %v, uses of keys %v", r, k)
	}
	if n := p.Counts.Steps; n == nil || *n != (StepCounts{Number: 2, Changed: 7, Removed: 3, Left: 1}) {
		t.Errorf("%+v", n)
	}
	if want := map[string]int64{"exec": 3, "network": 4, "key-agent": 2, "action": 4, "step": 2, "to-come": 1, "start": 1}; !maps.Equal(p.Counts.Events, want) {
		t.Errorf("%v, want %v", p.Counts.Events, want)
	}
	whole := p
	p.Counts.Steps, p.Counts.Events = nil, nil
	p.Counts.Exec, p.Counts.Refusals, p.Counts.KeyUses = nil, nil, nil
	if want := (Counts{Commands: 1, Updates: 1, Lost: 9}); !reflect.DeepEqual(p.Counts, want) {
		t.Errorf("%+v, want %+v", p.Counts, want)
	}
	if len(p.Secrets) != 2 || p.Secrets["TOKEN"] != 2 || p.Secrets["OTHER"] != 1 {
		t.Errorf("%v", p.Secrets)
	}
	if p.Sandbox != (Sandbox{ID: "a", Tier: "gvisor", Root: "host"}) || len(p.Controls) != 1 || p.Controls[0] != (Control{"seccomp", "full"}) || p.Paddock.Version != "v1" {
		t.Errorf("%+v", p)
	}
	if point := b.w.Point(); p.Record.Head != point || p.Record.Lines != point.Seq || !p.Record.Closed || p.Record.Fingerprint != b.key.Fingerprint() || p.Record.Segments != 0 {
		t.Errorf("%+v, want %v", p.Record, point)
	}
	if !p.Started.Equal(time.Unix(100, 0)) || !p.Ended.Equal(p.Record.Signed) {
		t.Errorf("%v to %v", p.Started, p.Ended)
	}
	again, err := b.read(Again(New(nil, p)))
	if err != nil {
		t.Fatal(err)
	}
	if err := Same(whole, again); err != nil {
		t.Error(err)
	}
	// An attestation of an earlier version is compared with what that had.
	old := New(nil, p)
	old.PredicateType = FirstPredicateType
	if again, err = b.read(Again(old)); err != nil {
		t.Fatal(err)
	}
	again.Counts.Exec, again.Counts.Refusals, again.Counts.KeyUses = nil, nil, nil
	if err := Same(p, again); err != nil {
		t.Error(err)
	}
}

func stepped(id string, s audit.Step) audit.Event {
	return ofSandbox(id, audit.Stepped, func(e *audit.Event) { e.Step = &s })
}

func TestKindsOfEventsHaveABound(t *testing.T) {
	b := newBook(t)
	b.write(begun("a"))
	for i := range maxKinds {
		b.write(ofSandbox("a", audit.Kind(strconv.Itoa(i)), nil))
	}
	b.close()
	if _, err := b.read(NewTally("")); !errors.Is(err, paddock.Exhausted) {
		t.Error(err)
	}
}

func TestTheImageOfARootIsAttested(t *testing.T) {
	e := begun("a")
	e.Start.Image = "sha256:" + strings.Repeat("1", 64)
	b := newBook(t)
	b.write(e)
	b.close()
	if p, err := b.read(NewTally("")); err != nil || p.Sandbox.Image == nil || p.Sandbox.Image.SHA256 != strings.Repeat("1", 64) {
		t.Errorf("%+v, %v", p.Sandbox, err)
	}
	e.Start.Image = "latest"
	b = newBook(t)
	b.write(e)
	b.close()
	if _, err := b.read(NewTally("")); err == nil || !strings.Contains(err.Error(), "as the digest of its image") {
		t.Error(err)
	}
}

func TestWhatDiffersFromTheRecordIsNamed(t *testing.T) {
	b := newBook(t)
	b.write(begun("a"), ofSandbox("a", audit.Exec, nil))
	b.close()
	good, err := b.read(NewTally("a"))
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Predicate){
		"record":   func(p *Predicate) { p.Record.Lines++ },
		"sandbox":  func(p *Predicate) { p.Sandbox.Tier = "microvm" },
		"controls": func(p *Predicate) { p.Controls = nil },
		"policy":   func(p *Predicate) { p.Policy.Digest.SHA256 = "" },
		"paddock":  func(p *Predicate) { p.Paddock.Modified = true },
		"counts":   func(p *Predicate) { p.Counts.Exec = nil },
		"secrets":  func(p *Predicate) { p.Secrets = map[string]int64{"A": 1} },
		"times":    func(p *Predicate) { p.Ended = time.Time{} },
	} {
		said := good
		change(&said)
		if err := Same(said, good); err == nil || !strings.Contains(err.Error(), "says of "+want+" ") {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := Same(good, good); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Predicate){
		"another log":  func(p *Predicate) { p.Record.Log = strings.Repeat("0", 32) },
		"another line": func(p *Predicate) { p.Record.Head.Seq-- },
	} {
		said := good
		change(&said)
		if _, err := b.read(Again(New(nil, said))); err == nil || !strings.Contains(err.Error(), "the record has no head at line") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARecordThatLacksSomethingIsRefusedWithTheReason(t *testing.T) {
	amended := func(change func(*audit.Start)) []audit.Event {
		e := begun("a")
		change(e.Start)
		return []audit.Event{e}
	}
	many := []audit.Event{begun("a")}
	for range 3 {
		many = append(many, begun("b"), begun("c"))
	}
	for _, row := range []struct {
		name    string
		sandbox string
		events  []audit.Event
		want    string
	}{
		{"no event", "", nil, "does not say how a sandbox began"},
		{"no start, as in records of earlier versions", "", []audit.Event{ofSandbox("a", audit.Exec, nil)}, "does not say how a sandbox began"},
		{"a start without what it started", "", []audit.Event{ofSandbox("a", audit.Started, nil)}, "does not say how a sandbox began"},
		{"another sandbox", "b", []audit.Event{begun("a")}, `does not say how the sandbox "b" began`},
		{"several", "", many, "more than one sandbox: a, b, c"},
		{"no controls", "", amended(func(s *audit.Start) { s.Controls = nil }), "lacks its tier"},
		{"no digest of the program", "", amended(func(s *audit.Start) { s.Paddock.Digest = "" }), "lacks its tier"},
		{"no digest of the policy", "", amended(func(s *audit.Start) { s.Policy = "sha256:1" }), "lacks its tier"},
		{"no digest of the file", "", amended(func(s *audit.Start) { s.PolicyFile = "x" }), "as the digest of its policy file"},
	} {
		b := newBook(t)
		b.write(row.events...)
		b.close()
		if _, err := b.read(NewTally(row.sandbox)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}

// A start behind the last head may have been written by anybody.
func TestOnlySignedLinesCount(t *testing.T) {
	b := newBook(t)
	b.write(begun("a"))
	if _, err := b.read(NewTally("")); !errors.Is(err, paddock.NotFound) {
		t.Errorf("before the head: %v", err)
	}
	if err := b.w.Seal(); err != nil {
		t.Fatal(err)
	}
	b.write(ofSandbox("a", audit.Exec, nil))
	p, err := b.read(NewTally(""))
	if err != nil || *p.Counts.Exec != 0 || p.Record.Closed || !p.Ended.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	// What comes later changes nothing of what was attested.
	b.write(action("a", "sandbox.remove", "ok"))
	b.close()
	again, err := b.read(Again(New(nil, p)))
	if err == nil {
		err = Same(p, again)
	}
	if err != nil {
		t.Error(err)
	}
}

func TestASandboxOfAServerIsOneOfMany(t *testing.T) {
	b := newBook(t)
	more := action("", "record.continue", "ok")
	b.write(more, begun("a"), action("a", "process.start", "ok"), action("a", "sandbox.remove", "ok"), begun("b"), action("b", "process.start", "ok"))
	b.close()
	for _, id := range []string{"a", "b"} {
		p, err := b.read(NewTally(id))
		if err != nil || p.Counts.Commands != 1 || p.Record.Segments != 1 || p.Ended.IsZero() != (id == "b") {
			t.Errorf("%s: %+v, %v", id, p, err)
		}
	}
}

// probed is what a driver runs in each sandbox before that is ready.
func probed(id string) audit.Event {
	return ofSandbox(id, audit.Exec, func(e *audit.Event) { e.Path, e.Args = "/memfd:probe (deleted)", []string{"probe"} })
}

// Code of a snapshot of memory runs before the start is recorded, and can delay that.
func TestWhatWasDoneBeforeTheStartWasRecordedCounts(t *testing.T) {
	program := func(path, arg string) audit.Event {
		return ofSandbox("a", audit.Exec, func(e *audit.Event) { e.Path, e.Args = path, []string{arg} })
	}
	refused := ofSandbox("a", audit.Network, func(e *audit.Event) { e.Network = &audit.Flow{Verdict: "deny"} })
	used := ofSandbox("a", audit.Network, func(e *audit.Event) { e.Network = &audit.Flow{Verdict: "allow", Secrets: []string{"TOKEN"}} })
	key := ofSandbox("a", audit.KeyAgent, func(e *audit.Event) { e.KeyUse = &audit.KeyUse{Verdict: "allow"} })
	forked := begun("a")
	forked.Start.Root, forked.Start.Snapshot = "snapshot", "snapshot-1"
	for name, row := range map[string]struct {
		events []audit.Event
		exec   int64
	}{
		"the probe, and others":                   {[]audit.Event{probed("a"), program("/usr/bin/curl", "curl"), refused, used, key, begun("a")}, 1},
		"one that is called like the probe":       {[]audit.Event{probed("a"), probed("a"), refused, used, key, begun("a")}, 1},
		"one like it that is not the first":       {[]audit.Event{program("/usr/bin/curl", "probe"), probed("a"), refused, used, key, begun("a")}, 2},
		"one like it, where a snapshot has begun": {[]audit.Event{probed("a"), refused, used, key, forked}, 1},
		"one like it, after the start":            {[]audit.Event{refused, used, key, begun("a"), probed("a")}, 1},
		"those of a tier that could not make it":  {[]audit.Event{probed("b"), ofSandbox("b", audit.Exec, nil), refused, used, key, begun("a")}, 0},
	} {
		b := newBook(t)
		b.write(row.events...)
		b.close()
		p, err := b.read(NewTally(""))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c := p.Counts; *c.Exec != row.exec || *c.Refusals != 1 || *c.KeyUses != 1 || p.Secrets["TOKEN"] != 1 {
			t.Errorf("%s: %d programs, %d refusals, %d uses of keys, secrets %v", name, *c.Exec, *c.Refusals, *c.KeyUses, p.Secrets)
		}
	}
}

// What kernels, gateways and key agents of a server's sandboxes report is not in its record.
func TestARecordOfActionsSaysNothingOfWhatItCannotHave(t *testing.T) {
	b := newBook(t)
	b.write(action("", "record.continue", "ok"), begun("a"), action("a", "file.read", "denied"), action("a", "process.start", "ok"))
	b.close()
	p, err := b.read(NewTally("a"))
	if err != nil {
		t.Fatal(err)
	}
	c := p.Counts
	if c.Exec != nil || c.Refusals != nil || c.KeyUses != nil || p.Secrets != nil || len(p.Record.Kinds) != 0 {
		t.Errorf("%+v, secrets %v, kinds %v", c, p.Secrets, p.Record.Kinds)
	}
	if c.RefusedActions == nil || *c.RefusedActions != 1 || c.Commands != 1 {
		t.Errorf("%+v", c)
	}
}

func TestAnIDThatWasUsedAgainNeedsATime(t *testing.T) {
	at := func(seconds int64, tenant string) audit.Event {
		e := begun("a")
		e.Time, e.Start.Tenant = time.Unix(seconds, 7), tenant
		return e
	}
	more, created, removed, ran := action("", "record.continue", "ok"), action("a", "sandbox.create", "ok"), action("a", "sandbox.remove", "ok"), action("a", "process.start", "ok")
	for name, events := range map[string][]audit.Event{
		// The second command was started before its sandbox's start was recorded.
		"with its removal":            {more, created, at(100, "one"), ran, removed, ran, created, at(300, "two"), ran, ran},
		"whose removal is not in it":  {more, created, at(100, "one"), ran, created, ran, at(300, "two"), ran, ran},
		"between others":              {more, begun("b"), created, at(100, "one"), action("b", "process.start", "ok"), ran, removed, ran, created, at(300, "two"), ran, ran},
		"that was not to be made too": {more, created, at(100, "one"), ran, removed, action("a", "sandbox.create", "exists"), ran, at(300, "two"), ran, ran},
	} {
		b := newBook(t)
		b.write(events...)
		b.close()
		const want = "used for 2 sandboxes, which started at 1970-01-01T00:01:40.000000007Z for the tenant one, 1970-01-01T00:05:00.000000007Z for the tenant two"
		if _, err := b.read(NewTally("a")); !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
		for seconds, row := range map[int64]struct {
			tenant   string
			commands int64
		}{100: {"one", 1}, 300: {"two", 3}} {
			p, err := b.read(NewTally("a").At(time.Unix(seconds, 7)))
			if err != nil || p.Sandbox.Tenant != row.tenant || p.Counts.Commands != row.commands {
				t.Errorf("%s, at %d: %+v, %v", name, seconds, p, err)
			}
			again, err := b.read(Again(New(nil, p)))
			if err == nil {
				err = Same(p, again)
			}
			if err != nil {
				t.Errorf("%s, at %d: %v", name, seconds, err)
			}
		}
		if _, err := b.read(NewTally("a").At(time.Unix(200, 0))); !errors.Is(err, paddock.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
