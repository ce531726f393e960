package tool

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// ParseGrant reads a grant in JSON:
//
//	{"tools": "stripe/*", "max_calls": 10, "expires": "2027-01-01T00:00:00Z",
//	 "constraints": {"amount": "<=1000", "currency": ["EUR", "USD"]},
//	 "budgets": [{"argument": "amount", "total": 5000}]}
//
// Constraints are the short form ([ParseConstraint]) by path, or a list of {"op", "path",
// "value", "of"}. Anything that is not understood is an error. So is a zero where an
// omitted member would mean more than zero.
func ParseGrant(text []byte) (Grant, error) {
	v, err := parse(text, maxGrantBytes)
	if err != nil {
		return Grant{}, fmt.Errorf("parse grant: %w: %w", err, paddock.Invalid)
	}
	g, err := decodeGrant(v)
	if err != nil {
		return Grant{}, fmt.Errorf("parse grant: %w: %w", err, paddock.Invalid)
	}
	if err := g.Check(); err != nil {
		return Grant{}, fmt.Errorf("parse grant: %w", err)
	}
	return g, nil
}

// UnmarshalJSON does the same as [ParseGrant].
func (g *Grant) UnmarshalJSON(text []byte) error {
	parsed, err := ParseGrant(text)
	if err != nil {
		return err
	}
	*g = parsed
	return nil
}

// MarshalJSON writes what [ParseGrant] reads. An invalid grant is an error.
func (g Grant) MarshalJSON() ([]byte, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	out := map[string]any{"tools": g.Tools}
	if g.Name != "" {
		out["name"] = g.Name
	}
	if g.MaxCalls > 0 {
		out["max_calls"] = whole(g.MaxCalls)
	}
	if !g.Expires.IsZero() {
		t, err := g.Expires.MarshalText()
		if err != nil {
			return nil, fmt.Errorf("grant %s: %w: %w", short(g.label()), err, paddock.Invalid)
		}
		out["expires"] = string(t)
	}
	if len(g.Constraints) > 0 {
		list, err := encodeConstraints(g.Constraints)
		if err != nil {
			return nil, err
		}
		out["constraints"] = list
	}
	if len(g.Budgets) > 0 {
		list := make([]any, len(g.Budgets))
		for i, b := range g.Budgets {
			one := map[string]any{"total": whole(b.Total)}
			if b.Argument != "" {
				one["argument"] = b.Argument
			}
			list[i] = one
		}
		out["budgets"] = list
	}
	text := encode(out)
	if len(text) > maxGrantBytes {
		return nil, fmt.Errorf("grant %s: longer than %d bytes: %w", short(g.label()), maxGrantBytes, paddock.Invalid)
	}
	return text, nil
}

func whole(i int64) number { return number(fmt.Sprint(i)) }

func encodeConstraints(cs []Constraint) ([]any, error) {
	list := make([]any, len(cs))
	for i, c := range cs {
		one := map[string]any{"op": string(c.Op)}
		if c.Path != "" {
			one["path"] = c.Path
		}
		var err error
		switch {
		case c.Op == In || c.Op == NotIn:
			one["value"], err = scalars(c.Value)
		case c.Value != nil:
			one["value"], err = scalar(c.Value)
		case c.Of != nil:
			one["of"], err = encodeConstraints(c.Of)
		}
		if err != nil {
			return nil, err
		}
		list[i] = one
	}
	return list, nil
}

func decodeGrant(v any) (g Grant, err error) {
	members, ok := v.(map[string]any)
	if !ok {
		return g, errors.New("a grant is an object")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch v := members[name]; name {
		case "name":
			g.Name, err = decodeString(v)
		case "tools":
			g.Tools, err = decodeString(v)
		case "max_calls":
			g.MaxCalls, err = decodeCount(v)
		case "expires":
			g.Expires, err = decodeTime(v)
		case "constraints":
			g.Constraints, err = decodeConstraints(v)
		case "budgets":
			g.Budgets, err = decodeBudgets(v)
		default:
			err = errors.New("a grant has no such field")
		}
		if err != nil {
			return g, fmt.Errorf("%s: %w", short(name), err)
		}
	}
	return g, nil
}

func decodeString(v any) (string, error) {
	s, ok := v.(string)
	if !ok || s == "" {
		return "", fmt.Errorf("a string is expected, not %s", show(v))
	}
	return s, nil
}

func decodeCount(v any) (int64, error) {
	if n, ok := v.(number); ok {
		if i, ok := n.integer(); ok && i.Sign() > 0 && i.IsInt64() {
			return i.Int64(), nil
		}
	}
	return 0, fmt.Errorf("a whole number from 1 to %d is expected, not %s", int64(math.MaxInt64), show(v))
}

func decodeTime(v any) (time.Time, error) {
	s, err := decodeString(v)
	if err != nil {
		return time.Time{}, err
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.IsZero() {
		return time.Time{}, fmt.Errorf("a time such as 2027-01-01T00:00:00Z is expected, not %s", short(s))
	}
	return t, nil
}

func decodeBudgets(v any) ([]Budget, error) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, fmt.Errorf("a list is expected, not %s", show(v))
	}
	var out []Budget
	for _, e := range list {
		members, ok := e.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("a budget is an object, not %s", show(e))
		}
		var b Budget
		for _, name := range slices.Sorted(maps.Keys(members)) {
			var err error
			switch v := members[name]; name {
			case "argument":
				b.Argument, err = decodeString(v)
			case "total":
				b.Total, err = decodeCount(v)
			default:
				err = errors.New("a budget has no such field")
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", short(name), err)
			}
		}
		out = append(out, b)
	}
	return out, nil
}

func decodeConstraints(v any) ([]Constraint, error) {
	switch v := v.(type) {
	case map[string]any:
		return shortConstraints(v)
	case []any:
		return decodeList(v)
	}
	return nil, fmt.Errorf("a list or an object is expected, not %s", show(v))
}

func decodeList(list []any) ([]Constraint, error) {
	var out []Constraint
	for _, e := range list {
		members, ok := e.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("a constraint in a list is an object, not %s", show(e))
		}
		c, err := decodeConstraint(members)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func decodeConstraint(members map[string]any) (c Constraint, err error) {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch v := members[name]; name {
		case "op":
			var op string
			op, err = decodeString(v)
			c.Op = Op(op)
		case "path":
			c.Path, err = decodeString(v)
		case "value":
			if v == nil {
				err = errors.New("null is no value to compare with")
			}
			c.Value = plain(v)
		case "of":
			list, ok := v.([]any)
			if !ok {
				return c, fmt.Errorf("of: a list is expected, not %s", show(v))
			}
			c.Of, err = decodeList(list)
		default:
			err = errors.New("a constraint has no such field")
		}
		if err != nil {
			return c, fmt.Errorf("%s: %w", short(name), err)
		}
	}
	return c, nil
}
