package agenthook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/paddock-sandbox/paddock"
)

// MaxFile is the longest file of settings that is edited, in bytes.
const MaxFile = 8 << 20

// guarded runs a hook so that an agent takes every end but a good one for a refusal. Agents go on without a hook that is
// not there, was killed or ended with another status than 2, and one of them without a hook that gave no reason. No byte
// of it means something else in any shell that an agent may start hooks with.
const guarded = `/bin/sh -c '"$@"; s=$?; [ $s = 0 ] && exit; [ $s = 2 ] || echo "paddock: the hook did not run, so this step is refused" >&2; exit 2' paddock-hook `

// Command gives what the agent runs for an event. own are words for the hook itself, flags those of the box.
func (a Agent) Command(event Event, program string, flags, own []string) (string, error) {
	words := append([]string{"hook", "call", a.Name, string(event)}, own...)
	line, err := Line(program, append(append(words, "--"), flags...)...)
	return guarded + line, err
}

// ours reports whether a hook's command is one that Command gave for the agent.
func (a Agent) ours(command string) bool {
	line, ok := strings.CutPrefix(command, guarded)
	return ok && strings.Contains(line, " hook call "+a.Name+" ")
}

// Install gives a file with the hooks in it. Everything that was there stays as it is, to the byte. An empty file is
// one that was not there.
func (a Agent) Install(file []byte, program string, flags, own []string) ([]byte, error) {
	if a.Plugin() {
		return a.plugin(program, flags, own)
	}
	var failed error
	list := a.entries(func(e Event) string {
		command, err := a.Command(e, program, flags, own)
		if err != nil {
			failed = err
		}
		return command
	})
	if failed != nil {
		return nil, failed
	}
	if len(bytes.TrimSpace(file)) == 0 {
		file = []byte("{}\n")
		if a.versioned() {
			file = []byte("{\n  \"version\": 1\n}\n")
		}
	}
	for _, e := range list {
		var err error
		if file, err = insert(file, e); err != nil {
			return nil, err
		}
	}
	return file, nil
}

// versioned tells that a file of the agent's hooks has a version.
func (a Agent) versioned() bool { return a.Name == "cursor" || a.Name == "copilot" }

// maxDepth is how deep the lists and objects of a file may be nested. The parser has no bound, and its stack ends the
// program.
const maxDepth = 100

