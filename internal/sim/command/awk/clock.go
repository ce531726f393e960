package awk

import (
	"math"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/strftime"
)

// defaultTime is how strftime writes by itself.
const defaultTime = "%a %b %e %H:%M:%S %Z %Y"

func zone(tz string) *time.Location { return strftime.Zone(tz) }

func (m *machine) strftime(args []value) string {
	layout := defaultTime
	if e, ok := m.globals[vPROCINFO].arr.m["strftime"]; ok {
		layout = m.str(e.v)
	}
	when := m.t.K.Now()
	if len(args) > 0 {
		layout = m.str(args[0])
	}
	if len(args) > 1 {
		n := args[1].num()
		if math.IsNaN(n) || math.Abs(n) > 1<<55 {
			m.fatal("strftime: second argument out of range")
		}
		when = time.Unix(int64(math.Floor(n)), 0)
	}
	if len(args) > 2 && args[2].bool() {
		when = when.UTC()
	} else {
		when = when.In(m.location())
	}
	if layout == "" {
		return ""
	}
	b, err := strftime.Append(nil, layout, when, strftime.Library)
	if err != nil {
		m.fatal("%s", err)
	}
	m.fresh(len(b))
	return string(b)
}

// mktime reads "YYYY MM DD HH MM SS [DST]"; -1 is what is no date.
func (m *machine) mktime(args []value) float64 {
	f := strings.Fields(m.str(args[0]))
	if len(f) < 6 {
		return -1
	}
	var n [6]int
	for i := range n {
		v, length := prefix(f[i])
		if length == 0 || math.Abs(v) > 1<<31 {
			return -1
		}
		n[i] = int(v)
	}
	loc := m.location()
	if len(args) > 1 && args[1].bool() {
		loc = time.UTC
	}
	return float64(time.Date(n[0], time.Month(n[1]), n[2], n[3], n[4], n[5], 0, loc).Unix())
}

// random is gawk's generator: that of BSD with a state of 31 numbers.
type random struct {
	r    [31]int32
	f, b int
}

func (x *random) seed(n uint32) {
	if n == 0 {
		n = 1
	}
	x.r[0] = int32(n)
	for i := 1; i < len(x.r); i++ {
		v := (16807 * int64(x.r[i-1])) % 2147483647
		if v < 0 {
			v += 2147483647
		}
		x.r[i] = int32(v)
	}
	x.f, x.b = 3, 0
	for range 310 {
		x.random()
	}
}

func (x *random) random() uint32 {
	x.r[x.f] += x.r[x.b]
	v := uint32(x.r[x.f]) >> 1
	x.f = (x.f + 1) % len(x.r)
	x.b = (x.b + 1) % len(x.r)
	return v
}

func (x *random) next() float64 {
	const divisor = 2147483648.0
	for {
		v := 0.5 + (float64(x.random())/divisor+float64(x.random()))/divisor - 0.5
		if v != 1 {
			return v
		}
	}
}
