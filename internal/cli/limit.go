package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
)

// parseLimits reads the values of --limit, each NAME=VALUE.
func parseLimits(texts []string) (budget.Limits, error) {
	var l budget.Limits
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return l, WithHint(fmt.Errorf("--limit %s: there is no value: %w", text, paddock.Invalid), "write NAME=VALUE, such as iterations=10000000")
		}
		field, err := limitNamed(name)
		if err != nil {
			return l, err
		}
		if field.In(l) != 0 {
			return l, WithHint(fmt.Errorf("--limit %s is there twice: %w", name, paddock.Invalid), "leave one out")
		}
		n, hint := parseLimit(value, field.Unit)
		if hint != "" {
			return l, WithHint(fmt.Errorf("--limit %s: %q cannot be its value: %w", name, value, paddock.Invalid), "%s", hint)
		}
		field.Set(&l, n)
	}
	return l, nil
}

func limitNamed(name string) (budget.Field, error) {
	fields := budget.Fields()
	names := make([]string, len(fields))
	for i, f := range fields {
		if string(f.Name) == name {
			return f, nil
		}
		names[i] = string(f.Name)
	}
	return budget.Field{}, WithHint(fmt.Errorf("--limit %s: there is no such limit: %w", name, paddock.Invalid),
		"limits are %s; docs/use/sim.md tells what they bound", Join(names))
}

// maxLimit is more than any machine has, and little enough to be added up.
const maxLimit = 1 << 46

// parseLimit reads a value, or says what it must be. Zero and less are refused,
// as by every other flag of a limit: nobody who writes 0 means the default.
func parseLimit(text string, unit budget.Unit) (n int64, hint string) {
	switch unit {
	case budget.Bytes:
		if n, err := policy.ParseSize(text); err == nil && n > 0 && n <= maxLimit {
			return n, ""
		}
		return 0, "it is a size: a number and a unit, such as 512M or 2GiB, and more than nothing"
	case budget.Time:
		if d, err := time.ParseDuration(text); err == nil && d > 0 {
			return int64(d), ""
		}
		return 0, "it is a time: a number and a unit, such as 30s or 5m, and more than nothing"
	default:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
			return n, ""
		}
		return 0, "it is a whole number above 0"
	}
}
