// Package allowance has budgets: what a sandbox may use in all, and what it used of that.
//
// # Units
//
// Processor time is that of everything in the sandbox and of what isolates it. Network is the bytes in both directions
// together. Memory is bytes times seconds, and has no budget of its own. A cost is the sum of all three times their
// prices. It has the unit of the prices, whatever that is: there is no currency here.
//
// # Rounding
//
// Costs are computed and compared exactly. For people they are rounded to a millionth, half away from zero.
package allowance

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Budget bounds what a sandbox uses in all. What is zero has no bound.
type Budget struct {
	CPU     time.Duration `json:"cpu,omitempty"`
	Network int64         `json:"network,omitempty"` // bytes
	Cost    Decimal       `json:"cost,omitempty"`    // by Prices
	Prices  Prices        `json:"prices,omitzero"`
}

// Prices are what a cost is computed by. What is empty costs nothing.
type Prices struct {
	CPUSecond       Decimal `json:"cpu_second,omitempty"`
	NetworkGiB      Decimal `json:"network_gib,omitempty"`       // in either direction
	MemoryGiBSecond Decimal `json:"memory_gib_second,omitempty"` // of memory in use
}

// A Decimal is a number as it was written: at most 12 digits before and after the point. Empty is zero.
type Decimal string

var decimal = regexp.MustCompile(`^(0|[1-9][0-9]{0,11})(\.[0-9]{1,12})?$`)

// ParseDecimal reads a number.
func ParseDecimal(text string) (Decimal, error) {
	if !decimal.MatchString(text) {
		return "", fmt.Errorf("%.40q is not a decimal number of at most 12 digits before and after the point: %w", text, paddock.Invalid)
	}
	return Decimal(text), nil
}

// rat returns the exact value. What is not a number is zero; Check refuses that before.
func (d Decimal) rat() *big.Rat {
	r := new(big.Rat)
	if decimal.MatchString(string(d)) {
		r.SetString(string(d))
	}
	return r
}

