package column

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var columnSpec = command.Spec{
	Name: "column", Synopsis: "[options] [<file>...]", About: "Columnate lists.",
	Options: []command.Option{
		{Short: 't', Long: "table", Help: "create a table"},
		{Short: 'n', Long: "table-name", Arg: command.Required, Name: "name", Help: "table name for JSON output"},
		{Short: 'O', Long: "table-order", Arg: command.Required, Name: "columns", Help: "specify order of output columns"},
		{Short: 'N', Long: "table-columns", Arg: command.Required, Name: "names", Help: "comma separated columns names"},
		{Short: 'l', Long: "table-columns-limit", Arg: command.Required, Name: "num", Help: "maximal number of input columns"},
		{Short: 'E', Long: "table-noextreme", Arg: command.Required, Name: "columns", Help: "(ignored)"},
		{Short: 'd', Long: "table-noheadings", Help: "don't print header"},
		{Short: 'e', Long: "table-header-repeat", Help: "(there are no pages)"},
		{Short: 'H', Long: "table-hide", Arg: command.Required, Name: "columns", Help: "don't print the columns"},
		{Short: 'R', Long: "table-right", Arg: command.Required, Name: "columns", Help: "right align text in these columns"},
		{Short: 'T', Long: "table-truncate", Arg: command.Required, Name: "columns", Help: "truncate text in the columns when necessary"},
		{Short: 'W', Long: "table-wrap", Arg: command.Required, Name: "columns", Help: "wrap text in the columns when necessary"},
		{Short: 'L', Long: "keep-empty-lines", Help: "don't ignore empty lines"},
		{Short: 'J', Long: "json", Help: "use JSON output format for table"},
		{Short: 'r', Long: "tree", Arg: command.Required, Name: "column", Help: "column to use tree-like output for the table"},
		{Short: 'i', Long: "tree-id", Arg: command.Required, Name: "column", Help: "line ID to specify child-parent relation"},
		{Short: 'p', Long: "tree-parent", Arg: command.Required, Name: "column", Help: "parent to specify child-parent relation"},
		{Short: 'c', Long: "output-width", Arg: command.Required, Name: "width", Help: "width of output in number of characters"},
		{Short: 'o', Long: "output-separator", Arg: command.Required, Name: "string", Help: "columns separator for table output (default is two spaces)"},
		{Short: 's', Long: "separator", Arg: command.Required, Name: "string", Help: "possible table delimiters"},
		{Short: 'x', Long: "fillrows", Help: "fill rows before columns"},
		{Short: 'h', Long: "help"}, {Short: 'V', Long: "version"},
	},
	NoHelp: true,
}

// A tabColumn is a column of a table.
type tabColumn struct {
	name                          string
	width                         int
	right, truncate, wrap, hidden bool
}

// A row of a table; tree is what stands before the cell of the tree.
type row struct {
	cells    []string
	tree     string
	children []*row
	child    bool
}

type columner struct {
	t         *kernel.Task
	w         *command.Writer
	width     int // 0 is no limit for tables
	separator string
	between   string
	named     bool
	quiet     bool
	empty     bool
	limit     int
	columns   []tabColumn
	order     []int
	rows      []*row
	treeAt    int
}

