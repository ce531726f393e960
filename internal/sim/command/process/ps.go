package process

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

// A living is a task as ps shows it.
type living struct {
	pid, ppid, pgid, uid, gid int
	args                      []string
	comm, state               string
	task                      *kernel.Task
}

// look tells what others may know of a task: what /proc says.
func look(t, other *kernel.Task) (living, bool) {
	p := living{pid: other.PID, ppid: other.PPID, pgid: other.PGID(), state: "S", task: other}
	dir := "/proc/" + itoa(other.PID) + "/"
	line, err := t.View.ReadFile(dir+"cmdline", 1<<26)
	if err != nil {
		if other != t {
			return p, false
		}
		p.args, p.comm, p.uid, p.gid, p.state = t.Args, t.Name(), t.View.UID, t.View.GID, "R"
		return p, true
	}
	for a := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte{0}), []byte{0}) {
		p.args = append(p.args, string(a))
	}
	if text, err := t.View.ReadFile(dir+"status", 1<<16); err == nil {
		for l := range strings.SplitSeq(string(text), "\n") {
			f := strings.Fields(l)
			if len(f) < 2 {
				continue
			}
			switch f[0] {
			case "Name:":
				p.comm = f[1]
			case "Uid:":
				p.uid, _ = strconv.Atoi(f[1]) // ours
			case "Gid:":
				p.gid, _ = strconv.Atoi(f[1]) // ours
			case "State:":
				p.state = f[1]
			}
		}
	}
	if other == t {
		p.state = "R"
	}
	return p, true
}

// everyone lists all tasks that are alive.
func everyone(t *kernel.Task) []living {
	var list []living
	for _, other := range t.K.Tasks() {
		t.Step(8)
		if p, ok := look(t, other); ok {
			list = append(list, p)
		}
	}
	return list
}

func (p living) command() string {
	if len(p.args) == 0 {
		return "[" + p.comm + "]"
	}
	return strings.Join(p.args, " ")
}

// column is what ps -o can show.
type column struct {
	title string
	right bool
	width int
	value func(p living, b *command.Accounts) string
}

