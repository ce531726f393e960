// Package xan is the tool xan, which reads and writes tables of comma-separated
// values. Rows are streamed unless a command needs all of them; rows in memory
// are counted.
package xan

import (
	"errors"
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/proc"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Commands lists the tools of this package.
func Commands() []command.Command { return []command.Command{{Name: "xan", Run: run}} }

// A verb is a subcommand.
type verb struct {
	name     string
	aliases  []string
	synopsis string
	about    string
	options  []command.Option
	run      func(*job) error
}

func option(short byte, long, arg, help string) command.Option {
	o := command.Option{Short: short, Long: long, Help: help}
	if arg != "" {
		o.Arg, o.Name = command.Required, arg
	}
	return o
}

// shared are the options that every verb has.
func shared() []command.Option {
	return []command.Option{
		option('d', "delimiter", "C", "what separates fields (a comma; a tab for .tsv)"),
		option('n', "no-headers", "", "the first row is data"),
		option('o', "output", "FILE", "write there"),
	}
}

func verbs() []verb {
	columns := option('s', "select", "COLUMNS", "the columns that count")
	return []verb{
		{name: "headers", aliases: []string{"h"}, synopsis: "[FILE]...", about: "Show the names of the columns.", options: []command.Option{option('j', "just-names", "", "no numbers")}, run: (*job).headers},
		{name: "count", synopsis: "[FILE]", about: "Count rows.", run: (*job).count},
		{name: "select", synopsis: "COLUMNS [FILE]", about: "Choose columns, or with -e compute new ones.", options: []command.Option{option('e', "evaluate", "", "COLUMNS are expressions: 'a, upper(b) as B'")}, run: (*job).choose},
		{name: "drop", synopsis: "COLUMNS [FILE]", about: "Leave columns out.", run: (*job).drop},
		{name: "filter", synopsis: "EXPRESSION [FILE]", about: "Keep the rows for which an expression is true.", options: []command.Option{option('v', "invert-match", "", "keep the others"), option('l', "limit", "N", "at most so many")}, run: (*job).filter},
		{name: "search", synopsis: "PATTERN [FILE]", about: "Keep the rows with a cell that holds PATTERN.", options: []command.Option{columns, option('e', "exact", "", "PATTERN is all of the cell"), option('r', "regex", "", "PATTERN is a regular expression"), option('i', "ignore-case", "", "without regard to case"), option('v', "invert-match", "", "keep the others"), option('E', "empty", "", "the cell is empty; there is no PATTERN"), option('N', "non-empty", "", "the cell is not empty; there is no PATTERN"), option('l', "limit", "N", "at most so many")}, run: (*job).search},
		{name: "head", synopsis: "[FILE]", about: "Keep the first rows.", options: []command.Option{option('l', "limit", "N", "so many (10)")}, run: (*job).head},
		{name: "tail", synopsis: "[FILE]", about: "Keep the last rows.", options: []command.Option{option('l', "limit", "N", "so many (10)")}, run: (*job).tail},
		{name: "slice", synopsis: "[FILE]", about: "Keep a range of rows; the first is 0.", options: []command.Option{option('s', "start", "N", "from row N on"), option('e', "end", "N", "up to before row N"), option('l', "len", "N", "so many"), option('i', "index", "N", "row N only"), option('I', "indices", "N,N", "these rows")}, run: (*job).slice},
		{name: "sort", synopsis: "[FILE]", about: "Sort rows.", options: []command.Option{columns, option('N', "numeric", "", "by numbers"), option('R', "reverse", "", "the other way round"), option('u', "unique", "", "one row of equal ones"), option('c', "check", "", "only see whether it is sorted")}, run: (*job).sort},
		{name: "reverse", synopsis: "[FILE]", about: "Turn the order of rows round.", run: (*job).reverse},
		{name: "shuffle", synopsis: "[FILE]", about: "Put rows into a random order.", options: []command.Option{option(0, "seed", "N", "the same order for the same number")}, run: (*job).shuffle},
		{name: "sample", synopsis: "N [FILE]", about: "Keep N random rows.", options: []command.Option{option(0, "seed", "N", "the same rows for the same number")}, run: (*job).sample},
		{name: "dedup", synopsis: "[FILE]", about: "Drop rows that were there before.", options: []command.Option{columns, option('S', "sorted", "", "equal ones stand together"), option('l', "keep-last", "", "keep the last of equal ones"), option(0, "keep-duplicates", "", "keep those that are there more than once")}, run: (*job).dedup},
		{name: "stats", synopsis: "[FILE]", about: "Describe the columns by numbers.", options: []command.Option{columns, option('a', "all", "", "all numbers"), option('c', "cardinality", "", "different values too"), option('q', "quartiles", "", "median and quartiles too")}, run: (*job).stats},
		{name: "frequency", aliases: []string{"freq"}, synopsis: "[FILE]", about: "Count the values of columns.", options: []command.Option{columns, option('l', "limit", "N", "so many values of each (10; 0 is all)"), option('A', "all", "", "all values"), option('a', "asc", "", "rare ones first"), option('N', "no-extra", "", "leave empty cells and the rest out"), option('g', "groupby", "COLUMN", "for each value of COLUMN")}, run: (*job).frequency},
		{name: "join", synopsis: "COLUMNS FILE COLUMNS FILE", about: "Join two tables where columns are equal.", options: []command.Option{option(0, "left", "", "all rows of the first"), option(0, "right", "", "all rows of the second"), option(0, "full", "", "all rows of both"), option(0, "semi", "", "rows of the first that have a match"), option(0, "anti", "", "rows of the first that have none"), option(0, "cross", "", "every row with every row; there are no COLUMNS"), option('i', "ignore-case", "", "without regard to case")}, run: (*job).join},
		{name: "groupby", synopsis: "COLUMNS AGGREGATIONS [FILE]", about: "Aggregate the rows of each group: 'sum(n) as total, count()'.", options: []command.Option{option('S', "sorted", "", "groups stand together")}, run: (*job).groupby},
		{name: "agg", synopsis: "AGGREGATIONS [FILE]", about: "Aggregate all rows: 'sum(n) as total, count()'.", run: (*job).aggregate},
		{name: "map", synopsis: "EXPRESSION [NAME] [FILE]", about: "Add a column: 'a + b as c', or the expression and then its name.", options: []command.Option{option('O', "overwrite", "", "replace a column of that name")}, run: (*job).extend},
		{name: "transform", synopsis: "COLUMNS EXPRESSION [FILE]", about: "Replace each cell of columns; _ is the cell.", options: []command.Option{option('r', "rename", "NAME", "call the column so")}, run: (*job).transform},
		{name: "rename", synopsis: "NAMES [FILE]", about: "Give columns other names.", options: []command.Option{columns, option('p', "prefix", "TEXT", "put TEXT before the names; there are no NAMES"), option(0, "suffix", "TEXT", "put TEXT behind the names; there are no NAMES"), option('S', "slugify", "", "make names that are words; there are no NAMES")}, run: (*job).rename},
		{name: "enum", synopsis: "[FILE]", about: "Number the rows.", options: []command.Option{option('c', "column-name", "NAME", "of the new column (index)"), option('S', "start", "N", "the first number (0)")}, run: (*job).enum},
		{name: "explode", synopsis: "COLUMNS [FILE]", about: "Make a row of each part of a cell.", options: []command.Option{option(0, "sep", "TEXT", "what separates parts (|)"), option('r', "rename", "NAME", "call the column so"), option(0, "drop-empty", "", "drop rows with an empty cell")}, run: (*job).explode},
		{name: "implode", synopsis: "COLUMNS [FILE]", about: "Make one row of neighbours that differ in COLUMNS only.", options: []command.Option{option(0, "sep", "TEXT", "what separates parts (|)"), option('r', "rename", "NAME", "call the column so")}, run: (*job).implode},
		{name: "fill", synopsis: "[FILE]", about: "Fill empty cells with the value above.", options: []command.Option{columns, option('v', "value", "TEXT", "with TEXT instead")}, run: (*job).fill},
		{name: "top", synopsis: "COLUMNS [FILE]", about: "Keep the rows with the largest numbers.", options: []command.Option{option('l', "limit", "N", "so many (10)"), option('R', "reverse", "", "the smallest")}, run: (*job).top},
		{name: "cat", synopsis: "rows|cols FILE...", about: "Put tables below each other, or beside each other.", options: []command.Option{option('p', "pad", "", "fill the shorter table up (cols)")}, run: (*job).cat},
		{name: "transpose", aliases: []string{"t"}, synopsis: "[FILE]", about: "Make rows of columns.", run: (*job).transpose},
		{name: "fixlengths", synopsis: "[FILE]", about: "Give all rows the same number of cells.", options: []command.Option{option('l', "length", "N", "so many")}, run: (*job).fixlengths},
		{name: "split", synopsis: "[FILE]", about: "Write files of so many rows each.", options: []command.Option{option('S', "size", "N", "so many (4096)"), option('O', "out-dir", "DIR", "there")}, run: (*job).split},
		{name: "partition", synopsis: "COLUMN [FILE]", about: "Write a file for each value of a column.", options: []command.Option{option('O', "out-dir", "DIR", "there"), option(0, "drop", "", "leave the column out")}, run: (*job).partition},
		{name: "fmt", synopsis: "[FILE]", about: "Write the table with another delimiter.", options: []command.Option{option('t', "out-delimiter", "C", "that one"), option(0, "crlf", "", "end rows by CR LF"), option(0, "quote-always", "", "put every cell in quotes")}, run: (*job).format},
		{name: "to", synopsis: "json|jsonl|ndjson|md|txt [FILE]", about: "Write another format.", run: (*job).to},
		{name: "from", synopsis: "[FILE]", about: "Read another format.", options: []command.Option{option('f', "format", "FORMAT", "json, jsonl, ndjson or tsv (by the file's name)")}, run: (*job).from},
		{name: "view", aliases: []string{"v"}, synopsis: "[FILE]", about: "Show the table as one.", options: []command.Option{option('l', "limit", "N", "so many rows (100)"), option('A', "all", "", "all rows")}, run: (*job).view},
		{name: "flatten", aliases: []string{"f"}, synopsis: "[FILE]", about: "Show each row on lines of its own.", options: []command.Option{option('l', "limit", "N", "so many rows"), columns}, run: (*job).flatten},
		{name: "behead", synopsis: "[FILE]", about: "Write the rows without the names of columns.", run: (*job).behead},
	}
}

// A job is a verb at work.
type job struct {
	t     *proc.Task
	a     *command.Args
	spec  *command.Spec
	rest  []string // operands that are not used yet
	bare  bool     // -n
	comma byte
	given bool // the delimiter
	out   *writer
	file  *command.Output
}

// A usageError is of the arguments.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func run(t *proc.Task) int {
	if len(t.Args) < 2 || t.Args[1] == "--help" || t.Args[1] == "help" || t.Args[1] == "-h" {
		help(t)
		return 0
	}
	if t.Args[1] == "--version" {
		fmt.Fprintln(t.Out(), "xan (Paddock)")
		return 0
	}
	for _, v := range verbs() {
		names := append([]string{v.name}, v.aliases...)
		for _, n := range names {
			if n == t.Args[1] {
				return v.start(t)
			}
		}
	}
	t.Errorf("unknown command %q; try 'xan --help'", t.Args[1])
	return 1
}

