package process

import (
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
)

// parallelOptions are the options of parallel: its letters and names, and
// whether there is an argument (":" a needed one, "?" one in the same word).
func parallelOptions() []string {
	return []string{
		"0 null", "C: colsep", "E: eof", "I:", "L: max-lines-of-records", "N: max-replace-args", "P: jobs", "U:", "X",
		"a: arg-file", "d: delimiter", "i? replace", "j: jobs max-procs procs", "k keep-order keeporder", "l? max-lines", "m", "n: max-args", "q quote", "r no-run-if-empty",
		"s: max-chars", "t", "u ungroup", "v verbose", "x exit", "arg-sep:", "arg-file-sep:", "bar", "basenameextensionreplace: bner", "basenamereplace: bnr",
		"block: block-size", "citation", "delay:", "dirnamereplace: dnr", "dry-run dryrun", "eta", "extensionreplace: er", "group", "halt: halt-on-error", "header:",
		"joblog:", "lb line-buffer linebuffer line-buffered", "link xapply", "nice:", "no-notice", "number-of-cpus number-of-cores number-of-threads", "pipe spreadstdin", "pipepart pipe-part",
		"progress", "recend:", "regexp", "results: res", "resume", "resume-failed", "retries:", "seqreplace:", "shuf", "slotreplace:", "tag", "tagstring:",
		"timeout:", "trim:", "wd: workdir", "will-cite", "xargs", "help h", "version V",
	}
}

// given is what the options leave to read.
type given struct {
	rest         []string
	files        []string
	sep, fileSep string
	colsep       *regex.Regexp
	trimmed      bool
}

const parallelUsage = `Usage:

parallel [options] [command [arguments]] < list_of_arguments
parallel [options] [command [arguments]] (::: arguments|:::: argfile(s))...
cat ... | parallel --pipe [options] [command [arguments]]

-j n            Run n jobs in parallel
-k              Keep same order
-X              Multiple arguments with context replace
--colsep regexp Split input on regexp for positional replacements
{} {.} {/} {/.} {#} {%} Replacement strings
{3} {3.} {3/} {3/.} Positional replacement strings
`

// options reads the options, as far as the command; the word of one that is
// not known is in the manner of Getopt::Long.
func (p *parallel) options(args []string) (o *given, status int, ok bool) {
	o = &given{sep: ":::", fileSep: "::::"}
	bad := func(text string) (*given, int, bool) {
		_, _ = p.t.Write(2, []byte(text+"\n"+parallelUsage))
		return nil, 255, false
	}
	apply := func(key, value string, has bool) bool {
		complaint := p.option(o, key, value, has)
		if complaint != "" {
			p.t.Errorf("Error: %s", complaint)
		}
		return complaint == ""
	}
	for len(args) > 0 {
		a := args[0]
		if a == o.sep || a == o.fileSep || len(a) < 2 || a[0] != '-' {
			break
		}
		args = args[1:]
		if a == "--" {
			break
		}
		if strings.HasPrefix(a, "--") {
			name, value, has := strings.Cut(a[2:], "=")
			key, kind, problem := longOption(name)
			if problem != "" {
				return bad(problem)
			}
			switch {
			case kind == 0 && has:
				return bad("Option " + name + " does not take an argument")
			case kind == ':' && !has:
				if len(args) == 0 {
					return bad("Option " + name + " requires an argument")
				}
				value, has, args = args[0], true, args[1:]
			}
			if key == "help" || key == "version" {
				return nil, p.inform(key), false
			}
			if key == "number-of-cpus" {
				say(p.t, strconv.Itoa(processors(p.t)))
				return nil, 0, false
			}
			if key == "citation" {
				return nil, 0, false
			}
			if !apply(key, value, has) {
				return nil, 255, false
			}
			continue
		}
		for i := 1; i < len(a); i++ {
			key, kind, found := shortOption(a[i])
			if !found {
				return bad("Unknown option: " + a[i:i+1])
			}
			if key == "help" || key == "version" {
				return nil, p.inform(key), false
			}
			value, has := "", false
			if kind != 0 && i+1 < len(a) {
				value, has = a[i+1:], true
			} else if kind == ':' {
				if len(args) == 0 {
					return bad("Option " + a[i:i+1] + " requires an argument")
				}
				value, has, args = args[0], true, args[1:]
			}
			if !apply(key, value, has) {
				return nil, 255, false
			}
			if has {
				break
			}
		}
	}
	o.rest = args
	if o.colsep != nil && !o.trimmed {
		p.trims = "lr"
	}
	p.spread = p.spread && p.most == 0 && p.lines == 0 && p.jobs > 1
	return o, 0, true
}