func columnOf(name string) (column, bool) {
	num := func(title string, w int, f func(p living) int) (column, bool) {
		return column{title, true, w, func(p living, _ *command.Accounts) string { return itoa(f(p)) }}, true
	}
	text := func(title string, w int, f func(p living, b *command.Accounts) string) (column, bool) {
		return column{title, false, w, f}, true
	}
	fixed := func(title string, w int, s string) (column, bool) {
		return column{title, true, w, func(living, *command.Accounts) string { return s }}, true
	}
	switch name {
	case "pid", "tgid", "tid", "lwp", "spid":
		return num(strings.ToUpper(name), 7, func(p living) int { return p.pid })
	case "ppid":
		return num("PPID", 7, func(p living) int { return p.ppid })
	case "pgid", "pgrp", "tpgid":
		return num("PGID", 7, func(p living) int { return p.pgid })
	case "sid", "sess", "session":
		return num("SID", 7, func(p living) int { return p.pgid })
	case "uid", "euid", "ruid":
		return num("UID", 5, func(p living) int { return p.uid })
	case "gid", "egid", "rgid":
		return num("GID", 5, func(p living) int { return p.gid })
	case "user", "euser", "ruser", "uname":
		return text("USER", 8, func(p living, b *command.Accounts) string { return b.UserText(p.uid) })
	case "group", "egroup", "rgroup":
		return text("GROUP", 8, func(p living, b *command.Accounts) string { return b.GroupText(p.gid) })
	case "comm", "ucmd", "ucomm", "fname":
		return text("COMMAND", 15, func(p living, _ *command.Accounts) string { return p.comm })
	case "args", "cmd", "command":
		return text(map[string]string{"cmd": "CMD"}[name]+map[string]string{"args": "COMMAND", "command": "COMMAND"}[name], 27, func(p living, _ *command.Accounts) string { return p.command() })
	case "stat", "s", "state":
		w := 4
		if name != "stat" {
			w = 1
		}
		return text(map[string]string{"stat": "STAT"}[name]+map[string]string{"s": "S", "state": "S"}[name], w, func(p living, _ *command.Accounts) string { return p.state })
	case "tty", "tt", "tname":
		return text(map[string]string{"tty": "TT", "tt": "TT", "tname": "TTY"}[name], 8, func(living, *command.Accounts) string { return "?" })
	case "time", "cputime":
		return fixed("TIME", 8, "00:00:00")
	case "bsdtime":
		return fixed("TIME", 6, "0:00")
	case "etime":
		return column{"ELAPSED", true, 11, func(p living, _ *command.Accounts) string {
			d := int(time.Since(p.task.Run.Started()).Seconds())
			if d >= 3600 {
				return fmt.Sprintf("%02d:%02d:%02d", d/3600, d/60%60, d%60)
			}
			return fmt.Sprintf("%02d:%02d", d/60, d%60)
		}}, true
	case "etimes":
		return num("ELAPSED", 7, func(p living) int { return int(time.Since(p.task.Run.Started()).Seconds()) })
	case "lstart":
		return text("STARTED", 24, func(p living, _ *command.Accounts) string {
			return p.task.Run.Started().UTC().Format("Mon Jan _2 15:04:05 2006")
		})
	case "start", "stime", "bsdstart", "start_time":
		return column{map[string]string{"stime": "STIME"}[name] + map[string]string{"start": "STARTED", "bsdstart": "START", "start_time": "START"}[name], true, 5,
			func(p living, _ *command.Accounts) string { return p.task.Run.Started().UTC().Format("15:04") }}, true
	case "%cpu", "pcpu", "c", "cp":
		if name == "c" || name == "cp" {
			return fixed("C", 2, "0")
		}
		return fixed("%CPU", 4, "0.0")
	case "%mem", "pmem":
		return fixed("%MEM", 4, "0.0")
	case "vsz", "vsize":
		return fixed("VSZ", 6, "0")
	case "rss", "rssize", "rsz":
		return fixed("RSS", 5, "0")
	case "sz":
		return fixed("SZ", 5, "0")
	case "ni", "nice":
		return fixed("NI", 3, "0")
	case "pri", "priority":
		return fixed("PRI", 3, "19")
	case "nlwp", "thcount":
		return fixed("NLWP", 4, "1")
	case "f", "flags":
		return fixed("F", 1, "0")
	case "wchan":
		return text("WCHAN", 6, func(living, *command.Accounts) string { return "-" })
	case "psr":
		return fixed("PSR", 3, "0")
	case "cls", "class":
		return fixed("CLS", 3, "TS")
	}
	return column{}, false
}

type psOptions struct {
	columns          []column
	every            bool
	pids, ppids      map[int]bool
	users            map[int]bool
	names            map[string]bool
	noHead           bool
	sort             []string
	selected, forest bool
}

