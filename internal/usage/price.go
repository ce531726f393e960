package usage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/yamlfault"
)

// A Model is a pricing model.
type Model string

const (
	// Alive charges for reservations: for sandboxes while they exist, and for their processors and memory while they
	// are not paused.
	Alive Model = "alive"
	// Busy charges for use: processor time and memory as measured.
	Busy Model = "busy"
)

// Prices are the contents of a price file. Make them with [ReadPrices].
type Prices struct {
	Currency string
	models   map[Model]rates
}

// rates are the prices of one model, exactly as written.
type rates struct {
	sandbox, cpu, memory, disk, networkIn, networkOut *big.Rat
}

// document is the format of the file, as in docs/reference/price.schema.json.
type document struct {
	Version  string         `yaml:"version"`
	Currency string         `yaml:"currency"`
	Alive    *documentRates `yaml:"alive"`
	Busy     *documentRates `yaml:"busy"`
}

type documentRates struct {
	Sandbox string `yaml:"sandbox_hour"`
	CPU     string `yaml:"cpu_hour"`
	Memory  string `yaml:"memory_gib_hour"`
	Disk    string `yaml:"disk_gib_hour"`
	Network string `yaml:"network_gib"` // in either direction

	NetworkIn  string `yaml:"network_in_gib"`
	NetworkOut string `yaml:"network_out_gib"`
}

// maxPrices bounds the size of a price file.
const maxPrices = 64 << 10

var (
	currency = regexp.MustCompile(`^[A-Z]{3}$`)
	decimal  = regexp.MustCompile(`^(0|[1-9][0-9]{0,11})(\.[0-9]{1,12})?$`)
)

// ReadPrices parses a price file, version 1, in YAML or JSON. It refuses unknown keys, because a misspelled price would
// be no price.
func ReadPrices(data []byte) (*Prices, error) {
	if len(data) > maxPrices {
		return nil, fmt.Errorf("prices of %d bytes; at most %d are allowed: %w", len(data), maxPrices, paddock.Invalid)
	}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return nil, fault(data, err)
	}
	if len(node.Content) == 0 {
		return document{}.prices() // its error explains the format
	}
	if err := plain(&node); err != nil {
		return nil, err
	}
	var d document
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&d); err != nil {
		return nil, fault(data, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("prices: there is a second document: %w", paddock.Invalid)
	}
	return d.prices()
}

func fault(data []byte, err error) error {
	line, what := yamlfault.Find(data, err)
	return fmt.Errorf("read prices: line %d: %s: %w", line, what, paddock.Invalid)
}

// plain refuses ambiguous YAML: aliases, tags, and values other than texts and numbers.
func plain(n *yaml.Node) error {
	scalar := n.Kind == yaml.ScalarNode && slices.Contains([]string{"!!str", "!!int", "!!float"}, n.ShortTag())
	if n.Kind != yaml.DocumentNode && n.Kind != yaml.MappingNode && !scalar || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return fmt.Errorf("prices: line %d: only keys, texts and numbers: %w", n.Line, paddock.Invalid)
	}
	for _, c := range n.Content {
		if err := plain(c); err != nil {
			return err
		}
	}
	return nil
}

func (d document) prices() (*Prices, error) {
	switch {
	case d.Version != "1":
		return nil, fmt.Errorf(`prices begin with "version: 1", not %q: %w`, d.Version, paddock.Invalid)
	case !currency.MatchString(d.Currency):
		return nil, fmt.Errorf("currency %q: three capital letters, as EUR: %w", d.Currency, paddock.Invalid)
	case d.Alive == nil && d.Busy == nil:
		return nil, fmt.Errorf("no prices: set alive, busy or both: %w", paddock.Invalid)
	}
	p := &Prices{Currency: d.Currency, models: make(map[Model]rates)}
	for model, written := range map[Model]*documentRates{Alive: d.Alive, Busy: d.Busy} {
		if written == nil {
			continue
		}
		r, err := written.rates(model)
		if err != nil {
			return nil, err
		}
		p.models[model] = r
	}
	return p, nil
}

