package sql

import (
	"strings"
	"testing"
)

// Parts cuts a script as the console does, and fails where bytes are lost.
func Parts(t *testing.T, s string) {
	t.Helper()
	rest, got := s, strings.Builder{}
	for n := first(rest); n >= 0; n = first(rest) {
		if n == 0 || n > len(rest) {
			t.Fatalf("%q: a statement of %d bytes", rest, n)
		}
		guarded(rest[:n])
		got.WriteString(rest[:n])
		rest = rest[n:]
	}
	if got.String()+rest != s {
		t.Errorf("%q became %q", s, got.String()+rest)
	}
	if complete(s) != (rest == "" && s != "" || s != rest && blank(rest)) {
		t.Errorf("%q: complete is %v", s, complete(s))
	}
}
