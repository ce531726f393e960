package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/policy"
)

// A SizeFlag is a number of bytes on the command line, in the notation of policy files.
type SizeFlag int64

func (s *SizeFlag) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

// Type implements pflag.Value.
func (s *SizeFlag) Type() string { return "SIZE" }

// Set parses a size. It refuses zero and less, because zero means the default in a Spec, which is
// not what a person who writes 0 wants.
func (s *SizeFlag) Set(text string) error {
	n, err := policy.ParseSize(text)
	if err != nil || n <= 0 {
		return errors.New("a size is a number and a unit, such as 512M or 2GiB, and more than nothing")
	}
	*s = SizeFlag(n)
	return nil
}

// A ProcessorsFlag is a number of processors on the command line.
type ProcessorsFlag float64

func (p *ProcessorsFlag) String() string {
	if *p == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*p), 'g', -1, 64)
}

// Type implements pflag.Value.
func (p *ProcessorsFlag) Type() string { return "number" }

// Set parses a number of processors. It refuses zero and less, as [SizeFlag.Set] does.
func (p *ProcessorsFlag) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n > 0) || math.IsInf(n, 0) {
		return errors.New("not a number above 0, such as 1.5")
	}
	*p = ProcessorsFlag(n)
	return nil
}

// A CountFlag is a number of things on the command line.
type CountFlag int

func (c *CountFlag) String() string {
	if *c == 0 {
		return ""
	}
	return strconv.Itoa(int(*c))
}

// Type implements pflag.Value.
func (c *CountFlag) Type() string { return "number" }

// Set parses a number. It refuses zero and less, as [SizeFlag.Set] does.
func (c *CountFlag) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return errors.New("not a whole number above 0")
	}
	*c = CountFlag(n)
	return nil
}

// A TimeFlag is a duration on the command line.
type TimeFlag time.Duration

func (t *TimeFlag) String() string {
	if *t == 0 {
		return ""
	}
	return time.Duration(*t).String()
}

// Type implements pflag.Value.
func (t *TimeFlag) Type() string { return "time" }

// Set parses a duration. It refuses zero and less, as [SizeFlag.Set] does.
func (t *TimeFlag) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("a time is a number and a unit, such as 30s or 5m, and more than nothing")
	}
	*t = TimeFlag(d)
	return nil
}

// listFlag is a flag that may be given more than once. The library's own writes even an
// empty list as CSV, with a buffer of 4 KB for each flag of each start.
type listFlag []string

func (l *listFlag) String() string { return strings.Join(*l, " ") }

// Type implements pflag.Value. By this word, completion offers the flag again.
func (l *listFlag) Type() string { return "stringArray" }

// Set adds to the list.
func (l *listFlag) Set(text string) error {
	*l = append(*l, text)
	return nil
}

// BytesInWords formats a number of bytes for people.
func BytesInWords(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	f, unit := float64(n)/1024, 0
	for f >= 1023.95 && unit < len(units)-1 {
		f /= 1024
		unit++
	}
	return strings.TrimSuffix(strconv.FormatFloat(f, 'f', 1, 64), ".0") + " " + units[unit:unit+1] + "iB"
}
