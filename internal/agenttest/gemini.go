package agenttest

import (
	"encoding/json"
	"fmt"
	"io"
)

// gemini speaks Google's generateContent.
type gemini struct{ stream bool }

func (g gemini) parse(body []byte) (asked, error) {
	var b struct {
		Contents []struct{ Role string }
		Tools    []struct {
			FunctionDeclarations []struct {
				Name                 string
				Parameters           schema
				ParametersJSONSchema schema `json:"parametersJsonSchema"`
			}
		}
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return asked{}, fmt.Errorf("a request for content: %w", err)
	}
	a := asked{offered: offer{}, stream: g.stream, model: "gemini"}
	for _, c := range b.Contents {
		if c.Role == "model" {
			a.answers++
		}
	}
	for _, t := range b.Tools {
		for _, f := range t.FunctionDeclarations {
			if s := f.Parameters; s.Properties != nil {
				a.offered.add(f.Name, s)
			} else {
				a.offered.add(f.Name, f.ParametersJSONSchema)
			}
		}
	}
	return a, nil
}

func (g gemini) write(w io.Writer, a asked, text string, c *call) error {
	part := args{"text": text}
	if c != nil {
		part = args{"functionCall": args{"id": id("call_", a), "name": c.name, "args": c.args}}
	}
	said := args{
		"candidates":    []any{args{"index": 0, "content": args{"role": "model", "parts": []any{part}}, "finishReason": "STOP"}},
		"usageMetadata": args{"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20},
		"modelVersion":  a.model,
	}
	if !g.stream {
		return json.NewEncoder(w).Encode(said)
	}
	return event(w, "", said)
}
