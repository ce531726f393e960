package allowance_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
)

func prices(cpu, network, memory allowance.Decimal) allowance.Prices {
	return allowance.Prices{CPUSecond: cpu, NetworkGiB: network, MemoryGiBSecond: memory}
}

func TestACostIsExactAndOfWhatHasAPrice(t *testing.T) {
	b := allowance.Budget{Cost: "0.3", Prices: prices("0.1", "0.000000000001", "2")}
	for name, row := range map[string]struct {
		use  allowance.Use
		want string // empty is within the budget
		cost string
	}{
		"three tenths are not one bit more": {allowance.Use{CPU: 3 * time.Second}, "0.300000", "0.300000"},
		"a nanosecond less":                 {allowance.Use{CPU: 3*time.Second - 1}, "", "0.300000"},
		"a byte that costs next to nothing": {allowance.Use{CPU: 3*time.Second - 1, Network: 1 << 40}, "0.300000", "0.300000"},
		"memory":                            {allowance.Use{Memory: 1 << 30}, "2.000000", "2.000000"},
		"the most that can be counted":      {allowance.Use{CPU: 1<<63 - 1, Network: 1<<63 - 1, Memory: 1<<63 - 1}, "18102206387.694068", "18102206387.694068"},
	} {
		if got := b.Exceeded(row.use); got.Used != row.want || (row.want != "") != (got.Name == "cost") || b.CostInWords(row.use) != row.cost {
			t.Errorf("%s: %+v, %s", name, got, b.CostInWords(row.use))
		}
	}
	if free := (allowance.Budget{CPU: time.Hour}); free.CostInWords(allowance.Use{CPU: time.Hour}) != "" {
		t.Error("a cost without prices")
	}
}

func TestABudgetThatBoundsNothingOrCannotBeKeptIsRefused(t *testing.T) {
	for words, b := range map[string]allowance.Budget{
		"a cost needs prices":            {Cost: "1"},
		"prices without a cost":          {CPU: 1, Prices: prices("1", "", "")},
		"a cost of 0":                    {Cost: "0.00", Prices: prices("1", "", "")},
		"less than nothing":              {CPU: -1},
		"not a decimal number":           {Cost: "1e3", Prices: prices("1", "", "")},
		"price of memory_gib_second":     {Cost: "1", Prices: prices("", "", "-1")},
		"of cpu_second, network_gib or ": {Cost: "1", Prices: prices("0", "0.0", "")},
	} {
		if err := b.Check(); !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("%+v: %v, want %q", b, err, words)
		}
	}
	if err := (allowance.Budget{CPU: 1, Network: 1, Cost: "0.5", Prices: prices("0", "", "0.1")}).Check(); err != nil {
		t.Error(err)
	}
}

