package policy

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// units of sizes, in small letters. The short form is binary, as with Docker.
var units = map[string]int64{
	"": 1, "b": 1,
	"k": 1 << 10, "kib": 1 << 10, "kb": 1000,
	"m": 1 << 20, "mib": 1 << 20, "mb": 1000 * 1000,
	"g": 1 << 30, "gib": 1 << 30, "gb": 1000 * 1000 * 1000,
	"t": 1 << 40, "tib": 1 << 40, "tb": 1000 * 1000 * 1000 * 1000,
}

const sizeHint = `a size is a number and a unit: "512m", "2GiB", "1.5g", or bytes`

// ParseSize reads a number of bytes: "512m", "2GiB", "1.5g", "1048576".
// k, m, g, t and KiB, MiB, GiB, TiB are powers of 1024; kB, MB, GB, TB are
// powers of 1000; letters may have either case. Zero, which would look like
// "no limit", is Invalid, as is all else.
func ParseSize(s string) (int64, error) {
	n, err := parseSize(s)
	if err != nil {
		return 0, fmt.Errorf("size %q: %w (%s): %w", clip(s), err, sizeHint, paddock.Invalid)
	}
	return n, nil
}

func parseSize(s string) (int64, error) {
	end := 0
	for end < len(s) && (s[end] >= '0' && s[end] <= '9' || s[end] == '.') {
		end++
	}
	number, unit := s[:end], s[end:]
	if strings.HasPrefix(unit, "-") {
		return 0, errors.New("negative")
	}
	factor, ok := units[strings.ToLower(unit)]
	if !ok {
		return 0, errors.New("not a size")
	}
	whole, fraction, dotted := strings.Cut(number, ".")
	if whole == "" || len(whole) > 19 || (dotted && (fraction == "" || len(fraction) > 6 || strings.Contains(fraction, "."))) {
		return 0, errors.New("not a size")
	}
	w, err := strconv.ParseUint(whole, 10, 64)
	if err != nil {
		return 0, errors.New("not a size")
	}
	high, n := bits.Mul64(w, uint64(factor))
	if high != 0 || n > math.MaxInt64 {
		return 0, errors.New("too large")
	}
	if dotted {
		f, err := strconv.ParseUint(fraction, 10, 64)
		if err != nil {
			return 0, errors.New("not a size")
		}
		scale := uint64(math.Pow10(len(fraction)))
		// f < 10^6 and factor ≤ 2^40, so the product fits.
		n += f * uint64(factor) / scale
		if n > math.MaxInt64 {
			return 0, errors.New("too large")
		}
	}
	if n == 0 {
		return 0, errors.New("zero is not a limit; leave the key out for the default")
	}
	return int64(n), nil
}

// parseTimeout reads a duration above zero.
func parseTimeout(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, errors.New("not a duration")
	case d < 0:
		return 0, errors.New("negative")
	case d == 0:
		return 0, errors.New("zero is not a timeout; leave the key out for none")
	case d < time.Millisecond:
		return 0, errors.New("shorter than a millisecond")
	}
	return d, nil
}

// clip shortens what a document said so that a message stays readable.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
