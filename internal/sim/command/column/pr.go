package column

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

var prSpec = command.Spec{
	Name: "pr", Synopsis: "[OPTION]... [FILE]...",
	About: "Paginate or columnate FILE(s) for printing.",
	Options: []command.Option{
		{Long: "pages", Arg: command.Required, Name: "FIRST_PAGE[:LAST_PAGE]", Help: "begin [stop] printing with page FIRST_[LAST_]PAGE"},
		{Long: "columns", Arg: command.Required, Name: "COLUMN", Help: "output COLUMN columns and print columns down, unless -a is used"},
		{Short: 'a', Long: "across", Help: "print columns across rather than down"},
		{Short: 'c', Long: "show-control-chars", Help: "use hat notation (^G) and octal backslash notation"},
		{Short: 'd', Long: "double-space", Help: "double space the output"},
		{Short: 'D', Long: "date-format", Arg: command.Required, Name: "FORMAT", Help: "use FORMAT for the header date"},
		{Short: 'e', Long: "expand-tabs", Arg: command.Optional, Name: "CHAR[WIDTH]", Help: "expand input CHARs (TABs) to tab WIDTH (8)"},
		{Short: 'F', Long: "form-feed", Help: "use form feeds instead of newlines to separate pages"}, {Short: 'f'},
		{Short: 'h', Long: "header", Arg: command.Required, Name: "HEADER", Help: "use a centered HEADER instead of filename in page header"},
		{Short: 'i', Long: "output-tabs", Arg: command.Optional, Name: "CHAR[WIDTH]", Help: "replace spaces with CHARs (TABs) to tab WIDTH (8)"},
		{Short: 'J', Long: "join-lines", Help: "merge full lines, turns off -W line truncation, no column alignment"},
		{Short: 'l', Long: "length", Arg: command.Required, Name: "PAGE_LENGTH", Help: "set the page length to PAGE_LENGTH (66) lines"},
		{Short: 'm', Long: "merge", Help: "print all files in parallel, one in each column"},
		{Short: 'n', Long: "number-lines", Arg: command.Optional, Name: "SEP[DIGITS]", Help: "number lines, use DIGITS (5) digits, then SEP (TAB)"},
		{Short: 'N', Long: "first-line-number", Arg: command.Required, Name: "NUMBER", Help: "start counting with NUMBER at 1st line of first page printed"},
		{Short: 'o', Long: "indent", Arg: command.Required, Name: "MARGIN", Help: "offset each line with MARGIN (zero) spaces"},
		{Short: 'r', Long: "no-file-warnings", Help: "omit warning when a file cannot be opened"},
		{Short: 's', Long: "separator", Arg: command.Optional, Name: "CHAR", Help: "separate columns by a single character"},
		{Short: 'S', Long: "sep-string", Arg: command.Optional, Name: "STRING", Help: "separate columns by STRING"},
		{Short: 't', Long: "omit-header", Help: "omit page headers and trailers"},
		{Short: 'T', Long: "omit-pagination", Help: "omit page headers and trailers, eliminate any pagination by form feeds"},
		{Short: 'v', Long: "show-nonprinting", Help: "use octal backslash notation"},
		{Short: 'w', Long: "width", Arg: command.Required, Name: "PAGE_WIDTH", Help: "set page width to PAGE_WIDTH (72) characters for multiple text-column output only"},
		{Short: 'W', Long: "page-width", Arg: command.Required, Name: "PAGE_WIDTH", Help: "set page width to PAGE_WIDTH (72) characters always, truncate lines"},
		{Short: '0'}, {Short: '1'}, {Short: '2'}, {Short: '3'}, {Short: '4'},
		{Short: '5'}, {Short: '6'}, {Short: '7'}, {Short: '8'}, {Short: '9'},
	},
}

// widestPage bounds the sizes of pages.
const widestPage = 1 << 16

