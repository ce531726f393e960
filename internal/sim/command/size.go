package command

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A SizeUnit is the unit in which ls, du and df print amounts of bytes.
type SizeUnit struct {
	Size   uint64 // bytes; 0 is human: the greatest unit that leaves at least 1
	SI     bool   // human, by powers of 1000
	Suffix string // behind each number
}

// HumanSizes is the unit of -h.
func HumanSizes() SizeUnit { return SizeUnit{} }

// SISizes is the unit of --si.
func SISizes() SizeUnit { return SizeUnit{SI: true} }

// ParseSizeUnit parses the argument of --block-size.
func ParseSizeUnit(s string) (SizeUnit, error) {
	switch s {
	case "human-readable":
		return HumanSizes(), nil
	case "si":
		return SISizes(), nil
	}
	s = strings.TrimPrefix(s, "'")
	n, err := ParseUint(s, SizeSuffixes)
	if err != nil {
		return SizeUnit{}, err
	}
	if n == 0 {
		return SizeUnit{}, ErrSyntax
	}
	u := SizeUnit{Size: n}
	if s[0] < '0' || s[0] > '9' {
		u.Suffix = s
		if s == "k" {
			u.Suffix = "K"
		}
	}
	return u, nil
}

// DefaultSizeUnit returns the unit that the environment asks for, or 1024 bytes.
func DefaultSizeUnit(t *kernel.Task, own string) SizeUnit {
	for _, name := range []string{own, "BLOCK_SIZE", "BLOCKSIZE"} {
		if v := t.Getenv(name); v != "" {
			if u, err := ParseSizeUnit(v); err == nil {
				return u
			}
		}
	}
	if t.Getenv("POSIXLY_CORRECT") != "" {
		return SizeUnit{Size: 512}
	}
	return SizeUnit{Size: 1024}
}

// Text formats an amount, rounded up.
func (u SizeUnit) Text(n uint64) string {
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
