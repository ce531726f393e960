package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseJSON gives the value of a JSON document in the same form as parseYAML,
// with places, so that shapes read both.
func parseJSON(data []byte) (*yaml.Node, *Problem) {
	if p := checkText(data); p != nil {
		return nil, p
	}
	p := &jsonParser{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	n, err := p.value(0)
	if err == nil {
		if _, err = p.dec.Token(); err == nil {
			err = errors.New("more than one value")
		} else if errors.Is(err, io.EOF) {
			return n, nil
		}
	}
	// The decoder's own offsets do not count from the start of the document.
	line, column := p.place(p.next())
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	return nil, &Problem{Line: line, Column: column, Text: "not JSON: " + err.Error(), Hint: "the file is one JSON object, without comments or a comma after the last entry"}
}

type jsonParser struct {
	data []byte
	dec  *json.Decoder

	// where the last place was, so that a document is counted once
	offset, line, start int
}

// place gives line and column, from 1, of an offset. Offsets mostly grow.
func (p *jsonParser) place(offset int) (line, column int) {
	offset = max(0, min(offset, len(p.data)))
	if p.line == 0 || offset < p.offset {
		p.offset, p.line, p.start = 0, 1, 0
	}
	passed := p.data[p.offset:offset]
	p.line += bytes.Count(passed, []byte("\n"))
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		p.start = p.offset + i + 1
	}
	p.offset = offset
	return p.line, 1 + utf8.RuneCount(p.data[p.start:offset])
}

// next gives the offset of the next token.
func (p *jsonParser) next() int {
	i := int(p.dec.InputOffset())
	for i < len(p.data) && strings.IndexByte(" \t\r\n,:", p.data[i]) >= 0 {
		i++
	}
	return i
}

// token gives the next token and a node at its place.
func (p *jsonParser) token() (json.Token, *yaml.Node, error) {
	start := p.next()
	t, err := p.dec.Token()
	if err != nil {
		return nil, nil, err
	}
	n := &yaml.Node{}
	n.Line, n.Column = p.place(start)
	return t, n, nil
}

func (p *jsonParser) value(depth int) (*yaml.Node, error) {
	t, n, err := p.token()
	if err != nil {
		return nil, err
	}
	return p.rest(t, n, depth)
}

// rest reads what follows the first token of a value.
func (p *jsonParser) rest(t json.Token, n *yaml.Node, depth int) (*yaml.Node, error) {
	const deepest = 32
	if depth > deepest {
		return nil, fmt.Errorf("nested deeper than %d levels", deepest)
	}
	n.Kind = yaml.ScalarNode
	switch v := t.(type) {
	case nil:
		n.Tag, n.Value = "!!null", "null"
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(v)
	case json.Number:
		n.Tag, n.Value = "!!int", v.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if v == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for p.dec.More() {
			item, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		if _, err := p.dec.Token(); err != nil {
			return nil, err
		}
	}
	return n, nil
}
