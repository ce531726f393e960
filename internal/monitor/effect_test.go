package monitor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

func measured(o Options) *Monitor {
	o.Measured = Measured{Files: true, Network: true}
	m := New(o)
	m.Begin([]string{"make"}, "/")
	return m
}

func TestWhatWasRefusedIsRefusedAgain(t *testing.T) {
	workflow := Change{Path: ".github/workflows/ci.yml", What: Edited}
	long := strings.Repeat("d/", maxText) + ".husky/"
	deny := &counting{answer: Answer{Verdict: Deny, Reason: "no"}}
	for _, row := range []struct {
		name string
		o    Options
		list []Change
		want Verdict
	}{
		{"by a rule", Options{}, []Change{workflow, workflow, workflow}, Ask},
		{"by a judge", Options{NoRules: true, Judge: deny}, []Change{workflow, workflow, workflow}, Deny},
		{"in another directory", Options{}, []Change{workflow, {Root: 1, Path: workflow.Path, What: Edited}}, Ask},
		{"with a path that is cut", Options{}, []Change{{Path: long + "a", What: Edited}, {Path: long + "b", What: Edited}, {Path: long + "a", What: Edited}}, Pause},
		{"the names of a repository", Options{}, []Change{{Path: "x", From: ".git/HEAD", What: Moved}, {Path: "y", From: ".git/HEAD", What: Moved}}, Pause},
	} {
		var events []audit.Event
		row.o.Record = func(e audit.Event) { events = append(events, e) }
		m := measured(row.o)
		for i, c := range row.list {
			if d := m.Change(t.Context(), c); d.Verdict != row.want {
				t.Errorf("%s: %d: %+v", row.name, i, d)
			}
		}
		if len(events) != len(row.list) {
			t.Errorf("%s: %d of %d decisions are in the record", row.name, len(events), len(row.list))
		}
	}
}

// What is moved into a directory that tools rebuild is not rebuilt.
func TestFilesCountByAllTheirNames(t *testing.T) {
	for was, want := range map[string]Verdict{"src/%d": Pause, "dist/%d": Allow, "": Allow} {
		m := measured(Options{})
		worst := Allow
		for i := range 6000 {
			c := Change{Path: fmt.Sprintf("node_modules/src/%d", i), Old: true, What: Removed}
			if was != "" {
				c.Was = fmt.Sprintf(was, i)
			}
			if d := m.Change(t.Context(), c); d.Verdict != Allow {
				worst = d.Verdict
			}
		}
		if worst != want {
			t.Errorf("files that were at %q: %s, want %s", was, worst, want)
		}
	}
}

// A directory that the step made comes into the place of the user's by an exchange.
func TestWhatIsBackInAnExchangedDirectoryIsTheUsers(t *testing.T) {
	m := measured(Options{})
	for _, c := range []Change{
		{Path: "e", What: Created}, {Path: "e", From: "a", Was: "a", Old: true, What: Moved, Half: FirstHalf}, {Path: "a", From: "e", What: Moved, Half: SecondHalf},
		{Path: "a/sub", From: "e/sub", Was: "a/sub", Old: true, What: Moved},
	} {
		if d := m.Change(t.Context(), c); d.Verdict != Allow {
			t.Errorf("%+v: %+v", c, d)
		}
	}
	if d := m.Change(t.Context(), Change{Path: "a/sub/.github/workflows/ci.yml", Old: true, What: Edited}); d.Verdict != Ask {
		t.Errorf("%+v", d)
	}
}

func TestThePersonsAnswerHolds(t *testing.T) {
	a, b := Change{Path: ".github/workflows/a.yml", What: Edited}, Change{Path: ".github/workflows/b.yml", What: Edited}
	m := measured(Options{})
	m.Settled(a, m.Change(t.Context(), a), false, "a person was asked and did not allow it")
	for range 2 {
		if d := m.Change(t.Context(), a); d.Verdict != Deny || d.Rule != "" || !strings.Contains(d.Reason, "did not allow") {
			t.Errorf("after a denial: %+v", d)
		}
	}
	m.Settled(b, m.Change(t.Context(), b), true, "")
	if d := m.Change(t.Context(), b); d.Verdict != Allow {
		t.Errorf("after an allowance: %+v", d)
	}
	if d := m.Change(t.Context(), a); d.Verdict != Deny {
		t.Errorf("an allowance of another path: %+v", d)
	}
	m.Begin([]string{"make"}, "/")
	if d := m.Change(t.Context(), a); d.Verdict != Ask {
		t.Errorf("in the next step: %+v", d)
	}
}

