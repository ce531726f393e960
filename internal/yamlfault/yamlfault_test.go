package yamlfault_test

import (
	"bytes"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock/internal/yamlfault"
)

func TestTheLineIsTheOneAtFault(t *testing.T) {
	for _, row := range []struct {
		text string
		line int
	}{
		{"a: 1\nb:\n  c: x\n  d:\n    - e: f\n     g: [h]\n", 6},
		{"a: 1\nb:\n  c: x\n\td: []\n", 4},
		{"a: 1\nb: {c: [/a, /b}\nd:\n  e: x\n", 2},
		{"a: 1\nb: \"abc\nc:\n  d: x\n", 2},
		{"a: 1\nb:\n- c: x\n  - d: y\n", 4},
		{"a: 1\nb:\n  c: {A: b\n  d: [X]\n", 3},
		{"a: 1\nb: *x\nc: 1\n", 2},
		{"a: 1\nb:\n  c d\n  e: []\n", 4}, // the line before could be a text of two lines
		{"a: 1\n b: 2\n", 2},
		{"a: [1,\n  2,\n  3}\nb: 1\n", 3},
		{"a: 'it's'\n", 1},
		{"a: b: c\n", 1},
		{"a: %x\n", 1},
		{strings.Repeat("a:\n  - b: 1\n", 1) + strings.Repeat("# x\n", 500) + "c: [\n", 503},
	} {
		var n yaml.Node
		err := yaml.Unmarshal([]byte(row.text), &n)
		if err == nil {
			t.Errorf("%q is YAML", row.text)
			continue
		}
		if line, what := yamlfault.Find([]byte(row.text), err); line != row.line || what == "" || strings.Contains(what, "line ") {
			t.Errorf("%q: line %d, %q, want %d; the parser said %v", row.text, line, what, row.line, err)
		}
	}
}

func TestAFaultHasNoWordsOfGo(t *testing.T) {
	var into struct {
		Price float64            `yaml:"price"`
		By    map[string]float64 `yaml:"by"`
	}
	for text, want := range map[string]string{
		"price: 1\npirce: 2\n":   `2 unknown key "pirce"`,
		"price: much\n":          "1 the value `much` does not fit here",
		"price: 1\nby: [1, 2]\n": "2 the value does not fit here",
		"by: {a: b c d}\n":       "1 the value `b c d` does not fit here",
	} {
		dec := yaml.NewDecoder(bytes.NewReader([]byte(text)))
		dec.KnownFields(true)
		err := dec.Decode(&into)
		if err == nil {
			t.Errorf("%q has no fault", text)
			continue
		}
		line, what := yamlfault.Find([]byte(text), err)
		if got := string(rune('0'+line)) + " " + what; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte("a: [\n"))
	f.Add([]byte("a: 1\nb: *x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var n yaml.Node
		if err := yaml.Unmarshal(data, &n); err != nil {
			if line, _ := yamlfault.Find(data, err); line < 0 || line > bytes.Count(data, []byte("\n"))+2 {
				t.Errorf("line %d of %q", line, data)
			}
		}
	})
}
