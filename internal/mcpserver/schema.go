package mcpserver

// A field is one member of the input or the output of a tool.
type field struct {
	name  string
	kind  string // of JSON Schema, or "strings" or "integers"
	about string // empty says nothing, because the name does
	need  bool
	enum  []string
}

// A schema has the fields of an object. It is written by hand, because the list of tools is read by a model before every
// session: what can be inferred is longer.
type schema []field

// object gives the schema as JSON has it. A strict one refuses members that are not in it.
func (s schema) object(strict bool) map[string]any {
	members, needed := map[string]any{}, []string{}
	for _, f := range s {
		var m map[string]any
		switch f.kind {
		case "strings":
			m = map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
		case "integers":
			m = map[string]any{"type": "array", "items": map[string]any{"type": "integer"}}
		default:
			m = map[string]any{"type": f.kind}
		}
		if f.about != "" {
			m["description"] = f.about
		}
		if len(f.enum) > 0 {
			m["enum"] = f.enum
		}
		members[f.name] = m
		if f.need {
			needed = append(needed, f.name)
		}
	}
	o := map[string]any{"type": "object", "properties": members}
	if len(needed) > 0 {
		o["required"] = needed
	}
	if strict {
		o["additionalProperties"] = false
	}
	return o
}

// about puts the sandbox that a call is about before the other fields, where calls name one.
func (s *Server) about(rest ...field) schema {
	if s.o.Single {
		return rest
	}
	return append(schema{{name: "sandbox", kind: "string", need: true}}, rest...)
}
