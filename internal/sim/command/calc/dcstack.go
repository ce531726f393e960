package calc

import (
	"math/big"
)

func (c *dc) arithmetic(op byte) {
	a, b, ok := c.two()
	if !ok {
		return
	}
	back := func(text string) {
		c.complain("%s", text)
		c.number(a)
		c.number(b)
	}
	switch op {
	case '+':
		c.number(c.e.add(a, b))
	case '-':
		c.number(c.e.sub(a, b))
	case '*':
		c.number(c.e.mul(a, b, c.scale))
	case '/', '%', '~':
		if b.n.Sign() == 0 {
			back(map[byte]string{'/': "divide by zero", '%': "remainder by zero", '~': "divide by zero"}[op])
			return
		}
		q, r := c.e.rem(a, b, c.scale)
		if op != '%' {
			c.number(q)
		}
		if op != '/' {
			c.number(r)
		}
	case '^':
		if b.scale > 0 && c.e.cmp(b, c.e.cut(b, 0)) != 0 {
			c.complain("warning: non-zero scale in exponent")
		}
		n, ok := c.e.int64(b)
		if ok && n < 0 && a.n.Sign() == 0 {
			c.number(whole(0)) // as the real one has it
			return
		}
		if !ok {
			back("exponent too large in raise")
			return
		}
		v := c.e.pow(a, n, c.scale)
		if v == nil {
			back("divide by zero")
			return
		}
		c.number(v)
	}
}

// stacks are the commands that show and move what is on the stack.
func (c *dc) stacks(b byte) {
	n := len(c.stack)
	switch b {
	case 'p', 'd':
		if n == 0 {
			c.complain("stack empty")
			return
		}
		if b == 'd' {
			c.push(c.stack[n-1])
			return
		}
		c.w.write(c.show(c.stack[n-1]) + "\n")
	case 'n':
		if x, ok := c.pop(); ok {
			c.w.write(c.show(x))
		}
	case 'P':
		if x, ok := c.pop(); ok {
			c.bytes(x)
		}
	case 'f':
		for i := n - 1; i >= 0; i-- {
			c.w.write(c.show(c.stack[i]) + "\n")
		}
	case 'c':
		for len(c.stack) > 0 {
			c.pop()
		}
	case 'r':
		if n < 2 {
			return
		}
		c.stack[n-1], c.stack[n-2] = c.stack[n-2], c.stack[n-1]
	case 'R':
		c.rotate()
	case 'z':
		c.number(whole(int64(n)))
	case 'Z', 'X':
		x, ok := c.pop()
		switch {
		case !ok:
		case b == 'Z' && x.d == nil:
			c.number(whole(int64(len(x.s))))
		case b == 'Z':
			c.number(whole(int64(c.e.length(x.d))))
		case x.d == nil:
			c.number(whole(0))
		default:
			c.number(whole(int64(x.d.scale)))
		}
	case 'a':
		x, ok := c.pop()
		switch {
		case !ok:
		case x.d != nil:
			v := new(big.Int).And(new(big.Int).Abs(c.e.at(x.d, 0)), big.NewInt(255))
			c.push(item{s: string([]byte{byte(v.Int64())})})
		case x.s != "":
			c.push(item{s: x.s[:1]})
		default:
			c.push(item{s: "\x00"})
		}
	case 'v':
		x, ok := c.one()
		switch {
		case !ok:
		case x.n.Sign() < 0:
			c.complain("square root of negative number")
		default:
			c.number(c.e.sqrt(x, c.scale))
		}
	case '|':
		c.modexp()
	}
}

func (c *dc) bytes(x item) {
	if x.d == nil {
		c.out.String(x.s)
		c.w.column = 0
		return
	}
	v := new(big.Int).Abs(c.e.at(x.d, 0))
	if v.Sign() == 0 {
		c.out.Byte(0)
		return
	}
	c.out.Bytes(v.Bytes())
}

func (c *dc) rotate() {
	x, ok := c.one()
	if !ok {
		return
	}
	n, fits := c.e.int64(x)
	if !fits {
		return
	}
	down := n < 0
	if down {
		n = -n
	}
	if n > int64(len(c.stack)) {
		n = int64(len(c.stack))
	}
	if n < 2 {
		return
	}
	part := c.stack[len(c.stack)-int(n):]
	c.t.Step(int(n))
	if down {
		last := part[len(part)-1]
		copy(part[1:], part[:len(part)-1])
		part[0] = last
	} else {
		first := part[0]
		copy(part, part[1:])
		part[len(part)-1] = first
	}
}

func (c *dc) modexp() {
	if len(c.stack) < 3 {
		c.complain("stack empty")
		return
	}
	for _, x := range c.stack[len(c.stack)-3:] {
		if x.d == nil {
			c.complain("non-numeric value")
			return
		}
	}
	m, _ := c.pop()
	e, _ := c.pop()
	b, _ := c.pop()
	mod, exp := c.e.at(m.d, 0), c.e.at(e.d, 0)
	if mod.Sign() == 0 || exp.Sign() < 0 {
		if mod.Sign() == 0 {
			c.complain("remainder by zero")
		}
		c.push(b)
		c.push(e)
		c.push(m)
		return
	}
	words := len(mod.Bits())
	c.e.cost(words, words*max(1, exp.BitLen()))
	base := c.e.at(b.d, 0)
	v := new(big.Int).Exp(new(big.Int).Abs(base), exp, new(big.Int).Abs(mod))
	if base.Sign() < 0 && exp.Bit(0) == 1 {
		v.Neg(v)
	}
	c.number(&decimal{n: v})
}
