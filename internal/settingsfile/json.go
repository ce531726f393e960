// Package settingsfile edits JSON with comments, in which other programs keep their settings, so that everything else in a
// file stays as it is, to the byte.
package settingsfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/paddock-sandbox/paddock"
)

// MaxFile is the longest file of settings that is edited, in bytes.
const MaxFile = 8 << 20

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

// Parse reads a file of settings, with comments and commas at the end of lists.
func Parse(file []byte) (hujson.Value, error) {
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

// Member gives an object's member: of several with one name the last, which is the one that counts.
func Member(o *hujson.Object, name string) *hujson.Value {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if l, ok := o.Members[i].Name.Value.(hujson.Literal); ok && l.String() == name {
			return &o.Members[i].Value
		}
	}
	return nil
}

// Append puts a value at the end of the list that the names lead to, and makes what is missing on the way.
func Append(file []byte, list []string, value any) ([]byte, error) {
	root, err := Parse(file)
	if err != nil {
		return nil, err
	}
	at, depth, err := descend(&root, list)
	if err != nil {
		return nil, err
	}
	if depth == len(list) {
		if _, ok := at.Value.(*hujson.Array); !ok {
			return nil, fmt.Errorf("%q in the file is no JSON list: %w", strings.Join(list, "."), paddock.Invalid)
		}
		return place(file, &root, at, depth, "", value)
	}
	value = []any{value}
	for i := len(list) - 1; i > depth; i-- {
		value = map[string]any{list[i]: value}
	}
	return place(file, &root, at, depth, list[depth], value)
}

// Put puts a member at the end of the object that the names lead to, and makes what is missing on the way. If the object
// has a member of that name, the error is [paddock.Exists].
func Put(file []byte, object []string, name string, value any) ([]byte, error) {
	root, err := Parse(file)
	if err != nil {
		return nil, err
	}
	path := append(append([]string{}, object...), name)
	at, depth, err := descend(&root, path)
	switch {
	case err != nil:
		return nil, err
	case depth == len(path):
		return nil, fmt.Errorf("%q is in the file already: %w", strings.Join(path, "."), paddock.Exists)
	}
	for i := len(path) - 1; i > depth; i-- {
		value = map[string]any{path[i]: value}
	}
	return place(file, &root, at, depth, path[depth], value)
}

// descend follows names through objects, as far as they are there.
func descend(root *hujson.Value, names []string) (at *hujson.Value, depth int, err error) {
	at = root
	for ; depth < len(names); depth++ {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return nil, 0, fmt.Errorf("%q in the file is no JSON object: %w", strings.Join(names[:depth], "."), paddock.Invalid)
		}
		next := Member(o, names[depth])
		if next == nil {
			break
		}
		at = next
	}
	return at, depth, nil
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

// marshal writes JSON without the escapes that are only for HTML.
func marshal(v any) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// Pointer writes a name as a part of a JSON pointer.
func Pointer(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

// Drop removes what a JSON pointer leads to.
func Drop(root *hujson.Value, at string) error {
	patch, err := marshal([]map[string]string{{"op": "remove", "path": at}})
	if err != nil {
		return err
	}
	if err := root.Patch(patch); err != nil {
		return fmt.Errorf("remove %s: %w: %w", at, err, paddock.Invalid)
	}
	return nil
}
