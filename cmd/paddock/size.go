package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/policy"
)

// sizeFlag is an amount of bytes on the command line, as policy files write it.
type sizeFlag int64

func (s *sizeFlag) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

func (s *sizeFlag) Type() string { return "SIZE" }

// Set refuses zero and less: zero is "the default" in a Spec, and nobody who
// writes 0 means that.
func (s *sizeFlag) Set(text string) error {
	n, err := policy.ParseSize(text)
	if err != nil || n <= 0 {
		return errors.New("a size is a number and a unit, such as 512M or 2GiB, and more than nothing")
	}
	*s = sizeFlag(n)
	return nil
}

// bytesInWords writes an amount of bytes for people.
func bytesInWords(n int64) string {
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
