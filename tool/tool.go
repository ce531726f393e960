package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A Tool is a Go function that agents may call by name. [Define] makes it, and it does not
// change. It can only be called through a [Set], so only within the set's bounds.
type Tool struct {
	name  string
	about string
	cost  int64
	in    *shape
	// prepare turns arguments into a call that is ready to run, and returns the arguments
	// as the function will see them.
	prepare func(args any) (invoke, any, error)
}

type invoke func(ctx context.Context) (json.RawMessage, error)

// Define makes a tool from f. In is a struct; its json and doc tags name and explain the
// arguments (see the package comment). Out is anything that encoding/json can write. The
// name's segments are separated by slashes or dots. about is the description for models and
// people; lists show its first line.
//
// A type without an unambiguous form as JSON and as flags is rejected here, not when it is
// called.
func Define[In, Out any](name, about string, f func(ctx context.Context, in In) (Out, error)) (Tool, error) {
	clean, err := cleanName(name)
	if err != nil {
		return Tool{}, fmt.Errorf("define: %w", err)
	}
	if n := agentName(clean); len(n) > maxAgentName {
		return Tool{}, fmt.Errorf("define %s: longer than %d letters as %s: %w", clean, maxAgentName, n, paddock.Invalid)
	}
	if f == nil {
		return Tool{}, fmt.Errorf("define %s: no function: %w", clean, paddock.Invalid)
	}
	typ := reflect.TypeFor[In]()
	if typ.Kind() != reflect.Struct {
		return Tool{}, fmt.Errorf("define %s: its input is %v, not a struct: %w", clean, typ, paddock.Invalid)
	}
	in, err := shapeOf(typ, 0)
	if err != nil {
		return Tool{}, fmt.Errorf("define %s: %w: %w", clean, err, paddock.Invalid)
	}
	if in.kind != kindStruct {
		return Tool{}, fmt.Errorf("define %s: its input %v reads itself, so its arguments are not known: %w", clean, typ, paddock.Invalid)
	}
	prepare := func(args any) (invoke, any, error) {
		value := new(In)
		bound, err := in.bind(args, reflect.ValueOf(value).Elem(), "")
		if err != nil {
			return nil, nil, err
		}
		return func(ctx context.Context) (json.RawMessage, error) {
			out, err := f(ctx, *value)
			if err != nil {
				return nil, err
			}
			return marshal(out)
		}, bound, nil
	}
	return Tool{name: clean, about: strings.TrimSpace(about), in: in, prepare: prepare}, nil
}

// WithCost returns the same tool with a declared cost: what each call takes from a [Budget]
// without an argument. It is never negative.
func (t Tool) WithCost(cost int64) (Tool, error) {
	if cost < 0 {
		return Tool{}, fmt.Errorf("cost of %s: %d is negative: %w", t.name, cost, paddock.Invalid)
	}
	t.cost = cost
	return t, nil
}

// Name returns the name with slashes, as in stripe/charges/create.
func (t Tool) Name() string { return t.name }

// AgentName returns the name in characters that models may use: slashes become underscores,
// and underscores are doubled. [FromAgentName] converts it back.
func (t Tool) AgentName() string { return agentName(t.name) }

// Segments returns the parts of the name: the words of the command, and the path of the
// function in JavaScript.
func (t Tool) Segments() []string { return strings.Split(t.name, "/") }

// About returns the description.
func (t Tool) About() string { return t.about }

// Cost returns the declared cost, or zero if there is none.
func (t Tool) Cost() int64 { return t.cost }

// Schema returns the JSON Schema of the arguments. No object in it allows additional
// properties.
func (t Tool) Schema() json.RawMessage {
	if t.in == nil {
		return nil
	}
	return t.in.schema()
}

// marshal writes a result. JSON cannot hold bytes that are not text. encoding/json would
// silently replace them, so that is an error here.
func marshal(out any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil {
		return nil, fmt.Errorf("write the result: %w", err)
	}
	text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if replaced(text) {
		return nil, errors.New("write the result: it holds a string that is not UTF-8; []byte can hold it")
	}
	return text, nil
}

// replaced finds the escape that encoding/json writes for a byte that is not UTF-8. It
// writes a real U+FFFD unescaped.
func replaced(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(text[i:], []byte(`\ufffd`)) {
			return true
		}
		i++
	}
	return false
}
