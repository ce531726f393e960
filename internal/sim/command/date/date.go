package date

import (
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

var dateSpec = &command.Spec{
	Name: "date", Synopsis: "[OPTION]... [+FORMAT]",
	About: "Display date and time in the given FORMAT.",
	Options: []command.Option{
		{Short: 'd', Long: "date", Arg: command.Required, Name: "STRING", Help: "display time described by STRING, not 'now'"},
		{Long: "debug", Help: "(ignored)"},
		{Short: 'f', Long: "file", Arg: command.Required, Name: "DATEFILE", Help: "like --date; once for each line of DATEFILE"},
		{Short: 'I', Long: "iso-8601", Arg: command.Optional, Name: "FMT", Help: "output date/time in ISO 8601 format: date (the default), hours, minutes, seconds, ns"},
		{Long: "resolution", Help: "output the available resolution of timestamps"},
		{Short: 'R', Long: "rfc-email", Help: "output date and time in RFC 5322 format"},
		{Short: 'R', Long: "rfc-822"}, {Short: 'R', Long: "rfc-2822"},
		{Long: "rfc-3339", Arg: command.Required, Name: "FMT", Help: "output date/time in RFC 3339 format: date, seconds, ns"},
		{Short: 'r', Long: "reference", Arg: command.Required, Name: "FILE", Help: "display the last modification time of FILE"},
		{Short: 's', Long: "set", Arg: command.Required, Name: "STRING", Help: "set time described by STRING (which is not permitted)"},
		{Short: 'u', Long: "utc", Help: "print Coordinated Universal Time (UTC)"},
		{Short: 'u', Long: "universal"}, {Short: 'u', Long: "uct"},
	},
}

// A dater is what was asked for.
type dater struct {
	t      *kernel.Task
	w      *command.Writer
	now    time.Time
	format string
	given  bool // a format was
}

func runDate(t *kernel.Task) int {
	a, status, ok := dateSpec.Parse(t)
	if !ok {
		return status
	}
	zone := strftime.Zone(t.Getenv("TZ"))
	if a.Has("u") {
		zone = time.UTC
	}
	d := &dater{t: t, w: command.Stdout(t), now: t.K.Now().In(zone), format: "%a %b %e %H:%M:%S %Z %Y"}
	if status := d.formats(a); status != 0 {
		return status
	}
	sources := 0
	for _, key := range []string{"d", "f", "r", "resolution"} {
		if a.Has(key) {
			sources++
		}
	}
	setting, set := a.Value("s")
	switch {
	case sources > 1:
		return dateSpec.Usage(t, "the options to specify dates for printing are mutually exclusive")
	case set && sources > 0:
		return dateSpec.Usage(t, "the options to print and set the time may not be used together")
	case len(a.Operands) > 1:
		return dateSpec.Usage(t, "extra operand %s", command.Quote(a.Operands[1]))
	}
	var stamp string
	if len(a.Operands) == 1 {
		x := a.Operands[0]
		switch {
		case strings.HasPrefix(x, "+"):
			if d.given {
				t.Errorf("multiple output formats specified")
				return 1
			}
			d.format = x[1:]
		case set || sources > 0:
			return dateSpec.Usage(t, "the argument %s lacks a leading '+';\nwhen using an option to specify date(s), any non-option\nargument must be a format string beginning with '+'", command.Quote(x))
		default:
			stamp = x
		}
	}
	return d.run(a, setting, set, stamp)
}

// formats takes in the options that choose a format.
func (d *dater) formats(a *command.Args) int {
	for _, f := range a.Flags {
		format := ""
		switch f.Key {
		case "I":
			list := []string{"hours", "minutes", "date", "seconds", "ns"}
			word := "date"
			if f.Given {
				w, err := command.Choice(f.Value, list)
				if err != nil {
					return command.BadChoice(d.t, dateSpec, "--iso-8601", f.Value, err, list)
				}
				word = w
			}
			switch word {
			case "date":
				format = "%Y-%m-%d"
			case "hours":
				format = "%Y-%m-%dT%H%:z"
			case "minutes":
				format = "%Y-%m-%dT%H:%M%:z"
			case "seconds":
				format = "%Y-%m-%dT%H:%M:%S%:z"
			case "ns":
				format = "%Y-%m-%dT%H:%M:%S,%N%:z"
			}
		case "R":
			format = "%a, %d %b %Y %H:%M:%S %z"
		case "rfc-3339":
			list := []string{"date", "seconds", "ns"}
			w, err := command.Choice(f.Value, list)
			if err != nil {
				return command.BadChoice(d.t, dateSpec, "--rfc-3339", f.Value, err, list)
			}
			switch w {
			case "date":
				format = "%Y-%m-%d"
			case "seconds":
				format = "%Y-%m-%d %H:%M:%S%:z"
			case "ns":
				format = "%Y-%m-%d %H:%M:%S.%N%:z"
			}
		case "resolution":
			format = "%s.%N"
		default:
			continue
		}
		if d.given {
			d.t.Errorf("multiple output formats specified")
			return 1
		}
		d.format, d.given = format, true
	}
	return 0
}

func (d *dater) run(a *command.Args, setting string, set bool, stamp string) int {
	t := d.t
	if file, ok := a.Value("f"); ok {
		return d.file(file)
	}
	when := d.now
	switch text, ok := a.Value("d"); {
	case ok:
		x, err := strftime.Parse(text, d.now)
		if err != nil {
			t.Errorf("invalid date %s", command.Quote(text))
			return 1
		}
		when = x
	case a.Has("r"):
		name, _ := a.Value("r")
		i, err := t.View.Stat(name)
		if err != nil {
			command.FailFile(t, name, err)
			return 1
		}
		when = i.Mtime.In(d.now.Location())
	case a.Has("resolution"):
		when = time.Unix(0, 1).In(d.now.Location())
	case set:
		x, err := strftime.Parse(setting, d.now)
		if err != nil {
			t.Errorf("invalid date %s", command.Quote(setting))
			return 1
		}
		return d.refuse(x)
	case stamp != "":
		x, ok := d.posix(stamp)
		if !ok {
			t.Errorf("invalid date %s", command.Quote(stamp))
			return 1
		}
		return d.refuse(x)
	}
	return d.show(when)
}

// refuse does not set the clock: it is the host's.
func (d *dater) refuse(when time.Time) int {
	d.t.Errorf("cannot set date: %s", vfs.Message(linux.EPERM))
	d.show(when)
	return 1
}

// posix reads MMDDhhmm[[CC]YY][.ss].
func (d *dater) posix(s string) (time.Time, bool) {
	digits, second, dot := strings.Cut(s, ".")
	sec := 0
	if dot {
		if len(second) != 2 || strings.Trim(second, "0123456789") != "" {
			return time.Time{}, false
		}
		sec, _ = strconv.Atoi(second) // it is two digits
	}
	if strings.Trim(digits, "0123456789") != "" || len(digits)%2 != 0 || len(digits) < 8 || len(digits) > 12 {
		return time.Time{}, false
	}
	var pair [6]int
	for i := 0; i < len(digits); i += 2 {
		pair[i/2], _ = strconv.Atoi(digits[i : i+2])
	}
	year := d.now.Year()
	switch len(digits) {
	case 10:
		year = 1900 + pair[4]
		if pair[4] < 69 {
			year += 100
		}
	case 12:
		year = pair[4]*100 + pair[5]
	}
	when := time.Date(year, time.Month(pair[0]), pair[1], pair[2], pair[3], sec, 0, d.now.Location())
	same := int(when.Month()) == pair[0] && when.Day() == pair[1] && pair[2] < 24 && pair[3] < 60 && sec <= 60
	return when, same
}

// file shows a date for each line.
func (d *dater) file(name string) int {
	bad := 0
	status := command.EachFile(d.t, []string{name}, func(_ string, r *command.Reader) {
		for {
			line, _, ok := r.Line('\n')
			if !ok {
				return
			}
			d.t.Step(len(line))
			when, err := strftime.Parse(string(line), d.now)
			if err != nil {
				d.t.Errorf("invalid date %s", command.Quote(string(line)))
				bad = 1
				continue
			}
			bad = max(bad, d.show(when))
		}
	})
	return max(status, bad)
}

func (d *dater) show(when time.Time) int {
	b, err := strftime.Append(nil, d.format, when, strftime.Date)
	if err != nil {
		d.t.Bound("string", d.t.K.Limits.String+1, d.t.K.Limits.String)
	}
	d.w.Line(b, '\n')
	return 0
}
