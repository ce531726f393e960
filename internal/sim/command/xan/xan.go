// Package xan is the tool xan, which reads and writes tables of comma-separated
// values. Rows are streamed unless a command needs all of them; rows in memory
// are counted.
package xan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
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
		{name: "headers", aliases: []string{"h"}, synopsis: "[FILE]...", about: "Show the names of the columns.", options: []command.Option{option('j', "just-names", "", "no numbers"), option('s', "start", "N", "the first number (0)")}, run: (*job).headers},
		{name: "count", synopsis: "[FILE]", about: "Count rows.", run: (*job).count},
		{name: "select", synopsis: "COLUMNS [FILE]", about: "Choose columns, or with -e compute new ones.", options: []command.Option{option('e', "evaluate", "", "COLUMNS are expressions: 'a, upper(b) as B'")}, run: (*job).choose},
		{name: "drop", synopsis: "COLUMNS [FILE]", about: "Leave columns out.", run: (*job).drop},
		{name: "filter", synopsis: "EXPRESSION [FILE]", about: "Keep the rows for which an expression is true.", options: []command.Option{option('v', "invert-match", "", "keep the others"), option('l', "limit", "N", "at most so many")}, run: (*job).filter},
		{name: "search", synopsis: "PATTERN [FILE]", about: "Keep the rows with a cell that holds PATTERN.", options: []command.Option{columns, option('e', "exact", "", "PATTERN is all of the cell"), option('r', "regex", "", "PATTERN is a regular expression"), option('i', "ignore-case", "", "without regard to case"), option('v', "invert-match", "", "keep the others"), option('E', "empty", "", "the cell is empty; there is no PATTERN"), option('N', "non-empty", "", "the cell is not empty; there is no PATTERN"), option('A', "all", "", "all cells must match"), option('f', "flag", "NAME", "keep all rows, and tell in a new column whether they match"), option('c', "count", "NAME", "count the matches in a new column"), option('R', "replace", "TEXT", "replace what matches instead"), option('l', "limit", "N", "at most so many")}, run: (*job).search},
		{name: "head", synopsis: "[FILE]", about: "Keep the first rows.", options: []command.Option{option('l', "limit", "N", "so many (10)")}, run: (*job).head},
		{name: "tail", synopsis: "[FILE]", about: "Keep the last rows.", options: []command.Option{option('l', "limit", "N", "so many (10)")}, run: (*job).tail},
		{name: "slice", synopsis: "[FILE]", about: "Keep a range of rows; the first is 0.", options: []command.Option{option('s', "start", "N", "from row N on"), option('e', "end", "N", "up to before row N"), option('l', "len", "N", "so many"), option('i', "index", "N", "row N only"), option('I', "indices", "N,N", "these rows"), option('L', "last", "N", "the last rows"), option(0, "skip", "N", "as --start"), option('S', "start-condition", "EXPRESSION", "from the first row for which it is true"), option('E', "end-condition", "EXPRESSION", "up to before the first row for which it is true")}, run: (*job).slice},
		{name: "sort", synopsis: "[FILE]", about: "Sort rows.", options: []command.Option{columns, option('N', "numeric", "", "by numbers"), option('R', "reverse", "", "the other way round"), option('u', "uniq", "", "one row of equal ones"), option('c', "count", "NAME", "with -u: count equal rows in a new column"), option(0, "check", "", "only see whether it is sorted"), option('U', "unstable", "", "equal rows in any order"), option(0, "cells", "", "sort the cells of each row"), option(0, "columns", "", "sort columns by their names")}, run: (*job).sort},
		{name: "reverse", synopsis: "[FILE]", about: "Turn the order of rows round.", run: (*job).reverse},
		{name: "shuffle", synopsis: "[FILE]", about: "Put rows into a random order.", options: []command.Option{option(0, "seed", "N", "the same order for the same number")}, run: (*job).shuffle},
		{name: "sample", synopsis: "N [FILE]", about: "Keep N random rows.", options: []command.Option{option(0, "seed", "N", "the same rows for the same number")}, run: (*job).sample},
		{name: "dedup", synopsis: "[FILE]", about: "Drop rows that were there before.", options: []command.Option{columns, option('S', "sorted", "", "equal ones stand together"), option('l', "keep-last", "", "keep the last of equal ones"), option('k', "keep-duplicates", "", "keep those that are there more than once"), option(0, "check", "", "only see whether there are any"), option('f', "flag", "NAME", "keep all rows, and tell in a new column which were there before")}, run: (*job).dedup},
		{name: "stats", synopsis: "[FILE]", about: "Describe the columns by numbers.", options: []command.Option{columns, option('A', "all", "", "all numbers"), option('c', "cardinality", "", "different values too"), option('q', "quartiles", "", "median and quartiles too"), option('g', "groupby", "COLUMNS", "for each group"), option(0, "nulls", "", "an empty cell counts as 0")}, run: (*job).stats},
		{name: "frequency", aliases: []string{"freq"}, synopsis: "[FILE]", about: "Count the values of columns.", options: []command.Option{columns, option('l', "limit", "N", "so many values of each (10; 0 is all)"), option('A', "all", "", "all values"), option('N', "no-extra", "", "leave empty cells and the rest out"), option('g', "groupby", "COLUMNS", "for each group"), option(0, "sep", "TEXT", "cells hold several values")}, run: (*job).frequency},
		{name: "join", synopsis: "COLUMNS FILE [COLUMNS] FILE", about: "Join two tables where columns are equal.", options: []command.Option{option(0, "inner", "", "rows that have a match (that is the default)"), option(0, "left", "", "all rows of the first"), option(0, "right", "", "all rows of the second"), option(0, "full", "", "all rows of both"), option(0, "semi", "", "rows of the first that have a match"), option(0, "anti", "", "rows of the first that have none"), option(0, "cross", "", "every row with every row; there are no COLUMNS"), option('i', "ignore-case", "", "without regard to case"), option(0, "nulls", "", "empty cells are equal too"), option('D', "drop-key", "SIDE", "leave the COLUMNS of left, right, both or none out"), option('L', "prefix-left", "TEXT", "put TEXT before the names of the first"), option('R', "prefix-right", "TEXT", "put TEXT before the names of the second")}, run: (*job).join},
		{name: "groupby", synopsis: "COLUMNS AGGREGATIONS [FILE]", about: "Aggregate the rows of each group: 'sum(n) as total, count()'.", options: []command.Option{option('S', "sorted", "", "groups stand together"), option(0, "keep", "COLUMNS", "these too, of the first row of a group")}, run: (*job).groupby},
		{name: "agg", synopsis: "AGGREGATIONS [FILE]", about: "Aggregate all rows: 'sum(n) as total, count()'.", run: (*job).aggregate},
		{name: "map", synopsis: "EXPRESSION [FILE]", about: "Add columns: 'a + b as c, len(d)'.", options: []command.Option{option('O', "overwrite", "", "replace a column of that name"), option('F', "filter", "", "drop rows for which all is empty or false")}, run: (*job).extend},
		{name: "transform", synopsis: "COLUMNS EXPRESSION [FILE]", about: "Replace each cell of columns; _ is the cell.", options: []command.Option{option('r', "rename", "NAME", "call the column so")}, run: (*job).transform},
		{name: "rename", synopsis: "NAMES [FILE]", about: "Give columns other names.", options: []command.Option{columns, option('p', "prefix", "TEXT", "put TEXT before the names; there are no NAMES"), option('x', "suffix", "TEXT", "put TEXT behind the names; there are no NAMES"), option('S', "slugify", "", "make names that are words; there are no NAMES"), option('R', "replace", "", "NAMES are a regular expression and what to put in its place"), option('f', "force", "", "leave out columns of -s that do not exist")}, run: (*job).rename},
		{name: "enum", synopsis: "[FILE]", about: "Number the rows.", options: []command.Option{option('c', "column-name", "NAME", "of the new column (index)"), option('S', "start", "N", "the first number (0)")}, run: (*job).enum},
		{name: "explode", synopsis: "COLUMNS [FILE]", about: "Make a row of each part of a cell.", options: []command.Option{option(0, "sep", "TEXT", "what separates parts (|)"), option('r', "rename", "NAME", "call the column so"), option('S', "singularize", "", "take the plural off the name"), option('D', "drop-empty", "", "drop rows with an empty cell")}, run: (*job).explode},
		{name: "implode", synopsis: "COLUMNS [FILE]", about: "Make one row of neighbours that differ in COLUMNS only.", options: []command.Option{option(0, "sep", "TEXT", "what separates parts (|)"), option('r', "rename", "NAME", "call the column so"), option('P', "pluralize", "", "make a plural of the name"), option(0, "cmp", "COLUMNS", "neighbours that are equal in these")}, run: (*job).implode},
		{name: "fill", synopsis: "[FILE]", about: "Fill empty cells with the value above.", options: []command.Option{columns, option('v', "value", "TEXT", "with TEXT instead")}, run: (*job).fill},
		{name: "top", synopsis: "COLUMNS [FILE]", about: "Keep the rows with the largest numbers.", options: []command.Option{option('l', "limit", "N", "so many (10)"), option('R', "reverse", "", "the smallest"), option('L', "lexicographic", "", "by text"), option('g', "groupby", "COLUMNS", "of each group"), option('r', "rank", "NAME", "number them in a new column"), option('T', "ties", "", "all that are equal to the last")}, run: (*job).top},
		{name: "cat", synopsis: "rows|cols FILE...", about: "Put tables below each other, or beside each other.", options: []command.Option{option('p', "pad", "", "fill the shorter table up (cols)"), option('S', "source-column", "NAME", "the file's name in a new column (rows)")}, run: (*job).cat},
		{name: "transpose", aliases: []string{"t"}, synopsis: "[FILE]", about: "Make rows of columns.", run: (*job).transpose},
		{name: "fixlengths", synopsis: "[FILE]", about: "Give all rows the same number of cells.", options: []command.Option{option('l', "length", "N", "so many"), option('H', "trust-header", "", "as many as the first row has")}, run: (*job).fixlengths},
		{name: "split", synopsis: "[FILE]", about: "Write files of so many rows each.", options: []command.Option{option('S', "size", "N", "so many (4096)"), option('O', "out-dir", "DIR", "there"), option('f', "filename", "NAME", "of the files; {} is the number of the first row ({}.csv)")}, run: (*job).split},
		{name: "partition", synopsis: "COLUMN [FILE]", about: "Write a file for each value of a column.", options: []command.Option{option('O', "out-dir", "DIR", "there"), option('f', "filename", "NAME", "of the files; {} is the value ({}.csv)"), option(0, "drop", "", "leave the column out")}, run: (*job).partition},
		{name: "fmt", synopsis: "[FILE]", about: "Write the table with another delimiter.", options: []command.Option{option('t', "out-delimiter", "C", "that one"), option(0, "crlf", "", "end rows by CR LF"), option(0, "tabs", "", "as -t '\\t'"), option(0, "quote-always", "", "put every cell in quotes"), option(0, "quote-never", "", "put no cell in quotes")}, run: (*job).format},
		{name: "to", synopsis: "html|json|jsonl|md|ndjson|txt [FILE]", about: "Write another format.", options: []command.Option{option(0, "sample-size", "N", "guess the types of columns from so many rows (512; -1 is all)"), option(0, "nulls", "", "an empty cell is null (JSON)"), option(0, "omit", "", "leave empty cells out (JSON)"), option(0, "strings", "COLUMNS", "these are texts (JSON)"), columns}, run: (*job).to},
		{name: "from", synopsis: "[FILE]", about: "Read another format.", options: []command.Option{option('f', "format", "FORMAT", "json, jsonl, md, ndjson or txt (by the file's name)"), option('c', "column", "NAME", "of the column (txt)"), option(0, "sample-size", "N", "take the columns from so many objects (64; -1 is all)"), option(0, "sort-keys", "", "sort columns by their names (JSON)"), option(0, "key-column", "NAME", "of the column of keys, where JSON is an object"), option(0, "value-column", "NAME", "of the column of values, where JSON is an object"), option(0, "single-object", "", "an object is one row (JSON)")}, run: (*job).from},
		{name: "view", aliases: []string{"v"}, synopsis: "[FILE]", about: "Show the table as one.", options: []command.Option{option('l', "limit", "N", "so many rows (100)"), option('A', "all", "", "all rows"), columns, option('e', "expand", "", "all columns, however wide"), option('I', "hide-index", "", "no numbers of rows"), option('H', "hide-headers", "", "no names of columns"), option('M', "hide-info", "", "no line about the number of rows"), option(0, "cols", "N", "so many characters wide (80)"), option(0, "color", "WHEN", "there are no colors")}, run: (*job).view},
		{name: "flatten", aliases: []string{"f"}, synopsis: "[FILE]", about: "Show each row on lines of its own.", options: []command.Option{option('l', "limit", "N", "so many rows"), columns, option('N', "non-empty", "", "leave empty cells out"), option('F', "flatter", "", "name and cell on lines of their own"), option(0, "row-separator", "TEXT", "between rows, in the place of their number"), option(0, "csv", "", "as a table of row, field and value"), option(0, "cols", "N", "so many characters wide (80)"), option(0, "color", "WHEN", "there are no colors")}, run: (*job).flatten},
		{name: "behead", aliases: []string{"guillotine"}, synopsis: "[FILE]", about: "Write the rows without the names of columns.", run: (*job).behead},
	}
}