func runColumn(t *kernel.Task) int {
	a, status, ok := columnSpec.Parse(t)
	if !ok {
		return status
	}
	c := &columner{t: t, w: command.Stdout(t), separator: "\t ", between: "  ", quiet: a.Has("d"), empty: a.Has("L"), treeAt: -1}
	if a.Has("h") || a.Has("V") {
		c.w.String("\nUsage:\n column [options] [<file>...]\n\nColumnate lists.\n")
		return 0
	}
	table, greedy := a.Has("t") || a.Has("J"), true
	for _, f := range a.Flags {
		switch f.Key {
		case "c":
			if f.Value == "unlimited" {
				break
			}
			n, err := command.ParseUint(f.Value, "")
			if err != nil || n == 0 || n > 1<<30 {
				t.Errorf("invalid columns argument: '%s'", f.Value)
				return 1
			}
			c.width = int(n)
		case "s":
			c.separator, greedy = unescape(f.Value), false
		case "o":
			c.between = unescape(f.Value)
		case "l":
			n, err := command.ParseUint(f.Value, "")
			if err != nil {
				t.Errorf("invalid columns limit argument: '%s'", f.Value)
				return 1
			}
			if n == 0 {
				t.Errorf("columns limit must be greater than zero")
				return 1
			}
			c.limit = int(min(n, 1<<30))
		case "N":
			c.named = true
			for _, name := range strings.Split(f.Value, ",") {
				c.columns = append(c.columns, tabColumn{name: name})
			}
		}
	}
	if a.Has("J") && !c.named {
		t.Errorf("option --table-columns required for --json")
		return 1
	}
	var lines []string
	status = 0
	for _, name := range command.InputNames(a.Operands) {
		r, err := command.OpenReader(t, name)
		if err != nil {
			t.Errorf("%s: %s", name, reason(err))
			status = 1
			continue
		}
		lines = c.read(r, lines)
		if err := r.Err(); err != nil {
			t.Errorf("read failed: %s", reason(err))
			status = 1
		}
		r.Close()
	}
	if !table {
		if len(lines) > 0 {
			c.fill(lines, a.Has("x"))
		}
		return status
	}
	for i, line := range lines {
		cells := c.split(line, greedy)
		t.Grow(24*len(cells) + 80)
		for len(c.columns) < len(cells) {
			if c.named && a.Has("J") {
				t.Errorf("line %d: for JSON the name of the column %d is required", i+1, len(c.columns)+1)
				return 1
			}
			c.columns = append(c.columns, tabColumn{})
			t.Grow(48)
		}
		c.rows = append(c.rows, &row{cells: cells})
	}
	if len(lines) == 0 {
		return status
	}
	if !c.modify(a) {
		return 1
	}
	if a.Has("J") {
		name, ok := a.Value("n")
		if !ok {
			name = "table"
		}
		c.json(name)
		return status
	}
	c.table()
	return status
}

// unescape reads \n, \t and their like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if k := strings.IndexByte("abefnrtv\\", s[i+1]); k >= 0 {
				b.WriteByte("\a\b\x1b\f\n\r\t\v\\"[k])
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func (c *columner) read(r *command.Reader, lines []string) []string {
	held := 0
	for {
		b, _, ok := r.Line('\n')
		if !ok {
			return lines
		}
		line := string(b)
		if strings.TrimFunc(line, unicode.IsSpace) == "" {
			if !c.empty {
				continue
			}
			line = ""
		}
		held += len(line) + 16
		c.t.Bound("input", int64(held), c.t.K.Limits.Input)
		c.t.Grow(len(line) + 16)
		lines = append(lines, line)
	}
}

// split cuts a line into cells. With greedy, separators in a row are one.
func (c *columner) split(line string, greedy bool) []string {
	var cells []string
	if line == "" {
		return nil
	}
	for {
		if greedy {
			line = strings.TrimLeft(line, c.separator)
			if line == "" {
				return cells
			}
		}
		if c.limit > 0 && len(cells) == c.limit-1 {
			return append(cells, line)
		}
		i := strings.IndexAny(line, c.separator)
		if i < 0 {
			return append(cells, line)
		}
		cells = append(cells, line[:i])
		_, n := utf8.DecodeRuneInString(line[i:])
		line = line[i+n:]
		c.t.Step(1)
	}
}

// find finds a column by its name or number; "-" is none or all without names.
func (c *columner) find(s string) int {
	for i := range c.columns {
		if c.named && c.columns[i].name == s {
			return i
		}
	}
	if n, err := strconv.Atoi(s); err == nil && n > 0 && n <= len(c.columns) {
		return n - 1
	}
	return -1
}