func runPs(t *kernel.Task) int {
	o := psOptions{pids: map[int]bool{}, ppids: map[int]bool{}, users: map[int]bool{}, names: map[string]bool{}}
	b := &command.Accounts{View: &t.View}
	layout := ""
	args := t.Args[1:]
	fail := func(format string, a ...any) int {
		_, _ = t.Write(2, []byte("error: "+fmt.Sprintf(format, a...)+"\n\nUsage:\n ps [options]\n\n Try 'ps --help <simple|list|output|threads|misc|all>'\n  or 'ps --help <s|l|o|t|m|a>'\n for additional help text.\n\nFor more details see ps(1).\n"))
		return 1
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		value := func(rest string) (string, bool) {
			if rest != "" {
				return rest, true
			}
			if i+1 < len(args) {
				i++
				return args[i], true
			}
			return "", false
		}
		if long, ok := strings.CutPrefix(arg, "--"); ok {
			name, v, given := strings.Cut(long, "=")
			switch name {
			case "help":
				say(t, "\nUsage:\n ps [options]\n")
				return 0
			case "version":
				say(t, "ps (Paddock)")
				return 0
			case "no-headers", "no-heading", "noheaders", "noheading":
				o.noHead = true
				continue
			case "headers", "forest", "cols", "columns", "width", "rows", "lines", "cumulative", "deselect":
				o.forest = o.forest || name == "forest"
				if !given && (name == "cols" || name == "columns" || name == "width" || name == "rows" || name == "lines") {
					i++
				}
				continue
			case "pid", "ppid", "user", "sort", "format":
				if !given {
					if v, ok = value(""); !ok {
						return fail("list of process IDs must follow --%s", name)
					}
				}
				key := map[string]string{"pid": "p", "ppid": "P", "user": "u", "sort": "k", "format": "o"}[name]
				if text := o.take(b, key, v); text != "" {
					return fail("%s", text)
				}
				continue
			}
			return fail("unknown gnu long option")
		}
		if n, isNumber := atoi(arg); isNumber {
			o.pids[n], o.selected = true, true
			continue
		}
		letters, dash := strings.CutPrefix(arg, "-")
	letters:
		for k := range len(letters) {
			c := letters[k]
			rest := letters[k+1:]
			switch {
			case c == 'o' || c == 'O':
				v, ok := value(rest)
				if !ok {
					return fail("format specification must follow -o")
				}
				if text := o.take(b, "o", v); text != "" {
					return fail("%s", text)
				}
				break letters
			case c == 'p' || c == 'q' || dash && (c == 'C' || c == 'u' || c == 'U' || c == 'g' || c == 'G' || c == 't') || !dash && (c == 'U' || c == 't' || c == 'k'):
				if c == 'u' && !dash {
					layout = "u"
					continue
				}
				v, ok := value(rest)
				if !ok {
					return fail("list of process IDs must follow -%c", c)
				}
				key := string(c)
				if c == 'q' {
					key = "p"
				}
				if text := o.take(b, key, v); text != "" {
					return fail("%s", text)
				}
				break letters
			case c == 'e' && dash, c == 'A':
				o.every = true
			case c == 'a', c == 'x', c == 'd', c == 'N':
				o.every = true
			case c == 'f' && dash:
				layout = "f"
			case c == 'F':
				layout = "f"
			case c == 'l':
				layout = "l"
			case c == 'j':
				layout = "j"
			case c == 'u':
				layout = "u"
			case c == 'h' && !dash:
				o.noHead = true
			case strings.IndexByte("wTrLmMHcevySnf", c) >= 0:
			default:
				if dash {
					return fail("unsupported SysV option")
				}
				return fail("unsupported option (BSD syntax)")
			}
		}
	}
	if o.columns == nil {
		set := "pid,tname,time,ucmd"
		switch layout {
		case "f":
			set = "user,pid,ppid,c,stime,tname,time,cmd"
		case "u":
			set = "user,pid,%cpu,%mem,vsz,rss,tname,stat,start_time,bsdtime,args"
		case "l":
			set = "f,s,uid,pid,ppid,c,pri,ni,sz,wchan,tname,time,ucmd"
		case "j":
			set = "pid,pgid,sid,tname,time,ucmd"
		}
		_ = o.take(b, "o", set) // they are all known
		for i := range o.columns {
			if o.columns[i].title == "COMMAND" && layout != "u" {
				o.columns[i].title = "CMD"
			}
			if layout == "f" && o.columns[i].title == "USER" {
				o.columns[i].title = "UID"
			}
		}
	}
	return o.print(t, b)
}

// take reads an option's value. It gives a complaint.
func (o *psOptions) take(b *command.Accounts, key, v string) string {
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		switch key {
		case "o":
			name, title, given := strings.Cut(part, "=")
			name, _, _ = strings.Cut(name, ":")
			if given {
				if i := strings.Index(v, part); i >= 0 {
					_, title, _ = strings.Cut(v[i:], "=")
				}
			}
			c, ok := columnOf(name)
			if !ok {
				return "unknown user-defined format specifier \"" + name + "\""
			}
			if given {
				c.title = title
			}
			o.columns = append(o.columns, c)
			if given {
				return ""
			}
		case "p", "P":
			n, ok := atoi(part)
			if !ok {
				return "process ID list syntax error"
			}
			if o.selected = true; key == "p" {
				o.pids[n] = true
			} else {
				o.ppids[n] = true
			}
		case "u", "U":
			uid, ok := b.UserID(part)
			if !ok {
				return "user name does not exist"
			}
			o.users[uid], o.selected = true, true
		case "C":
			o.names[part], o.selected = true, true
		case "k":
			o.sort = append(o.sort, part)
		}
	}
	return ""
}