func help(t *proc.Task) {
	w := t.Out()
	fmt.Fprintf(w, "Usage: xan COMMAND [OPTION]... [ARGUMENT]...\nWork with tables of comma-separated values. 'xan COMMAND --help' tells more.\n\n")
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %-11s %s\n", v.name, v.about)
	}
	fmt.Fprint(w, `
COLUMNS: names or numbers from 0 (-1 is the last) with commas between, ranges
a:c or 0:2, * for all, !a,b for all others, "quoted, name".

EXPRESSIONS: columns by name or col("a name"), 1.5, "text", true, null;
+ - * / // % ** on numbers, ++ joins texts, == != < <= > >= (numbers where both
are), eq ne lt le gt ge (texts), in, not in, && || and or not, if(c, a, b),
value | function(_), and the functions
`)
	for _, line := range wrapped(functionNames(), 76) {
		fmt.Fprintf(w, "  %s\n", line)
	}
	fmt.Fprint(w, "AGGREGATIONS:\n")
	for _, line := range wrapped(aggregateNames(), 76) {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

func wrapped(words []string, width int) []string {
	var lines []string
	line := ""
	for _, w := range words {
		if len(line)+len(w)+1 > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	return append(lines, line)
}

func (v *verb) start(t *proc.Task) int {
	spec := &command.Spec{Name: "xan " + v.name, Synopsis: "[OPTION]... " + v.synopsis, About: v.about, Options: append(v.options, shared()...), NoTry: true}
	a, status, ok := spec.ParseArgs(t, t.Args[2:])
	if !ok {
		return status
	}
	j := &job{t: t, a: a, spec: spec, rest: a.Operands, bare: a.Has("n"), comma: ','}
	if d, ok := a.Value("d"); ok {
		c, err := delimiter(d)
		if err != nil {
			return spec.Usage(t, "%s", err)
		}
		j.comma, j.given = c, true
	}
	err := j.begin()
	if err == nil {
		err = v.run(j)
	}
	err = errors.Join(err, j.finish())
	if bad := new(usageError); errors.As(err, &bad) {
		return spec.Usage(t, "%s", bad.msg)
	}
	if errors.Is(err, errStop) {
		return 1
	}
	if err != nil {
		t.Errorf("%s: %s", v.name, err)
		return 1
	}
	return 0
}

// errStop ends with status 1, and says nothing.
var errStop = errors.New("stop")

func delimiter(s string) (byte, error) {
	switch s {
	case `\t`, "tab":
		return '\t', nil
	}
	if len(s) != 1 || s == "\n" || s == "\"" || s == "\r" {
		return 0, fmt.Errorf("%q is no delimiter", s)
	}
	return s[0], nil
}

// begin opens the output.
func (j *job) begin() error {
	j.out = &writer{t: j.t, comma: ',', end: "\n"}
	name, ok := j.a.Value("o")
	if !ok {
		j.out.w = j.t.Out()
		return nil
	}
	f, err := create(j.t, name)
	if err != nil {
		return err
	}
	j.file, j.out.w = f, f
	if c, ok := byName(name); ok {
		j.out.comma = c
	}
	return nil
}

func (j *job) finish() error {
	err := j.out.flush()
	if j.file != nil {
		return errors.Join(err, j.file.Close())
	}
	return errors.Join(err, j.t.Flush())
}

// operand takes an operand that must be there.
func (j *job) operand(what string) (string, error) {
	if len(j.rest) == 0 {
		return "", &usageError{"missing " + what}
	}
	s := j.rest[0]
	j.rest = j.rest[1:]
	return s, nil
}

// input opens the table that the last operand names.
func (j *job) input() (*table, error) {
	name := "-"
	if len(j.rest) > 0 {
		name = j.rest[0]
		j.rest = j.rest[1:]
	}
	if len(j.rest) > 0 {
		return nil, &usageError{fmt.Sprintf("extra operand '%s'", j.rest[0])}
	}
	return j.open(name)
}

// number gives the number of an option.
func (j *job) number(key string, otherwise int) (int, error) {
	s, ok := j.a.Value(key)
	if !ok {
		return otherwise, nil
	}
	n := 0
	if s == "" || len(s) > 9 || strings.Trim(s, "0123456789") != "" {
		return 0, &usageError{fmt.Sprintf("invalid number '%s'", s)}
	}
	for i := range len(s) {
		n = 10*n + int(s[i]-'0')
	}
	return n, nil
}

func fileError(name string, err error) error { return fmt.Errorf("%s: %s", name, vfs.Message(err)) }
