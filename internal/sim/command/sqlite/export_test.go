package sqlite

import (
	"strings"
	"testing"
)

// Parts cuts a script as the console does, whole and line by line, and fails
// where the two differ or bytes are lost.
func Parts(t *testing.T, s string) {
	t.Helper()
	var whole, lines cutter
	at := 0
	for whole.next(s) {
		if whole.x.i <= at || whole.x.i > len(s) || s[whole.x.i-1] != ';' {
			t.Fatalf("%q: a statement from %d to %d", s, at, whole.x.i)
		}
		guarded(s[at:whole.x.i])
		at = whole.x.i
	}
	var once cutter
	if ended := once.complete(s); ended != (whole.ended && !whole.begun) {
		t.Errorf("%q: complete is %v", s, ended)
	}
	got, ended := "", false
	for line := range strings.Lines(s) {
		got += line
		ended = lines.complete(got)
	}
	if ended != (whole.ended && !whole.begun) {
		t.Errorf("%q: complete line by line is %v", s, ended)
	}
}
