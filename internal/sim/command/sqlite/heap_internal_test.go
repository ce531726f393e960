package sqlite

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// within runs do as a tool on a computer that has a database of 2 MB.
func within(t *testing.T, l budget.Limits, do func(t *kernel.Task, open func() *console)) {
	t.Helper()
	const fill = "CREATE TABLE t(x); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 500) INSERT INTO t SELECT randomblob(4000) FROM c"
	made := commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"sqlite3", "a.db", fill}, Look: []string{"a.db"}})
	if made.Status != 0 {
		t.Fatalf("%+v", made)
	}
	tool := command.Command{Name: "sqlite3", Run: func(task *kernel.Task) int {
		ctx, release := task.Bounded(task.K.Limits.ScriptTime)
		defer release()
		do(task, func() *console {
			c := &console{t: task, mode: "list", separator: "|", newline: "\n", ctx: ctx, file: "a.db"}
			if err := c.open(); err != nil {
				t.Error(err)
			}
			return c
		})
		return 0
	}}
	r := commandtest.RunWithin(t, []command.Command{tool}, commandtest.Case{Args: []string{"sqlite3"}, Files: made.Files}, l)
	if r.Status != 0 {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
}

const (
	readAll = "SELECT sum(length(x)) FROM t"
	letGo   = "PRAGMA shrink_memory; PRAGMA cache_size = 1; SELECT count(*) FROM t"
)

// A connection that gives back its caches leaves those of others, and what they may have of memory, alone.
func TestAConnectionHasItsPagesToItself(t *testing.T) {
	within(t, budget.Limits{SQLHeap: 16 << 20}, func(_ *kernel.Task, open func() *console) {
		victim, other := open(), open()
		for range 50 {
			victim.query(readAll)
			other.query(letGo)
		}
		if victim.status != 0 || other.status != 0 {
			t.Errorf("they end with %d and %d", victim.status, other.status)
		}
		other.close()
		victim.query(readAll)
		victim.close()
	})
}

// What databases took of the heap is given back as a whole and not more, whoever frees it, also where the heap is full.
func TestTheHeapIsWhatItWasAfterDatabasesThatOverlap(t *testing.T) {
	within(t, budget.Limits{Heap: 64 << 20}, func(task *kernel.Task, open func() *console) {
		for fd := 1; fd <= 2; fd++ {
			_, _ = task.Write(fd, []byte(" ")) // what keeps it counts as well
		}
		heap := task.K.Heap()
		empty := heap.Used()
		open().close()
		each := heap.Used() - empty // what the task holds of each besides, until its end
		first, second := open(), open()
		second.query(readAll)
		first.query(letGo)
		second.close()
		rest := heap.Limit() - heap.Used() - 256<<10
		if err := heap.Add(rest); err != nil {
			t.Error(err)
		}
		first.query("SELECT length(printf('%0*d', 3000000, 1))")
		if first.status == 0 {
			t.Error("it has memory that nobody can count")
		}
		first.close()
		_ = heap.Add(-rest)
		if left := heap.Used() - empty - 3*each; left != 0 {
			t.Errorf("%d bytes too many are counted", left)
		}
	})
}
