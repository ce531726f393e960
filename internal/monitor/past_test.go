package monitor

import (
	"fmt"
	"testing"
)

// deletes removes n paths that were there before, and returns the strictest verdict.
func deletes(t *testing.T, m *Monitor, from, n int) Verdict {
	t.Helper()
	worst := Allow
	for i := range n {
		if d := m.Change(t.Context(), Change{Path: fmt.Sprint("f", from+i), What: Removed, Old: true}); d.Verdict.rank() > worst.rank() {
			worst = d.Verdict
		}
	}
	return worst
}

func TestACommandThatJoinsOthersGetsNoNewCount(t *testing.T) {
	for name, row := range map[string]struct {
		next func(*Monitor, []string, string)
		want Verdict
	}{
		"joins": {(*Monitor).Join, Pause},
		"alone": {(*Monitor).Begin, Allow},
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Options{Removed: 10, Measured: Measured{Files: true}, Count: func() (int, bool) { return 0, true }})
			m.Begin([]string{"rm", "-r", "x"}, "")
			if v := deletes(t, m, 0, 6); v != Allow {
				t.Fatalf("six removals: %s", v)
			}
			row.next(m, []string{"true"}, "")
			if v := deletes(t, m, 6, 6); v != row.want {
				t.Errorf("six more: %s, not %s", v, row.want)
			}
			if n := len(m.steps); n != 1 || m.steps[0].Guest.Command[0] != "rm" || m.now.step.Number != 2 {
				t.Errorf("%d steps are earlier ones, and the present is %d", n, m.now.step.Number)
			}
		})
	}
}

func TestTheEndOfOneOfSeveralForgetsNothing(t *testing.T) {
	m := New(Options{Removed: 10, Measured: Measured{Files: true}, Count: func() (int, bool) { return 0, true }})
	m.Begin([]string{"rm"}, "")
	deletes(t, m, 0, 6)
	m.Join([]string{"true"}, "")
	m.End(t.Context(), Summary{}) // of the second one, which did nothing
	if v := deletes(t, m, 6, 6); v != Pause {
		t.Errorf("six more: %s", v)
	}
}

func TestKeysAreRememberedHoweverLongAgo(t *testing.T) {
	to := Destination{Port: 443, Rule: true, Guest: DestinationGuest{Host: "new.example"}}
	for name, begin := range map[string]func(*Monitor){
		"named": func(m *Monitor) { m.Begin([]string{"cat", ".env"}, "") },
		"written": func(m *Monitor) {
			m.Begin([]string{"x"}, "")
			m.Change(t.Context(), Change{Path: ".env", What: Created})
		},
		"named by another": func(m *Monitor) { m.Begin([]string{"cat", ".env"}, ""); m.Join([]string{"true"}, "") },
	} {
		t.Run(name, func(t *testing.T) {
			m := New(Options{Measured: Measured{Files: true, Network: true}})
			begin(m)
			for range 2 * maxHistory {
				m.Begin([]string{"true"}, "")
			}
			if d := m.Host(t.Context(), to); d.Verdict != Deny || d.Rule != "host-after-keys" {
				t.Errorf("%+v", d)
			}
			next := New(Options{Measured: Measured{Files: true, Network: true}})
			next.Recall(m.Memory())
			if d := next.Host(t.Context(), to); d.Verdict != Deny || d.Rule != "host-after-keys" || d.Step <= 2*maxHistory {
				t.Errorf("the next monitor: %+v", d)
			}
		})
	}
}

func TestAHostThatWasReachedBeforeKeysIsNotNew(t *testing.T) {
	to := Destination{Port: 443, Rule: true, Guest: DestinationGuest{Host: "old.example"}}
	m := New(Options{Measured: Measured{Files: true, Network: true}})
	m.Begin([]string{"curl"}, "")
	if d := m.Host(t.Context(), to); d.Verdict != Allow {
		t.Fatalf("%+v", d)
	}
	m.Begin([]string{"cat", ".env"}, "")
	next := New(Options{Measured: Measured{Files: true, Network: true}})
	next.Recall(m.Memory())
	for what, m := range map[string]*Monitor{"the same": m, "the next": next} {
		if d := m.Host(t.Context(), to); d.Verdict != Allow {
			t.Errorf("%s: %+v", what, d)
		}
	}
}
