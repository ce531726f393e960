package cli

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
)

// schema is as much of JSON Schema as docs/reference/run.schema.json uses.
type schema struct {
	Ref        string             `json:"$ref"`
	Type       any                `json:"type"` // a name or a list of names
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	Enum       []any              `json:"enum"`
	Const      any                `json:"const"`
	OneOf      []*schema          `json:"oneOf"`
	Additional *bool              `json:"additionalProperties"`
	Defs       map[string]*schema `json:"$defs"`
	About      string             `json:"description"`
	Title      string             `json:"title"`
	ID         string             `json:"$id"`
	Dialect    string             `json:"$schema"`
	Encoding   string             `json:"contentEncoding"`
	Format     string             `json:"format"`
	Minimum    *float64           `json:"minimum"`
}

func readSchema(t *testing.T) *schema {
	t.Helper()
	data, err := os.ReadFile("../../docs/reference/run.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.DisallowUnknownFields() // a keyword that this test does not know would go unchecked
	s := &schema{}
	if err := d.Decode(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *schema) resolve(root *schema) *schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		return root.Defs[name]
	}
	if len(s.OneOf) > 0 { // "null or this"
		return s.OneOf[len(s.OneOf)-1].resolve(root)
	}
	return s
}

// fields gives the JSON names of a struct, and which are always written.
func fields(of reflect.Type) (all map[string]reflect.Type, always []string) {
	all = map[string]reflect.Type{}
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		all[name] = f.Type
		if !strings.Contains(options, "omit") {
			always = append(always, name)
		}
	}
	slices.Sort(always)
	return all, always
}

func TestTheSchemaOfResultsIsThatOfTheCode(t *testing.T) {
	root := readSchema(t)
	var compare func(at string, s *schema, of reflect.Type)
	compare = func(at string, s *schema, of reflect.Type) {
		s = s.resolve(root)
		if s == nil {
			t.Errorf("%s: the reference leads nowhere", at)
			return
		}
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch {
		case of == reflect.TypeFor[captured]():
			return // writes itself; see TestResultsKeepTheSchema
		case of.String() == "time.Time":
			if s.Type != "string" {
				t.Errorf("%s: want a string", at)
			}
		case of.Kind() == reflect.Struct:
			all, always := fields(of)
			if s.Additional == nil || *s.Additional {
				t.Errorf("%s: additional properties are not forbidden", at)
			}
			slices.Sort(s.Required)
			if !slices.Equal(s.Required, always) {
				t.Errorf("%s: required %v, but always written are %v", at, s.Required, always)
			}
			if have := slices.Sorted(maps.Keys(s.Properties)); !slices.Equal(have, slices.Sorted(maps.Keys(all))) {
				t.Errorf("%s: described are %v, written %v", at, have, slices.Sorted(maps.Keys(all)))
				return
			}
			for name, f := range all {
				compare(at+"."+name, s.Properties[name], f)
			}
		case of.Kind() == reflect.Slice:
			if s.Type != "array" {
				t.Errorf("%s: want an array", at)
				return
			}
			compare(at+"[]", s.Items, of.Elem())
		case of.Kind() == reflect.Map:
			if s.Type != "object" {
				t.Errorf("%s: want an object", at)
			}
		case of.Kind() == reflect.String:
			if s.Type != "string" {
				t.Errorf("%s: want a string", at)
			}
		case of.Kind() == reflect.Bool:
			if s.Type != "boolean" {
				t.Errorf("%s: want a boolean", at)
			}
		case of.Kind() == reflect.Float64:
			if s.Type != "number" {
				t.Errorf("%s: want a number", at)
			}
		default:
			if s.Type != "integer" {
				t.Errorf("%s: want an integer for %v", at, of)
			}
		}
	}
	compare("result", root, reflect.TypeFor[result]())
}

// check tells what of a value is not as s says.
func (s *schema) check(t *testing.T, root *schema, at string, v any) {
	t.Helper()
	if len(s.OneOf) > 0 && v == nil {
		return
	}
	s = s.resolve(root)
	switch v := v.(type) {
	case map[string]any:
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				t.Errorf("%s.%s is missing", at, name)
			}
		}
		for name, value := range v {
			p := s.Properties[name]
			if p == nil {
				if s.Additional != nil {
					t.Errorf("%s.%s is not described", at, name)
				}
				continue
			}
			p.check(t, root, at+"."+name, value)
		}
	case []any:
		for _, item := range v {
			s.Items.check(t, root, at+"[]", item)
		}
	default:
		if s.Enum != nil && !slices.Contains(s.Enum, v) {
			t.Errorf("%s: %v is none of %v", at, v, s.Enum)
		}
		if s.Const != nil && s.Const != v {
			t.Errorf("%s: %v is not %v", at, v, s.Const)
		}
	}
}

func TestResultsKeepTheSchema(t *testing.T) {
	root := readSchema(t)
	for _, args := range [][]string{
		{"run", "--json", "sh", "-c", `echo text; printf '\377' >&2; exit 3`},
		{"run", "--json", "no-such-program"},
		{"run", "--json", "--workspace", "/no/such/directory", "true"},
	} {
		f := &fake.Fake{About: fake.GoodInfo(), Refused: []paddock.Refusal{{What: "write", Target: "/x", Rule: "r", Remedy: "y", Count: 1}}}
		v := invoke(t.TempDir(), nil, []Tier{{Name: paddock.GVisor}, AsTier(f, paddock.Jail)}, args...)
		v.Run(t.Context())
		var got any
		if err := json.Unmarshal([]byte(v.Stdout.String()), &got); err != nil {
			t.Fatalf("%v: %v: %s", args, err, v.Stdout.String())
		}
		root.check(t, root, "result", got)
	}
}