func TestNoVerdictIsAskedAgain(t *testing.T) {
	c := &counting{err: fmt.Errorf("down")}
	m := measured(Options{NoRules: true, Judge: c})
	change := Change{Path: "AGENTS.md", What: Edited}
	d := m.Change(t.Context(), change)
	m.Settled(change, d, false, d.Reason)
	if d.Verdict != Deny || !d.Failed {
		t.Errorf("%+v", d)
	}
	c.err, c.answer = nil, Answer{Verdict: Allow}
	if d := m.Change(t.Context(), change); d.Verdict != Allow || c.asked != 2 {
		t.Errorf("asked %d times: %+v", c.asked, d)
	}
}

func TestARefusalOfManyRemovalsHolds(t *testing.T) {
	c := &counting{answer: Answer{Verdict: Deny, Reason: "too many"}}
	m := measured(Options{NoRules: true, Judge: c})
	for i := range 300 {
		d := m.Change(t.Context(), Change{Path: fmt.Sprintf("src/%d", i), What: Removed})
		if want := map[bool]Verdict{false: Allow, true: Deny}[i >= 99]; d.Verdict != want {
			t.Fatalf("removal %d: %+v", i, d)
		}
	}
	if d := m.Change(t.Context(), Change{Path: "node_modules/a", What: Removed}); d.Verdict != Allow {
		t.Errorf("what tools rebuild: %+v", d)
	}
	m.Settled(Change{Path: "src/299", What: Removed}, Decision{Step: 1, Verdict: Deny}, true, "")
	if d := m.Change(t.Context(), Change{Path: "src/299", What: Removed}); d.Verdict == Allow {
		t.Errorf("beyond the next number it is not judged again: %+v", d)
	}
}

func TestMoreEffectsThanTheJudgeIsAskedAboutAreNotAllowed(t *testing.T) {
	hook := func(i int) Change { return Change{Path: fmt.Sprintf("p%d/.husky/x", i), What: Edited} }
	c := &counting{answer: Answer{Verdict: Deny, Reason: "no"}}
	m := measured(Options{NoRules: true, Judge: c})
	for i := range 2 * maxEffects {
		if d := m.Change(t.Context(), hook(i)); d.Verdict != Deny || d.Reason != "no" {
			t.Errorf("%d after denials: %+v", i, d)
		}
	}
	if c.asked != maxEffects {
		t.Errorf("asked %d times", c.asked)
	}

	var events []audit.Event
	m = measured(Options{NoRules: true, Judge: &counting{answer: Answer{Verdict: Allow}}, Record: func(e audit.Event) { events = append(events, e) }})
	for i := range maxEffects {
		if d := m.Change(t.Context(), hook(i)); d.Verdict != Allow {
			t.Errorf("%d: %+v", i, d)
		}
	}
	d := m.Change(t.Context(), hook(maxEffects))
	if d.Verdict != Pause || d.Rule != RuleTooMany || events[maxEffects].Judgement.Rule != RuleTooMany {
		t.Errorf("the one too many: %+v", d)
	}
	m.Settled(hook(maxEffects), d, true, "")
	if d := m.Change(t.Context(), hook(maxEffects+1)); d.Verdict != Allow {
		t.Errorf("after a person let it go on: %+v", d)
	}
	judge := m.Flow(Flow{Host: "a.example", Sent: 1 << 30})
	if judge == nil {
		t.Fatal("an upload is not judged")
	}
	m = measured(Options{NoRules: true, Judge: &counting{answer: Answer{Verdict: Allow}}})
	for i := range maxEffects {
		m.Change(t.Context(), hook(i))
	}
	if d := m.Flow(Flow{Host: "a.example", Sent: 1 << 30})(t.Context()); d.Verdict != Pause {
		t.Errorf("an upload after many files: %+v", d)
	}
}