// decimalOf returns a sum of decimals, which has at most 12 digits after the point.
func decimalOf(r *big.Rat) Decimal {
	text := r.FloatString(12)
	return Decimal(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}

// zero reports whether a number is zero.
func (d Decimal) zero() bool { return d.rat().Sign() == 0 }

// Bounds reports whether anything has a bound.
func (b Budget) Bounds() bool { return b.CPU != 0 || b.Network != 0 || b.Cost != "" }

// Check returns what is wrong with a budget in itself.
func (b Budget) Check() error {
	for _, d := range []struct {
		name string
		of   Decimal
	}{{"cost", b.Cost}, {"price of cpu_second", b.Prices.CPUSecond}, {"price of network_gib", b.Prices.NetworkGiB}, {"price of memory_gib_second", b.Prices.MemoryGiBSecond}} {
		if d.of == "" {
			continue
		}
		if _, err := ParseDecimal(string(d.of)); err != nil {
			return fmt.Errorf("budget: %s: %w", d.name, err)
		}
	}
	switch {
	case b.CPU < 0 || b.Network < 0:
		return fmt.Errorf("budget: cpu of %v, network of %d: neither can be less than nothing: %w", b.CPU, b.Network, paddock.Invalid)
	case b.Cost != "" && b.Cost.zero():
		return fmt.Errorf("budget: a cost of 0 would buy nothing: %w", paddock.Invalid)
	case b.Cost != "" && !b.Prices.any():
		return fmt.Errorf("budget: a cost needs prices: of cpu_second, network_gib or memory_gib_second: %w", paddock.Invalid)
	case b.Cost == "" && b.Prices != (Prices{}):
		return fmt.Errorf("budget: prices without a cost bound nothing: %w", paddock.Invalid)
	}
	return nil
}

// any reports whether anything has a price.
func (p Prices) any() bool {
	return !p.CPUSecond.zero() || !p.NetworkGiB.zero() || !p.MemoryGiBSecond.zero()
}

// Unmeasured names what a status lacks that the budget needs: cpu, network or memory. Empty is nothing.
func (b Budget) Unmeasured(st *paddock.Status) string {
	switch costs := b.Cost != ""; {
	case (b.CPU != 0 || costs && !b.Prices.CPUSecond.zero()) && st.Usage.CPU < 0:
		return "cpu"
	case (b.Network != 0 || costs && !b.Prices.NetworkGiB.zero()) && st.Traffic == nil:
		return "network"
	case costs && !b.Prices.MemoryGiBSecond.zero() && st.Usage.Memory < 0:
		return "memory"
	}
	return ""
}

// Networked reports whether the budget counts bytes of the network.
func (b Budget) Networked() bool {
	return b.Network != 0 || b.Cost != "" && !b.Prices.NetworkGiB.zero()
}

// Cost returns the cost of a use, exactly.
func (p Prices) Cost(u Use) *big.Rat {
	total := new(big.Rat)
	for _, part := range []struct {
		price  Decimal
		amount int64
		unit   int64
	}{{p.CPUSecond, int64(u.CPU), int64(time.Second)}, {p.NetworkGiB, u.Network, 1 << 30}, {p.MemoryGiBSecond, u.Memory, 1 << 30}} {
		total.Add(total, new(big.Rat).Mul(part.price.rat(), big.NewRat(max(part.amount, 0), part.unit)))
	}
	return total
}

// CostInWords returns the cost of a use for people, or an empty text if nothing has a price.
func (b Budget) CostInWords(u Use) string {
	if !b.Prices.any() {
		return ""
	}
	return b.Prices.Cost(u).FloatString(6)
}

// An Excess is a budget that is used up. The zero Excess is none.
type Excess struct {
	Name  string // "cpu", "network" or "cost"
	Bound string
	Used  string
}

// Exceeded returns the first budget that a use has reached.
func (b Budget) Exceeded(u Use) Excess {
	switch {
	case b.CPU != 0 && u.CPU >= b.CPU:
		return Excess{"cpu", b.CPU.String(), u.CPU.Round(time.Millisecond).String()}
	case b.Network != 0 && u.Network >= b.Network:
		return Excess{"network", bytesInWords(b.Network), bytesInWords(u.Network)}
	case b.Cost != "" && b.Prices.Cost(u).Cmp(b.Cost.rat()) >= 0:
		return Excess{"cost", string(b.Cost), b.Prices.Cost(u).FloatString(6)}
	}
	return Excess{}
}

// Words says which budget is used up.
func (x Excess) Words() string {
	return fmt.Sprintf("its budget of %s, %s, is used up", map[string]string{"cpu": "processor time", "network": "network traffic", "cost": "cost"}[x.Name], x.Bound)
}

// bytesInWords writes a size as the command line does.
func bytesInWords(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; value >= unit && i < len(names)-1; i++ {
		value /= unit
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + " " + names[i]
}

// A Raise changes a budget. What is zero stays.
type Raise struct {
	Add Budget `json:"add,omitzero"` // to what there is; without prices
	Set Budget `json:"set,omitzero"` // instead of what there is
}

// Words lists the parts of a raise, as the command line writes them.
func (r Raise) Words() string {
	var parts []string
	for _, part := range []struct {
		sign string
		of   Budget
	}{{"+", r.Add}, {"", r.Set}} {
		if part.of.CPU != 0 {
			parts = append(parts, "cpu="+part.sign+part.of.CPU.String())
		}
		if part.of.Network != 0 {
			parts = append(parts, fmt.Sprintf("network=%s%d", part.sign, part.of.Network))
		}
		if part.of.Cost != "" {
			parts = append(parts, fmt.Sprintf("cost=%s%.32s", part.sign, string(part.of.Cost)))
		}
	}
	if r.Set.Prices != (Prices{}) {
		parts = append(parts, "prices")
	}
	return strings.Join(parts, ",")
}

// Raised returns the budget after a raise.
func (b Budget) Raised(r Raise) (Budget, error) {
	if r == (Raise{}) {
		return b, fmt.Errorf("budget: neither add nor set has anything: %w", paddock.Invalid)
	}
	if r.Add.Prices != (Prices{}) {
		return b, fmt.Errorf("budget: prices can be set, and not added: %w", paddock.Invalid)
	}
	for _, one := range []struct {
		name              string
		has, adds, sets   bool
		invalid, overflow bool
	}{
		{"cpu", b.CPU != 0, r.Add.CPU != 0, r.Set.CPU != 0, r.Add.CPU < 0, b.CPU+r.Add.CPU < b.CPU},
		{"network", b.Network != 0, r.Add.Network != 0, r.Set.Network != 0, r.Add.Network < 0, b.Network+r.Add.Network < b.Network},
		{"cost", b.Cost != "", r.Add.Cost != "", r.Set.Cost != "", false, false},
	} {
		switch {
		case one.invalid, one.overflow:
			return b, fmt.Errorf("budget: %s: this cannot be added: %w", one.name, paddock.Invalid)
		case one.adds && one.sets:
			return b, fmt.Errorf("budget: %s is both added to and set: %w", one.name, paddock.Invalid)
		case one.adds && !one.has:
			return b, fmt.Errorf("budget: there is none of %s to add to; set it: %w", one.name, paddock.Conflict)
		}
	}
	if r.Add.Cost != "" {
		if _, err := ParseDecimal(string(r.Add.Cost)); err != nil {
			return b, fmt.Errorf("budget: cost: %w", err)
		}
		b.Cost = decimalOf(new(big.Rat).Add(b.Cost.rat(), r.Add.Cost.rat()))
	}
	b.CPU, b.Network = b.CPU+r.Add.CPU, b.Network+r.Add.Network
	if r.Set.CPU != 0 {
		b.CPU = r.Set.CPU
	}
	if r.Set.Network != 0 {
		b.Network = r.Set.Network
	}
	if r.Set.Cost != "" {
		b.Cost = r.Set.Cost
	}
	if r.Set.Prices != (Prices{}) {
		b.Prices = r.Set.Prices
	}
	return b, b.Check()
}