func (w documentRates) rates(model Model) (rates, error) {
	var r rates
	if w.Network != "" && (w.NetworkIn != "" || w.NetworkOut != "") {
		return r, fmt.Errorf("%s.network_gib is the price of either direction: write it, or network_in_gib and network_out_gib: %w", model, paddock.Invalid)
	}
	in, out := "network_in_gib", "network_out_gib"
	if w.Network != "" {
		in, out, w.NetworkIn, w.NetworkOut = "network_gib", "network_gib", w.Network, w.Network
	}
	for _, price := range []struct {
		name, text string
		to         **big.Rat
	}{
		{"sandbox_hour", w.Sandbox, &r.sandbox}, {"cpu_hour", w.CPU, &r.cpu}, {"memory_gib_hour", w.Memory, &r.memory},
		{"disk_gib_hour", w.Disk, &r.disk}, {in, w.NetworkIn, &r.networkIn}, {out, w.NetworkOut, &r.networkOut},
	} {
		*price.to = new(big.Rat)
		if price.text == "" {
			continue
		}
		if !decimal.MatchString(price.text) {
			return r, fmt.Errorf("%s.%s: %q is not a decimal number of at most 12 digits before and after the point: %w", model, price.name, price.text, paddock.Invalid)
		}
		(*price.to).SetString(price.text)
	}
	return r, nil
}

// An Amount is money. Its text is rounded to a millionth, half away from zero; the value is exact.
type Amount struct {
	Currency string
	Value    *big.Rat
}

func (a Amount) String() string { return a.Value.FloatString(6) + " " + a.Currency }

// MarshalJSON encodes the value as a string, because clients would round a number.
func (a Amount) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"currency":%q,"value":%q}`, a.Currency, a.Value.FloatString(6)), nil
}

// Cost returns the cost of a sum. If a price applies to a quantity that was not measured, the error is
// [paddock.Unsupported], because the cost is unknown.
func (p *Prices) Cost(model Model, s *Sum) (Amount, error) {
	r, ok := p.models[model]
	if !ok {
		return Amount{}, fmt.Errorf("the price file has no model %q: %w", model, paddock.Invalid)
	}
	cpu, memory := &s.CPUAsked, &s.MemoryAsked
	cpuHour := big.NewInt(1000 * 3600 * 1000) // thousandths times milliseconds
	if model == Busy {
		cpu, memory = &s.CPU, &s.Memory
		cpuHour = big.NewInt(3600 * 1e9)
	}
	gibHour := big.NewInt(3600 << 30)
	total := new(big.Rat)
	for _, part := range []struct {
		price  *big.Rat
		amount *big.Int
		unit   *big.Int
		name   string // quantity that may be unmeasured
	}{
		{r.sandbox, &s.Wall, big.NewInt(3600 * 1e9), ""},
		{r.cpu, cpu, cpuHour, measured(model, "cpu")},
		{r.memory, memory, gibHour, measured(model, "memory")},
		{r.disk, &s.DiskAsked, gibHour, ""},
		{r.networkIn, &s.NetIn, big.NewInt(1 << 30), "network"},
		{r.networkOut, &s.NetOut, big.NewInt(1 << 30), "network"},
	} {
		if part.price.Sign() == 0 {
			continue
		}
		if slices.Contains(s.Unmeasured, part.name) {
			return Amount{}, fmt.Errorf("%s has a price, but was not measured for every sandbox: %w", part.name, paddock.Unsupported)
		}
		total.Add(total, new(big.Rat).Mul(part.price, new(big.Rat).SetFrac(part.amount, part.unit)))
	}
	return Amount{p.Currency, total}, nil
}

// measured reports whether a model needs a quantity to be measured.
func measured(model Model, name string) string {
	if model == Busy {
		return name
	}
	return ""
}