func (p *parallel) inform(what string) int {
	if what == "version" {
		say(p.t, "parallel (Paddock)")
		return 0
	}
	_, _ = p.t.Out().WriteString(parallelUsage) // the end of the program tells of it
	return 0
}

// spelt takes an entry of the table apart.
func spelt(entry string) (key string, kind byte, names []string) {
	names = strings.Fields(entry)
	if last := names[0][len(names[0])-1]; last == ':' || last == '?' {
		kind, names[0] = last, names[0][:len(names[0])-1]
	}
	return names[0], kind, names
}

func shortOption(c byte) (key string, kind byte, found bool) {
	for _, entry := range parallelOptions() {
		k, kind, names := spelt(entry)
		for _, n := range names {
			if n == string(rune(c)) {
				return k, kind, true
			}
		}
	}
	return "", 0, false
}

// longOption finds an option by its name or the beginning of one.
func longOption(name string) (key string, kind byte, complaint string) {
	var found []string
	for _, entry := range parallelOptions() {
		k, kd, names := spelt(entry)
		for _, n := range names {
			if n == name && (len(n) > 1 || k == n) {
				return k, kd, ""
			}
			if len(n) > 1 && strings.HasPrefix(n, name) && name != "" && (len(found) == 0 || key != k) {
				found = append(found, n)
				key, kind = k, kd
			}
		}
	}
	switch len(found) {
	case 0:
		return "", 0, "Unknown option: " + name
	case 1:
		return key, kind, ""
	}
	return "", 0, "Option " + name + " is ambiguous (" + strings.Join(found, ", ") + ")"
}

// option takes one option; what it gives is a complaint.
func (p *parallel) option(o *given, key, value string, has bool) string {
	number := func(to *int, least int) string {
		n, err := strconv.Atoi(value)
		if err != nil || n < least {
			return "-" + key + " needs a number, not " + value + "."
		}
		*to = n
		return ""
	}
	switch key {
	case "0":
		p.delim = 0
	case "d":
		c, ok := oneByte(value)
		if !ok {
			return "the delimiter must be one character: " + value + "."
		}
		p.delim = c
	case "C":
		r, err := regex.Compile(value, regex.Options{Flavour: regex.Perl, Meter: stepMeter{p.t}})
		if err != nil {
			return "--colsep " + value + ": " + err.Error() + "."
		}
		o.colsep = r
	case "E":
		p.end, p.hasEnd = value, true
	case "I", "i":
		if has {
			p.marks[""] = value
		}
	case "U", "extensionreplace":
		p.marks["."] = value
	case "basenamereplace":
		p.marks["/"] = value
	case "dirnamereplace":
		p.marks["//"] = value
	case "basenameextensionreplace":
		p.marks["/."] = value
	case "seqreplace":
		p.marks["#"] = value
	case "slotreplace":
		p.marks["%"] = value
	case "L", "l":
		if p.lines = 1; has {
			if c := number(&p.lines, 1); c != "" {
				return c
			}
		}
	case "N", "n":
		if c := number(&p.most, 0); c != "" {
			return c
		}
		p.records = p.most
		p.noArgs = p.most == 0
	case "P", "j":
		n, ok := jobsOf(value, processors(p.t))
		if !ok {
			return "-j needs a number, not " + value + "."
		}
		p.jobs = n
	case "X":
		p.context, p.many, p.spread = true, true, true
	case "m":
		p.many, p.spread = true, true
	case "xargs":
		p.many, p.spread = true, false
	case "s":
		return number(&p.chars, 1)
	case "a":
		o.files = append(o.files, value)
	case "k":
		p.keep = true
	case "q":
		p.quoted = true
	case "r":
		p.noEmpty = true
	case "t", "v":
		p.verbose = key[0]
	case "u":
		p.ungroup, p.byLine = true, false
	case "group":
		p.ungroup, p.byLine = false, false
	case "lb":
		p.byLine, p.ungroup = true, false
	case "arg-sep":
		o.sep = value
	case "arg-file-sep":
		o.fileSep = value
	case "dry-run":
		p.dry = true
	case "link":
		p.link = true
	case "header":
		if value != ":" {
			return "only --header : is available in this sandbox."
		}
		p.header = true
	case "shuf":
		p.shuf = true
	case "tag":
		p.tag = []part{{is: true}}
	case "tagstring":
		p.tag = p.marks.split(value, nil)
		if len(p.tag) == 0 {
			p.tag = nil
		}
	case "trim":
		switch value {
		case "n", "l", "r", "lr", "rl":
			p.trims, o.trimmed = value, true
		default:
			return "--trim must be one of: r l rl lr n."
		}
	case "pipe", "pipepart":
		p.pipe = true
	default:
		return p.rare(key, value)
	}
	return ""
}