// deep reports whether lists and objects of a file are nested deeper than is read, up to where it is no JSON any more.
func deep(file []byte) bool {
	depth := 0
	for i := 0; i < len(file); i++ {
		rest := file[i:]
		switch {
		case rest[0] == '"':
			for i++; i < len(file) && file[i] != '"'; i++ {
				if file[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(rest, []byte("//")):
			end := bytes.IndexByte(rest, '\n')
			if end < 0 {
				return false
			}
			i += end
		case bytes.HasPrefix(rest, []byte("/*")):
			end := bytes.Index(rest[2:], []byte("*/"))
			if end < 0 {
				return false
			}
			i += end + 3
		case rest[0] == '[', rest[0] == '{':
			if depth++; depth > maxDepth {
				return true
			}
		case rest[0] == ']', rest[0] == '}':
			depth--
		}
	}
	return false
}

// parse reads a file of settings, with comments and commas at the end of lists.
func parse(file []byte) (hujson.Value, error) {
	if len(file) > MaxFile {
		return hujson.Value{}, fmt.Errorf("the file is longer than %d MiB: %w", MaxFile>>20, paddock.Invalid)
	}
	if deep(file) {
		return hujson.Value{}, fmt.Errorf("the file's lists and objects are nested deeper than %d: %w", maxDepth, paddock.Invalid)
	}
	v, err := hujson.Parse(file)
	if err != nil {
		return v, fmt.Errorf("the file cannot be read as JSON: %s: %w", strings.TrimPrefix(err.Error(), "hujson: "), paddock.Invalid)
	}
	if _, ok := v.Value.(*hujson.Object); !ok {
		return v, fmt.Errorf("the file holds no JSON object: %w", paddock.Invalid)
	}
	return v, nil
}

// member gives an object's member: of several with one name the last, which is the one that counts.
func member(o *hujson.Object, name string) *hujson.Value {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if l, ok := o.Members[i].Name.Value.(hujson.Literal); ok && l.String() == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

// insert puts an entry at the end of its list, and makes what is missing on the way.
func insert(file []byte, e entry) ([]byte, error) {
	root, err := parse(file)
	if err != nil {
		return nil, err
	}
	at, depth := &root, 0
	for ; depth < len(e.list); depth++ {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return nil, fmt.Errorf("%q in the file is no JSON object: %w", strings.Join(e.list[:depth], "."), paddock.Invalid)
		}
		next := member(o, e.list[depth])
		if next == nil {
			break
		}
		at = next
	}
	value := e.value
	if depth == len(e.list) {
		if _, ok := at.Value.(*hujson.Array); !ok {
			return nil, fmt.Errorf("%q in the file is no JSON list: %w", strings.Join(e.list, "."), paddock.Invalid)
		}
		return place(file, &root, at, depth, "", value)
	}
	value = []any{value}
	for i := len(e.list) - 1; i > depth; i-- {
		value = object{{e.list[i], value}}
	}
	return place(file, &root, at, depth, e.list[depth], value)
}

// place writes a value at the end of a list or an object that is so deep in the file.
func place(file []byte, root, at *hujson.Value, depth int, name string, value any) ([]byte, error) {
	line := "\n"
	if bytes.Contains(file, []byte("\r\n")) {
		line = "\r\n"
	}
	unit := "  "
	if o, ok := root.Value.(*hujson.Object); ok && len(o.Members) > 0 {
		if in := indentation(o.Members[0].Name.BeforeExtra); in != "" {
			unit = in
		}
	}
	outer := strings.Repeat(unit, depth)
	inner := outer + unit
	if first := firstExtra(at); first != nil {
		if in := indentation(first); in != "" {
			inner = in
		}
	}
	compact, err := marshal(value)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := json.Indent(&text, compact, inner, unit); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	written := strings.ReplaceAll(text.String(), "\n", line)
	if name != "" {
		label, err := marshal(name)
		if err != nil {
			return nil, err
		}
		written = string(label) + ": " + written
	}
	end := at.EndOffset - 1 // of the brace
	from, comma, trailing := lastEnd(at)
	kept := from + len(bytes.TrimRight(file[from:end], " \t\r\n"))
	var out bytes.Buffer
	out.Write(file[:from])
	if comma {
		out.WriteByte(',')
	}
	out.Write(file[from:kept])
	out.WriteString(line + inner + written)
	if trailing {
		out.WriteByte(',')
	}
	if !bytes.ContainsRune(file[kept:end], '\n') {
		out.WriteString(line + outer)
		kept = end
	}
	out.Write(file[kept:])
	return out.Bytes(), nil
}

// lastEnd gives where the last value of a list or an object ends, whether a comma must follow it, and whether one does.
// Of an empty one it is where it begins.
func lastEnd(at *hujson.Value) (end int, comma, trailing bool) {
	var last *hujson.Value
	switch c := at.Value.(type) {
	case *hujson.Object:
		if n := len(c.Members); n > 0 {
			last = &c.Members[n-1].Value
		}
	case *hujson.Array:
		if n := len(c.Elements); n > 0 {
			last = &c.Elements[n-1]
		}
	}
	if last == nil {
		return at.StartOffset + 1, false, false
	}
	if last.AfterExtra != nil {
		return last.EndOffset + len(last.AfterExtra) + 1, false, true // behind its comma
	}
	return last.EndOffset, true, false
}

// firstExtra gives what stands before the first value of a list or an object.
func firstExtra(at *hujson.Value) hujson.Extra {
	switch c := at.Value.(type) {
	case *hujson.Object:
		if len(c.Members) > 0 {
			return c.Members[0].Name.BeforeExtra
		}
	case *hujson.Array:
		if len(c.Elements) > 0 {
			return c.Elements[0].BeforeExtra
		}
	}
	return nil
}

// indentation gives the white space that begins the last line; none where there is only one line.
func indentation(extra hujson.Extra) string {
	i := bytes.LastIndexByte(extra, '\n')
	if i < 0 || len(bytes.Trim(extra[i+1:], " \t")) > 0 {
		return ""
	}
	return string(extra[i+1:])
}

// Remove gives a file without the hooks, and whether there was one. Everything else stays. What is empty then is kept
// only where the file had it before: original, of which nil says that there was no file. A file that nothing is left of
// is nil.
func (a Agent) Remove(file, original []byte) (left []byte, found bool, err error) {
	if a.Plugin() {
		found = bytes.HasPrefix(file, []byte(pluginMark))
		if found {
			return nil, true, nil
		}
		return file, false, nil
	}
	root, err := parse(file)
	if err != nil {
		return nil, false, err
	}
	had, err := parse(cmpOr(original, []byte("{}")))
	if err != nil {
		had = hujson.Value{Value: &hujson.Object{}}
	}
	o, _ := root.Value.(*hujson.Object)
	hooks := member(o, "hooks")
	if hooks == nil {
		return file, false, nil
	}
	events, ok := hooks.Value.(*hujson.Object)
	if !ok {
		return file, false, nil
	}
	for i := len(events.Members) - 1; i >= 0; i-- {
		m := events.Members[i]
		list, isList := m.Value.Value.(*hujson.Array)
		if !isList {
			continue
		}
		name, _ := m.Name.Value.(hujson.Literal)
		if !a.clear(&root, "/hooks/"+pointer(name.String()), list) {
			continue
		}
		found = true
		if len(list.Elements) == 0 && had.Find("/hooks/"+pointer(name.String())) == nil {
			if err := drop(&root, "/hooks/"+pointer(name.String())); err != nil {
				return nil, false, err
			}
		}
	}
	if !found {
		return file, false, nil
	}
	if len(events.Members) == 0 && had.Find("/hooks") == nil {
		if err := drop(&root, "/hooks"); err != nil {
			return nil, false, err
		}
	}
	left = root.Pack()
	if original == nil && a.bare(root) {
		return nil, true, nil
	}
	return left, true, nil
}

func cmpOr(a, b []byte) []byte {
	if len(bytes.TrimSpace(a)) == 0 {
		return b
	}
	return a
}

// bare tells that nothing is in a file but what Install begins one with.
func (a Agent) bare(root hujson.Value) bool {
	v := root.Clone()
	if bytes.ContainsAny(v.Pack(), "/") {
		return false // a comment
	}
	v.Minimize()
	text := string(v.Pack())
	return text == "{}" || a.versioned() && text == `{"version":1}`
}

// clear removes our hooks from a list.
func (a Agent) clear(root *hujson.Value, at string, list *hujson.Array) bool {
	found := false
	for i := len(list.Elements) - 1; i >= 0; i-- {
		o, ok := list.Elements[i].Value.(*hujson.Object)
		if !ok {
			continue
		}
		where := fmt.Sprintf("%s/%d", at, i)
		if a.is(o) {
			found = drop(root, where) == nil || found
			continue
		}
		inner := member(o, "hooks")
		if inner == nil {
			continue
		}
		group, ok := inner.Value.(*hujson.Array)
		if !ok {
			continue
		}
		here := false
		for j := len(group.Elements) - 1; j >= 0; j-- {
			if h, ok := group.Elements[j].Value.(*hujson.Object); ok && a.is(h) {
				here = drop(root, fmt.Sprintf("%s/hooks/%d", where, j)) == nil || here
			}
		}
		if here && len(group.Elements) == 0 {
			here = drop(root, where) == nil
		}
		found = found || here
	}
	return found
}

// is tells whether an object is a hook of ours.
func (a Agent) is(o *hujson.Object) bool {
	return slices.ContainsFunc([]string{"command", "bash"}, func(name string) bool {
		v := member(o, name)
		if v == nil {
			return false
		}
		l, ok := v.Value.(hujson.Literal)
		return ok && l.Kind() == '"' && a.ours(l.String())
	})
}

// pointer writes a name as a part of a JSON pointer.
func pointer(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

func drop(root *hujson.Value, at string) error {
	patch, err := marshal([]object{{{"op", "remove"}, {"path", at}}})
	if err != nil {
		return err
	}
	if err := root.Patch(patch); err != nil {
		return fmt.Errorf("remove %s: %w: %w", at, err, paddock.Invalid)
	}
	return nil
}
