package sqlite

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"modernc.org/sqlite"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// input runs what standard input says.
func (c *console) input() {
	b, err := command.All(c.t, c.t.Stream(0))
	if err != nil {
		c.fail("%s", vfs.Message(err))
		return
	}
	c.script(string(b))
}

// script runs lines: commands that begin with a dot, and SQL.
func (c *console) script(text string) {
	var pending strings.Builder
	var cut cutter
	for line := range strings.Lines(text) {
		c.t.Step(1)
		if c.done {
			return
		}
		trimmed := strings.TrimSpace(line)
		if pending.Len() == 0 && strings.HasPrefix(trimmed, ".") {
			c.dot(trimmed)
			continue
		}
		if pending.Len() == 0 && (trimmed == "" || strings.HasPrefix(trimmed, "--")) {
			continue
		}
		pending.WriteString(line)
		if cut.complete(pending.String()) {
			c.query(pending.String())
			pending.Reset()
			cut = cutter{}
		}
	}
	if rest := strings.TrimSpace(pending.String()); rest != "" && !c.done {
		c.query(rest)
	}
}

func (c *console) fail(format string, args ...any) {
	_ = c.t.Flush() // told at the end
	_, _ = c.t.Write(2, []byte("Error: "+fmt.Sprintf(format, args...)+"\n"))
	c.status = 1
	if c.bail {
		c.done = true
	}
}

// query runs SQL, a statement at a time.
func (c *console) query(text string) {
	if c.echo {
		fmt.Fprintln(c.t.Out(), strings.TrimRight(text, "\n"))
	}
	var cut cutter
	from := 0
	for cut.next(text) {
		c.statement(text[from:cut.x.i])
		from = cut.x.i
		if c.done || c.status != 0 {
			return
		}
	}
	if strings.TrimSpace(text[from:]) != "" {
		c.statement(text[from:])
	}
}

// statement runs one and shows its rows.
func (c *console) statement(text string) {
	rows, err := c.conn.QueryContext(c.ctx, text)
	if err != nil {
		c.wrong(err)
		return
	}
	defer func() { _ = rows.Close() }() // it was only read
	for {
		names, err := rows.Columns()
		if err != nil {
			c.wrong(err)
			return
		}
		w := c.writer(names)
		for rows.Next() {
			c.t.Step(len(names) + 1)
			values := make([]any, len(names))
			to := make([]any, len(names))
			for i := range values {
				to[i] = &values[i]
			}
			if err := rows.Scan(to...); err != nil {
				c.wrong(err)
				return
			}
			w.row(values)
		}
		w.end()
		if err := rows.Err(); err != nil {
			c.wrong(err)
			return
		}
		if !rows.NextResultSet() {
			return
		}
	}
}

func (c *console) wrong(err error) {
	c.settle()
	c.t.Check()
	text := err.Error()
	if errors.Is(c.ctx.Err(), context.DeadlineExceeded) {
		c.t.Bound("script_time", int64(c.t.K.Limits.ScriptTime)+1, int64(c.t.K.Limits.ScriptTime))
	}
	text = strings.TrimPrefix(text, "SQL logic error: ")
	if i := strings.LastIndex(text, " ("); i > 0 && strings.HasSuffix(text, ")") {
		text = text[:i]
	}
	text = strings.TrimPrefix(text, "constraint failed: ")
	if strings.HasPrefix(text, "no such") || strings.Contains(text, "syntax error") || strings.HasPrefix(text, "incomplete") {
		text = "in prepare, " + text
	} else {
		text = "stepping, " + text
	}
	var e *sqlite.Error
	refused := errors.As(err, &e) && e.Code()&primary == notAuthorized
	if refused {
		text = "in prepare, not authorized"
	}
	if e == nil || refused || e.Code()&primary <= plainError {
		c.fail("%s", text)
		return
	}
	c.fail("%s (%d)", text, e.Code()&primary)
	if c.given {
		c.status = e.Code() & primary
	}
}

// Codes of the engine's errors: what tells the kind, the one that says nothing
// more, and the one of what is refused.
const (
	primary       = 0xff
	plainError    = 1
	notAuthorized = 23
)

// dot runs a command of the shell itself.
func (c *console) dot(line string) {
	words := strings.Fields(line)
	arg := func(i int) string {
		if i < len(words) {
			return strings.Trim(words[i], `"'`)
		}
		return ""
	}
	on := arg(1) == "on" || arg(1) == "1" || arg(1) == "yes"
	switch words[0] {
	case ".quit", ".exit", ".q":
		c.done = true
	case ".mode":
		c.setMode(arg(1))
		c.newline = "\n"
		if arg(1) == "csv" {
			c.newline = "\r\n" // not so by the option -csv: sqlite3 does that
		}
	case ".header", ".headers":
		c.header = on
	case ".separator":
		c.separator = strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(arg(1))
	case ".nullvalue":
		c.null = arg(1)
	case ".bail":
		c.bail = on
	case ".echo":
		c.echo = on
	case ".timer", ".width", ".print", ".changes", ".timeout":
		if words[0] == ".print" {
			fmt.Fprintln(c.t.Out(), strings.TrimSpace(strings.TrimPrefix(line, ".print")))
		}
	case ".tables":
		c.names(arg(1))
	case ".schema":
		c.schema(arg(1))
	case ".read":
		b, err := command.ReadAll(c.t, arg(1))
		if err != nil {
			c.fail("cannot open \"%s\"", arg(1))
			return
		}
		c.reading++
		c.t.Bound("sources", c.reading, c.t.K.Limits.Sources)
		c.script(string(b))
		c.reading--
	case ".import":
		c.load(words[1:])
	default:
		c.fail("unknown command or invalid arguments:  \"%s\". Enter \".help\" for help", strings.TrimPrefix(words[0], "."))
	}
}

