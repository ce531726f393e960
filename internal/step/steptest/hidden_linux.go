package steptest

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// Hidden promises that nothing changes at a path that the host may not look at, and that no mode takes the contents of a file
// out of a record. A command may take away the right to search a directory, and work below it by one that it has open. To root
// no mode matters, so the tests run as an ordinary user too.
func Hidden(t *testing.T, base paddock.Spec, open Open) {
	t.Helper()
	s := begin(t, base, open)
	s.exec(t, `mkdir -p low/er && cp -R src/a low/er/a`) // no mode of the mount's own directory can be changed
	s.exec(t, `
		(cd low/er/a && chmod 0 ../.. && { echo evil > one; rm -f one; mv one two; ln one three; mkdir four; }; chmod 755 ../..)
		(cd src/b && chmod 0 .. && { mv one ../../out; mv /work/text one; rm -f one; rm -f ../../over; }; chmod 755 ..)
		exit 0`)
	s.exec(t, `
		chmod 0 emptied && rm -f emptied
		chmod 200 replaced && echo evil > replaced; chmod 644 replaced
		find src/a deep -type f -exec chmod 0 {} + && rm -rf src/a
		exit 0`)
	s.close(t)
	list, err := s.journal.List(t.Context(), step.Filter{Directory: s.work})
	if err != nil {
		t.Fatal(err)
	}
	for i := len(list) - 1; i >= 0; i-- {
		if r := &list[i]; r.Missed > 0 || r.Incomplete {
			t.Errorf("%+v", r)
			if full, err := s.journal.Read(t.Context(), r.Number); err == nil {
				t.Errorf("it has %+v, and left %+v", full.Changes, full.Left)
			}
		}
		if list[i].Changed > 0 {
			s.undo(t, list[i].Number)
		}
	}
	s.is(t, 0, "undo")
}
