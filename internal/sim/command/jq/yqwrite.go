package jq

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// deepestYAML is how deep values nest that are written as YAML: each level
// costs its indentation in every line.
const deepestYAML = 1000

// node makes the node of a value. Where the value is, or is made of, one that
// was read, comments, styles and anchors are those of its node; old is the node
// that stood in its place.
func (w *weaver) node(v value, old *yaml.Node, depth int) (*yaml.Node, error) {
	if depth > deepestYAML {
		return nil, errors.New("nested too deeply for YAML")
	}
	w.m.t.Step(1)
	w.m.t.Grow(nodeCost / 2)
	w.grown += nodeCost / 2
	if old != nil && w.unchanged(v, old) {
		return old, nil
	}
	if old != nil && old.Kind == yaml.AliasNode {
		old = &yaml.Node{HeadComment: old.HeadComment, LineComment: old.LineComment, FootComment: old.FootComment}
	}
	switch x := v.(type) {
	case *object:
		if x.from != nil && w.unchanged(v, x.from.node) {
			return moved(x.from.node, old), nil
		}
		return w.mapping(x, old, depth)
	case *array:
		if x.from != nil && w.unchanged(v, x.from.node) {
			return moved(x.from.node, old), nil
		}
		return w.sequence(x, old, depth)
	}
	return w.leaf(v, old), nil
}

// moved gives a node that stands elsewhere now: its anchor stays behind.
func moved(n, old *yaml.Node) *yaml.Node {
	if n == old || n.Anchor == "" {
		return n
	}
	c := *n
	c.Anchor = ""
	return &c
}

// unchanged reports whether a value is the one that was read from a node.
func (w *weaver) unchanged(v value, n *yaml.Node) bool {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch x := v.(type) {
	case *array, *object:
		was, ok := w.made[n]
		return ok && was == x
	}
	if n.Kind != yaml.ScalarNode {
		return false
	}
	was := w.m.scalar(n)
	return kind(was) == kind(v) && w.m.compare(was, v) == 0
}

func frame2(v *origin, old *yaml.Node, k yaml.Kind) *yaml.Node {
	c := &yaml.Node{Kind: k}
	base := old
	if v != nil && v.node.Kind == k {
		base = v.node
	}
	if base != nil {
		c.HeadComment, c.LineComment, c.FootComment = base.HeadComment, base.LineComment, base.FootComment
		if base.Kind == k {
			c.Style, c.Tag = base.Style, base.Tag
		}
	}
	if old != nil && old.Kind == k {
		c.Anchor = old.Anchor
	}
	return c
}

func (w *weaver) mapping(o *object, old *yaml.Node, depth int) (*yaml.Node, error) {
	c := frame2(o.from, old, yaml.MappingNode)
	var bases []*yaml.Node
	for f := o.from; f != nil; f = f.next {
		bases = append(bases, f.node)
	}
	if o.from == nil && old != nil && old.Kind == yaml.MappingNode {
		bases = append(bases, old)
	}
	pairs := map[string][2]*yaml.Node{}
	var merged *table
	for i, b := range bases {
		for j := 0; j+1 < len(b.Content); j += 2 {
			w.m.t.Step(1)
			k := b.Content[j]
			if isMerge(k) {
				if i > 0 {
					continue
				}
				if merged == nil {
					merged = &table{}
				}
				v, err := w.value(b.Content[j+1], depth)
				if err != nil {
					return nil, err
				}
				w.mergeIn(merged, &yaml.Node{}, v)
				c.Content = append(c.Content, k, b.Content[j+1])
				continue
			}
			if _, ok := pairs[w.key(k)]; !ok {
				pairs[w.key(k)] = [2]*yaml.Node{k, b.Content[j+1]}
			}
		}
	}
	t := o.own()
	for i, k := range t.keys {
		pair, known := pairs[k]
		if merged != nil && !known {
			if at := merged.find(k); at >= 0 && w.m.compare(merged.vals[at], t.vals[i]) == 0 {
				continue // it still comes from what is merged in
			}
		}
		key := pair[0]
		if key == nil {
			key = w.leaf(k, nil)
		}
		v, err := w.node(t.vals[i], pair[1], depth+1)
		if err != nil {
			return nil, err
		}
		c.Content = append(c.Content, key, v)
	}
	return c, nil
}