// each calls do for the columns of a list; 0 stands for all of them.
func (c *columner) each(list string, do func(i int)) bool {
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(s)
		switch {
		case s == "-":
			for i := range c.columns {
				if c.columns[i].name == "" {
					do(i)
				}
			}
			continue
		case s == "0":
			for i := range c.columns {
				do(i)
			}
			continue
		case err == nil && n > len(c.columns):
			continue
		}
		i := c.find(s)
		if i < 0 {
			c.t.Errorf("undefined column name '%s'", s)
			return false
		}
		do(i)
	}
	return true
}

// modify takes in what is said of single columns.
func (c *columner) modify(a *command.Args) bool {
	for i := range c.columns {
		c.order = append(c.order, i)
	}
	ok := true
	for _, f := range a.Flags {
		switch f.Key {
		case "H":
			ok = ok && c.each(f.Value, func(i int) { c.columns[i].hidden = true })
		case "R":
			ok = ok && c.each(f.Value, func(i int) { c.columns[i].right = true })
		case "T":
			ok = ok && c.each(f.Value, func(i int) { c.columns[i].truncate = true })
		case "W":
			ok = ok && c.each(f.Value, func(i int) { c.columns[i].wrap = true })
		case "O":
			var first []int
			used := map[int]bool{}
			ok = ok && c.each(f.Value, func(i int) {
				if !used[i] {
					used[i] = true
					first = append(first, i)
				}
			})
			for i := range c.columns {
				if !used[i] {
					first = append(first, i)
				}
			}
			c.order = first
		}
	}
	if !ok {
		return false
	}
	tree, hasTree := a.Value("r")
	id, hasID := a.Value("i")
	parent, hasParent := a.Value("p")
	if !hasTree && !hasID && !hasParent {
		return true
	}
	if !hasTree || !hasID || !hasParent {
		c.t.Errorf("options --tree-id and --tree-parent are required for tree formatting")
		return false
	}
	at := [3]int{}
	for i, name := range []string{tree, id, parent} {
		if at[i] = c.find(name); at[i] < 0 {
			c.t.Errorf("undefined column name '%s'", name)
			return false
		}
	}
	c.treeAt = at[0]
	c.grow(at[1], at[2])
	return true
}

func (r *row) cell(i int) string {
	if i < len(r.cells) {
		return r.cells[i]
	}
	return ""
}

// grow puts rows below their parents.
func (c *columner) grow(id, parent int) {
	known := map[string]*row{}
	for _, r := range c.rows {
		if _, ok := known[r.cell(id)]; !ok {
			known[r.cell(id)] = r
		}
	}
	for _, r := range c.rows {
		if p := known[r.cell(parent)]; p != nil && p != r && !c.below(p, r, known, parent) {
			p.children = append(p.children, r)
			r.child = true
		}
	}
	var flat []*row
	depth := 0
	var walk func(r *row, lead string)
	walk = func(r *row, lead string) {
		depth++
		c.t.Bound("nesting", int64(depth), c.t.K.Limits.Nesting)
		c.t.Grow(len(lead))
		flat = append(flat, r)
		for i, k := range r.children {
			if i == len(r.children)-1 {
				k.tree = lead + "└─"
				walk(k, lead+"  ")
			} else {
				k.tree = lead + "├─"
				walk(k, lead+"│ ")
			}
		}
		depth--
	}
	for _, r := range c.rows {
		if !r.child {
			walk(r, "")
		}
	}
	c.rows = flat
}

// below reports whether p stands below r already, which would make a loop.
func (c *columner) below(p, r *row, known map[string]*row, parent int) bool {
	for range len(c.rows) {
		c.t.Step(1)
		if p == r {
			return true
		}
		if !p.child {
			return false
		}
		if p = known[p.cell(parent)]; p == nil {
			return false
		}
	}
	return true
}

func textWidth(s string) int {
	n := 0
	for _, r := range s {
		if r == utf8.RuneError {
			n++
			continue
		}
		n += command.RuneWidth(r)
	}
	return n
}

// clean replaces what would break the lines of a table.
func clean(s string) string {
	for i := range len(s) {
		if s[i] == '\n' {
			return strings.ReplaceAll(s, "\n", " ")
		}
	}
	return s
}

