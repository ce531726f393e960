package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A contract is openapi.yaml with compiled schemas.
type contract struct {
	Paths map[string]map[string]any
	all   any
	c     *jsonschema.Compiler
}

func readContract(t testing.TB) *contract {
	t.Helper()
	var tree any
	if err := yaml.Unmarshal(openAPI, &tree); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	k := &contract{c: jsonschema.NewCompiler()}
	if err := json.Unmarshal(data, k); err != nil {
		t.Fatal(err)
	}
	if k.all, err = jsonschema.UnmarshalJSON(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	k.c.DefaultDraft(jsonschema.Draft2020) // the draft of OpenAPI 3.1
	k.c.AssertFormat()
	if err := k.c.AddResource("openapi.json", k.all); err != nil {
		t.Fatal(err)
	}
	return k
}

// check validates a JSON value against a schema of the contract.
func (k *contract) check(place string, data []byte) error {
	s, err := k.c.Compile("openapi.json#" + place)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// methods returns the members of a path item that are operations.
func methods() []string { return []string{"get", "put", "post", "patch", "delete"} }

func TestTheContractHasEveryRouteAndNoOther(t *testing.T) {
	var served, promised []string
	s := &Server{}
	for _, r := range s.table() {
		served = append(served, r.pattern)
	}
	for path, item := range readContract(t).Paths {
		for method := range item {
			if slices.Contains(methods(), method) {
				promised = append(promised, strings.ToUpper(method)+" "+path)
			} else if method != "parameters" {
				t.Errorf("%s has %q, which is no method", path, method)
			}
		}
	}
	slices.Sort(served)
	slices.Sort(promised)
	if !slices.Equal(served, promised) {
		t.Errorf("served   %q\npromised %q", served, promised)
	}
}

// A comma in an unquoted description of a flow mapping ends it, and begins a member
// without a value.
func TestTheContractHasNoCutDescriptions(t *testing.T) {
	var walk func(place string, v any)
	walk = func(place string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if member == nil {
					t.Errorf("%s: %q has no value", place, name)
				}
				walk(place+"/"+name, member)
			}
		case []any:
			for i, element := range v {
				walk(fmt.Sprint(place, "/", i), element)
			}
		}
	}
	walk("", readContract(t).all)
}

func TestEverySchemaOfTheContractCompiles(t *testing.T) {
	k := readContract(t)
	schemas := k.all.(map[string]any)["components"].(map[string]any)["schemas"].(map[string]any)
	for name := range schemas {
		if _, err := k.c.Compile("openapi.json#/components/schemas/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// pointer returns the path of the schema of a response or request, after resolving one
// reference.
func (k *contract) pointer(place string) (string, bool) {
	at := k.all
	for _, part := range strings.Split(place, "/")[1:] {
		m, ok := at.(map[string]any)
		if !ok {
			return "", false
		}
		if ref, ok := m["$ref"].(string); ok {
			return k.pointer(strings.TrimPrefix(ref, "#") + "/" + strings.SplitN(place, "/"+part+"/", 2)[1])
		}
		if at, ok = m[strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")]; !ok {
			return "", false
		}
	}
	return place, true
}

// answered validates an answer of the server against its contract.
func (k *contract) answered(t testing.TB, pattern string, res *http.Response, body []byte) {
	t.Helper()
	method, path, _ := strings.Cut(pattern, " ")
	escaped := strings.ReplaceAll(path, "/", "~1")
	base := fmt.Sprintf("/paths/%s/%s/responses/", escaped, strings.ToLower(method))
	responses, ok := k.Paths[path][strings.ToLower(method)].(map[string]any)["responses"].(map[string]any)
	if !ok {
		t.Fatalf("%s has no responses", pattern)
	}
	code := fmt.Sprint(res.StatusCode)
	response, ok := responses[code].(map[string]any)
	if !ok {
		if res.StatusCode < 400 {
			t.Errorf("%s answered %s, which the contract does not have", pattern, code)
		}
		code = "default"
		response, _ = responses[code].(map[string]any)
	}
	place := base + code
	if ref, ok := response["$ref"].(string); ok {
		place = strings.TrimPrefix(ref, "#")
	}
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if len(body) == 0 {
		return
	}
	schema := place + "/content/" + strings.ReplaceAll(kind, "/", "~1") + "/schema"
	if _, ok := k.pointer(schema); !ok {
		t.Errorf("%s answered %s with %q, which the contract does not have", pattern, code, kind)
		return
	}
	switch kind {
	case "application/json":
		if err := k.check(schema, body); err != nil {
			t.Errorf("%s answered %s: %v\n%s", pattern, code, err, body)
		}
	case api.EventType:
		for line := range bytes.Lines(body) {
			data, ok := bytes.CutPrefix(line, []byte("data: "))
			if !ok {
				continue
			}
			if err := k.check(schema+"/anyOf/0", data); err != nil {
				t.Errorf("%s answered the event %s: %v", pattern, data, err)
			}
		}
	case api.LineType:
		for line := range bytes.Lines(body) {
			if err := k.check(schema, line); err != nil {
				t.Errorf("%s answered the line %s: %v", pattern, line, err)
			}
		}
	}
}
