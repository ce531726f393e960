package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/allowance"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

func TestABudgetIsReadAsItIsWritten(t *testing.T) {
	for text, want := range map[string]allowance.Budget{
		"budget: {cpu: 10m, network: 1G}":                         {CPU: 10 * time.Minute, Network: 1 << 30},
		"budget: {network: 5}":                                    {Network: 5},
		"budget: {cost: 0.50, prices: {cpu_second: 0.00001}}":     {Cost: "0.50", Prices: allowance.Prices{CPUSecond: "0.00001"}},
		"budget: {cost: 2, prices: {memory_gib_second: 1}}":       {Cost: "2", Prices: allowance.Prices{MemoryGiBSecond: "1"}},
		"budget: {prices: {network_gib: 0.09}}":                   {Prices: allowance.Prices{NetworkGiB: "0.09"}},
		"budget: {cpu: 1s, prices: {network_gib: 0.09}, cost: 1}": {CPU: time.Second, Cost: "1", Prices: allowance.Prices{NetworkGiB: "0.09"}},
	} {
		f, err := policy.Read("p", []byte("version: 1\n"+text+"\n"))
		if err != nil || f.Budget != want {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
	}
	for text, want := range map[string]string{
		"budget: {cpu: 0s}":                                        "is no time",
		"budget: {cpu: 5}":                                         "expected text",
		"budget: {network: lots}":                                  "is no size",
		"budget: {cost: 1}":                                        "a cost needs prices",
		"budget: {cost: 0, prices: {cpu_second: 1}}":               "a cost of 0",
		"budget: {cost: 1, prices: {cpu_second: 0}}":               "a cost needs prices",
		"budget: {cost: 1e3, prices: {cpu_second: 1}}":             "is not allowed",
		"budget: {cost: -1, prices: {cpu_second: 1}}":              "is not allowed",
		"budget: {cost: 1, prices: {cpu: 1}}":                      `unknown key "cpu"`,
		"budget: {cost: '1', prices: {cpu_second: 1}}":             "expected a number",
		"budget: {time: 1s}":                                       "time",
		"budget: {cost: 1, prices: {cpu_second: 0.0000000000001}}": "is not allowed",
	} {
		f, err := policy.Read("p", []byte("version: 1\n"+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", text, f, err, want)
		}
	}
}
