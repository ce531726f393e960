package usage_test

import (
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/usage"
)

const prices = `version: 1
currency: EUR
alive:
  sandbox_hour: 0.001
  cpu_hour: 0.05
  memory_gib_hour: "0.01"
  disk_gib_hour: 0.0001
busy:
  cpu_hour: 0.1
  memory_gib_hour: 0.02
  network_gib: 0.05
`

func TestPriceFilesAreReadStrictlyAndAsTheSchemaSays(t *testing.T) {
	schema := compile(t)
	for _, tt := range []struct{ name, text, words string }{
		{"the example", prices, ""},
		{"JSON", `{"version": 1, "currency": "USD", "busy": {"cpu_hour": "0.1"}}`, ""},
		{"a model without prices", "version: 1\ncurrency: EUR\nbusy: {}\n", ""},
		{"a price for each direction", "version: 1\ncurrency: EUR\nbusy: {network_in_gib: 0.01, network_out_gib: 0.05}\n", ""},
		{"a direction and both", "version: 1\ncurrency: EUR\nbusy: {network_gib: 1, network_out_gib: 2}\n", "either direction"},
		{"no version", "currency: EUR\nbusy: {}\n", "version"},
		{"another version", "version: 2\ncurrency: EUR\nbusy: {}\n", "version"},
		{"no currency", "version: 1\nbusy: {}\n", "currency"},
		{"a currency in words", "version: 1\ncurrency: euro\nbusy: {}\n", "currency"},
		{"no model", "version: 1\ncurrency: EUR\n", "alive, busy or both"},
		{"a typo", "version: 1\ncurrency: EUR\nbusy: {cpu_hours: 1}\n", "cpu_hours"},
		{"an unknown model", "version: 1\ncurrency: EUR\nbusy: {}\nfree: {}\n", "free"},
		{"a negative price", "version: 1\ncurrency: EUR\nbusy: {cpu_hour: -1}\n", "not a decimal number"},
		{"an exponent", "version: 1\ncurrency: EUR\nbusy: {cpu_hour: 1e3}\n", "not a decimal number"},
		{"no number", "version: 1\ncurrency: EUR\nbusy: {cpu_hour: cheap}\n", "not a decimal number"},
		{"a fraction", "version: 1\ncurrency: EUR\nbusy: {cpu_hour: 1/3}\n", "not a decimal number"},
		{"too many digits", "version: 1\ncurrency: EUR\nbusy: {cpu_hour: \"0.1234567890123\"}\n", "not a decimal number"},
		{"null", "version: 1\ncurrency: EUR\nbusy: {cpu_hour: null}\n", "only keys"},
		{"a list", "version: 1\ncurrency: EUR\nbusy: []\n", "only keys"},
		{"a model that is null", "version: 1\ncurrency: EUR\nbusy:\n", "only keys"},
		{"an empty file", "", "version"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := usage.ReadPrices([]byte(tt.text))
			if tt.words == "" && err != nil || tt.words != "" && (err == nil || !strings.Contains(err.Error(), tt.words) || paddock.KindOf(err) != paddock.Invalid) {
				t.Errorf("got %v, want %q", err, tt.words)
			}
			var v any
			must(t, yaml.Unmarshal([]byte(tt.text), &v))
			data, err := json.Marshal(v)
			must(t, err)
			inst, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
			must(t, err)
			if said := schema.Validate(inst); (said == nil) != (tt.words == "") && tt.name != "an exponent" { // JSON has one form of it
				t.Errorf("the schema says %v", said)
			}
		})
	}
	for name, text := range map[string]string{
		"a key twice": "version: 1\nversion: 1\ncurrency: EUR\nbusy: {}\n",
		"two files":   prices + "---\n" + prices,
		"an alias":    "version: 1\ncurrency: EUR\nalive: &a {}\nbusy: *a\n",
		"a tag":       "version: !!str 1\ncurrency: EUR\nbusy: {}\n",
		"too long":    prices + strings.Repeat("#", 1<<17),
		"no YAML":     "version: [",
	} {
		if _, err := usage.ReadPrices([]byte(text)); paddock.KindOf(err) != paddock.Invalid || err == nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestEachDirectionHasItsPriceInBothModels(t *testing.T) {
	for _, tt := range []struct{ rates, want string }{
		{"network_in_gib: 0.01, network_out_gib: 0.5", "1.520000 EUR"},
		{"network_out_gib: 0.5", "1.500000 EUR"},
		{"network_in_gib: 0.01", "0.020000 EUR"},
		{"network_gib: 0.1", "0.500000 EUR"},
		{"cpu_hour: 1", "0.000000 EUR"},
	} {
		p, err := usage.ReadPrices([]byte("version: 1\ncurrency: EUR\nbusy: {" + tt.rates + "}\nalive: {" + tt.rates + "}\n"))
		must(t, err)
		s := &usage.Sum{NetIn: *big.NewInt(2 << 30), NetOut: *big.NewInt(3 << 30)}
		for _, model := range []usage.Model{usage.Alive, usage.Busy} {
			if got, err := p.Cost(model, s); err != nil || got.String() != tt.want {
				t.Errorf("%s: %s costs %s, %v, want %s", model, tt.rates, got, err, tt.want)
			}
		}
		s.Unmeasured = []string{"network"}
		if _, err := p.Cost(usage.Alive, s); (err != nil) != strings.Contains(tt.rates, "network") {
			t.Errorf("%s of what nobody counted: %v", tt.rates, err)
		}
	}
}

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	f, err := os.Open("../../docs/reference/price.schema.json")
	must(t, err)
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	must(t, err)
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("price.json", doc))
	s, err := c.Compile("price.json")
	must(t, err)
	return s
}

