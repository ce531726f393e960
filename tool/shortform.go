package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// ParseConstraint reads the short form of a constraint on the argument at path:
//
//	<=1000  <1000  >=1  >0  ==5  !=5     numbers
//	==EUR  !=EUR  =="5"  ==true          text that is not JSON is a string
//	startswith:/api/  endswith:.txt  contains:@  under:/api
//	in:["EUR","USD"]  not_in:[1,2]
//	exists  not_exists
//
// Anything else is an error, including ambiguous text such as ==5EUR, =5 or a bare word.
func ParseConstraint(path, text string) (Constraint, error) {
	c, err := parseShort(path, text)
	if err == nil {
		_, err = compile([]Constraint{c})
	}
	if err != nil {
		return Constraint{}, fmt.Errorf("constraint %s on %s: %w: %w", short(text), short(path), err, paddock.Invalid)
	}
	return c, nil
}

func parseShort(path, text string) (Constraint, error) {
	if len(text) > maxGrantBytes {
		return Constraint{}, errors.New("it is too long")
	}
	switch text {
	case "exists":
		return Constraint{Op: Exists, Path: path}, nil
	case "not_exists":
		return Constraint{Op: NotExists, Path: path}, nil
	}
	for _, sign := range []struct {
		text string
		op   Op
	}{{"<=", Le}, {">=", Ge}, {"==", Eq}, {"!=", Ne}, {"<", Lt}, {">", Gt}} {
		rest, ok := strings.CutPrefix(text, sign.text)
		if !ok {
			continue
		}
		v, err := literal(strings.Trim(rest, " "))
		return Constraint{Op: sign.op, Path: path, Value: v}, err
	}
	word, rest, ok := strings.Cut(text, ":")
	if !ok {
		return Constraint{}, errors.New("it begins with no operator; for a value itself write ==")
	}
	switch word {
	case "startswith", "starts_with":
		return Constraint{Op: StartsWith, Path: path, Value: rest}, nil
	case "endswith", "ends_with":
		return Constraint{Op: EndsWith, Path: path, Value: rest}, nil
	case "contains":
		return Constraint{Op: Contains, Path: path, Value: rest}, nil
	case "under":
		return Constraint{Op: Under, Path: path, Value: rest}, nil
	case "in", "not_in":
		v, err := parse([]byte(rest), maxGrantBytes)
		if err != nil {
			return Constraint{}, err
		}
		return Constraint{Op: Op(word), Path: path, Value: plain(v)}, nil
	}
	return Constraint{}, fmt.Errorf("%s is no operator", short(word))
}

// literal parses the right side of a comparison: JSON if it looks like JSON, otherwise a
// word. Words that other languages interpret specially, and malformed numbers, are errors,
// not strings.
func literal(s string) (any, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "":
		return nil, errors.New("it compares with nothing")
	}
	switch strings.ToLower(s) {
	case "true", "false", "null", "none", "nil", "nan", "inf", "infinity":
		return nil, fmt.Errorf("%s could mean two things; put a string in quotes", short(s))
	}
	switch c := s[0]; {
	case c == '"':
		v, err := parse([]byte(s), maxGrantBytes)
		return v, err
	case strings.IndexByte("+-.0123456789", c) >= 0:
		n, err := parseNumber(s)
		if err != nil {
			return nil, fmt.Errorf("%w; put a string in quotes", err)
		}
		return json.Number(n), nil
	case strings.IndexByte("<>=!{[(&|~'`", c) >= 0:
		return nil, fmt.Errorf("%s begins with a sign; put a string in quotes", short(s))
	}
	return s, nil
}

// shortConstraints reads {"amount": "<=1000", "currency": ["EUR"], "live":
// false}: a string is a short form, a list is what the argument must be in, a
// number or boolean what it must be.
func shortConstraints(members map[string]any) ([]Constraint, error) {
	var cs []Constraint
	for _, path := range slices.Sorted(maps.Keys(members)) {
		c := Constraint{Path: path}
		switch v := members[path].(type) {
		case string:
			var err error
			if c, err = ParseConstraint(path, v); err != nil {
				return nil, err
			}
		case []any:
			c.Op, c.Value = In, plain(v)
		case number, bool:
			c.Op, c.Value = Eq, plain(v)
		default:
			return nil, fmt.Errorf("constraint on %s: %s is none; a nested argument is written a/b", short(path), show(v))
		}
		cs = append(cs, c)
	}
	return cs, nil
}