func (o *psOptions) print(t *kernel.Task, b *command.Accounts) int {
	var list []living
	for _, p := range everyone(t) {
		switch {
		case o.selected && !(o.pids[p.pid] || o.ppids[p.ppid] || o.users[p.uid] || o.names[p.comm]) && !o.every:
		case !o.selected && !o.every && p.uid != t.View.UID:
		default:
			list = append(list, p)
		}
	}
	rows := [][]string{}
	head := false
	titles := make([]string, 0, len(o.columns))
	for _, c := range o.columns {
		titles = append(titles, c.title)
		head = head || c.title != ""
	}
	for _, p := range list {
		row := make([]string, 0, len(o.columns))
		for _, c := range o.columns {
			row = append(row, c.value(p, b))
		}
		rows = append(rows, row)
	}
	line := func(row []string) string {
		var s strings.Builder
		for i, c := range o.columns {
			if i > 0 {
				s.WriteByte(' ')
			}
			w := max(c.width, len(c.title))
			last := i == len(o.columns)-1
			switch {
			case c.right:
				fmt.Fprintf(&s, "%*s", w, row[i])
			case last:
				s.WriteString(row[i])
			default:
				text := row[i]
				if len(text) > w && c.title == "USER" {
					text = text[:w-1] + "+"
				}
				fmt.Fprintf(&s, "%-*s", w, text)
			}
		}
		return s.String()
	}
	if head && !o.noHead {
		say(t, line(titles))
	}
	for _, row := range rows {
		say(t, line(row))
	}
	if len(rows) == 0 {
		return 1
	}
	return 0
}

func pgrepSpec(name string) *command.Spec {
	return &command.Spec{
		Name: name, Synopsis: "[options] <pattern>", Exit: 2,
		Options: []command.Option{
			{Short: 'd', Long: "delimiter", Arg: command.Required, Name: "string", Help: "specify output delimiter"},
			{Short: 'l', Long: "list-name", Help: "list PID and process name"}, {Short: 'a', Long: "list-full", Help: "list PID and full command line"},
			{Short: 'v', Long: "inverse", Help: "negates the matching"}, {Short: 'c', Long: "count", Help: "count of matching processes"},
			{Short: 'f', Long: "full", Help: "use full process name to match"}, {Short: 'g', Long: "pgroup", Arg: command.Required, Name: "PGID", Help: "match listed process group IDs"},
			{Short: 'i', Long: "ignore-case", Help: "match case insensitively"}, {Short: 'n', Long: "newest", Help: "select most recently started"},
			{Short: 'o', Long: "oldest", Help: "select least recently started"}, {Short: 'P', Long: "parent", Arg: command.Required, Name: "PPID", Help: "match only child processes of the given parent"},
			{Short: 'u', Long: "euid", Arg: command.Required, Name: "ID", Help: "match by effective IDs"}, {Short: 'U', Long: "uid", Arg: command.Required, Name: "ID", Help: "match by real IDs"},
			{Short: 'x', Long: "exact", Help: "match exactly with the command name"}, {Short: 's', Long: "session", Arg: command.Required, Name: "SID", Help: "match session IDs"},
			{Short: 't', Long: "terminal", Arg: command.Required, Name: "tty", Help: "match by controlling terminal"}, {Long: "signal", Arg: command.Required, Name: "sig", Help: "signal to send (either number or name)"},
			{Short: 'e', Long: "echo", Help: "display what is killed"},
		},
	}
}