// A printer is a pr at work.
type printer struct {
	t *kernel.Task
	w *command.Writer

	first, last      int
	columns          int
	across, merge    bool
	carets, octal    bool
	double, feeds    bool
	header           string
	headed           bool
	dates            string
	expand           bool
	inTab            byte
	inWidth          int
	tabify           bool
	outTab           byte
	outWidth         int
	join             bool
	length, width    int
	numbers          bool
	numberSep        byte
	digits, number   int
	margin           int
	quiet            bool
	separator        string
	separated        bool
	bare, continuous bool // -t, -T
	truncate         bool

	body, column, numberWidth int

	position, spaces int // of the line that is written
	page             int
	line             int // the number of the next
}

func runPr(t *kernel.Task) int {
	p := &printer{
		t: t, w: command.Stdout(t), first: 1, last: math.MaxInt, columns: 1, dates: "%Y-%m-%d %H:%M", inTab: '\t', inWidth: 8, outTab: '\t', outWidth: 8,
		length: 66, width: 72, numberSep: '\t', digits: 5, number: 1,
	}
	args, ok := p.pages(t.Args[1:])
	if !ok {
		return 1
	}
	a, status, ok := prSpec.ParseArgs(t, args)
	if !ok {
		return status
	}
	if err := p.options(a); err != nil {
		t.Errorf("%s", err)
		return 1
	}
	names := command.InputNames(a.Operands)
	if p.merge && len(a.Operands) > 0 {
		p.columns = len(names)
	}
	if err := p.settle(); err != nil {
		t.Errorf("%s", err)
		return 1
	}
	if p.merge {
		return p.files(names)
	}
	for _, name := range names {
		status = max(status, p.files([]string{name}))
	}
	return status
}

// pages takes out +FIRST[:LAST].
func (p *printer) pages(args []string) (rest []string, ok bool) {
	for i, arg := range args {
		if arg == "--" {
			return append(rest, args[i:]...), true
		}
		if len(arg) > 1 && arg[0] == '+' && p.span(arg[1:]) {
			continue
		}
		rest = append(rest, arg)
	}
	return rest, true
}

func (p *printer) span(s string) bool {
	first, last, both := strings.Cut(s, ":")
	a, err := strconv.Atoi(first)
	if err != nil || a < 1 {
		return false
	}
	b := math.MaxInt
	if both {
		if b, err = strconv.Atoi(last); err != nil || b < a {
			return false
		}
	}
	p.first, p.last = a, b
	return true
}

func (p *printer) options(a *command.Args) error {
	digits := ""
	number := func(s, what string, least int64) (int, error) {
		n, err := command.ParseInt(s, "", least, math.MaxInt32)
		switch {
		case errors.Is(err, command.ErrLarge), errors.Is(err, command.ErrRange):
			return 0, errors.New(what + ": " + command.Quote(s) + ": " + err.Error())
		case err != nil:
			return 0, errors.New(what + ": " + command.Quote(s))
		}
		return int(min(n, widestPage)), nil
	}
	tab := func(f *command.Flag, char *byte, width *int) error {
		s := f.Value
		if s != "" && (s[0] < '0' || s[0] > '9') {
			*char, s = s[0], s[1:]
		}
		if s == "" {
			return nil
		}
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return errors.New("'-" + f.Key + "' extra characters or invalid number in the argument: " + command.Quote(s))
		}
		*width = min(n, widestPage)
		return nil
	}
	oldWidth, oldSep := false, false
	for i := range a.Flags {
		f := &a.Flags[i]
		var err error
		switch f.Key {
		case "pages":
			if !p.span(f.Value) {
				err = errors.New("invalid page range " + command.Quote(f.Value))
			}
		case "columns":
			p.columns, err = number(f.Value, "invalid number of columns", 1)
			digits = ""
		case "a":
			p.across = true
		case "c":
			p.carets = true
		case "d":
			p.double = true
		case "D":
			p.dates = f.Value
		case "e":
			p.expand = true
			err = tab(f, &p.inTab, &p.inWidth)
		case "F", "f":
			p.feeds = true
		case "h":
			p.header, p.headed = f.Value, true
		case "i":
			p.tabify = true
			err = tab(f, &p.outTab, &p.outWidth)
		case "J":
			p.join = true
		case "l":
			p.length, err = number(f.Value, "'-l PAGE_LENGTH' invalid number of lines", 1)
		case "m":
			p.merge = true
		case "n":
			p.numbers = true
			err = tab(f, &p.numberSep, &p.digits)
		case "N":
			p.number, err = number(f.Value, "'-N NUMBER' invalid starting line number", math.MinInt32)
		case "o":
			p.margin, err = number(f.Value, "'-o MARGIN' invalid line offset", 0)
		case "r":
			p.quiet = true
		case "s":
			oldSep = true
			if !p.separated {
				p.separator = "\t"
				if f.Given {
					p.separator = f.Value[:min(1, len(f.Value))]
				}
			}
		case "S":
			p.separator, p.separated = f.Value, true
		case "t":
			p.bare = true
		case "T":
			p.bare, p.continuous = true, true
		case "v":
			p.octal = true
		case "w":
			oldWidth = true
			if !p.truncate {
				p.width, err = number(f.Value, "'-w PAGE_WIDTH' invalid number of characters", 1)
			}
		case "W":
			p.truncate = true
			p.width, err = number(f.Value, "'-W PAGE_WIDTH' invalid number of characters", 1)
		default:
			digits += f.Key
		}
		if err != nil {
			return err
		}
	}
	if digits != "" {
		n, err := number(digits, "invalid number of columns", 1)
		if err != nil {
			return err
		}
		p.columns = n
	}
	// The options of POSIX: -s alone joins lines, unless there is a width.
	if oldSep && !p.separated {
		p.separated = true
		if !p.truncate && !oldWidth {
			p.join = p.columns > 1 || p.merge
		} else if oldWidth && !p.truncate && (p.columns > 1 || p.merge) {
			p.truncate = true
		}
	}
	switch {
	case p.merge && digits != "":
		return errors.New("cannot specify number of columns when printing in parallel")
	case p.merge && p.across:
		return errors.New("cannot specify both printing across and printing in parallel")
	}
	return nil
}