func FuzzReadPrices(f *testing.F) {
	f.Add([]byte(prices))
	f.Add([]byte("version: 1\ncurrency: EUR\nalive: &a {}\nbusy: *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := usage.ReadPrices(data)
		if err != nil {
			return
		}
		for _, model := range []usage.Model{usage.Alive, usage.Busy} {
			if a, err := p.Cost(model, &usage.Sum{}); err == nil && a.Value.Sign() != 0 {
				t.Errorf("nothing costs %s", a)
			}
		}
	})
}

// big numbers are made of text.
func amount(t *testing.T, text string) big.Int {
	t.Helper()
	var n big.Int
	if _, ok := n.SetString(text, 10); !ok {
		t.Fatalf("%s is no number", text)
	}
	return n
}

func TestMoneyIsExact(t *testing.T) {
	p, err := usage.ReadPrices([]byte(prices))
	must(t, err)
	hour := "3600000000000"
	s := usage.Sum{
		Wall: amount(t, hour), CPU: amount(t, hour), Memory: amount(t, "3865470566400"), // 1 GiB-hour
		CPUAsked: amount(t, "1800000000"), MemoryAsked: amount(t, "7730941132800"), DiskAsked: amount(t, "38654705664000"), // half a processor, 2 GiB, 10 GiB
		NetIn: amount(t, "1073741824"), NetOut: amount(t, "1073741824"),
	}
	for model, want := range map[usage.Model]string{
		usage.Alive: "0.047000 EUR", // 0.001 + 0.025 + 0.02 + 0.001
		usage.Busy:  "0.220000 EUR", // 0.1 + 0.02 + 2*0.05
	} {
		if a, err := p.Cost(model, &s); err != nil || a.String() != want {
			t.Errorf("%s: %v, %v; want %s", model, a, err, want)
		}
	}
	// A thousand million parts cost what the whole costs.
	part, err := p.Cost(usage.Busy, &usage.Sum{CPU: amount(t, "3600")})
	must(t, err)
	all := new(big.Rat).Mul(part.Value, big.NewRat(1_000_000_000, 1))
	if all.Cmp(big.NewRat(1, 10)) != 0 {
		t.Errorf("%s", all)
	}
	if data, err := json.Marshal(part); err != nil || string(data) != `{"currency":"EUR","value":"0.000000"}` {
		t.Errorf("%s, %v", data, err)
	}
}

func TestNothingThatWasNotMeasuredHasAPrice(t *testing.T) {
	p, err := usage.ReadPrices([]byte(prices))
	must(t, err)
	for _, tt := range []struct {
		model      usage.Model
		unmeasured string
		ok         bool
	}{
		{usage.Busy, "cpu", false}, {usage.Busy, "memory", false}, {usage.Busy, "network", false},
		{usage.Alive, "cpu", true}, {usage.Alive, "memory", true}, {usage.Alive, "network", true}, // it has no price there
	} {
		_, err := p.Cost(tt.model, &usage.Sum{Unmeasured: []string{tt.unmeasured}})
		if (err == nil) != tt.ok || err != nil && paddock.KindOf(err) != paddock.Unsupported {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	if _, err := p.Cost("free", &usage.Sum{}); paddock.KindOf(err) != paddock.Invalid || err == nil {
		t.Errorf("got %v", err)
	}
}
