package command

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Span is a range of numbers from 1 on, both ends within.
type Span struct{ First, Last uint64 }

// OpenEnd is the Last of a span without an end.
const OpenEnd uint64 = math.MaxUint64

// ParseSpans parses a list of ranges as cut and numfmt have it: "1,3-5,7-". The
// result is sorted, and overlapping ranges are merged. Messages speak of fields
// or of bytes. With dash, a single "-" means everything.
func ParseSpans(s string, fields, dash bool) ([]Span, error) {
	what := positions
	if fields {
		what = numbered
	}
	var list []Span
	if dash && s == "-" {
		return []Span{{1, OpenEnd}}, nil
	}
	for i := 0; ; {
		lo, from, err := what.number(s, &i)
		if err != nil {
			return nil, err
		}
		hi, to := lo, from
		ranged := i < len(s) && s[i] == '-'
		if ranged {
			i++
			if from && lo == 0 {
				return nil, what.zero
			}
			if hi, to, err = what.number(s, &i); err != nil {
				return nil, err
			}
			if i < len(s) && s[i] == '-' {
				return nil, what.twice
			}
		}
		if i < len(s) && s[i] != ',' && s[i] != ' ' && s[i] != '\t' {
			return nil, fmt.Errorf("%s %s", what.invalid, Quote(s[i:]))
		}
		switch {
		case !ranged && lo == 0:
			return nil, what.zero
		case ranged && !from && !to:
			return nil, errors.New("invalid range with no endpoint: -")
		case ranged && !from:
			lo = 1
		}
		if ranged && !to {
			hi = OpenEnd
		}
		if hi < lo {
			return nil, errors.New("invalid decreasing range")
		}
		list = append(list, Span{lo, hi})
		if i == len(s) {
			break
		}
		i++
	}
	slices.SortStableFunc(list, func(a, b Span) int {
		if a.First < b.First {
			return -1
		}
		if a.First > b.First {
			return 1
		}
		return 0
	})
	merged := list[:1]
	for _, r := range list[1:] {
		if top := &merged[len(merged)-1]; r.First <= top.Last {
			top.Last = max(top.Last, r.Last)
		} else {
			merged = append(merged, r)
		}
	}
	return merged, nil
}

// ComplementSpans returns the numbers that are not in a list.
func ComplementSpans(list []Span) []Span {
	var rest []Span
	next := uint64(1)
	for _, r := range list {
		if r.First > next {
			rest = append(rest, Span{next, r.First - 1})
		}
		if r.Last == OpenEnd {
			return rest
		}
		next = r.Last + 1
	}
	return append(rest, Span{next, OpenEnd})
}

// spanKind has the words of messages for the things that are numbered.
type spanKind struct {
	zero, twice    error
	invalid, large string
}

var (
	numbered = spanKind{
		zero: errors.New("fields are numbered from 1"), twice: errors.New("invalid field range"),
		invalid: "invalid field value", large: "field number %s is too large",
	}
	positions = spanKind{
		zero: errors.New("byte/character positions are numbered from 1"), twice: errors.New("invalid byte or character range"),
		invalid: "invalid byte/character position", large: "byte/character offset %s is too large",
	}
)

func (k *spanKind) number(s string, i *int) (n uint64, given bool, err error) {
	start := *i
	for ; *i < len(s) && s[*i] >= '0' && s[*i] <= '9'; *i++ {
		d := uint64(s[*i] - '0')
		if n > (math.MaxUint64-1-d)/10 {
			end := *i
			for end < len(s) && s[end] >= '0' && s[end] <= '9' {
				end++
			}
			return 0, false, fmt.Errorf(k.large, Quote(s[start:end]))
		}
		n = n*10 + d
	}
	return n, *i > start, nil
}