func (p *printer) settle() error {
	p.body = p.length - 10
	if p.body <= 0 {
		p.bare = true
	}
	if p.bare {
		p.body = p.length
	}
	if p.double {
		p.body /= 2
	}
	p.body = max(p.body, 1)
	multi := p.columns > 1
	if multi {
		if !p.separated {
			p.separator = " "
			if p.join {
				p.separator = "\t"
			}
		} else if !p.join && p.separator == "\t" {
			p.separator = " "
		}
		p.truncate = true
		if p.separator != "\t" {
			p.expand = true
		}
		p.tabify = true
	}
	if p.join {
		p.truncate = false
	}
	used := 0
	if p.numbers {
		p.numberWidth = p.digits + 1
		if p.numberSep == '\t' {
			p.numberWidth = p.digits + 8 - p.digits%8
		}
		if p.merge {
			used = p.numberWidth
		}
	}
	p.column = (p.width - used - (p.columns-1)*len(p.separator)) / p.columns
	if p.column < 1 {
		return errors.New("page width too narrow")
	}
	return nil
}

// A feed gives the lines of a file.
type feed struct {
	t     *kernel.Task
	r     *command.Reader
	ended bool
	page  bool // a form feed has ended the page
}

// next gives a line. ok is false at the end, or at a form feed.
func (f *feed) next() (line string, ok bool) {
	if f.ended || f.page {
		return "", false
	}
	var b []byte
	for {
		c, err := f.r.ReadByte()
		switch {
		case err != nil:
			f.ended = true
			return string(b), len(b) > 0
		case c == '\n':
			return string(b), true
		case c == '\f':
			f.page = true
			if next, ok := f.r.Peek(); ok && next == '\n' {
				_, _ = f.r.ReadByte() // it was seen
			}
			return string(b), len(b) > 0
		}
		if b = append(b, c); len(b) > 1<<16 {
			f.t.Bound("record", int64(len(b)), f.t.K.Limits.Record)
		}
	}
}

