package calc

import (
	"math/big"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var dcSpec = command.Spec{
	Name: "dc", Synopsis: "[OPTION] [file ...]", About: "An arbitrary precision calculator.",
	Options: []command.Option{
		{Short: 'e', Long: "expression", Arg: command.Required, Name: "EXPR", Help: "evaluate expression"},
		{Short: 'f', Long: "file", Arg: command.Required, Name: "FILE", Help: "evaluate contents of file"},
		{Short: 'h', Long: "help"}, {Short: 'V', Long: "version"},
	},
	NoHelp: true,
}

// An item of the stack is a number or a string.
type item struct {
	d *decimal // nil is a string
	s string
}

// A register is a stack of its own, with an array for each level.
type register struct {
	item  item
	set   bool
	array map[int64]item
	below *register
}

// A source is what commands are read from: a string, or bytes of a file.
type source struct {
	s    string
	r    *command.Reader
	next int // a byte that was put back, or -1
}

type dc struct {
	t     *kernel.Task
	e     *engine
	w     *wrapper
	out   *command.Writer
	stdin *command.Reader

	stack     []item
	registers [256]*register
	scale     int
	ibase     int
	obase     *big.Int
	running   []*source // the last is the one that is read
}

func runDC(t *kernel.Task) int {
	a, status, ok := dcSpec.Parse(t)
	if !ok {
		return status
	}
	out := command.Stdout(t)
	if a.Has("h") || a.Has("V") {
		out.String("Usage: dc [OPTION] [file ...]\n")
		return 0
	}
	width := lineLength(t, "DC_LINE_LENGTH")
	if width > 0 {
		width++ // dc has one digit more on a line than bc
	}
	c := &dc{t: t, e: &engine{t: t}, w: &wrapper{width: width, out: out.String}, out: out, ibase: 10, obase: big.NewInt(10)}
	stdin, err := command.StdinReader(t)
	if err == nil {
		defer stdin.Close()
		c.stdin = stdin
	}
	files := a.Operands
	fed := len(files) > 0
	for _, f := range a.Flags {
		fed = true
		if f.Key == "e" {
			c.run(&source{s: f.Value, next: -1})
		} else {
			c.file(f.Value)
		}
	}
	for _, name := range files {
		c.file(name)
	}
	if !fed && stdin != nil {
		c.run(&source{r: stdin, next: -1})
	}
	return 0
}

func (c *dc) file(name string) {
	if name == "-" {
		if c.stdin != nil {
			c.run(&source{r: c.stdin, next: -1})
		}
		return
	}
	r, err := command.OpenReader(c.t, name)
	if err != nil {
		c.t.Errorf("Could not open file %s", name)
		return
	}
	defer r.Close()
	c.run(&source{r: r, next: -1})
}

func (c *dc) complain(format string, args ...any) { c.t.Errorf(format, args...) }

// byte takes the next byte of the innermost source.
func (s *source) byte() (byte, bool) {
	if s.next >= 0 {
		b := byte(s.next)
		s.next = -1
		return b, true
	}
	if s.r != nil {
		b, err := s.r.ReadByte()
		return b, err == nil
	}
	if s.s == "" {
		return 0, false
	}
	b := s.s[0]
	s.s = s.s[1:]
	return b, true
}

func (s *source) put(b byte) { s.next = int(b) }

func (s *source) empty() bool { return s.r == nil && s.s == "" && s.next < 0 }

// run executes a source, and the macros that come of it.
func (c *dc) run(s *source) {
	c.running = append(c.running[:0], s)
	for len(c.running) > 0 {
		c.t.Step(1)
		top := c.running[len(c.running)-1]
		b, ok := top.byte()
		if !ok {
			c.running = c.running[:len(c.running)-1]
			continue
		}
		c.command(top, b)
	}
}

// execute begins a macro. One that is at its end makes place for it.
func (c *dc) execute(s string) {
	for n := len(c.running); n > 1 && c.running[n-1].empty(); n-- {
		c.running = c.running[:n-1]
	}
	c.t.Bound("calls", int64(len(c.running)), 16*c.t.K.Limits.Calls)
	c.running = append(c.running, &source{s: s, next: -1})
}

func (c *dc) push(x item) {
	c.t.Grow(size(x.d) + len(x.s) + 40)
	c.stack = append(c.stack, x)
}

func (c *dc) number(d *decimal) { c.push(item{d: d}) }

func (c *dc) pop() (item, bool) {
	n := len(c.stack)
	if n == 0 {
		c.complain("stack empty")
		return item{}, false
	}
	x := c.stack[n-1]
	c.stack = c.stack[:n-1]
	c.t.Shrink(size(x.d) + len(x.s) + 40)
	return x, true
}

func (c *dc) two() (a, b *decimal, ok bool) {
	n := len(c.stack)
	switch {
	case n < 2:
		c.complain("stack empty")
	case c.stack[n-1].d == nil || c.stack[n-2].d == nil:
		c.complain("non-numeric value")
	default:
		y, _ := c.pop() // there are two
		x, _ := c.pop()
		return x.d, y.d, true
	}
	return nil, nil, false
}

func (c *dc) one() (*decimal, bool) {
	n := len(c.stack)
	switch {
	case n < 1:
		c.complain("stack empty")
	case c.stack[n-1].d == nil:
		c.complain("non-numeric value")
	default:
		x, _ := c.pop() // there is one
		return x.d, true
	}
	return nil, false
}

func (c *dc) show(x item) string {
	if x.d == nil {
		return x.s
	}
	return c.e.show(x.d, c.obase)
}

func (c *dc) command(s *source, b byte) {
	switch {
	case b >= '0' && b <= '9' || b >= 'A' && b <= 'F' || b == '_' || b == '.':
		c.constant(s, b)
	case strings.IndexByte("+-*/%~^", b) >= 0:
		c.arithmetic(b)
	case strings.IndexByte("pnPfcdrRzZXav|", b) >= 0:
		c.stacks(b)
	case strings.IndexByte("ioIOkK", b) >= 0:
		c.parameters(b)
	case strings.IndexByte("slSL:;", b) >= 0:
		reg, ok := s.byte()
		if !ok {
			c.complain("unexpected EOF")
			return
		}
		c.register(b, reg)
	case strings.IndexByte("xq?Q<>=!", b) >= 0:
		c.control(s, b)
	case b == '[':
		c.str(s)
	case b == '#':
		for b, ok := s.byte(); ok && b != '\n'; b, ok = s.byte() {
			c.t.Step(1)
		}
	case b == ' ' || b >= '\t' && b <= '\r' || b == 0:
	case b > ' ' && b < 127:
		c.complain("'%c' (%#o) unimplemented", b, b)
	default:
		c.complain("%#o unimplemented", b)
	}
}

func (c *dc) constant(s *source, b byte) {
	var text []byte
	if b == '_' {
		text = append(text, '-')
		var ok bool
		if b, ok = s.byte(); !ok {
			c.number(whole(0))
			return
		}
	}
	dot := false
	for ok := true; ok; b, ok = s.byte() {
		if b == '.' && !dot {
			dot = true
		} else if !(b >= '0' && b <= '9' || b >= 'A' && b <= 'F') {
			s.put(b)
			break
		}
		text = append(text, b)
		c.t.Step(1)
		c.e.room(len(text))
	}
	c.number(c.digits(string(text)))
}

// digits reads a number; unlike in bc its digits may exceed the base.
func (c *dc) digits(text string) *decimal {
	if c.ibase == 10 && strings.Trim(text, "-.0123456789") == "" {
		return c.e.parse(text, 10)
	}
	negative := strings.HasPrefix(text, "-")
	head, tail, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	base, n := big.NewInt(int64(c.ibase)), new(big.Int)
	all := head + tail
	for i := range len(all) {
		n.Mul(n, base)
		n.Add(n, big.NewInt(int64(digit(all[i]))))
		c.t.Step(1 + len(n.Bits()))
	}
	d := &decimal{n: n}
	if tail != "" {
		d = c.e.div(d, &decimal{n: new(big.Int).Exp(base, big.NewInt(int64(len(tail))), nil)}, len(tail))
	}
	if negative {
		d = c.e.neg(d)
	}
	return d
}

func (c *dc) str(s *source) {
	var b []byte
	depth := 1
	for {
		x, ok := s.byte()
		if !ok {
			break
		}
		c.t.Step(1)
		if x == '[' {
			depth++
		} else if x == ']' {
			if depth--; depth == 0 {
				break
			}
		}
		b = append(b, x)
		if len(b) > 1<<16 {
			c.t.Bound("string", int64(len(b)), c.t.K.Limits.String)
		}
	}
	c.push(item{s: string(b)})
}

func (c *dc) parameters(b byte) {
	switch b {
	case 'I':
		c.number(whole(int64(c.ibase)))
		return
	case 'O':
		c.number(&decimal{n: c.obase})
		return
	case 'K':
		c.number(whole(int64(c.scale)))
		return
	}
	x, ok := c.one()
	if !ok {
		return
	}
	n, fits := c.e.int64(x)
	switch b {
	case 'i':
		if !fits || n < 2 || n > 16 {
			c.complain("input base must be a number between 2 and 16 (inclusive)")
			return
		}
		c.ibase = int(n)
	case 'o':
		if x.n.Sign() < 0 || fits && n < 2 {
			c.complain("output base must be a number greater than 1")
			return
		}
		c.obase = c.e.at(x, 0)
	case 'k':
		if !fits || n < 0 || n > 2147483647 {
			c.complain("scale must be a nonnegative number")
			return
		}
		c.scale = int(n)
	}
}

func (c *dc) register(b, name byte) {
	reg := c.registers[name]
	fresh := func() *register {
		c.t.Grow(96)
		return &register{below: c.registers[name]}
	}
	switch b {
	case 's', 'S':
		x, ok := c.pop()
		if !ok {
			return
		}
		if reg == nil || b == 'S' {
			reg = fresh()
			c.registers[name] = reg
		}
		c.t.Grow(size(x.d) + len(x.s))
		c.t.Shrink(size(reg.item.d) + len(reg.item.s))
		reg.item, reg.set = x, true
	case 'l':
		if reg == nil || !reg.set {
			c.number(whole(0))
			return
		}
		c.push(reg.item)
	case 'L':
		if reg == nil || !reg.set {
			c.complain("stack register '%c' (%#o) is empty", name, name)
			return
		}
		c.push(reg.item)
		c.t.Shrink(size(reg.item.d) + len(reg.item.s) + 96)
		c.registers[name] = reg.below
	case ':', ';':
		x, ok := c.pop()
		if !ok {
			return
		}
		n, fits := int64(-1), false
		if x.d != nil {
			n, fits = c.e.int64(x.d)
		}
		if !fits || n < 0 {
			c.complain("array index must be a nonnegative integer")
			return
		}
		if b == ';' {
			if reg != nil && reg.array != nil {
				if x, ok := reg.array[n]; ok {
					c.push(x)
					return
				}
			}
			c.number(whole(0))
			return
		}
		if x, ok = c.pop(); !ok {
			return
		}
		if reg == nil {
			reg = fresh()
			c.registers[name] = reg
		}
		if reg.array == nil {
			reg.array = map[int64]item{}
		}
		c.t.Grow(size(x.d) + len(x.s) + 64)
		c.t.Bound("array", int64(len(reg.array)), c.t.K.Limits.Array)
		reg.array[n] = x
	}
}

// control are the commands that run others.
func (c *dc) control(s *source, b byte) {
	switch b {
	case 'x':
		if x, ok := c.pop(); ok {
			if x.d != nil {
				c.push(x)
			} else {
				c.execute(x.s)
			}
		}
	case 'q':
		c.leave(2)
	case 'Q':
		x, ok := c.one()
		if !ok {
			return
		}
		if n, fits := c.e.int64(x); fits && n == 1 {
			// As the real one has it: the macro goes on.
		} else if fits && n > 1 {
			// It does not end the program itself.
			keep := max(1, int64(len(c.running))-n)
			c.running = c.running[:keep]
		} else {
			c.complain("Q command requires a number >= 1")
		}
	case '?':
		if c.stdin == nil {
			return
		}
		c.out.Flush()
		line, _, ok := c.stdin.Line('\n')
		if ok {
			c.execute(string(line))
		}
	case '!':
		x, ok := s.byte()
		if ok && (x == '<' || x == '>' || x == '=') {
			c.compare(s, x, true)
			return
		}
		if !ok || x == '\n' {
			return // there is no command
		}
		for ; ok && x != '\n'; x, ok = s.byte() {
			c.t.Step(1)
		}
		c.complain("running commands of the shell is not possible here")
	default:
		c.compare(s, b, false)
	}
}

// leave ends macros; the outermost ends the program.
func (c *dc) leave(n int) {
	if len(c.running) <= n {
		if c.running[0].r != nil {
			c.t.Exit(1) // as the real one has it where it reads a file
		}
		c.t.Exit(0)
	}
	c.running = c.running[:len(c.running)-n]
}

func (c *dc) compare(s *source, op byte, not bool) {
	name, ok := s.byte()
	if !ok {
		c.complain("unexpected EOF")
		return
	}
	a, b, ok := c.two()
	if !ok {
		return
	}
	order := c.e.cmp(b, a)
	yes := op == '<' && order < 0 || op == '>' && order > 0 || op == '=' && order == 0
	if yes == not {
		return
	}
	reg := c.registers[name]
	switch {
	case reg == nil || !reg.set:
		c.complain("register '%c' (%#o) is empty", name, name)
	case reg.item.d != nil:
		c.push(reg.item)
	default:
		c.execute(reg.item.s)
	}
}
