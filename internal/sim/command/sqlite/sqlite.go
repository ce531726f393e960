package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command {
	installed() // before somebody else uses the engine
	return []command.Command{{Name: "sqlite3", Run: run}}
}

// A console is one run of sqlite3.
type console struct {
	t    *kernel.Task
	db   *sql.DB
	conn *sql.Conn
	ctx  context.Context

	file      string // "" and ":memory:" are no file
	before    []byte // what it held
	mode      string
	header    bool
	separator string
	newline   string // of the mode csv
	null      string
	bail      bool
	readOnly  bool
	echo      bool
	given     bool // the statements are arguments
	status    int
	done      bool
	reading   int64 // files that read each other

	stop    func()   // of counting the memory of the connection
	handler *handler // of the engine's progress, which it calls as long as the connection is open
	ended   any      // the panic that ends the task

	authorizer *authorizer // which the engine calls as long as the connection is open
	page       int64       // bytes of a page, by which the database is bounded
}

// raw is what the engine's connections can do beyond database/sql.
type raw interface {
	Serialize() ([]byte, error)
	Deserialize(b []byte) error
}

// limits of the engine, by its own numbers.
const (
	limitLength   = 0
	limitAttached = 7
)

func run(t *kernel.Task) int {
	c := &console{t: t, mode: "list", separator: "|", newline: "\n"}
	sqlText, before, ok := c.arguments(t.Args[1:])
	if !ok {
		return c.status
	}
	ctx, release := t.Bounded(t.K.Limits.ScriptTime)
	defer release()
	defer t.EndAfter("script_time", t.K.Limits.ScriptTime)() // one instruction may take long
	c.ctx = ctx
	defer c.close()
	if err := c.open(); err != nil {
		t.Errorf("%v", err)
		return 1
	}
	for _, line := range before {
		c.script(line)
	}
	if c.given = len(sqlText) > 0; c.given {
		for _, text := range sqlText {
			if !c.done {
				c.script(text)
			}
		}
	} else {
		c.input()
	}
	if err := c.save(); err != nil {
		_ = t.Flush() // told at the end
		_, _ = t.Write(2, []byte("Error: "+err.Error()+"\n"))
		return 1
	}
	return c.status
}

// arguments reads the command line, whose options have one dash or two and
// stand anywhere.
func (c *console) arguments(args []string) (text, before []string, ok bool) {
	named := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !strings.HasPrefix(a, "-") || a == "-" {
			if !named {
				c.file, named = a, true
			} else {
				text = append(text, a)
			}
			continue
		}
		value := func() string {
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return ""
		}
		switch name := strings.TrimLeft(a, "-"); name {
		case "csv", "json", "line", "list", "column", "markdown", "table", "box", "html", "quote", "tabs", "ascii":
			c.setMode(name)
		case "header", "headers":
			c.header = true
		case "noheader":
			c.header = false
		case "separator":
			c.separator = value()
		case "nullvalue":
			c.null = value()
		case "cmd":
			before = append(before, value())
		case "bail":
			c.bail = true
		case "echo":
			c.echo = true
		case "readonly":
			c.readOnly = true
		case "batch", "interactive", "safe":
		case "version":
			fmt.Fprintln(c.t.Out(), "3 (Paddock)")
			return nil, nil, false
		case "help":
			fmt.Fprint(c.t.Out(), "Usage: sqlite3 [OPTIONS] [FILENAME [SQL]]\nOptions: -csv -json -line -list -column -markdown -table -box -html -quote -tabs\n  -header -noheader -separator SEP -nullvalue TEXT -cmd COMMAND -bail -echo -readonly -batch\n")
			return nil, nil, false
		default:
			_, _ = c.t.Write(2, []byte("sqlite3: Error: unknown option: "+a+"\nUse -help for a list of options.\n"))
			c.status = 1
			return nil, nil, false
		}
	}
	return text, before, true
}

