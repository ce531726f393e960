package printf

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/quote"
)

// Append appends what the format makes of the arguments, and returns the status
// that the command ends with. An error means that the limit was reached; what
// was appended until then is returned with it.
func (f *Format) Append(dst []byte, args []string, env *Env) (out []byte, status int, err error) {
	limit := env.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	r := run{f: f, env: env, out: dst, base: len(dst), limit: limit, args: args}
	for r.pass() {
		if len(r.args) == 0 || !f.uses {
			break
		}
	}
	if f.dialect == GNU && !r.stopped && len(r.args) > 0 && r.err == nil {
		r.warn("warning: ignoring excess arguments, starting with " + r.quoted(r.args[0]))
	}
	return r.out, r.status, r.err
}

type run struct {
	f       *Format
	env     *Env
	out     []byte
	base    int
	limit   int
	args    []string
	status  int
	stopped bool
	err     error
}

// pass goes over the format once, and reports whether another pass may follow.
func (r *run) pass() bool {
	for i := range r.f.parts {
		p := &r.f.parts[i]
		if !r.room(len(p.text)) {
			return false
		}
		r.out = append(r.out, p.text...)
		switch p.kind {
		case kindVerb:
			r.convert(p.spec)
		case kindWarn:
			r.warn(p.spec.text)
		case kindFail:
			if spec := p.spec; r.stars(&spec) {
				r.fail(p.spec.text)
			}
			r.stopped = true
		case kindStop:
			r.stopped = true
			r.status = 0 // a stop is a success, whatever went wrong before
		}
		if r.stopped || r.err != nil {
			return false
		}
	}
	return true
}

// room reports whether n more bytes may be appended.
func (r *run) room(n int) bool {
	if n > r.limit-(len(r.out)-r.base) {
		r.err = ErrLimit
		return false
	}
	return true
}

func (r *run) warn(message string) {
	if r.env.Warn != nil {
		r.env.Warn(len(r.out)-r.base, message)
	}
}

func (r *run) fail(message string) {
	r.status = 1
	r.warn(message)
}

func (r *run) quoted(s string) string {
	if r.env.Quote != nil {
		return r.env.Quote(s)
	}
	return quote.Message(s)
}

// next takes an argument; there is always one more, which is empty.
func (r *run) next() (string, bool) {
	if len(r.args) == 0 {
		return "", false
	}
	s := r.args[0]
	r.args = r.args[1:]
	return s, true
}

func (r *run) convert(p spec) {
	if !r.stars(&p) {
		return
	}
	if p.width > r.limit || p.prec > r.limit {
		r.err = ErrLimit
		return
	}
	switch p.verb {
	case 'd', 'i':
		arg, _ := r.next()
		n := r.signed(arg)
		abs := uint64(n)
		if n < 0 {
			abs = -abs
		}
		r.integer(&p, n < 0, abs, "")
	case 'o', 'u', 'x', 'X':
		arg, _ := r.next()
		p.plus, p.space = false, false
		r.unsigned(&p, arg)
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		arg, _ := r.next()
		r.float(&p, arg)
	case 'c':
		arg, _ := r.next()
		if arg == "" {
			arg = "\x00"
		}
		p.zero = false
		r.pad(&p, "", arg[:1])
	case 's':
		arg, _ := r.next()
		r.text(&p, arg)
	case 'b':
		r.percentB(&p)
	case 'q', 'Q':
		r.percentQ(&p)
	case 'n':
		r.count()
	case 'T':
		r.time(&p)
	}
}

// stars takes the width and the precision that are arguments.
func (r *run) stars(p *spec) bool {
	if p.starWidth {
		arg, _ := r.next()
		n := r.signed(arg)
		if r.f.dialect == GNU && (n < math.MinInt32 || n > math.MaxInt32) {
			return r.refuse("invalid field width: ", arg)
		}
		if n < 0 {
			p.minus = true
			n = -n
		}
		if n < 0 || n > huge {
			n = huge
		}
		p.width = int(n)
	}
	if p.starPrec {
		arg, _ := r.next()
		n := r.signed(arg)
		if r.f.dialect == GNU && n > math.MaxInt32 {
			return r.refuse("invalid precision: ", arg)
		}
		p.prec = int(max(min(n, huge), -1))
	}
	return true
}

func (r *run) refuse(message, arg string) bool {
	r.fail(message + r.quoted(arg))
	r.stopped = true
	return false
}

// text appends a string that is cut at the precision.
func (r *run) text(p *spec, s string) {
	if p.prec >= 0 && p.prec < len(s) {
		s = s[:p.prec]
	}
	p.zero = false
	r.pad(p, "", s)
}

// pad appends a sign and a body, filled up to the width.
func (r *run) pad(p *spec, sign, body string) {
	n := len(sign) + len(body)
	fill := max(p.width-n, 0)
	if !r.room(n + fill) {
		return
	}
	switch {
	case fill == 0:
		r.out = append(r.out, sign...)
		r.out = append(r.out, body...)
	case p.minus:
		r.out = append(r.out, sign...)
		r.out = append(r.out, body...)
		r.fill(' ', fill)
	case p.zero:
		r.out = append(r.out, sign...)
		r.fill('0', fill)
		r.out = append(r.out, body...)
	default:
		r.fill(' ', fill)
		r.out = append(r.out, sign...)
		r.out = append(r.out, body...)
	}
}

func (r *run) fill(c byte, n int) {
	r.out = append(r.out, bytes.Repeat([]byte{c}, n)...)
}