// texts gives the first column of a query.
func (c *console) texts(query string, args ...any) []string {
	rows, err := c.conn.QueryContext(c.ctx, query, args...)
	if err != nil {
		c.wrong(err)
		return nil
	}
	defer func() { _ = rows.Close() }() // it was only read
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			c.wrong(err)
			return nil
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		c.wrong(err)
	}
	return all
}

// names lists tables and views, in columns over 80 characters.
func (c *console) names(pattern string) {
	if pattern == "" {
		pattern = "%"
	}
	all := c.texts("SELECT name FROM sqlite_schema WHERE type IN ('table','view') AND name NOT LIKE 'sqlite_%' AND name LIKE ? ORDER BY 1", pattern)
	if len(all) == 0 {
		return
	}
	width := 0
	for _, s := range all {
		width = max(width, len(s))
	}
	columns := max(1, 80/(width+2))
	lines := (len(all) + columns - 1) / columns
	for i := range lines {
		for j := i; j < len(all); j += lines {
			if j > i {
				fmt.Fprint(c.t.Out(), "  ")
			}
			fmt.Fprintf(c.t.Out(), "%-*s", width, all[j])
		}
		fmt.Fprintln(c.t.Out())
	}
}

func (c *console) schema(pattern string) {
	if pattern == "" {
		pattern = "%"
	}
	for _, s := range c.texts("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND tbl_name LIKE ? ORDER BY rowid", pattern) {
		fmt.Fprintln(c.t.Out(), s+";")
	}
}

// load is .import: a file of values into a table, which is made of the first
// line if it is missing.
func (c *console) load(words []string) {
	separator, skip := c.separator, 0
	isCSV := c.mode == "csv"
	var rest []string
	for i := 0; i < len(words); i++ {
		switch w := words[i]; w {
		case "--csv", "-csv":
			isCSV = true
		case "--skip", "-skip":
			if i++; i < len(words) {
				if _, err := fmt.Sscan(words[i], &skip); err != nil {
					c.fail("--skip needs a number")
					return
				}
			}
		default:
			rest = append(rest, strings.Trim(w, `"'`))
		}
	}
	if len(rest) != 2 {
		c.fail("missing FILE or TABLE argument. Usage: .import FILE TABLE")
		return
	}
	in, err := command.Open(c.t, rest[0])
	if err != nil {
		c.fail("cannot open \"%s\"", rest[0])
		return
	}
	defer in.Close()
	c.newline = "\n" // as sqlite3 leaves it
	var next func() ([]string, error)
	counted := &record{c: c, r: in}
	if isCSV {
		r := csv.NewReader(bufio.NewReader(counted))
		r.FieldsPerRecord, r.LazyQuotes = -1, true
		next = func() ([]string, error) {
			counted.n = 0
			return r.Read()
		}
	} else {
		r := bufio.NewReader(counted)
		next = func() ([]string, error) {
			counted.n = 0
			line, err := r.ReadString('\n')
			if line == "" && err != nil {
				return nil, err
			}
			return strings.SplitN(strings.TrimRight(line, "\r\n"), separator, maxColumns), nil
		}
	}
	for range skip {
		if _, err := next(); err != nil {
			return
		}
	}
	c.fill(rest[1], next)
}

// maxColumns is more than a table may have.
const maxColumns = 4096

// A record reads what is to be imported, and counts the bytes of one record.
type record struct {
	c *console
	r io.Reader
	n int64
}

func (x *record) Read(p []byte) (int, error) {
	n, err := x.r.Read(p)
	x.n += int64(n)
	x.c.t.Bound("record", x.n, x.c.t.K.Limits.Record)
	x.c.t.Step(1 + n/64)
	return n, err
}

func name(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func (c *console) fill(table string, next func() ([]string, error)) {
	columns := len(c.texts("SELECT name FROM pragma_table_info(?)", table))
	if columns == 0 {
		head, err := next()
		if err != nil {
			c.fail("empty file")
			return
		}
		parts := make([]string, len(head))
		for i, h := range head {
			parts[i] = name(h) + " TEXT"
		}
		if _, err := c.conn.ExecContext(c.ctx, "CREATE TABLE "+name(table)+"(\n"+strings.Join(parts, ", ")+")"); err != nil {
			c.wrong(err)
			return
		}
		columns = len(head)
	}
	if _, err := c.conn.ExecContext(c.ctx, "BEGIN"); err != nil {
		c.wrong(err)
		return
	}
	insert, err := c.conn.PrepareContext(c.ctx, "INSERT INTO "+name(table)+" VALUES (?"+strings.Repeat(",?", columns-1)+")") //nolint:gosec // the name is quoted
	if err != nil {
		c.wrong(err)
		return
	}
	defer func() { _ = insert.Close() }() // what it did is done
	for {
		c.t.Step(columns)
		fields, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.fail("%v", err)
			break
		}
		values := make([]any, columns)
		for i := range values {
			if i < len(fields) {
				values[i] = fields[i]
			}
		}
		if _, err := insert.ExecContext(c.ctx, values...); err != nil {
			c.wrong(err)
			break
		}
	}
	if _, err := c.conn.ExecContext(c.ctx, "COMMIT"); err != nil {
		c.wrong(err)
	}
}
