package sqlite

import (
	"strings"
	"testing"

	"modernc.org/libc"
	engine "modernc.org/sqlite/lib"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// Kept is a tool that runs a statement, and tells afterwards how the engine keeps temporary files, how many pages a
// database may have, and how large they are.
func Kept(s string, kept *string) command.Command {
	return command.Command{Name: "sqlite3", Run: func(t *kernel.Task) int {
		c := &console{t: t, mode: "list", separator: "|", newline: "\n"}
		ctx, release := t.Bounded(t.K.Limits.ScriptTime)
		defer release()
		c.ctx = ctx
		defer c.close()
		c.file = "x.db" // if there is one
		if err := c.open(); err != nil {
			return 1
		}
		c.query(s)
		if err := c.handle(func(tls *libc.TLS, db uintptr) error {
			engine.Xsqlite3_set_authorizer(tls, db, 0, 0)
			return nil
		}); err != nil {
			return 1
		}
		is := append(append(c.texts("PRAGMA temp_store"), c.texts("PRAGMA max_page_count")...), c.texts("PRAGMA page_size")...)
		if len(is) == 3 {
			*kept = strings.Join(is, " ")
		}
		return 0
	}}
}

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
