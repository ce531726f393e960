package policy

import (
	"encoding/json"
	"fmt"
)

// Schema returns the JSON Schema (draft 2020-12) of policy files, as in docs/reference/policy.schema.json. Read refuses
// every document that the schema refuses, and also those that no schema can exclude, such as rules that contradict each
// other.
func Schema() []byte {
	top := version1().schema()
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = "Paddock policy, version 1"
	data, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		// Maps of text, numbers and lists always marshal.
		panic(fmt.Sprintf("policy: schema: %v", err))
	}
	return append(data, '\n')
}

func (sh *shape) schema() map[string]any {
	s := map[string]any{}
	if sh.doc != "" {
		s["description"] = sh.doc
	}
	switch sh.kind {
	case object:
		s["type"] = "object"
		s["additionalProperties"] = false
		properties := map[string]any{}
		for _, f := range sh.fields {
			properties[f.name] = f.shape.schema()
		}
		s["properties"] = properties
		if len(sh.need) > 0 {
			s["required"] = sh.need
		}
		if len(sh.one) > 0 {
			var one []any
			for _, name := range sh.one {
				one = append(one, map[string]any{"required": []string{name}})
			}
			s["oneOf"] = one
		}
	case mapping:
		s["type"] = "object"
		s["additionalProperties"] = sh.elem.schema()
		if sh.keys != "" {
			s["propertyNames"] = map[string]any{"pattern": sh.keys}
		}
		s["maxProperties"] = MaxRules
	case list:
		s["type"] = "array"
		s["items"] = sh.elem.schema()
		s["maxItems"] = MaxRules
	case text:
		s["type"] = "string"
	case textOrObject:
		s["anyOf"] = []any{map[string]any{"type": "string"}, sh.elem.schema()}
	case textOrWhole:
		s["type"] = []string{"string", "integer"}
		s["minimum"] = sh.min
	case whole:
		s["type"] = "integer"
	case number:
		s["type"] = "number"
	case boolean:
		s["type"] = "boolean"
	}
	if sh.kind == whole || sh.kind == number {
		s["minimum"] = sh.min
		if sh.max > 0 {
			s["maximum"] = sh.max
		}
	}
	if len(sh.oneOf) > 0 {
		s["enum"] = sh.oneOf
	}
	if sh.pattern != "" {
		s["pattern"] = sh.pattern
	}
	return s
}
