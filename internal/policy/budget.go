package policy

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
)

const decimalHint = "write a decimal number, such as 0.00001, with at most 12 digits before and after the point"

// budgetShape is the shape of what a sandbox may use in all. Prices may be there without a cost, for a command that says
// the cost.
func budgetShape() *shape {
	amount := func(doc string, of func(*allowance.Budget) *allowance.Decimal) *shape {
		return &shape{kind: number, doc: doc, min: 0, read: func(r *reader, n *yaml.Node, key string) {
			d, err := allowance.ParseDecimal(n.Value)
			if err != nil {
				r.add(n, key, clip(n.Value)+" is not allowed", decimalHint)
				return
			}
			*of(&r.f.Budget) = d
		}}
	}
	return &shape{
		kind: object, doc: "What the sandbox may use in all. Then it ends, or is paused if it is one that stays.", read: checkBudget, fields: []field{
			{"cpu", &shape{kind: text, doc: "Processor time: \"90s\", \"10m\", \"1h30m\".", pattern: timePattern, read: func(r *reader, n *yaml.Node, key string) {
				d, err := time.ParseDuration(n.Value)
				if err != nil || d <= 0 {
					r.add(n, key, fmt.Sprintf("%q is no time", clip(n.Value)), `write a number and a unit, such as "10m"`)
					return
				}
				r.f.Budget.CPU = d
			}}},
			{"network", &shape{kind: textOrWhole, doc: "Bytes to and from the network together.", pattern: sizePattern, min: 1, read: func(r *reader, n *yaml.Node, key string) {
				v, err := parseSize(n.Value)
				if err != nil || v <= 0 {
					r.add(n, key, fmt.Sprintf("%q is no size", clip(n.Value)), sizeHint)
					return
				}
				r.f.Budget.Network = v
			}}},
			{"cost", amount("The cost by the prices, in their unit.", func(b *allowance.Budget) *allowance.Decimal { return &b.Cost })},
			{"prices", &shape{kind: object, doc: "What a cost is computed by. What is left out costs nothing.", fields: []field{
				{"cpu_second", amount("Of a second of processor time.", func(b *allowance.Budget) *allowance.Decimal { return &b.Prices.CPUSecond })},
				{"network_gib", amount("Of a GiB in either direction.", func(b *allowance.Budget) *allowance.Decimal { return &b.Prices.NetworkGiB })},
				{"memory_gib_second", amount("Of a GiB of memory in use for a second.", func(b *allowance.Budget) *allowance.Decimal { return &b.Prices.MemoryGiBSecond })},
			}}},
		},
	}
}

// checkBudget refuses a cost that nothing can be computed of.
func checkBudget(r *reader, n *yaml.Node, key string) {
	b := r.f.Budget
	if b.Cost == "" {
		b.Prices = allowance.Prices{}
	}
	if err := b.Check(); err != nil {
		text := strings.TrimPrefix(strings.TrimSuffix(err.Error(), ": "+paddock.Invalid.Error()), "budget: ")
		r.add(n, key, text, "such as {cost: 0.50, prices: {cpu_second: 0.00001, network_gib: 0.09}}")
	}
}
