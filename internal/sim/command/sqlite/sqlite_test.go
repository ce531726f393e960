package sqlite_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/sqlite"
)

const shop = "CREATE TABLE a(x INTEGER, y TEXT); INSERT INTO a VALUES(1,'one'),(2,'two; \"x\"'),(3,NULL);\n"

func TestSQLiteAnswersAsTheRealOneDoes(t *testing.T) {
	files := map[string]string{"shop.sql": shop, "f.csv": "n,v\na,1\n\"b c\",2\n"}
	var cases []commandtest.Case
	for _, script := range []string{
		"SELECT * FROM a;\nSELECT count(*), avg(x), sum(x)*1.5, 1e100, 1/3.0 FROM a;",
		".mode csv\n.headers on\nSELECT * FROM a ORDER BY x DESC;",
		".mode json\nSELECT x, y, x*0.5 AS half FROM a;",
		".mode column\n.headers on\nSELECT x, y FROM a;",
		".mode box\nSELECT x, y FROM a;", ".mode table\nSELECT x, y FROM a;", ".mode markdown\nSELECT x, y FROM a;",
		".mode line\nSELECT * FROM a;", ".mode quote\nSELECT * FROM a;", ".mode tabs\nSELECT * FROM a;",
		".tables", ".schema", ".nullvalue NONE\nSELECT * FROM a;", ".separator ,\nSELECT * FROM a;",
		".mode csv\n.import f.csv imp\n.headers on\nSELECT * FROM imp;",
		"CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE a SET y='seen' WHERE x=1; END;\nINSERT INTO a VALUES(9,'n'); SELECT * FROM a;",
		"WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<5) SELECT group_concat(i) FROM c; -- done",
	} {
		cases = append(cases, commandtest.Case{Args: []string{"sqlite3"}, Stdin: ".read shop.sql\n" + script + "\n", Files: files})
	}
	cases = append(cases,
		commandtest.Case{Args: []string{"sqlite3", "-header", ":memory:", "SELECT 1 AS one, 'a b' AS two; SELECT 3"}},
		commandtest.Case{Args: []string{"sqlite3", "-json", ":memory:", "SELECT NULL AS n, 'ü\"' AS q"}},
		commandtest.Case{Args: []string{"sqlite3", ":memory:", "-csv", "SELECT 1 AS one, 'a b' AS two", "-header", "SELECT 3"}},
		commandtest.Case{Args: []string{"sqlite3", "-readonly", ":memory:", "SELECT 1; CREATE TABLE t(a); SELECT 2"}},
		commandtest.Case{Args: []string{"sqlite3", ":memory:", "CREATE TABLE t(a UNIQUE); INSERT INTO t VALUES (1), (1); SELECT 2"}},
	)
	commandtest.Compare(t, sqlite.Commands(), cases)
}

func TestTheEngineOpensNoOtherFile(t *testing.T) {
	for _, script := range []string{"ATTACH 'other.db' AS o;", "VACUUM INTO 'copy.db';", "SELECT load_extension('x');"} {
		r := commandtest.Run(t, sqlite.Commands(), commandtest.Case{Args: []string{"sqlite3", "x.db", script}, Look: []string{"other.db", "copy.db"}})
		if r.Status == 0 || r.Files["other.db"] != "missing" || r.Files["copy.db"] != "missing" {
			t.Errorf("%s: %+v", script, r)
		}
	}
}

