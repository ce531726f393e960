package drivertest

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// The suite does not check the content of events, because the opener of a driver decides
// where they go. The drivers' own tests check it.
func auditPromises() []group {
	return []group{{can: []paddock.Capability{paddock.CanAudit}, promises: []promise{
		{"every kind of event can be recorded, and commands can do what they can without", auditChangesNothing},
	}}}
}

// deeds is a script whose actions are of every kind of event, and some of no kind.
const deeds = `umask; echo text > f; cat < f; cat /missing 2>&1; ls /proc/self/fd | wc -l; (exit 3); echo $?; sh -c 'kill -9 $$'; echo $?`

func auditChangesNothing(t *testing.T, s *suite) {
	plain := s.own(t)
	want := plain.must(t, deeds)
	lists := [][]paddock.AuditKind{paddock.AuditKinds()}
	for _, k := range paddock.AuditKinds() {
		lists = append(lists, []paddock.AuditKind{k, k})
	}
	for _, kinds := range lists {
		for _, ephemeral := range []bool{false, true} {
			b := s.own(t, func(spec *paddock.Spec) { spec.Policy.Audit, spec.Ephemeral = kinds, ephemeral })
			if got := b.must(t, deeds); got != want {
				t.Errorf("recording %v: %q, and without %q", kinds, got, want)
			}
			if err := b.Remove(bounded(t)); err != nil {
				t.Errorf("recording %v: remove: %v", kinds, err)
			}
		}
	}
}