func (w *weaver) sequence(a *array, old *yaml.Node, depth int) (*yaml.Node, error) {
	c := frame2(a.from, old, yaml.SequenceNode)
	var before []*yaml.Node
	switch {
	case a.from != nil:
		before = a.from.node.Content
	case old != nil && old.Kind == yaml.SequenceNode:
		before = old.Content
	}
	list := a.own()
	at := 0
	for i, v := range list {
		var was *yaml.Node
		if len(before) == len(list) {
			was = before[i]
		} else {
			for j := at; j < len(before); j++ { // the next that is the same
				w.m.t.Step(1)
				if w.unchanged(v, before[j]) {
					was, at = before[j], j+1
					break
				}
			}
		}
		n, err := w.node(v, was, depth+1)
		if err != nil {
			return nil, err
		}
		c.Content = append(c.Content, n)
	}
	return c, nil
}

// leaf makes the node of a scalar.
func (w *weaver) leaf(v value, old *yaml.Node) *yaml.Node {
	c := &yaml.Node{Kind: yaml.ScalarNode}
	if old != nil {
		c.HeadComment, c.LineComment, c.FootComment, c.Anchor = old.HeadComment, old.LineComment, old.FootComment, old.Anchor
	}
	switch x := v.(type) {
	case nil:
		c.Tag, c.Value = "!!null", "null"
	case bool:
		c.Tag, c.Value = "!!bool", "false"
		if x {
			c.Value = "true"
		}
	case string:
		c.Tag, c.Value = "!!str", x
		if old != nil && old.Kind == yaml.ScalarNode && old.ShortTag() == "!!str" {
			c.Style = old.Style &^ yaml.TaggedStyle
		}
		if strings.Contains(x, "\n") {
			c.Style = yaml.LiteralStyle
		}
	default:
		c.Value = w.m.text(v)
		c.Tag = tagOf(v)
		if f, _ := number(v); f != f || f-f != 0 {
			c.Value = infinite(f)
		}
	}
	return c
}

func infinite(f float64) string {
	switch {
	case f > 0:
		return ".inf"
	case f < 0:
		return "-.inf"
	}
	return ".nan"
}

// tagOf gives the tag of a value.
func tagOf(v value) string {
	switch x := v.(type) {
	case nil:
		return "!!null"
	case bool:
		return "!!bool"
	case string:
		return "!!str"
	case *array:
		return "!!seq"
	case *object:
		return "!!map"
	case *literal:
		if !strings.ContainsAny(x.text, ".eE") {
			return "!!int"
		}
		return "!!float"
	case float64:
		if x == float64(int64(x)) {
			return "!!int"
		}
	}
	return "!!float"
}