// The engine would keep temporary tables in files of the machine, wherever it is
// told.
func TestTheEngineKeepsItsTemporaryFilesToItself(t *testing.T) {
	for _, script := range []string{
		"PRAGMA temp_store_directory = '/tmp'", "pragma/**/main . [TEMP_STORE_DIRECTORY]='/tmp'", "SELECT 1; PRAGMA \"temp_store_directory\"('/tmp')", "-- x\n ; PRAGMA 'temp_store_directory' = '/tmp'",
		"\ufeffPRAGMA temp_store_directory = '/tmp'", "PRAGMA \ufeffmax_page_count = 1", "SELECT 1; \ufeffPRAGMA \ufefftemp_store_directory = '/tmp'",
		"PRAGMA main.hard_heap_limit(0)", "SELECT * FROM pragma_soft_heap_limit", "PRAGMA page_size = 65536", "PRAGMA page_size = 0x10000",
		"PRAGMA data_store_directory = '/tmp'", "PRAGMA temp_store = 1; PRAGMA hard_heap_limit = 0", "CREATE TRIGGER t; PRAGMA temp_store = 1",
		"PRAGMA max_page_count = 4294967294",
	} {
		if r := commandtest.Run(t, sqlite.Commands(), commandtest.Case{Args: []string{"sqlite3", ":memory:", script}}); r.Status == 0 {
			t.Errorf("%s: %+v", script, r)
		}
	}
	for script, want := range map[string]string{
		"PRAGMA temp_store = 1; SELECT temp_store FROM pragma_temp_store": "2\n", "; \ufeffPRAGMA temp_store = FILE; PRAGMA temp_store": "2\n",
		"PRAGMA cache_size = 1; PRAGMA shrink_memory; PRAGMA temp_store; PRAGMA cache_size": "2\n1\n",
		"PRAGMA temp_store=MEMORY; SELECT 'PRAGMA temp_store_directory'":                    "PRAGMA temp_store_directory\n",
	} {
		if r := commandtest.Run(t, sqlite.Commands(), commandtest.Case{Args: []string{"sqlite3", ":memory:", script}}); r.Stdout != want {
			t.Errorf("%s: %+v", script, r)
		}
	}
}

// Whatever a statement is read as, it does not change where the engine's temporary files are, or how large a database may be.
func FuzzPragmas(f *testing.F) {
	for _, s := range []string{
		"PRAGMA temp_store = 1", "\ufeffPRAGMA temp_store = FILE; SELECT 1", "PRAGMA \ufeffmax_page_count = 1", "pragma/**/main . [TEMP_STORE]=1",
		"EXPLAIN PRAGMA temp_store = 1", "PRAGMA max_page_count(4294967294)", "SELECT * FROM pragma_temp_store", "PRAGMA page_size = 8192; CREATE TABLE t(a)",
	} {
		f.Add(s)
	}
	var shadowed string
	f.Fuzz(func(t *testing.T, s string) {
		if shadowed == "" {
			shadowed = shadowing(t)
		}
		for _, files := range []map[string]string{nil, {"x.db": shadowed}} {
			kept := ""
			commandtest.RunWithin(t, []command.Command{sqlite.Kept(s, &kept)}, commandtest.Case{Args: []string{"sqlite3"}, Files: files},
				budget.Limits{Database: 1 << 20, ScriptTime: time.Second, Steps: 100_000})
			if kept != "" && kept != "2 256 4096" { // the script may have ended the run
				t.Errorf("%q: %s", s, kept)
			}
		}
	})
}

const endless = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c) SELECT count(*) FROM c"

// database returns the file that a script makes.
func database(t *testing.T, script string) string {
	t.Helper()
	r := commandtest.Run(t, sqlite.Commands(), commandtest.Case{Args: []string{"sqlite3", "x.db", script}, Look: []string{"x.db"}})
	if r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	return r.Files["x.db"]
}

// shadowing returns a database with a view of the name of each pragma's table, whose query does not end.
func shadowing(t *testing.T) string {
	t.Helper()
	r := commandtest.Run(t, sqlite.Commands(), commandtest.Case{Args: []string{"sqlite3", ":memory:", "PRAGMA pragma_list"}})
	var script strings.Builder
	for name := range strings.FieldsSeq(r.Stdout) {
		fmt.Fprintf(&script, "CREATE VIEW pragma_%s AS SELECT i AS %[1]s FROM (%[2]s);", name, strings.Replace(endless, "count(*)", "count(*) AS i", 1))
	}
	if script.Len() == 0 {
		t.Fatalf("%+v", r)
	}
	return database(t, script.String())
}

// A table or view of the file goes before one of the engine's.
func TestAFileSaysNothingToTheEngineBeforeItIsBounded(t *testing.T) {
	files := map[string]string{"x.db": shadowing(t)}
	r := commandtest.RunWithin(t, sqlite.Commands(), commandtest.Case{Args: []string{"sqlite3", "x.db", "SELECT 'ended'"}, Files: files}, budget.Limits{Steps: 1_000_000})
	if r.Status != 0 || r.Stdout != "ended\n" {
		t.Errorf("%+v", r)
	}
	const grow = "CREATE TABLE t (x); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 7000) INSERT INTO t SELECT randomblob(1000) FROM c"
	for _, size := range []string{"1", "512", "65536"} {
		files["x.db"] = database(t, "CREATE TABLE pragma_page_size(page_size); INSERT INTO pragma_page_size VALUES("+size+")")
		r = commandtest.RunWithin(t, sqlite.Commands(), commandtest.Case{Args: []string{"sqlite3", "x.db", "PRAGMA page_size; " + grow}, Files: files},
			budget.Limits{Database: 1 << 20})
		if r.Status != 13 || r.Stdout != "4096\n" {
			t.Errorf("%+v", r)
		}
	}
}

