package jsonbody_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/jsonbody"
)

type inner struct {
	Memory int64     `json:"memory"`
	Port   uint16    `json:"port"`
	CPUs   float64   `json:"cpus"`
	Ends   time.Time `json:"ends"`
}

type outer struct {
	inner

	Name   string            `json:"name"`
	Public *bool             `json:"public"`
	Args   []string          `json:"args"`
	Labels map[string]string `json:"labels"`
	Deep   []inner           `json:"deep"`
	Data   []byte            `json:"data"`
}

func TestAnErrorNamesTheFieldAndNoTypeOfGo(t *testing.T) {
	for body, want := range map[string]string{
		``:                             "it is empty, and must be JSON",
		`{"name": `:                    "it ends within a JSON value",
		`{name: 1}`:                    "not JSON at byte 2: invalid character 'n'",
		`{"memory": "1G"}`:             "memory must be a whole number, not a string",
		`{"memory": 1.5}`:              "memory must be a whole number, not number 1.5",
		`{"port": 70000}`:              "port must be a whole number that is not negative of at most 16 bits, not number 70000",
		`{"cpus": true}`:               "cpus must be a number, not true or false",
		`{"name": 1}`:                  "name must be a string, not a number",
		`{"public": "yes"}`:            "public must be true or false, not a string",
		`{"args": "ls"}`:               "args must be a list, not a string",
		`{"args": [1]}`:                "must be a string, not a number",
		`{"labels": []}`:               "labels must be an object, not a list",
		`{"deep": [{"memory": "1G"}]}`: "memory must be a whole number, not a string",
		`{"ends": "tomorrow"}`:         "tomorrow is not a time such as 2026-01-02T15:04:05Z",
		`{"ends": 5}`:                  "a time is a string such as 2026-01-02T15:04:05Z",
		`{"data": "%%"}`:               "not base64 at byte 0",
		`{"data": 1}`:                  "data must be a string of base64, not a number",
		`{"nome": "x"}`:                `unknown field "nome"`,
		`[]`:                           "the value must be an object, not a list",
	} {
		d := json.NewDecoder(bytes.NewReader([]byte(body)))
		d.DisallowUnknownFields()
		err := d.Decode(new(outer))
		if err == nil {
			t.Errorf("%s: no error", body)
			continue
		}
		got := jsonbody.Explain(err).Error()
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
		for _, word := range []string{"json:", "unmarshal", "struct", "Go ", "int64", "uint16", "jsonbody", "parsing time", "EOF", "[]"} {
			if strings.Contains(got, word) {
				t.Errorf("%s: %q has the word %q", body, got, word)
			}
		}
	}
	if jsonbody.Explain(nil) != nil {
		t.Error("no error became one")
	}
}

func TestTheCostOfJSONIsThatOfItsValues(t *testing.T) {
	small, large := jsonbody.Cost([]byte(`{"args":["a","b"]}`)), jsonbody.Cost([]byte(`{"args":["`+strings.Repeat(`{,[\"`, 1000)+`"]}`))
	if small == 0 || large > small {
		t.Errorf("%d for a short text, %d for a long one with as many values", small, large)
	}
	var vars strings.Builder // many short members take the most
	for i := range 10_000 {
		fmt.Fprintf(&vars, `"a%d":"",`, i)
	}
	within(t, "variables", "{"+vars.String()+`"z":""}`, new(map[string]string))
	type mount struct {
		Source, Target string
		Write          bool
		More           [4]string
	}
	for name, one := range map[string]string{"objects": "{},", "nested objects": `{"More":["",""]},`} {
		within(t, name, "["+strings.Repeat(one, 10_000)+"{}]", new([]mount))
	}
}

// within wants a text to take at most twice the memory that is estimated, with what is garbage at the end.
func within(t *testing.T, name, text string, v any) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took, cost := int64(after.TotalAlloc-before.TotalAlloc), jsonbody.Cost([]byte(text)); took > 2*cost {
		t.Errorf("%s: %d bytes, estimated were %d", name, took, cost)
	}
}

func TestTextsOfErrorsAreShort(t *testing.T) {
	const longest = 4 << 10
	for _, text := range []string{
		"", "short", "a\xffb", strings.Repeat("a", longest), strings.Repeat("a", longest+1), strings.Repeat("\x7f", 1<<20),
		strings.Repeat("a\xff", longest/2), strings.Repeat("\xff", 1<<20), strings.Repeat("€", 1<<20), "a" + strings.Repeat("€", 1<<20), "ab" + strings.Repeat("€", 1<<20),
		strings.Repeat("a", longest-1) + "€", strings.Repeat("a", longest-3) + "€", strings.Repeat("a", longest-4) + "€x",
	} {
		got := jsonbody.Short(text)
		switch {
		case len(got) > longest || !utf8.ValidString(got):
			t.Errorf("%.10q: %d bytes, valid UTF-8: %v", text, len(got), utf8.ValidString(got))
		case len(text) <= longest && utf8.ValidString(text) && got != text:
			t.Errorf("%.10q changed to %.10q", text, got)
		case len(text) > 2*longest && (len(got) < longest-8 && !strings.HasPrefix(text, "\xff") || !strings.HasSuffix(got, "…")):
			t.Errorf("%.10q: %d bytes are left", text, len(got))
		}
	}
}
