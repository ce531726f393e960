package command

import (
	"errors"
	"math"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// SizeSuffixes are the suffixes of tools that count bytes and lines.
const SizeSuffixes = "bkKmMGTPEZY0"

// The errors of numbers. Tools print their texts.
var (
	ErrSyntax = errors.New("Invalid argument") //nolint:staticcheck // the words of the C library
	ErrSuffix = errors.New("invalid suffix")   // a number with something else behind it
	ErrLarge  = errors.New("Value too large for defined data type")
	ErrRange  = errors.New("Numerical result out of range")             //nolint:staticcheck // the words of the C library
	errBoth   = errors.New("too large, with an invalid suffix besides") // tells like ErrSyntax
)

// ParseUint parses a number without a sign and with at most one of the
// suffixes: b is 512, k or K is 1024 and so on; if suffixes contain '0', kB is
// 1000 and KiB is 1024. With ErrLarge it returns the greatest number.
func ParseUint(s, suffixes string) (uint64, error) {
	i := 0
	for i < len(s) && (s[i] == ' ' || s[i] >= '\t' && s[i] <= '\r') {
		i++
	}
	if i < len(s) && s[i] == '-' {
		return 0, ErrSyntax
	}
	if i < len(s) && s[i] == '+' {
		i++
	}
	var n uint64
	large := false
	start := i
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		d := uint64(s[i] - '0')
		if n > (math.MaxUint64-d)/10 {
			large = true
		}
		n = n*10 + d
	}
	if i == start {
		if start > 0 || i == len(s) || strings.IndexByte(suffixes, s[i]) < 0 {
			return 0, ErrSyntax
		}
		n = 1
	}
	if large {
		n = math.MaxUint64
	}
	if i < len(s) {
		factor, used := multiplier(s[i:], suffixes)
		if used == 0 || i+used < len(s) {
			if large {
				return n, errBoth
			}
			return n, ErrSuffix
		}
		for range factor.power {
			if n > math.MaxUint64/factor.base {
				n, large = math.MaxUint64, true
				break
			}
			n *= factor.base
		}
	}
	if large {
		return n, ErrLarge
	}
	return n, nil
}

type sizeScale struct {
	base  uint64
	power int
}

// multiplier reads a suffix, and tells how many bytes it has: 0 is none.
func multiplier(s, suffixes string) (sizeScale, int) {
	if strings.IndexByte(suffixes, s[0]) < 0 || s[0] == '0' {
		return sizeScale{}, 0
	}
	f := sizeScale{base: 1024}
	used := 1
	if strings.IndexByte("kKmMgGtTPEZY", s[0]) >= 0 && strings.IndexByte(suffixes, '0') >= 0 {
		switch {
		case strings.HasPrefix(s[1:], "iB"):
			used = 3
		case strings.HasPrefix(s[1:], "B"), strings.HasPrefix(s[1:], "D"):
			used, f.base = 2, 1000
		}
	}
	switch s[0] {
	case 'b':
		return sizeScale{512, 1}, 1
	case 'B':
		return sizeScale{1024, 1}, 1
	case 'c':
		return sizeScale{1, 1}, 1
	case 'w':
		return sizeScale{2, 1}, 1
	case 'k', 'K':
		f.power = 1
	case 'm', 'M':
		f.power = 2
	case 'g', 'G':
		f.power = 3
	case 't', 'T':
		f.power = 4
	case 'P':
		f.power = 5
	case 'E':
		f.power = 6
	case 'Z':
		f.power = 7
	case 'Y':
		f.power = 8
	default:
		return sizeScale{}, 0
	}
	return f, used
}

// ParseUintWithin is ParseUint with bounds.
func ParseUintWithin(s, suffixes string, least, most uint64) (uint64, error) {
	n, err := ParseUint(s, suffixes)
	if err != nil {
		return n, err
	}
	if n < least || n > most {
		if n > math.MaxInt32/2 {
			return n, ErrLarge
		}
		return n, ErrRange
	}
	return n, nil
}

// ParseInt parses a number with a sign, within bounds.
func ParseInt(s, suffixes string, least, most int64) (int64, error) {
	trimmed := strings.TrimLeft(s, " \t\n\v\f\r")
	digits, negative := strings.CutPrefix(trimmed, "-")
	if negative && (digits == "" || digits[0] < '0' || digits[0] > '9') {
		return 0, ErrSyntax
	}
	u, err := ParseUint(digits, suffixes)
	if err != nil && !errors.Is(err, ErrLarge) {
		return 0, err
	}
	n := int64(u)
	switch {
	case !negative && u > math.MaxInt64:
		n, err = math.MaxInt64, ErrLarge
	case negative && u > 1<<63:
		n, err = math.MinInt64, ErrLarge
	case negative:
		n = -n
	}
	if err != nil {
		return n, err
	}
	if n < least || n > most {
		if n > math.MaxInt32/2 || n < math.MinInt32/2 {
			return n, ErrLarge
		}
		return n, ErrRange
	}
	return n, nil
}

// BadNumber reports a refused number as GNU tools do, "tool: what: ‘text’", and
// adds the reason if it says more than "invalid".
func BadNumber(t *kernel.Task, what, text string, err error) {
	if errors.Is(err, ErrLarge) || errors.Is(err, ErrRange) {
		t.Errorf("%s: %s: %s", what, Quote(text), err)
		return
	}
	t.Errorf("%s: %s", what, Quote(text))
}