func (c *columner) shown() []int {
	var list []int
	for _, i := range c.order {
		if !c.columns[i].hidden {
			list = append(list, i)
		}
	}
	return list
}

func (c *columner) text(r *row, i int) string {
	s := clean(r.cell(i))
	if i == c.treeAt {
		return r.tree + s
	}
	return s
}

// table shows the table.
func (c *columner) table() {
	shown := c.shown()
	header := c.named && !c.quiet
	total := len(c.between) * max(0, len(shown)-1)
	for _, i := range shown {
		col := &c.columns[i]
		col.width = textWidth(col.name)
		for _, r := range c.rows {
			col.width = max(col.width, textWidth(c.text(r, i)))
			c.t.Step(1)
		}
		total += col.width
	}
	if over := total - c.width; c.width > 0 && over > 0 {
		for _, i := range shown {
			col := &c.columns[i]
			if cut := min(over, col.width-1); cut > 0 && (col.truncate || col.wrap) {
				col.width -= cut
				over -= cut
			}
		}
	}
	if header {
		names := &row{}
		for i := range c.columns {
			names.cells = append(names.cells, c.columns[i].name)
		}
		c.line(names, shown, -1)
	}
	for _, r := range c.rows {
		c.line(r, shown, c.treeAt)
	}
}

// line shows a row, on several lines if cells are wrapped.
func (c *columner) line(r *row, shown []int, tree int) {
	texts := make([]string, len(shown))
	for k, i := range shown {
		texts[k] = clean(r.cell(i))
		if i == tree {
			texts[k] = r.tree + texts[k]
		}
	}
	for again := true; again; {
		again = false
		for k, i := range shown {
			col := &c.columns[i]
			text, rest := texts[k], ""
			if col.truncate || col.wrap {
				text, rest = cutWidth(text, col.width)
			}
			texts[k] = ""
			if col.wrap && rest != "" {
				texts[k], again = rest, true
			}
			pad := max(0, col.width-textWidth(text))
			last := k == len(shown)-1
			if col.right && (!last || text != "") {
				c.w.Repeat(' ', pad)
			}
			c.w.String(text)
			if !col.right && !last {
				c.w.Repeat(' ', pad)
			}
			if !last {
				c.w.String(c.between)
			}
		}
		c.w.Byte('\n')
		c.t.Step(len(shown))
	}
}

// cutWidth cuts text at a width.
func cutWidth(s string, width int) (head, rest string) {
	n := 0
	for i, r := range s {
		if n += command.RuneWidth(r); n > width {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// fill shows entries in columns, filled with tabs.
func (c *columner) fill(lines []string, rows bool) {
	width := c.width
	if width == 0 {
		width = 80
		if n, err := strconv.Atoi(c.t.Getenv("COLUMNS")); err == nil && n > 0 {
			width = n
		}
	}
	longest := 0
	widths := make([]int, len(lines))
	c.t.Grow(8 * len(lines))
	for i, s := range lines {
		widths[i] = textWidth(s)
		longest = max(longest, widths[i])
	}
	longest = (longest + 8) &^ 7
	columns := max(1, width/longest)
	if longest >= width {
		columns = 1
	}
	count := (len(lines) + columns - 1) / columns
	put := func(i, column int, last bool) {
		c.w.String(lines[i])
		c.t.Step(1)
		if last {
			return
		}
		for at := column*longest + widths[i]; at < (column+1)*longest; at = (at + 8) &^ 7 {
			c.w.Byte('\t')
		}
	}
	if rows {
		for i := range lines {
			column := i % columns
			put(i, column, column == columns-1 || i == len(lines)-1)
			if column == columns-1 || i == len(lines)-1 {
				c.w.Byte('\n')
			}
		}
		return
	}
	for r := range count {
		for k, i := 0, r; i < len(lines); k, i = k+1, i+count {
			put(i, k, i+count >= len(lines))
		}
		c.w.Byte('\n')
	}
}