func (c *console) setMode(mode string) {
	switch mode {
	case "tabs":
		c.mode, c.separator = "list", "\t"
	case "csv":
		c.mode, c.separator = "csv", ","
	default:
		c.mode = mode
	}
}

func (c *console) isFile() bool { return c.file != "" && c.file != ":memory:" }

// open starts the engine with what the file holds.
func (c *console) open() error {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	c.db = db
	if c.conn, err = db.Conn(c.ctx); err != nil {
		return err
	}
	if err := c.count(); err != nil {
		return err
	}
	if c.isFile() {
		b, err := command.ReadAll(c.t, c.file)
		switch {
		case errors.Is(err, linux.ENOENT):
		case err != nil:
			return fmt.Errorf("unable to open database %q: %s", c.file, vfs.Message(err))
		default:
			c.t.Bound("database", int64(len(b)), c.t.K.Limits.Database)
			c.before = b
		}
	}
	if len(c.before) > 0 {
		if err := c.conn.Raw(func(x any) error {
			r, ok := x.(raw)
			if !ok {
				return errors.New("the engine cannot load a database")
			}
			return r.Deserialize(c.before)
		}); err != nil {
			return fmt.Errorf("file is not a database: %w", err)
		}
	}
	for id, n := range map[int]int{limitAttached: 0, limitLength: int(min(c.t.K.Limits.String, 1<<30))} {
		if _, err := sqlite.Limit(c.conn, id, n); err != nil {
			return err
		}
	}
	if err := c.watch(); err != nil {
		return err
	}
	return c.bound()
}

// bound sets what a script may not change. The file is hostile, and a table or view of it goes before one of the engine's, so no
// statement names a table here: it would run what the file says before the engine is bounded.
func (c *console) bound() error {
	notOne := func(err error) error { return fmt.Errorf("file is not a database: %w", err) }
	if _, err := c.conn.ExecContext(c.ctx, "PRAGMA temp_store = MEMORY"); err != nil { // before the schema is read
		return notOne(err)
	}
	// The engine knows the size of a file's pages when it has read the schema.
	if err := c.conn.QueryRowContext(c.ctx, "PRAGMA schema_version").Scan(new(int64)); err != nil {
		return notOne(err)
	}
	if err := c.conn.QueryRowContext(c.ctx, "PRAGMA page_size").Scan(&c.page); err != nil {
		return notOne(err)
	}
	pages := c.t.K.Limits.Database / max(c.page, 512)
	for _, pragma := range []string{fmt.Sprintf("PRAGMA max_page_count = %d", pages), fmt.Sprintf("PRAGMA query_only = %t", c.readOnly)} {
		if _, err := c.conn.ExecContext(c.ctx, pragma); err != nil {
			return notOne(err)
		}
	}
	return c.guard() // of what a script says
}

func (c *console) close() {
	if c.conn != nil {
		_ = c.conn.Close() // the database is in memory
	}
	if c.db != nil {
		_ = c.db.Close()
	}
	if c.stop != nil {
		c.stop()
	}
}

// save writes the database back if it changed.
func (c *console) save() error {
	if !c.isFile() || c.readOnly {
		return nil
	}
	var now []byte
	err := c.conn.Raw(func(x any) error {
		r, ok := x.(raw)
		if !ok {
			return errors.New("the engine cannot save a database")
		}
		var err error
		now, err = r.Serialize()
		return err
	})
	if err != nil || string(now) == string(c.before) {
		return err
	}
	o, err := command.Create(c.t, c.file, linux.O_TRUNC)
	if err != nil {
		return fmt.Errorf("unable to write database %q: %s", c.file, vfs.Message(err))
	}
	_, err = o.Write(now)
	if err = errors.Join(err, o.Close()); err != nil {
		return fmt.Errorf("unable to write database %q: %s", c.file, vfs.Message(err))
	}
	return nil
}
