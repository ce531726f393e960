package agenttest

import (
	"encoding/json"
	"fmt"
	"io"
)

// responses speaks OpenAI's Responses.
type responses struct{}

func (responses) parse(body []byte) (asked, error) {
	var b struct {
		Model  string
		Stream bool
		Input  json.RawMessage
		Tools  []responseTool
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return asked{}, fmt.Errorf("a request for a response: %w", err)
	}
	var items []struct {
		Type, Role string
		Tools      []responseTool
	}
	_ = json.Unmarshal(b.Input, &items) // a text is an input as well, and holds no answers
	a := asked{offered: offer{}, free: map[string]bool{}, stream: b.Stream, model: b.Model}
	for _, i := range items {
		if i.Role == "assistant" || i.Type == "function_call" || i.Type == "custom_tool_call" {
			a.answers++
		}
	}
	offered := b.Tools
	for _, i := range items {
		offered = append(offered, i.Tools...) // Codex offers tools as a part of the input
	}
	a.note(offered)
	return a, nil
}

// A responseTool is a tool, or a namespace of tools.
type responseTool struct {
	Type, Name string
	Parameters schema
	Tools      []responseTool
}

// note notes tools that are offered, of namespaces those of Codex's own.
func (a *asked) note(list []responseTool) {
	for _, t := range list {
		if t.Type == "namespace" && t.Name == "functions" {
			a.note(t.Tools)
			continue
		}
		a.offered.add(t.Name, t.Parameters)
		a.free[t.Name] = t.Type == "custom"
	}
}

func (responses) write(w io.Writer, a asked, text string, c *call) error {
	begun := args{"type": "message", "id": id("msg_", a), "role": "assistant", "status": "in_progress", "content": []any{}}
	part := args{"type": "output_text", "text": text, "annotations": []any{}}
	done := args{"type": "message", "id": id("msg_", a), "role": "assistant", "status": "completed", "content": []any{part}}
	key := args{"item_id": id("msg_", a), "output_index": 0, "content_index": 0}
	middle := []args{
		with(key, args{"type": "response.content_part.added", "part": args{"type": "output_text", "text": "", "annotations": []any{}}}),
		with(key, args{"type": "response.output_text.delta", "delta": text}),
		with(key, args{"type": "response.output_text.done", "text": text}),
		with(key, args{"type": "response.content_part.done", "part": part}),
	}
	switch {
	case c != nil && a.free[c.name]:
		done = args{"type": "custom_tool_call", "id": id("ctc_", a), "call_id": id("call_", a), "name": c.name, "input": c.free, "status": "completed"}
		begun, middle = done, nil
	case c != nil:
		begun = args{"type": "function_call", "id": id("fc_", a), "call_id": id("call_", a), "name": c.name, "arguments": "", "status": "in_progress"}
		done = with(begun, args{"arguments": encode(c.args), "status": "completed"})
		key = args{"item_id": id("fc_", a), "output_index": 0}
		middle = []args{
			with(key, args{"type": "response.function_call_arguments.delta", "delta": encode(c.args)}),
			with(key, args{"type": "response.function_call_arguments.done", "arguments": encode(c.args)}),
		}
	}
	response := args{"id": id("resp_", a), "object": "response", "created_at": 1, "model": a.model, "status": "in_progress", "output": []any{}}
	ended := with(response, args{"status": "completed", "output": []any{done}, "usage": args{
		"input_tokens": 10, "input_tokens_details": args{"cached_tokens": 0}, "output_tokens": 10, "output_tokens_details": args{"reasoning_tokens": 0}, "total_tokens": 20,
	}})
	if !a.stream {
		return json.NewEncoder(w).Encode(ended)
	}
	events := []args{{"type": "response.created", "response": response}, {"type": "response.output_item.added", "output_index": 0, "item": begun}}
	events = append(events, middle...)
	events = append(events, args{"type": "response.output_item.done", "output_index": 0, "item": done}, args{"type": "response.completed", "response": ended})
	for n, e := range events {
		if err := event(w, fmt.Sprint(e["type"]), with(e, args{"sequence_number": n})); err != nil {
			return err
		}
	}
	return nil
}

// with returns an object with other members as well.
func with(object, more args) args {
	all := args{}
	for k, v := range object {
		all[k] = v
	}
	for k, v := range more {
		all[k] = v
	}
	return all
}

// chat speaks OpenAI's chat completions, as most other servers of models do.
type chat struct{}

func (chat) parse(body []byte) (asked, error) {
	var b struct {
		Model    string
		Stream   bool
		Messages []struct{ Role string }
		Tools    []struct {
			Function struct {
				Name       string
				Parameters schema
			}
		}
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return asked{}, fmt.Errorf("a chat: %w", err)
	}
	a := asked{offered: offer{}, stream: b.Stream, model: b.Model}
	for _, m := range b.Messages {
		if m.Role == "assistant" {
			a.answers++
		}
	}
	for _, t := range b.Tools {
		a.offered.add(t.Function.Name, t.Function.Parameters)
	}
	return a, nil
}

func (chat) write(w io.Writer, a asked, text string, c *call) error {
	message, stop := args{"role": "assistant", "content": text}, "stop"
	if c != nil {
		one := args{"index": 0, "id": id("call_", a), "type": "function", "function": args{"name": c.name, "arguments": encode(c.args)}}
		message, stop = args{"role": "assistant", "content": nil, "tool_calls": []any{one}}, "tool_calls"
	}
	usage := args{"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
	head := args{"id": id("chatcmpl-", a), "created": 1, "model": a.model}
	if !a.stream {
		return json.NewEncoder(w).Encode(with(head, args{"object": "chat.completion", "usage": usage, "choices": []any{args{"index": 0, "message": message, "finish_reason": stop}}}))
	}
	for _, e := range []args{
		{"choices": []any{args{"index": 0, "delta": message, "finish_reason": nil}}},
		{"choices": []any{args{"index": 0, "delta": args{}, "finish_reason": stop}}},
		{"choices": []any{}, "usage": usage},
	} {
		if err := event(w, "", with(with(head, args{"object": "chat.completion.chunk"}), e)); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "data: [DONE]\n\n")
	return err
}