func TestADatabaseStaysWithinItsLimits(t *testing.T) {
	const grow = "CREATE TABLE t (x); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000) INSERT INTO t SELECT randomblob(1000) FROM c"
	r := commandtest.RunWithin(t, sqlite.Commands(), commandtest.Case{Args: []string{"sqlite3", ":memory:", grow}}, budget.Limits{Database: 1 << 20})
	if r.Status != 13 || !strings.Contains(r.Stderr, "full") {
		t.Errorf("a database: %+v", r)
	}
	r = commandtest.RunWithin(t, sqlite.Commands(), commandtest.Case{Args: []string{"sqlite3", ":memory:", grow}}, budget.Limits{SQLHeap: 4 << 20})
	if r.Status == 0 || !strings.Contains(r.Stderr, "memory") && !strings.Contains(r.Stderr, "sql_heap") {
		t.Errorf("memory: %+v", r)
	}
	r = commandtest.RunWithin(t, sqlite.Commands(), commandtest.Case{Args: []string{"sqlite3", ":memory:", grow}}, budget.Limits{Heap: 4 << 20})
	if r.Status != 7 || !strings.Contains(r.Stderr, "out of memory") {
		t.Errorf("memory of the sandbox: %+v", r)
	}
}

func TestInputWithoutEndReachesALimit(t *testing.T) {
	for script, limit := range map[string]string{".import /dev/zero t": `"record"`, ".read r": `"sources"`, ".mode csv\n.import /dev/zero t": `"record"`} {
		r := commandtest.RunWithin(t, sqlite.Commands(), commandtest.Case{
			Args: []string{"sqlite3", ":memory:", script}, Files: map[string]string{"r": ".read r\n"},
		}, budget.Limits{Record: 1 << 20, Sources: 20})
		if !strings.Contains(r.Stderr, limit) {
			t.Errorf("%s: %+v", script, r)
		}
	}
}

func FuzzStatements(f *testing.F) {
	for _, s := range []string{"SELECT ';' ; SELECT 2;", "CREATE TRIGGER a BEGIN SELECT 1; END; PRAGMA temp_store=1", "/* ; */ -- ;\n;", "[;] `;` \";\"; '"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { sqlite.Parts(t, s) })
}

func TestAnEndlessQueryEndsByItsLimit(t *testing.T) {
	r := commandtest.RunWithin(t, sqlite.Commands(), commandtest.Case{Args: []string{
		"sqlite3", ":memory:", "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c) SELECT count(*) FROM c",
	}}, shortLimits())
	if r.Status != 137 {
		t.Errorf("%+v", r)
	}
}

// The first row comes at once, and the step to the second never ends.
const endlessSecond = "SELECT 1 UNION ALL SELECT count(*) FROM (WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c) SELECT i FROM c)"

func TestEveryRowOfAnEndlessQueryIsEndedAndPaidFor(t *testing.T) {
	for name, query := range map[string]string{
		"the first": "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c) SELECT count(*) FROM c", "the second": endlessSecond,
		"an insertion": "CREATE TABLE t(x); INSERT INTO t " + strings.Replace(endlessSecond, "1 UNION", "0 UNION", 1), "a script": ".print x\n" + endlessSecond + ";",
	} {
		for limit, limits := range map[string]budget.Limits{"script_time": shortLimits(), "steps": {Steps: 100_000}} {
			t.Run(name+" by "+limit, func(t *testing.T) {
				r := commandtest.RunWithin(t, sqlite.Commands(), commandtest.Case{Args: []string{"sqlite3", ":memory:", query}}, limits)
				if r.Status != 137 || !strings.Contains(r.Stderr, `"`+limit+`"`) {
					t.Errorf("%+v", r)
				}
			})
		}
	}
}

func shortLimits() budget.Limits { return budget.Limits{ScriptTime: 200 * time.Millisecond} }
