package jq

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An origin is the node of a document that a value is made of, and those that
// were merged into it.
type origin struct {
	node *yaml.Node
	next *origin
}

// A document is one of a file of YAML, or what was read in another format.
type document struct {
	value value
	top   *yaml.Node // the document's node; nil where it was no YAML
	lead  string     // what stands before everything: comments and "---"
	name  string
	file  int
	index int
}

func (d *document) root() *yaml.Node {
	if d == nil || d.top == nil || len(d.top.Content) == 0 {
		return nil
	}
	return d.top.Content[0]
}

// nodeCost is about what a node of YAML takes.
const nodeCost = 320

// readYAML reads all documents of a text.
func (w *weaver) readYAML(b []byte) (docs []*document, err error) {
	w.m.t.Bound("input", int64(len(b)), w.m.t.K.Limits.Input)
	n := 1
	for _, c := range b {
		switch c {
		case '\n', ',', ':', '-', '[', '{':
			n++
		}
	}
	w.m.t.Grow(len(b) + nodeCost*n)
	w.m.t.Step(len(b))
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(error)
			if !ok || !strings.Contains(e.Error(), "runtime error") {
				panic(r) // the end of the task, and the like
			}
			docs, err = nil, errors.New("yaml: cannot be read")
		}
	}()
	lead, rest := leading(b)
	d := yaml.NewDecoder(bytes.NewReader(rest))
	for {
		top := &yaml.Node{}
		if err := d.Decode(top); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%w", err)
		}
		doc := &document{top: top, index: len(docs)}
		if len(docs) == 0 {
			doc.lead = lead
		}
		if doc.value, err = w.value(doc.root(), 0); err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	if len(docs) == 0 && lead != "" {
		docs = append(docs, &document{lead: lead})
	}
	return docs, nil
}

// leading cuts comments, directives and the "---" off the beginning.
func leading(b []byte) (lead string, rest []byte) {
	at, end := 0, 0
	for at < len(b) {
		line := b[at:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i+1]
		}
		text := bytes.TrimSpace(line)
		switch {
		case len(text) == 0:
		case text[0] == '#':
			end = at + len(line)
		case string(text) == "---":
			return string(b[:at+len(line)]), b[at+len(line):]
		default:
			if !bytes.Contains(b[:end], []byte("---")) {
				end = 0 // comments right before the first key are that key's
			}
			return string(b[:end]), b[end:]
		}
		at += len(line)
	}
	return string(b[:end]), b[end:]
}

// value makes the value of a node. Aliases share what they stand for.
func (w *weaver) value(n *yaml.Node, depth int) (value, error) {
	if n == nil {
		return nil, nil
	}
	if v, ok := w.made[n]; ok {
		return v, nil
	}
	if depth > maxParse {
		return nil, errors.New("yaml: nested too deeply")
	}
	w.m.t.Step(1)
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return w.value(n.Content[0], depth)
	case yaml.AliasNode:
		if w.open[n.Alias] {
			return nil, fmt.Errorf("yaml: anchor '%s' value contains itself", n.Value)
		}
		return w.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		w.open[n] = true
		list := make([]value, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := w.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		delete(w.open, n)
		a := w.m.list(list)
		a.from = &origin{node: n}
		w.made[n] = a
		return a, nil
	case yaml.MappingNode:
		w.open[n] = true
		t, err := w.table(n, depth)
		if err != nil {
			return nil, err
		}
		delete(w.open, n)
		o := w.m.made(t)
		o.from = &origin{node: n}
		w.made[n] = o
		return o, nil
	}
	return w.m.scalar(n), nil
}

func isMerge(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!merge" }

// table gives the members of a mapping, with those that it merges in.
func (w *weaver) table(n *yaml.Node, depth int) (*table, error) {
	t := &table{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, c := n.Content[i], n.Content[i+1]
		v, err := w.value(c, depth+1)
		if err != nil {
			return nil, err
		}
		if isMerge(k) {
			w.mergeIn(t, n, v)
			continue
		}
		t.put(w.key(k), v)
	}
	return t, nil
}

// mergeIn adds the members of what <<: names, which those of the mapping
// itself override.
func (w *weaver) mergeIn(t *table, n *yaml.Node, v value) {
	switch x := v.(type) {
	case *object:
		s := x.own()
		for i, k := range s.keys {
			w.m.t.Step(1)
			if t.find(k) < 0 || !hasKey(n, k) {
				t.put(k, s.vals[i])
			}
		}
	case *array:
		list := x.own()
		for i := len(list) - 1; i >= 0; i-- { // earlier ones override later ones
			if o, ok := list[i].(*object); ok {
				w.mergeIn(t, n, o)
			}
		}
	}
}

func hasKey(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key && !isMerge(n.Content[i]) {
			return true
		}
	}
	return false
}

// key gives the text of a key.
func (w *weaver) key(n *yaml.Node) string {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind == yaml.ScalarNode {
		return clean([]byte(n.Value))
	}
	v, err := w.value(n, 1)
	if err != nil {
		return ""
	}
	return w.m.text(v)
}

// scalar makes the value of a scalar node.
func (m *machine) scalar(n *yaml.Node) value {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if v, ok := yamlNumber(n.Value); ok {
			return v
		}
	}
	m.alloc(16 + len(n.Value))
	return clean([]byte(n.Value))
}

// yamlNumber reads a number as YAML writes it.
func yamlNumber(s string) (value, bool) {
	if wellFormed(s) && s[0] != '+' && s[0] != '.' && !strings.HasSuffix(s, ".") {
		return parseNumber(s), true
	}
	bare := strings.ReplaceAll(s, "_", "")
	sign := 1.0
	body := bare
	if strings.HasPrefix(body, "-") || strings.HasPrefix(body, "+") {
		if body[0] == '-' {
			sign = -1
		}
		body = body[1:]
	}
	switch strings.ToLower(body) {
	case ".inf":
		return math.Inf(int(sign)), true
	case ".nan":
		return math.NaN(), true
	}
	if i, err := strconv.ParseInt(bare, 0, 64); err == nil {
		return float64(i), true
	}
	if f, err := strconv.ParseFloat(body, 64); err == nil {
		return sign * f, true
	}
	return nil, false
}

// plainScalar makes the value that a bare word of YAML has: of CSV, of
// properties, of the environment.
func (m *machine) plainScalar(s string) value {
	return m.scalar(&yaml.Node{Kind: yaml.ScalarNode, Value: s})
}