// A job is a verb at work.
type job struct {
	t     *kernel.Task
	a     *command.Args
	spec  *command.Spec
	rest  []string // operands that are not used yet
	bare  bool     // -n
	comma byte
	given bool // the delimiter
	out   *writer
	file  *command.Output
	made  int // bytes that the task was charged for values of a row
}

// charge counts values that an expression is about to make, until the next row is read.
func (j *job) charge(n int) {
	j.t.Grow(n)
	j.made += n
}

// row ends what charge began.
func (j *job) row() {
	j.t.Shrink(j.made)
	j.made = 0
}

// A usageError is of the arguments.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func run(t *kernel.Task) int {
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

func help(t *kernel.Task) {
	w := t.Out()
	fmt.Fprintf(w, "Usage: xan COMMAND [OPTION]... [ARGUMENT]...\nWork with tables of comma-separated values. 'xan COMMAND --help' tells more.\n\n")
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %-11s %s\n", v.name, v.about)
	}
	fmt.Fprint(w, `
COLUMNS: names or numbers from 0 (-1 is the last) with commas between, ranges
a:c or 0:2, * for all, !a,b for all others, "quoted, name".

EXPRESSIONS: columns by name or col("a name"), 1.5, "text", true, null, [1, 2],
{a: 1}, /regex/i; + - * / // % ** and == != < <= > >= on numbers, ++ and
eq ne lt le gt ge on texts, in, not in, && || and or !, list[0], list[1:3],
value | function(_), value.function(), x => x + 1, and the functions
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

func (v *verb) start(t *kernel.Task) int {
	spec := &command.Spec{Name: "xan " + v.name, Synopsis: "[OPTION]... " + v.synopsis, About: v.about, Options: append(v.options, shared()...), NoTry: true}
	a, status, ok := spec.ParseArgs(t, shielded(spec, t.Args[2:]))
	if !ok {
		return status
	}
	for i, s := range a.Operands {
		a.Operands[i] = strings.TrimPrefix(s, shield)
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
	if errors.Is(err, errPanic) {
		t.Errorf("%s: %s", v.name, err)
		return 101
	}
	if err != nil {
		t.Errorf("%s: %s", v.name, err)
		return 1
	}
	return 0
}

// shield marks an operand that begins with a dash.
const shield = "\x00"

// shielded marks expressions that begin with a dash, such as '-a as b': what
// holds a blank is no option.
func shielded(spec *command.Spec, args []string) []string {
	out := slices.Clone(args)
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		s := args[i]
		if !strings.HasPrefix(s, "-") {
			continue
		}
		name, _, given := strings.Cut(s, "=")
		takes := slices.ContainsFunc(spec.Options, func(o command.Option) bool {
			return o.Arg == command.Required && (o.Long != "" && name == "--"+o.Long || o.Short != 0 && !strings.HasPrefix(s, "--") && s[len(s)-1] == o.Short)
		})
		switch {
		case strings.Contains(name, " "):
			out[i] = shield + s
		case takes && !given:
			i++ // its value
		}
	}
	return out
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

// orAll gives the number of an option; -1 is 0, for all.
func (j *job) orAll(key string, otherwise int) (int, error) {
	if s, _ := j.a.Value(key); s == "-1" {
		return 0, nil
	}
	return j.number(key, otherwise)
}

func fileError(name string, err error) error { return fmt.Errorf("%s: %s", name, vfs.Message(err)) }