func TestABudgetNeedsWhatItCounts(t *testing.T) {
	nothing := paddock.Status{Usage: paddock.Usage{CPU: -1, Memory: -1}}
	for want, b := range map[string]allowance.Budget{
		"":        {Cost: "1", Prices: prices("0", "", "")},
		"cpu":     {Cost: "1", Prices: prices("1", "1", "1")},
		"network": {Cost: "1", Prices: prices("", "1", "1")},
		"memory":  {Cost: "1", Prices: prices("", "", "1")},
	} {
		if got := b.Unmeasured(&nothing); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (allowance.Budget{CPU: 1}).Unmeasured(&nothing) + (allowance.Budget{Network: 1}).Unmeasured(&nothing); got != "cpunetwork" {
		t.Error(got)
	}
	all := paddock.Status{Traffic: &paddock.Traffic{}}
	if got := (allowance.Budget{CPU: 1, Network: 1, Cost: "1", Prices: prices("1", "1", "1")}).Unmeasured(&all); got != "" {
		t.Error(got)
	}
}

func TestARaiseAddsOrSetsAndLeavesTheRest(t *testing.T) {
	b := allowance.Budget{CPU: time.Minute, Cost: "0.1", Prices: prices("1", "", "")}
	for name, row := range map[string]struct {
		raise allowance.Raise
		want  allowance.Budget
		kind  error
	}{
		"more time":             {allowance.Raise{Add: allowance.Budget{CPU: time.Minute}}, allowance.Budget{CPU: 2 * time.Minute, Cost: "0.1", Prices: b.Prices}, nil},
		"another time":          {allowance.Raise{Set: allowance.Budget{CPU: time.Second}}, allowance.Budget{CPU: time.Second, Cost: "0.1", Prices: b.Prices}, nil},
		"more money":            {allowance.Raise{Add: allowance.Budget{Cost: "0.2"}}, allowance.Budget{CPU: time.Minute, Cost: "0.3", Prices: b.Prices}, nil},
		"whole numbers":         {allowance.Raise{Add: allowance.Budget{Cost: "99.9"}}, allowance.Budget{CPU: time.Minute, Cost: "100", Prices: b.Prices}, nil},
		"other prices":          {allowance.Raise{Set: allowance.Budget{Prices: prices("2", "", "")}}, allowance.Budget{CPU: time.Minute, Cost: "0.1", Prices: prices("2", "", "")}, nil},
		"another kind":          {allowance.Raise{Set: allowance.Budget{Network: 7}}, allowance.Budget{CPU: time.Minute, Network: 7, Cost: "0.1", Prices: b.Prices}, nil},
		"nothing":               {allowance.Raise{}, allowance.Budget{}, paddock.Invalid},
		"more of none":          {allowance.Raise{Add: allowance.Budget{Network: 1}}, allowance.Budget{}, paddock.Conflict},
		"both":                  {allowance.Raise{Add: allowance.Budget{CPU: 1}, Set: allowance.Budget{CPU: 1}}, allowance.Budget{}, paddock.Invalid},
		"less":                  {allowance.Raise{Add: allowance.Budget{CPU: -1}}, allowance.Budget{}, paddock.Invalid},
		"more than there is":    {allowance.Raise{Add: allowance.Budget{CPU: 1<<63 - 1}}, allowance.Budget{}, paddock.Invalid},
		"no number":             {allowance.Raise{Add: allowance.Budget{Cost: "x"}}, allowance.Budget{}, paddock.Invalid},
		"prices are not added":  {allowance.Raise{Add: allowance.Budget{Prices: prices("1", "", "")}}, allowance.Budget{}, paddock.Invalid},
		"what is no budget set": {allowance.Raise{Set: allowance.Budget{CPU: -5}}, allowance.Budget{}, paddock.Invalid},
	} {
		got, err := b.Raised(row.raise)
		if !errors.Is(err, row.kind) || err == nil && got != row.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestAMeterAddsUpWhatCountersThatBeginAgainTell(t *testing.T) {
	now := time.Unix(0, 0)
	status := func(cpu time.Duration, bytes, memory int64) *paddock.Status {
		return &paddock.Status{Usage: paddock.Usage{CPU: cpu, Memory: memory}, Traffic: &paddock.Traffic{In: bytes, Out: bytes}}
	}
	var m allowance.Meter
	want := func(what string, cpu time.Duration, network, memory int64) {
		t.Helper()
		if want := (allowance.Use{CPU: cpu, Network: network, Memory: memory}); m.Use != want {
			t.Errorf("%s: %+v, want %+v", what, m.Use, want)
		}
	}
	m.Look(status(5*time.Second, 10, 100), now)
	want("all that was used before", 5*time.Second, 20, 0)
	m.Look(status(7*time.Second, 15, 300), now.Add(2*time.Second))
	want("what was added", 7*time.Second, 30, 400)
	text, err := json.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	m = allowance.Meter{}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	m.Look(status(8*time.Second, 15, 300), now.Add(time.Hour))
	want("after a restart", 8*time.Second, 30, 400)
	m.Still()
	m.Look(status(time.Second, 1, 300), now.Add(2*time.Hour))
	want("counters that begin again after a pause", 9*time.Second, 32, 400)
	m.Look(&paddock.Status{Usage: paddock.Usage{CPU: -1, Memory: -1}}, now.Add(3*time.Hour))
	want("nothing was measured", 9*time.Second, 32, 400)
	m.Look(status(1<<63-1, 1<<62, 1<<62), now.Add(4*time.Hour))
	m.Look(status(1<<62, 1<<61, 1<<62), now.Add(200000*time.Hour))
	if m.Use.CPU < 1<<62 || m.Use.Network < 1<<62 || m.Use.Memory < 1<<62 {
		t.Errorf("it overflowed: %+v", m.Use)
	}
}