func TestHostsThatFillTheListHideNoUpload(t *testing.T) {
	for _, row := range []struct {
		name    string
		n       int
		refused bool
		hosts   int   // that the data goes to
		piece   int64 // for each
	}{
		{"refused ones", maxHosts, true, 1, 2 << 20},
		{"refused ones beyond all bounds", 5000, true, 1, 2 << 20},
		{"allowed ones", maxHosts, false, 1, 2 << 20},
		{"allowed ones beyond all bounds", 5000, false, 40, 64 << 10},
		{"ports of one host", 0, false, 0, 64 << 10},
	} {
		m := measured(Options{})
		for i := range row.n {
			m.Flow(Flow{Host: fmt.Sprintf("n%d.example", i), Port: 443, Refused: row.refused})
		}
		judged := 0
		for i := range max(row.hosts, 40) {
			f := Flow{Host: fmt.Sprintf("allowed%d.example", i%max(row.hosts, 1)), Port: 443, Sent: row.piece}
			if row.hosts == 0 {
				f.Port = uint16(i)
			}
			if judge := m.Flow(f); judge != nil {
				judged++
				if d := judge(t.Context()); d.Verdict != Pause || d.Rule != "upload-new-host" {
					t.Errorf("%s: %+v", row.name, d)
				}
			}
		}
		if judged == 0 {
			t.Errorf("%s: nothing was judged", row.name)
		}
		m.mu.Lock()
		if n := len(m.now.sent); n > maxSent {
			t.Errorf("%s: %d hosts are kept", row.name, n)
		}
		if list := m.now.step.Guest.Hosts; row.refused && list[0].Host != "allowed0.example" {
			t.Errorf("%s: a refused host keeps an allowed one out of the list", row.name)
		}
		m.mu.Unlock()
	}
}

func TestWhatComesIntoPlaceInOneMoveIsJudged(t *testing.T) {
	for _, row := range []struct {
		c    Change
		rule string
	}{
		{Change{Path: ".github/workflows/ci.yml", From: "evil", What: Moved, Half: SecondHalf}, "write-ci"},
		{Change{Path: ".github", From: "x", What: Moved}, "write-ci"},
		{Change{Path: ".github/workflows", From: "x", What: Moved}, "write-ci"},
		{Change{Path: "sub/.husky", From: "x", What: Moved}, "write-hook"},
		{Change{Path: ".claude", From: "x", What: Moved}, "write-agent"},
		{Change{Path: ".vscode", From: "x", What: Moved}, "write-agent"},
		{Change{Path: ".config/systemd", From: "x", What: Moved}, "write-shell"},
		{Change{Path: ".ssh", From: "x", What: Moved, Half: FirstHalf}, "write-shell"},
		{Change{Path: ".claude", What: Created, Link: true}, "write-agent"},
		{Change{Path: ".claude", What: Created}, ""},
		{Change{Path: "src", From: "x", What: Moved}, ""},
		{Change{Path: "library", From: "lib", What: Moved}, ""},
		{Change{Path: "current", What: Created, Link: true}, ""},
	} {
		if d := measured(Options{}).Change(t.Context(), row.c); d.Rule != row.rule {
			t.Errorf("%+v: %+v", row.c, d)
		}
	}
}

func TestAnExchangeMakesNothingOfTheUsersTheSteps(t *testing.T) {
	m := measured(Options{Removed: 1, Count: func() (int, bool) { return 0, true }})
	m.Change(t.Context(), Change{Path: "made", What: Created})
	m.Change(t.Context(), Change{Path: "mine", From: "made", What: Moved, Half: FirstHalf})
	m.Change(t.Context(), Change{Path: "made", From: "mine", What: Moved, Half: SecondHalf})
	if d := m.Change(t.Context(), Change{Path: "mine", What: Removed}); d.Verdict != Allow {
		t.Errorf("what the step made: %+v", d)
	}
	if d := m.Change(t.Context(), Change{Path: "made", What: Removed}); d.Verdict != Pause {
		t.Errorf("what was there before: %+v", d)
	}
}

