package shell

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/printf"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

const printfUsage = "printf: usage: printf [-v var] format [arguments]"

func biPrintf(s *Shell, args []string) int {
	o := getopt{s: s, args: args, spec: "v:"}
	name, to := "", false
	for c := o.next(); c != 0; c = o.next() {
		if c != 'v' {
			return o.usage(printfUsage)
		}
		name, to = o.arg, true
		if _, ok := variable.Split(name); !ok {
			s.complain("printf: `%s': not a valid identifier", name)
			return 2
		}
	}
	rest := o.rest()
	if len(rest) == 0 {
		return o.usage(printfUsage)
	}
	env := printf.Env{
		Limit:   int(s.t.K.Limits.String),
		Now:     s.t.K.Now().Unix(),
		Started: s.bases.start / 1e9,
		Time:    s.formatTime,
		Bytes:   s.Expander().Bytewise(),
		Store:   func(name string, n int) error { return s.setName(name, strconv.Itoa(n)) },
	}
	type warning struct {
		at      int
		message string
	}
	var warnings []warning
	env.Warn = func(at int, message string) { warnings = append(warnings, warning{at, message}) }
	base := len(s.out)
	dst := s.out
	if to {
		base, dst = 0, nil
	}
	out, st, err := printf.Compile(rest[0], printf.Bash).Append(dst, rest[1:], &env)
	if err != nil {
		s.exceeded(err)
	}
	if to {
		for _, w := range warnings {
			s.complain("printf: %s", w.message)
		}
		if i := bytes.IndexByte(out, 0); i >= 0 {
			out = out[:i]
		}
		if err := s.setName(name, string(out)); err != nil {
			s.complain("printf: %s", err)
			return 1
		}
		return st
	}
	for _, w := range warnings {
		// What was printed before the message comes before it.
		s.out = out[:base+w.at]
		rest := append([]byte(nil), out[base+w.at:]...)
		s.complain("printf: %s", w.message)
		out, base = append(s.out, rest...), len(s.out)-w.at
	}
	s.out = out
	if len(s.out) > 64<<10 {
		if err := s.flush(); err != nil {
			s.Warn("printf: write error: %s", message(err))
			return 1
		}
	}
	return st
}

// formatTime writes a time as %(layout)T does, in the zone of TZ.
func (s *Shell) formatTime(dst []byte, layout string, unix int64) []byte {
	tz, ok := s.vars.Get("TZ")
	if v := s.vars.Lookup("TZ"); !ok || !v.Is(variable.Export) && tz == "" {
		tz = "UTC"
	}
	if layout == "" {
		layout = "%X"
	}
	out, err := strftime.Append(dst, layout, time.Unix(unix, 0).In(strftime.Zone(tz)), strftime.Library)
	if err != nil {
		return dst
	}
	return out
}

// exceeded ends the run for a result that is too long.
func (s *Shell) exceeded(err error) {
	if errors.Is(err, printf.ErrLimit) {
		limit := s.t.K.Limits.String
		_ = s.t.Must(&budget.Exceeded{Name: "string", Limit: limit})
	}
}