// integer appends a whole number.
func (r *run) integer(p *spec, negative bool, abs uint64, prefix string) {
	var buf [24]byte
	var body []byte
	switch p.verb {
	case 'o':
		body = strconv.AppendUint(buf[:0], abs, 8)
	case 'x', 'X':
		body = strconv.AppendUint(buf[:0], abs, 16)
		if p.verb == 'X' {
			body = bytes.ToUpper(body)
		}
	default:
		body = strconv.AppendUint(buf[:0], abs, 10)
	}
	sign := prefix
	switch {
	case negative:
		sign = "-"
	case p.plus:
		sign = "+"
	case p.space:
		sign = " "
	}
	if p.prec >= 0 {
		p.zero = false
		if p.prec == 0 && abs == 0 {
			body = body[:0]
		}
		if n := p.prec - len(body); n > 0 {
			if !r.room(n + len(body)) {
				return
			}
			body = append(bytes.Repeat([]byte{'0'}, n), body...)
		}
	}
	if p.verb == 'o' && p.alt && (len(body) == 0 || body[0] != '0') {
		body = append([]byte{'0'}, body...)
	}
	if p.width == 0 && r.room(len(sign)+len(body)) {
		r.out = append(r.out, sign...)
		r.out = append(r.out, body...)
		return
	}
	r.pad(p, sign, string(body))
}

func (r *run) unsigned(p *spec, arg string) {
	n := r.natural(arg)
	prefix := ""
	if p.alt && n != 0 {
		switch p.verb {
		case 'x':
			prefix = "0x"
		case 'X':
			prefix = "0X"
		}
	}
	r.integer(p, false, n, prefix)
}

func (r *run) percentB(p *spec) {
	arg, _ := r.next()
	if strings.IndexByte(arg, '\\') < 0 {
		r.text(p, arg)
		return
	}
	out, stop, messages := unescape(arg, r.f.dialect)
	if r.f.dialect == GNU && len(messages) > 0 {
		if r.room(len(out)) {
			r.out = append(r.out, out...)
		}
		r.fail(messages[0])
		r.stopped = true
		return
	}
	for _, m := range messages {
		r.warn(m)
	}
	r.text(p, string(out))
	if stop {
		r.stopped = true
		r.status = 0 // as in pass
	}
}

func (r *run) percentQ(p *spec) {
	arg, _ := r.next()
	if r.f.dialect == GNU {
		r.text(p, quote.Shell(arg))
		return
	}
	if p.verb == 'Q' && p.prec >= 0 {
		arg = arg[:min(p.prec, len(arg))]
		p.prec = -1
	}
	r.text(p, quote.Backslash(arg))
}

// count is %n: it stores how much has been printed.
func (r *run) count() {
	name, ok := r.next()
	if !ok || name == "" {
		return
	}
	if r.env.Store == nil {
		r.fail("`" + name + "': not a valid identifier")
		r.stopped = true
		return
	}
	if err := r.env.Store(name, len(r.out)-r.base); err != nil {
		r.fail(err.Error())
		r.stopped = true
	}
}

func (r *run) time(p *spec) {
	arg, ok := r.next()
	when := int64(-1)
	if ok {
		when = r.signed(arg)
	}
	switch when {
	case -1:
		when = r.env.Now
	case -2:
		when = r.env.Started
	}
	layout := p.text
	if layout == "" {
		layout = "%X"
	}
	if r.env.Time == nil {
		r.text(p, strconv.FormatInt(when, 10))
		return
	}
	const most = 64 << 10 // a layout cannot make more of a time, as in bash
	s := r.env.Time(nil, layout, when)
	if len(s) > most {
		s = s[:most]
	}
	r.text(p, string(s))
}

// signed reads an argument that is a whole number.
func (r *run) signed(arg string) int64 {
	if c, ok := r.charConstant(arg); ok {
		return c
	}
	n, rest, err := parseInt(arg)
	r.check(arg, rest, err)
	return n
}

// natural reads an argument as unsigned; a negative one wraps.
func (r *run) natural(arg string) uint64 {
	if c, ok := r.charConstant(arg); ok {
		return uint64(c)
	}
	n, rest, err := parseUint(arg)
	r.check(arg, rest, err)
	return n
}

// charConstant reads an argument that begins with a quote: the code of the
// character after it.
func (r *run) charConstant(arg string) (int64, bool) {
	if arg == "" || arg[0] != '\'' && arg[0] != '"' {
		return 0, false
	}
	if len(arg) == 1 {
		return 0, r.f.dialect == Bash
	}
	c, n := utf8.DecodeRuneInString(arg[1:])
	if c == utf8.RuneError && n == 1 || r.env.Bytes {
		c, n = rune(arg[1]), 1
	}
	if rest := arg[1+n:]; rest != "" && r.f.dialect == GNU {
		r.warn("warning: " + rest + ": character(s) following character constant have been ignored")
	}
	return int64(c), true
}

// check says what is wrong with a number of which rest could not be read.
func (r *run) check(arg, rest string, err error) {
	const outOfRange = "Numerical result out of range"
	if r.f.dialect == GNU {
		switch {
		case errors.Is(err, errRange):
			r.fail(r.quoted(arg) + ": " + outOfRange)
		case rest == "":
		case len(rest) == len(arg):
			r.fail(r.quoted(arg) + ": expected a numeric value")
		default:
			r.fail(r.quoted(arg) + ": value not completely converted")
		}
		return
	}
	switch {
	case rest != "" && len(arg) > 1 && arg[0] == '0' && '0' <= arg[1] && arg[1] <= '9':
		r.fail(arg + ": invalid octal number")
	case rest != "" && len(arg) > 1 && arg[0] == '0' && arg[1] == 'x':
		r.fail(arg + ": invalid hex number")
	case rest != "":
		r.fail(arg + ": invalid number")
	case errors.Is(err, errRange):
		r.warn(fmt.Sprintf("warning: %s: %s", arg, outOfRange))
	}
}