// rare is option for those that are seldom given.
func (p *parallel) rare(key, value string) string {
	switch key {
	case "block":
		n, ok := blockSize(value)
		if !ok {
			return "--block needs a size, not " + value + "."
		}
		p.block = n
	case "recend":
		p.recEnd = unescaped(value)
	case "regexp":
		return "--regexp is not available in this sandbox."
	case "results":
		for _, suffix := range []string{".csv", ".tsv", ".json"} {
			if strings.HasSuffix(value, suffix) {
				return "--results to a table is not available in this sandbox."
			}
		}
		p.results = value
	case "joblog":
		p.logName = value
	case "resume":
		p.resume = true
	case "resume-failed":
		p.resume, p.retryOf = true, true
	case "retries":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return "--retries needs a number, not " + value + "."
		}
		p.retries = max(n, 1)
	case "timeout", "delay":
		d, ok := duration(value)
		if !ok {
			return "--" + key + " needs a time, not " + value + "."
		}
		if key == "delay" {
			p.delay = min(d, 1000*time.Hour)
		} else {
			p.timeout = min(d, 1000*time.Hour)
		}
	case "wd":
		p.dir = value
	case "halt":
		h, ok := haltOf(value)
		if !ok {
			return "--halt must be 'never' or 'now|soon,fail|success|done=N[%]', not " + value + "."
		}
		p.halt = h
	}
	return "" // the others change how it looks, or ask to be quiet
}

// jobsOf reads the argument of -j.
func jobsOf(s string, cpus int) (int, bool) {
	n := 0
	var err error
	switch {
	case strings.HasSuffix(s, "%"):
		n, err = strconv.Atoi(s[:len(s)-1])
		n = min(max(n, 0), 100_000) * cpus / 100
		n = max(n, 1)
	case strings.HasPrefix(s, "+"), strings.HasPrefix(s, "-"):
		n, err = strconv.Atoi(s)
		n = max(cpus+min(n, manyJobs), 1)
	default:
		if n, err = strconv.Atoi(s); n == 0 {
			n = manyJobs
		}
	}
	return min(n, manyJobs), err == nil
}

// haltOf reads the argument of --halt.
func haltOf(s string) (h halt, ok bool) {
	switch s {
	case "never", "0":
		return halt{}, true
	case "1":
		return halt{when: "soon", what: "fail", number: 1}, true
	case "2":
		return halt{when: "now", what: "fail", number: 1}, true
	case "-1":
		return halt{when: "soon", what: "success", number: 1}, true
	case "-2":
		return halt{when: "now", what: "success", number: 1}, true
	}
	if n, percent := strings.CutSuffix(s, "%"); percent && !strings.Contains(s, "=") {
		s = "soon,fail=" + n + "%"
	}
	when, rest, found := strings.Cut(s, ",")
	if !found || when != "now" && when != "soon" {
		return halt{}, false
	}
	what, value, found := strings.Cut(rest, "=")
	if !found || what != "fail" && what != "success" && what != "done" {
		return halt{}, false
	}
	h = halt{when: when, what: what}
	value, percent := strings.CutSuffix(value, "%")
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return halt{}, false
	}
	if percent {
		h.percent = min(n, 100)
	} else {
		h.number = n
	}
	return h, true
}

// blockSize reads a size with a unit: K is 1024, k 1000.
func blockSize(s string) (int, bool) {
	if s == "" {
		return 0, false
	}
	unit := 1.0
	num := s
	switch s[len(s)-1] {
	case 'K':
		unit = 1 << 10
	case 'k':
		unit = 1e3
	case 'M':
		unit = 1 << 20
	case 'm':
		unit = 1e6
	case 'G':
		unit = 1 << 30
	case 'g':
		unit = 1e9
	}
	if unit > 1 {
		num = s[:len(s)-1]
	}
	f, err := strconv.ParseFloat(num, 64)
	if err != nil || !(f > 0) || f*unit < 1 || f*unit > 1<<40 {
		return 0, false
	}
	return int(f * unit), true
}

func unescaped(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\0`, "\x00", `\\`, `\`).Replace(s)
}

func oneByte(s string) (byte, bool) {
	if u := unescaped(s); len(u) == 1 {
		return u[0], true
	}
	if h, ok := strings.CutPrefix(s, `\x`); ok {
		n, err := strconv.ParseUint(h, 16, 8)
		return byte(n), err == nil
	}
	return 0, false
}

// A stepMeter charges a task for matching.
type stepMeter struct{ t *kernel.Task }

func (m stepMeter) Step(n int) error {
	m.t.Step(n)
	return nil
}

func (m stepMeter) Grow(n int) error {
	m.t.Grow(n)
	return nil
}