func TestAKeyStaysInTheListOfPaths(t *testing.T) {
	m := measured(Options{})
	for i := range maxNotable {
		m.Change(t.Context(), Change{Path: fmt.Sprintf("p%d/.husky/x", i), What: Removed})
	}
	m.Change(t.Context(), Change{Path: ".env", What: Created})
	m.Change(t.Context(), Change{Path: "q/.husky/x", What: Removed})
	if d := m.Host(t.Context(), Destination{Port: 443, Guest: DestinationGuest{Host: "a.example"}}); d.Verdict != Deny {
		t.Errorf("%+v", d)
	}
}

// A name that is told is not all that a file is: it may be moved for a while, or have other names.
func TestAFileThatMattersIsJudgedByAllItsNames(t *testing.T) {
	const ci = ".github/workflows/ci.yml"
	ino := [2]uint64{0, 7}
	for name, c := range map[string]struct {
		before []Change
		last   Change
		want   Verdict
	}{
		"its own name":              {nil, Change{Path: ci, What: Edited}, Ask},
		"moved away":                {nil, Change{Path: "y", Was: ci, Old: true, What: Edited}, Ask},
		"a link":                    {nil, Change{Path: "x", From: ci, Was: ci, What: Created, Links: 2, Inode: ino}, Ask},
		"a link of the step's own":  {nil, Change{Path: "x", From: ci, What: Created, Links: 2, Inode: ino}, Ask},
		"by a link":                 {nil, Change{Path: "x", Was: ci, Old: true, What: Edited, Links: 2, Inode: ino}, Ask},
		"by a link of unknown name": {nil, Change{Path: "x", What: Edited, Links: 2, Inode: ino}, Ask},
		"by a link that came first": {[]Change{{Path: ci, From: "a", What: Moved, Links: 2, Inode: ino}}, Change{Path: "target/b", What: Edited, Links: 2, Inode: ino}, Ask},
		"in a moved directory": {
			[]Change{{Path: "d", What: Created}, {Path: "d/sub", From: "sub", What: Moved}},
			Change{Path: "d/sub/" + ci, Was: "sub/" + ci, Old: true, What: Edited}, Ask,
		},
		"a hook made in a moved directory": {
			[]Change{{Path: "d", What: Created}, {Path: "d/sub", From: "sub", What: Moved}},
			Change{Path: "d/sub/.husky/pre-commit", Was: "sub/.husky/pre-commit", Old: true, What: Created}, Pause,
		},
		"in what the step made":           {[]Change{{Path: "d", What: Created}}, Change{Path: "d/" + ci, What: Created}, Allow},
		"what nobody knows":               {nil, Change{What: Unseen}, Pause},
		"what the record lost":            {[]Change{{Path: "d", What: Created}}, Change{Path: "d/" + ci, Old: true, What: Edited}, Ask},
		"a link in what tools rebuild":    {nil, Change{Path: "node_modules/a/b", What: Edited, Links: 3, Inode: ino}, Allow},
		"one that leads out of it":        {[]Change{{Path: "x", From: "target/a", What: Created, Links: 2, Inode: ino}}, Change{Path: "target/a", What: Edited, Links: 2, Inode: ino}, Ask},
		"one in a directory that left it": {[]Change{{Path: "x", From: "target/d", What: Moved}}, Change{Path: "target/a", What: Edited, Links: 2, Inode: ino}, Ask},
		"a file with one name":            {nil, Change{Path: "a", Was: "b", Old: true, What: Edited}, Allow},
		"one of its names goes":           {nil, Change{Path: "a", What: Removed, Links: 2, Inode: ino}, Allow},
	} {
		m := measured(Options{})
		for _, b := range c.before {
			m.Change(t.Context(), b)
		}
		if d := m.Change(t.Context(), c.last); d.Verdict != c.want {
			t.Errorf("%s: %+v, want %s", name, d, c.want)
		}
	}
}

// What is gone under another name counts as what it was.
func TestARemovalCountsWhereverTheFileWasMoved(t *testing.T) {
	m := measured(Options{Removed: 3})
	m.Change(t.Context(), Change{Path: "d", What: Created})
	for i := range 3 {
		p := string(rune('a' + i))
		m.Change(t.Context(), Change{Path: "d/" + p, What: Created})
		m.Change(t.Context(), Change{Path: "d/" + p, Old: true, What: Removed})
	}
	if got := m.now.step.Files.Removed; got != 3 {
		t.Errorf("%d removals were counted", got)
	}
}