// files prints a file, or several in parallel.
func (p *printer) files(names []string) int {
	status := 0
	var feeds []*feed
	defer func() {
		for _, f := range feeds {
			f.r.Close()
		}
	}()
	for _, name := range names {
		r, err := command.OpenReader(p.t, name)
		if err != nil {
			if !p.quiet {
				command.FailFile(p.t, name, err)
			}
			status = 1
			continue
		}
		feeds = append(feeds, &feed{t: p.t, r: r})
	}
	if len(feeds) == 0 {
		return status
	}
	if p.merge && len(feeds) < p.columns {
		p.columns = len(feeds)
		if err := p.settle(); err != nil {
			p.t.Errorf("%s", err)
			return 1
		}
	}
	date, title := p.title(names, feeds)
	p.page, p.line = 0, p.number
	for {
		rows, numbers, any := p.collect(feeds)
		if !any {
			break
		}
		p.page++
		if p.page > p.last {
			break
		}
		if p.page < p.first {
			p.line = p.number
		} else {
			p.print(rows, numbers, date, title, feeds)
		}
		for _, f := range feeds {
			f.page = false
		}
	}
	for i, f := range feeds {
		if err := f.r.Err(); err != nil {
			command.FailFile(p.t, names[i], err) //nolint:gosec // G602: there is one feed for each name
			status = 1
		}
	}
	if p.page < p.first && p.page > 0 || p.first > 1 && p.page == 0 {
		p.t.Errorf("starting page number %d exceeds page count %d", p.first, p.page)
	}
	return status
}

// title makes the parts of the header that stay.
func (p *printer) title(names []string, feeds []*feed) (date, title string) {
	when := p.t.K.Now()
	if !p.merge && names[0] != "-" {
		if i, err := feeds[0].r.Desc().File.Info(); err == nil {
			when = i.Mtime
		}
		title = names[0]
	}
	if p.headed {
		title = p.header
	}
	b, err := strftime.Append(nil, p.dates, when.In(strftime.Zone(p.t.Getenv("TZ"))), strftime.Date)
	if err != nil {
		return "", title
	}
	return string(b), title
}

// collect reads the rows of a page, each with a cell for a column; a missing
// cell is nil.
func (p *printer) collect(feeds []*feed) (rows [][]*string, numbers [][]int, any bool) {
	p.t.Step(1)
	cell := func(f *feed) *string {
		s, ok := f.next()
		if !ok {
			return nil
		}
		any = true
		return &s
	}
	add := func(r []*string, n []int) {
		rows, numbers = append(rows, r), append(numbers, n)
		p.t.Step(len(r))
	}
	number := func(s *string) int {
		n := p.line
		if s != nil {
			p.line++
		}
		return n
	}
	if p.merge {
		for range p.body {
			r := make([]*string, p.columns)
			some := false
			for i := range r {
				r[i] = cell(feeds[i])
				some = some || r[i] != nil
			}
			if !some {
				break
			}
			add(r, []int{p.line})
			p.line++
		}
		return rows, numbers, any || p.fed(feeds)
	}
	f := feeds[0]
	if p.across || p.columns == 1 {
		for range p.body {
			r, n := make([]*string, 0, p.columns), make([]int, 0, p.columns)
			for range p.columns {
				s := cell(f)
				if s == nil {
					break
				}
				r, n = append(r, s), append(n, number(s))
			}
			if len(r) == 0 {
				break
			}
			add(r, n)
		}
		return rows, numbers, any || p.fed(feeds)
	}
	var all []*string
	for len(all) < p.body*p.columns {
		s := cell(f)
		if s == nil {
			break
		}
		all = append(all, s)
	}
	// Columns of a page that is not full are about as long as each other.
	height := make([]int, p.columns)
	for i := range height {
		height[i] = len(all) / p.columns
		if i < len(all)%p.columns {
			height[i]++
		}
	}
	for row := range height[0] {
		var r []*string
		var n []int
		at := 0
		for i := range height {
			if row < height[i] {
				r, n = append(r, all[at+row]), append(n, p.line+at+row)
			}
			at += height[i]
		}
		add(r, n)
	}
	p.line += len(all)
	return rows, numbers, any || p.fed(feeds)
}

// fed reports whether a form feed makes a page even of nothing.
func (p *printer) fed(feeds []*feed) bool {
	for _, f := range feeds {
		if f.page {
			return true
		}
	}
	return false
}