// encodeYAML writes a node.
func (w *weaver) encodeYAML(n *yaml.Node, indent int) ([]byte, error) {
	b := kernel.NewText(w.m.t)
	defer b.Free()
	e := yaml.NewEncoder(b)
	e.SetIndent(max(indent, 1))
	if err := e.Encode(n); err != nil {
		return nil, err
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	w.m.t.Step(b.Len() >> 4)
	w.m.alloc(b.Len())
	return []byte(b.String()), nil
}

// release gives back what nodes took that were made for writing.
func (w *weaver) release() {
	w.m.t.Shrink(w.grown)
	w.grown = 0
}

// A mark is an attribute that a place of a document is given.
type mark struct {
	path []value
	name string
	text string
	deep bool // all below it too, keys as well
}

// apply gives the places of a tree their attributes. The nodes on the way are
// copied: they may stand in other documents too.
func (w *weaver) apply(n *yaml.Node, path []value, k mark) *yaml.Node {
	w.m.t.Step(1)
	for n.Kind == yaml.AliasNode && len(path) > 0 {
		return n
	}
	if len(path) == 0 && k.name == "explode" {
		return w.exploded(n, 0)
	}
	c := *n
	if len(path) == 0 {
		w.set(&c, k)
		if k.deep {
			c.Content = make([]*yaml.Node, len(n.Content))
			for i, x := range n.Content {
				c.Content[i] = w.apply(x, nil, k)
			}
		}
		return &c
	}
	c.Content = append([]*yaml.Node(nil), n.Content...)
	switch key := path[0].(type) {
	case string:
		for i := 0; i+1 < len(c.Content) && c.Kind == yaml.MappingNode; i += 2 {
			if w.key(c.Content[i]) != key {
				continue
			}
			if len(path) == 1 && k.name != "style" && k.name != "tag" && k.name != "anchor" && k.name != "alias" && k.name != "explode" && k.name != "line_comment" || len(path) == 1 && k.name == "line_comment" && c.Content[i+1].Kind != yaml.ScalarNode {
				// A comment before or behind a member is its key's.
				x := *c.Content[i]
				w.set(&x, k)
				c.Content[i] = &x
				if k.text != "" {
					continue
				}
			}
			c.Content[i+1] = w.apply(c.Content[i+1], path[1:], k)
		}
	default:
		f, ok := number(key)
		if i := int(f); ok && c.Kind == yaml.SequenceNode && i >= 0 && i < len(c.Content) {
			c.Content[i] = w.apply(c.Content[i], path[1:], k)
		}
	}
	return &c
}

// exploded gives a node without anchors: what aliases and merges stand for is
// written out.
func (w *weaver) exploded(n *yaml.Node, depth int) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return w.exploded(n.Alias, depth+1)
	}
	c := *n
	c.Anchor = ""
	w.m.t.Step(1)
	w.m.t.Grow(nodeCost)
	w.grown += nodeCost
	if depth > deepestYAML || len(n.Content) == 0 {
		return &c
	}
	c.Content = nil
	if n.Kind != yaml.MappingNode {
		for _, x := range n.Content {
			c.Content = append(c.Content, w.exploded(x, depth+1))
		}
		return &c
	}
	seen := map[string]bool{}
	add := func(k, v *yaml.Node) {
		seen[w.key(k)] = true
		c.Content = append(c.Content, k, v)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], w.exploded(n.Content[i+1], depth+1)
		if !isMerge(k) {
			add(w.exploded(k, depth+1), v)
			continue
		}
		from := []*yaml.Node{v}
		if v.Kind == yaml.SequenceNode {
			from = v.Content
		}
		for _, f := range from {
			for j := 0; j+1 < len(f.Content) && f.Kind == yaml.MappingNode; j += 2 {
				if key := w.key(f.Content[j]); !seen[key] && !hasKey(n, key) {
					add(f.Content[j], f.Content[j+1])
				}
			}
		}
	}
	return &c
}

func (w *weaver) set(n *yaml.Node, k mark) {
	switch k.name {
	case "comments":
		n.HeadComment, n.LineComment, n.FootComment = comment(k.text), comment(k.text), comment(k.text)
	case "head_comment":
		n.HeadComment = comment(k.text)
	case "line_comment":
		n.LineComment = comment(k.text)
	case "foot_comment":
		n.FootComment = comment(k.text)
	case "style":
		n.Style = styleOf(k.text)
	case "tag", "type":
		n.Tag = k.text
		if n.Tag == "!!str" && n.Kind == yaml.ScalarNode {
			n.Style = 0
		} else if n.Kind == yaml.ScalarNode && strings.HasPrefix(n.Tag, "!!") {
			n.Style = 0
		}
	case "anchor":
		n.Anchor = k.text
	}
}

// comment gives each line of a comment its "#".
func comment(s string) string {
	if s == "" {
		return ""
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if l != "" && !strings.HasPrefix(l, "#") {
			lines[i] = "# " + l
		}
	}
	return strings.Join(lines, "\n")
}

func styleOf(s string) yaml.Style {
	switch s {
	case "double":
		return yaml.DoubleQuotedStyle
	case "single":
		return yaml.SingleQuotedStyle
	case "literal":
		return yaml.LiteralStyle
	case "folded":
		return yaml.FoldedStyle
	case "flow":
		return yaml.FlowStyle
	case "tagged":
		return yaml.TaggedStyle
	}
	return 0
}

func styleName(s yaml.Style) string {
	for _, name := range []string{"double", "single", "literal", "folded", "flow", "tagged"} {
		if s&styleOf(name) != 0 {
			return name
		}
	}
	return ""
}
