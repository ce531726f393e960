package policy

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A shape says what a value of a document may be. One tree of shapes reads
// documents, gives the JSON Schema and names the keys in messages, so the
// three cannot differ.
type shape struct {
	kind shapeKind
	doc  string

	fields []field  // object
	one    []string // object: exactly one of these keys is needed
	need   []string // object: these keys are needed
	elem   *shape   // list, textOrObject, and the values of a mapping
	keys   string   // mapping: a pattern of its keys; empty is any

	oneOf   []string // text: nothing else; the first ones are told in messages
	pattern string   // text: for the schema; read refuses more than it
	min     float64  // whole, number
	max     float64  // whole, number; zero is no bound

	// read takes the value, whose kind is right already. Of an object it
	// comes after its fields.
	read func(r *reader, n *yaml.Node, key string)
}

type field struct {
	name  string
	shape *shape
}

type shapeKind uint8

const (
	object  shapeKind = iota // a mapping with known keys
	mapping                  // a mapping with any keys
	list
	text
	textOrWhole // "512m" or 1048576
	whole
	number
	boolean
	textOrObject // text, or what elem says
)

func (k shapeKind) String() string {
	return [...]string{"a mapping", "a mapping", "a list", "text", "text or a whole number", "a whole number", "a number", "true or false", "text or a mapping"}[k]
}

// reader collects what a document says, and what is wrong with it.
type reader struct {
	f        *File
	top      *shape
	host     Host // of ReadSRT only
	problems []Problem
	refused  []Problem // of ReadSRT only: understood, and cannot be had
	notes    []Problem
}

func (r *reader) add(n *yaml.Node, key, text, hint string) {
	r.problems = append(r.problems, problemAt(n, key, text, hint))
}

func (r *reader) note(n *yaml.Node, key, text, hint string) {
	r.notes = append(r.notes, problemAt(n, key, text, hint))
}

func problemAt(n *yaml.Node, key, text, hint string) Problem {
	return Problem{Line: n.Line, Column: n.Column, Key: key, Text: text, Hint: hint}
}

// walk reads n as sh says. It goes only as deep as the shapes do.
func (r *reader) walk(sh *shape, n *yaml.Node, key string) {
	if !r.isKind(sh, n, key) {
		return
	}
	r.f.at[key] = Position{n.Line, n.Column}
	before := len(r.problems)
	switch sh.kind {
	case object:
		r.object(sh, n, key)
	case mapping:
		r.mapping(sh, n, key)
	case list:
		if len(n.Content) > MaxRules {
			r.add(n, key, fmt.Sprintf("%d entries; at most %d are allowed", len(n.Content), MaxRules), "")
			return
		}
		for i, item := range n.Content {
			r.walk(sh.elem, item, key+"["+strconv.Itoa(i)+"]")
		}
	case textOrObject:
		if n.Kind == yaml.MappingNode {
			r.walk(sh.elem, n, key)
		}
	case text:
		if len(sh.oneOf) > 0 && !slices.Contains(sh.oneOf, n.Value) {
			r.add(n, key, fmt.Sprintf("%q is not known", clip(n.Value)), hintFor(n.Value, sh.oneOf))
			return
		}
	case whole, number:
		v, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < sh.min || (sh.max > 0 && v > sh.max) {
			r.add(n, key, clip(n.Value)+" is not allowed", sh.bounds())
			return
		}
	}
	if sh.read != nil && len(r.problems) == before {
		sh.read(r, n, key)
	}
}

func (sh *shape) bounds() string {
	if sh.max > 0 {
		return fmt.Sprintf("allowed: %v from %v to %v", sh.kind, sh.min, sh.max)
	}
	return fmt.Sprintf("allowed: %v from %v", sh.kind, sh.min)
}

// isKind tells whether n is of the kind, and what it is instead.
func (r *reader) isKind(sh *shape, n *yaml.Node, key string) bool {
	ok := false
	switch sh.kind {
	case object, mapping:
		ok = n.Kind == yaml.MappingNode
	case list:
		ok = n.Kind == yaml.SequenceNode
	case text:
		ok = n.Kind == yaml.ScalarNode && n.Tag == "!!str"
	case textOrWhole:
		ok = n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!int")
	case whole:
		ok = n.Kind == yaml.ScalarNode && n.Tag == "!!int" && decimal(n.Value)
	case number:
		ok = n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float")
	case textOrObject:
		ok = n.Kind == yaml.MappingNode || (n.Kind == yaml.ScalarNode && n.Tag == "!!str")
	case boolean:
		ok = n.Kind == yaml.ScalarNode && n.Tag == "!!bool"
	}
	if ok {
		return true
	}
	hint := ""
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		hint = "leave the key out, or give it a value"
	case n.Kind == yaml.ScalarNode && sh.kind == text:
		hint = fmt.Sprintf("quote it: %q", clip(n.Value))
	case sh.kind == list && n.Kind == yaml.ScalarNode && sh.elem.kind == text:
		hint = fmt.Sprintf("write [%s]", clip(n.Value))
	case sh.kind == object:
		hint = "keys: " + strings.Join(sh.names(), ", ")
	}
	r.add(n, key, fmt.Sprintf("expected %v, found %s", sh.kind, describe(n)), hint)
	return false
}

