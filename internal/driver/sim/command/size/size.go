// Package size writes amounts of bytes in the units that ls, du and df have.
package size

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/operand"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/proc"
)

// A Unit is what bytes are counted in.
type Unit struct {
	Size   uint64 // bytes; 0 is human: the greatest unit that leaves at least 1
	SI     bool   // human, by powers of 1000
	Suffix string // behind each number
}

// Human is the unit of -h.
func Human() Unit { return Unit{} }

// SI is the unit of --si.
func SI() Unit { return Unit{SI: true} }

// Parse reads a --block-size.
func Parse(s string) (Unit, error) {
	switch s {
	case "human-readable":
		return Human(), nil
	case "si":
		return SI(), nil
	}
	s = strings.TrimPrefix(s, "'")
	n, err := operand.Uint(s, operand.Sizes)
	if err != nil {
		return Unit{}, err
	}
	if n == 0 {
		return Unit{}, operand.ErrSyntax
	}
	u := Unit{Size: n}
	if s[0] < '0' || s[0] > '9' {
		u.Suffix = s
		if s == "k" {
			u.Suffix = "K"
		}
	}
	return u, nil
}

// Default gives the unit that the environment asks for, or 1024 bytes.
func Default(t *proc.Task, own string) Unit {
	for _, name := range []string{own, "BLOCK_SIZE", "BLOCKSIZE"} {
		if v := t.Getenv(name); v != "" {
			if u, err := Parse(v); err == nil {
				return u
			}
		}
	}
	if t.Getenv("POSIXLY_CORRECT") != "" {
		return Unit{Size: 512}
	}
	return Unit{Size: 1024}
}

// Text writes an amount, rounded up.
func (u Unit) Text(n uint64) string {
	if u.Size > 0 {
		q := n / u.Size
		if n%u.Size != 0 {
			q++
		}
		return strconv.FormatUint(q, 10) + u.Suffix
	}
	base, letters := uint64(1024), "KMGTPE"
	if u.SI {
		base, letters = 1000, "kMGTPE"
	}
	if n < base {
		return strconv.FormatUint(n, 10)
	}
	scale, i := base, 0
	for i+1 < len(letters) && n/scale >= base {
		scale *= base
		i++
	}
	for {
		q, r := n/scale, n%scale
		if q < 10 {
			tenths := roundUp(q, r, scale, 10)
			if tenths < 100 {
				return strconv.FormatUint(tenths/10, 10) + "." + strconv.FormatUint(tenths%10, 10) + letters[i:i+1]
			}
			q, r = 10, 0
		}
		if r > 0 {
			q++
		}
		if q < base || i+1 == len(letters) {
			return strconv.FormatUint(q, 10) + letters[i:i+1]
		}
		scale *= base
		i++
	}
}

// roundUp gives (q + r/scale) * by, rounded up.
func roundUp(q, r, scale, by uint64) uint64 {
	hi, lo := bits.Mul64(r, by)
	d, rest := bits.Div64(hi, lo, scale)
	if rest > 0 {
		d++
	}
	return q*by + d
}
