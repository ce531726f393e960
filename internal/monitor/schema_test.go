package monitor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func readSchema(t *testing.T) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	data, err := os.ReadFile("../../docs/reference/monitor.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("monitor.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("monitor.json")
	if err != nil {
		t.Fatal(err)
	}
	top, ok := doc.(map[string]any)
	if !ok {
		t.Fatal("the schema is no object")
	}
	return compiled, top
}

// TestTheSchemaHasTheFieldsOfTheCode compares the schema with the types, member by member.
func TestTheSchemaHasTheFieldsOfTheCode(t *testing.T) {
	_, top := readSchema(t)
	defs, _ := top["$defs"].(map[string]any)
	var walk func(path string, of reflect.Type, s map[string]any)
	walk = func(path string, of reflect.Type, s map[string]any) {
		if ref, ok := s["$ref"].(string); ok {
			s, _ = defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		switch of.Kind() {
		case reflect.Pointer:
			walk(path, of.Elem(), s)
		case reflect.Slice:
			items, _ := s["items"].(map[string]any)
			if s["type"] != "array" {
				t.Errorf("%s is not an array", path)
			}
			walk(path+"[]", of.Elem(), items)
		case reflect.Struct:
			properties, _ := s["properties"].(map[string]any)
			if s["additionalProperties"] != false {
				t.Errorf("%s takes unknown members", path)
			}
			var names, needed []string
			for i := range of.NumField() {
				name, options, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
				names = append(names, name)
				if !strings.Contains(options, "omit") {
					needed = append(needed, name)
				}
				p, ok := properties[name].(map[string]any)
				if !ok {
					t.Errorf("%s.%s is not in the schema", path, name)
					continue
				}
				walk(path+"."+name, of.Field(i).Type, p)
			}
			for name := range properties {
				if !slices.Contains(names, name) {
					t.Errorf("%s.%s is not in the code", path, name)
				}
			}
			required := fmt.Sprint(s["required"])
			for _, name := range needed {
				if !strings.Contains(required, name) {
					t.Errorf("%s.%s is always there, and not required", path, name)
				}
			}
		case reflect.String:
			// Texts that are not the guest's are few, and known.
			own := []string{"input.moment", "input.sandbox", "input.tier", "input.policy", "input.task", "input.secret", "input.step.secrets[]", "input.earlier[].secrets[]"}
			if !strings.Contains(path, ".guest.") && !slices.Contains(own, path) {
				t.Errorf("%s is a text that is neither the guest's by its place nor known", path)
			}
		}
	}
	walk("input", reflect.TypeFor[Input](), top)
}

// whole is an input in which all is set, and every text of the guest is hostile.
func whole(hostile string) Input {
	step := Step{
		Number: 2, Running: true, Exit: -1, Secrets: slices.Repeat([]string{hostile}, 100),
		Files:   &Files{Created: 1, Changed: 2, Removed: 3, Rebuilt: 4, Emptied: 5, Present: 6, Partial: true},
		Network: &NetworkUse{Sent: 1, Received: 2, Refused: 3},
		Guest: StepGuest{
			Command: slices.Repeat([]string{hostile}, 1000), Dir: hostile, Cut: true,
			Notable: slices.Repeat([]Notable{{Path: hostile, Kind: kindHook, What: Created}}, 1000),
			Hosts:   slices.Repeat([]HostUsed{{Host: hostile, Port: 1, New: true, Refused: true, Sent: 5}}, 1000),
		},
	}
	return Input{
		Moment: Secret, Sandbox: hostile, Tier: "jail", Policy: hostile, Task: hostile, Step: step, Earlier: slices.Repeat([]Step{step}, 2), Secret: hostile,
		Destination: &Destination{Port: 1, UDP: true, Rule: true, Guest: DestinationGuest{Host: hostile}},
	}
}

func TestEveryInputIsOfTheSchema(t *testing.T) {
	schema, _ := readSchema(t)
	c := &counting{answer: Answer{Verdict: Allow}}
	check := func() {
		t.Helper()
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(c.input))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Errorf("%v\n%s", err, c.input)
		}
	}
	m := New(Options{Judge: c, Task: "do it", Measured: Measured{Files: true, Network: true}})
	m.Exec(t.Context(), []string{"ls"}, "/")
	check()
	m.Begin([]string{"ls"}, "/")
	m.Change(t.Context(), Change{Path: "go.mod", What: Edited})
	m.Change(t.Context(), Change{Path: ".env", What: Created})
	m.Host(t.Context(), Destination{Port: 443, Guest: DestinationGuest{Host: "a.example"}})
	check()
	m.Secret(t.Context(), "KEY", Destination{Port: 443, Guest: DestinationGuest{Host: "a.example"}})
	check()
	m.Ended(0)
	m.Apply(t.Context(), Summary{Files: Files{Removed: 3}, Notable: []Notable{{Path: "AGENTS.md", Kind: kindAgent, What: Edited}}})
	for _, text := range []string{"plain", "\xff\xfe", strings.Repeat("a", 1<<16), "\x00\u2028"} {
		data, err := json.Marshal(whole(text).clean(redactor(nil)))
		if err != nil {
			t.Fatal(err)
		}
		c.input = string(data)
		check()
	}
}

func FuzzAnInputIsBoundedAndValid(f *testing.F) {
	f.Add("plain", "value-1")
	f.Add(strings.Repeat("value-1\xff", 300), "value-1")
	f.Fuzz(func(t *testing.T, hostile, value string) {
		in := whole(hostile).clean(redactor(map[string]string{"KEY": value}))
		data, err := json.Marshal(in)
		if err != nil || !utf8.Valid(data) {
			t.Fatalf("%v", err)
		}
		const most = 6 * 3 * (maxArgs + maxText*(1+maxNotable+maxHosts) + 256*maxNames + 8192)
		if len(data) > most {
			t.Errorf("%d bytes", len(data))
		}
		again, err := json.Marshal(in.clean(redactor(nil)))
		if err != nil || !bytes.Equal(data, again) {
			t.Error("cleaning again changed it")
		}
	})
}