func runPgrep(t *kernel.Task) int {
	killing := t.Name() == "pkill"
	args := t.Args[1:]
	sig := linux.SIGTERM
	if killing {
		for i, a := range args {
			if len(a) > 1 && a[0] == '-' && a[1] != '-' {
				if s, ok := parseSignal(a[1:]); ok {
					sig = s
					args = append(append([]string{}, args[:i]...), args[i+1:]...)
					break
				}
			}
		}
	}
	spec := pgrepSpec(t.Name())
	spec.NoTry = true
	a, status, ok := spec.ParseArgs(t, args)
	if !ok {
		return status
	}
	if s, given := a.Value("signal"); given {
		if sig, ok = parseSignal(s); !ok {
			t.Errorf("Unknown signal \"%s\".", s)
			return 2
		}
	}
	filters := a.Has("P") || a.Has("u") || a.Has("U") || a.Has("g") || a.Has("s") || a.Has("t")
	complain := func(text string) int {
		_, _ = t.Write(2, []byte(t.Name()+": "+text+"\nTry `"+t.Name()+" --help' for more information.\n"))
		return 2
	}
	if len(a.Operands) > 1 {
		return complain("only one pattern can be provided")
	}
	if len(a.Operands) == 0 && !filters {
		return complain("no matching criteria specified")
	}
	var re *regex.Regexp
	if len(a.Operands) == 1 {
		var err error
		if re, err = regex.Compile(a.Operands[0], regex.Options{Flavour: regex.Shell, IgnoreCase: a.Has("i"), WholeLine: a.Has("x"), NoSub: true, Meter: meter{t}}); err != nil {
			t.Errorf("regex error: %s", err)
			return 2
		}
	}
	b := &command.Accounts{View: &t.View}
	in := func(key string, n int) bool {
		v, given := a.Value(key)
		if !given {
			return true
		}
		for part := range strings.SplitSeq(v, ",") {
			if k, ok := atoi(part); ok && k == n || (key == "u" || key == "U") && b.UserText(n) == part {
				return true
			}
		}
		return false
	}
	var found []living
	for _, p := range everyone(t) {
		if p.pid == t.PID {
			continue
		}
		match := true
		if re != nil {
			subject := p.comm
			if a.Has("f") {
				subject = p.command()
			}
			match, _ = re.Match([]byte(subject)) // a meter's error ends the run
		}
		match = match && in("P", p.ppid) && in("u", p.uid) && in("U", p.uid) && in("g", p.pgid) && in("s", p.pgid)
		if match != a.Has("v") {
			found = append(found, p)
		}
	}
	if a.Has("n") && len(found) > 1 {
		found = found[len(found)-1:]
	}
	if a.Has("o") && len(found) > 1 {
		found = found[:1]
	}
	if len(found) == 0 {
		if a.Has("c") {
			say(t, "0")
		}
		return 1
	}
	if killing {
		failed := 0
		for _, p := range found {
			if err := send(t, p.pid, sig); err != nil {
				t.Errorf("killing pid %d failed: %s", p.pid, reason(err))
				failed++
			} else if a.Has("e") {
				say(t, p.comm, " killed (pid ", itoa(p.pid), ")")
			}
		}
		if a.Has("c") {
			say(t, itoa(len(found)))
		}
		if failed == len(found) {
			return 1
		}
		return 0
	}
	if a.Has("c") {
		say(t, itoa(len(found)))
		return 0
	}
	delim := "\n"
	if d, given := a.Value("d"); given {
		delim = d
	}
	var out []string
	for _, p := range found {
		s := itoa(p.pid)
		switch {
		case a.Has("a"):
			s += " " + p.command()
		case a.Has("l"):
			s += " " + p.comm
		}
		out = append(out, s)
	}
	say(t, kernel.Join(t, out, delim))
	return 0
}

// A meter charges a task for matching.
type meter struct{ t *kernel.Task }

func (m meter) Step(n int) error {
	m.t.Step(n)
	return nil
}

func (m meter) Grow(n int) error {
	m.t.Grow(n)
	return nil
}