func decimal(s string) bool {
	return numeric(strings.TrimPrefix(s, "-")) && (s == "0" || !strings.HasPrefix(s, "0"))
}

func numeric(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "the number " + clip(n.Value)
	case "!!str":
		return fmt.Sprintf("the text %q", clip(n.Value))
	}
	return "a value of type " + clip(n.Tag)
}

func (sh *shape) names() []string {
	names := make([]string, len(sh.fields))
	for i, f := range sh.fields {
		names[i] = f.name
	}
	return names
}

// needed lists the keys that must be there, with what they hold.
func (sh *shape) needed() string {
	keys := make([]string, len(sh.need))
	for i, name := range sh.need {
		f := sh.field(name)
		keys[i] = fmt.Sprintf("%s (%v)", name, f.kind)
		if f.max > 0 && f.min == f.max {
			keys[i] = fmt.Sprintf("%s: %v", name, f.min)
		}
	}
	return strings.Join(keys, ", ")
}

func (sh *shape) field(name string) *shape {
	for _, f := range sh.fields {
		if f.name == name {
			return f.shape
		}
	}
	return nil
}

func below(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func (r *reader) object(sh *shape, n *yaml.Node, key string) {
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && i < 2*MaxRules; i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if !r.keyOnce(k, key, seen) {
			continue
		}
		next := sh.field(k.Value)
		if next == nil {
			r.add(k, key, fmt.Sprintf("unknown key %q", clip(k.Value)), r.hintForKey(k.Value, sh))
			continue
		}
		r.walk(next, v, below(key, k.Value))
		r.f.at[below(key, k.Value)] = Position{k.Line, k.Column}
	}
	for _, name := range sh.need {
		if seen[name] == 0 {
			r.add(n, key, fmt.Sprintf("the key %q is missing", name), "needed here: "+sh.needed())
		}
	}
	if len(sh.one) > 0 {
		have := 0
		for _, name := range sh.one {
			if seen[name] > 0 {
				have++
			}
		}
		if have != 1 {
			r.add(n, key, "exactly one of the keys "+strings.Join(sh.one, ", ")+" is needed", "")
		}
	}
}

func (r *reader) mapping(sh *shape, n *yaml.Node, key string) {
	if len(n.Content) > 2*MaxRules {
		r.add(n, key, fmt.Sprintf("%d entries; at most %d are allowed", len(n.Content)/2, MaxRules), "")
		return
	}
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i]; r.keyOnce(k, key, seen) && r.keyFits(sh, k, key) {
			r.walk(sh.elem, n.Content[i+1], below(key, k.Value))
			r.f.at[below(key, k.Value)] = Position{k.Line, k.Column}
		}
	}
}

// keyOnce tells whether k is text and comes for the first time.
func (r *reader) keyOnce(k *yaml.Node, key string, seen map[string]int) bool {
	if k.Kind != yaml.ScalarNode || k.Tag != "!!str" {
		r.add(k, key, "expected a key, found "+describe(k), "")
		return false
	}
	if first := seen[k.Value]; first > 0 {
		r.add(k, key, fmt.Sprintf("the key %q is given twice", clip(k.Value)), fmt.Sprintf("first on line %d", first))
		return false
	}
	seen[k.Value] = k.Line
	return true
}

// keyFits tells whether k is what the keys of a mapping are. Names of variables
// have messages of their own.
func (r *reader) keyFits(sh *shape, k *yaml.Node, key string) bool {
	if sh.keys != groupPattern || isGroup(k.Value) {
		return true
	}
	r.add(k, key, fmt.Sprintf("%q is no name of a group", clip(k.Value)), "small letters, digits and dashes: model-providers")
	return false
}

// pairs gives the keys and values of a mapping.
func pairs(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

// hintForKey says which key was meant: one of the same mapping, or the same
// name elsewhere in the document's shape.
func (r *reader) hintForKey(name string, sh *shape) string {
	if near := Nearest(name, sh.names()); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if path := r.top.find(name, ""); path != "" {
		return fmt.Sprintf("did you mean %q?", path)
	}
	return "allowed: " + strings.Join(sh.names(), ", ")
}

func (sh *shape) find(name, key string) string {
	for _, f := range sh.fields {
		if squash(f.name) == squash(name) {
			return below(key, f.name)
		}
		if found := f.shape.find(name, below(key, f.name)); found != "" {
			return found
		}
	}
	return ""
}

// hintFor says which of the words was meant, or lists them.
func hintFor(word string, words []string) string {
	if near := Nearest(word, words); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "allowed: " + strings.Join(words, ", ")
}

// Nearest returns the word of the list that was probably meant, or the empty string.
func Nearest(word string, words []string) string {
	if len(word) > 100 {
		return ""
	}
	best, least := "", 1+max(1, min(3, len(word)/3))
	for _, w := range words {
		if d := distance(squash(word), squash(w)); d < least {
			best, least = w, d
		}
	}
	return best
}

// squash leaves out how people separate and capitalize words.
func squash(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
}

// distance counts the bytes to put in, take out, replace or swap with the next
// one to make b of a.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
