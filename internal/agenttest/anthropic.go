package agenttest

import (
	"encoding/json"
	"fmt"
	"io"
)

// anthropic speaks Anthropic's Messages.
type anthropic struct{}

func (anthropic) parse(body []byte) (asked, error) {
	var b struct {
		Model    string
		Stream   bool
		Messages []struct{ Role string }
		Tools    []struct {
			Name        string
			InputSchema schema `json:"input_schema"`
		}
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return asked{}, fmt.Errorf("a message: %w", err)
	}
	a := asked{offered: offer{}, stream: b.Stream, model: b.Model}
	for _, m := range b.Messages {
		if m.Role == "assistant" {
			a.answers++
		}
	}
	for _, t := range b.Tools {
		a.offered.add(t.Name, t.InputSchema)
	}
	return a, nil
}

func (anthropic) write(w io.Writer, a asked, text string, c *call) error {
	block, delta, full, stop := args{"type": "text", "text": ""}, args{"type": "text_delta", "text": text}, args{"type": "text", "text": text}, "end_turn"
	if c != nil {
		block = args{"type": "tool_use", "id": id("toolu_", a), "name": c.name, "input": args{}}
		delta = args{"type": "input_json_delta", "partial_json": encode(c.args)}
		full = args{"type": "tool_use", "id": id("toolu_", a), "name": c.name, "input": c.args}
		stop = "tool_use"
	}
	usage := args{"input_tokens": 10, "output_tokens": 10}
	message := args{"id": id("msg_", a), "type": "message", "role": "assistant", "model": a.model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}
	if !a.stream {
		message["content"], message["stop_reason"] = []any{full}, stop
		return json.NewEncoder(w).Encode(message)
	}
	for _, e := range []args{
		{"type": "message_start", "message": message},
		{"type": "content_block_start", "index": 0, "content_block": block},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": args{"stop_reason": stop, "stop_sequence": nil}, "usage": args{"output_tokens": 10}},
		{"type": "message_stop"},
	} {
		if err := event(w, fmt.Sprint(e["type"]), e); err != nil {
			return err
		}
	}
	return nil
}
