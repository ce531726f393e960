package jq

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// formatOf gives the format that a file's suffix names.
func formatOf(suffix string) string {
	switch strings.TrimPrefix(suffix, ".") {
	case "json", "ndjson", "jsonl":
		return "json"
	case "xml":
		return "xml"
	case "csv":
		return "csv"
	case "tsv":
		return "tsv"
	case "toml":
		return "toml"
	case "properties":
		return "props"
	case "ini":
		return "ini"
	}
	return "yaml"
}

// formatNamed gives the format of a name that -p or -o has.
func formatNamed(s string) (string, bool) {
	switch s {
	case "yaml", "y", "yml":
		return "yaml", true
	case "json", "j", "ndjson":
		return "json", true
	case "props", "p", "properties":
		return "props", true
	case "csv", "c":
		return "csv", true
	case "tsv", "t":
		return "tsv", true
	case "xml", "x":
		return "xml", true
	case "toml":
		return "toml", true
	case "ini", "i":
		return "ini", true
	case "base64", "uri", "sh", "shell":
		return s, true
	}
	return "", false
}

// read reads the documents of a text in a format.
func (w *weaver) read(b []byte, format string) ([]*document, error) {
	m := w.m
	one := func(v value, err error) ([]*document, error) {
		if err != nil {
			return nil, err
		}
		return []*document{{value: v}}, nil
	}
	m.t.Bound("input", int64(len(b)), m.t.K.Limits.Input)
	m.t.Step(len(b) >> 2)
	switch format {
	case "json":
		list, err := m.decodeAll(b)
		if err != nil {
			return nil, err
		}
		docs := make([]*document, len(list))
		for i, v := range list {
			docs[i] = &document{value: v, index: i}
		}
		return docs, nil
	case "csv", "tsv":
		return one(w.readTable(b, format))
	case "props":
		return one(w.readProperties(b))
	case "ini":
		return one(w.readINI(b))
	case "xml":
		return one(w.readXML(b))
	case "toml":
		return one(w.readTOML(b))
	case "base64":
		s, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(b)))
		return one(clean(s), err)
	case "uri":
		return one(m.unURI(clean(b)))
	case "sh", "shell":
		return nil, fmt.Errorf("%s cannot be read", format)
	}
	return w.readYAML(b)
}

// write writes a value in a format that is not YAML.
func (w *weaver) write(v value, format string, indent int) ([]byte, error) {
	m := w.m
	var b []byte
	var err error
	switch format {
	case "json":
		b = append(m.encode(nil, v, &style{indent: strings.Repeat(" ", indent)}, 0), '\n')
	case "csv", "tsv":
		b, err = w.writeTable(v, format)
	case "props":
		b, err = w.writeProperties(nil, v, "", w.docNode(v), 0)
	case "ini":
		b, err = w.writeINI(v)
	case "xml":
		b, err = w.writeXML(v, indent)
	case "toml":
		b, err = w.writeTOML(nil, v, "", 0)
	case "base64":
		b = []byte(base64.StdEncoding.EncodeToString([]byte(m.toString(v))))
	case "uri":
		b = []byte(m.uri(m.toString(v)))
	case "sh":
		b = append([]byte(shellWord(m.toString(v))), '\n')
	case "shell":
		b, err = w.writeShell(nil, v, "", 0)
	}
	m.t.Bound("string", int64(len(b)), m.t.K.Limits.String)
	return b, err
}

func (w *weaver) docNode(v value) *yaml.Node {
	switch x := v.(type) {
	case *object:
		if x.from != nil {
			return x.from.node
		}
	case *array:
		if x.from != nil {
			return x.from.node
		}
	}
	return nil
}

func (w *weaver) comma(format string) rune {
	if format == "tsv" {
		return w.o.tsvComma
	}
	return w.o.csvComma
}

// readTable reads rows below a head, each as an object.
func (w *weaver) readTable(b []byte, format string) (value, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes, r.ReuseRecord = w.comma(format), -1, true, true
	var head []string
	var list []value
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return w.m.list(list), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w", err)
		}
		w.m.t.Step(1 + len(row))
		if head == nil {
			for _, h := range row {
				head = append(head, clean([]byte(h)))
			}
			continue
		}
		t := &table{}
		for i, x := range row {
			if i >= len(head) {
				break
			}
			var v value = clean([]byte(x))
			if w.o.parse {
				v = w.m.plainScalar(x)
			}
			t.put(head[i], v)
			w.m.alloc(16 + len(x))
		}
		list = append(list, w.m.made(t))
	}
}

// writeTable writes a list of objects below a head, or lists as rows.
func (w *weaver) writeTable(v value, format string) ([]byte, error) {
	a, ok := v.(*array)
	if !ok {
		return nil, fmt.Errorf("csv encoding only works for arrays, got: %s", tagOf(v))
	}
	b := kernel.NewText(w.m.t)
	defer b.Free()
	out := csv.NewWriter(b)
	out.Comma = w.comma(format)
	rows := a.own()
	text := func(v value) string {
		if v == nil {
			return ""
		}
		return w.m.toString(v)
	}
	put := func(row []string) error {
		w.m.t.Step(1 + len(row))
		return out.Write(row)
	}
	finish := func() ([]byte, error) {
		out.Flush()
		w.m.alloc(b.Len())
		return []byte(b.String()), out.Error()
	}
	if len(rows) == 0 {
		return nil, nil
	}
	switch first := rows[0].(type) {
	case *object:
		head := append([]string(nil), first.own().keys...)
		seen := map[string]bool{}
		for _, k := range head {
			seen[k] = true
		}
		if err := put(head); err != nil {
			return nil, err
		}
		for _, r := range rows {
			o, ok := r.(*object)
			if !ok {
				return nil, fmt.Errorf("csv object encoding only works for arrays of objects, got: %s", tagOf(r))
			}
			row := make([]string, len(head))
			for i, k := range head {
				x, _ := o.get(k)
				row[i] = text(x)
			}
			if err := put(row); err != nil {
				return nil, err
			}
		}
		return finish()
	case *array:
		for _, r := range rows {
			list, ok := r.(*array)
			if !ok {
				return nil, fmt.Errorf("csv encoding only works for arrays of scalars (string/numbers/booleans), got: %s", tagOf(r))
			}
			row := make([]string, list.len())
			for i, x := range list.own() {
				row[i] = text(x)
			}
			if err := put(row); err != nil {
				return nil, err
			}
		}
		return finish()
	}
	row := make([]string, len(rows))
	for i, x := range rows {
		if kind(x) >= 5 {
			return nil, fmt.Errorf("csv encoding only works for arrays of scalars (string/numbers/booleans), child[%d] is a %s", i, tagOf(x))
		}
		row[i] = text(x)
	}
	if err := put(row); err != nil {
		return nil, err
	}
	return finish()
}

// put puts a value at a dotted path; parts that are numbers are indexes.
func (w *weaver) put(root value, parts []string, v value) (value, error) {
	keys := make([]value, len(parts))
	for i, p := range parts {
		keys[i] = p
		if len(p) > 0 && len(p) < 7 && strings.Trim(p, "0123456789") == "" {
			keys[i], _ = yamlNumber(p)
		}
	}
	return w.m.setpath(root, keys, v)
}

// readProperties reads Java's properties.
func (w *weaver) readProperties(b []byte) (value, error) {
	var root value = newObject()
	lines := strings.Split(strings.ReplaceAll(clean(b), "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		w.m.t.Step(8)
		line := strings.TrimLeft(lines[i], " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		for odd(line) && i+1 < len(lines) {
			i++
			line = line[:len(line)-1] + strings.TrimLeft(lines[i], " \t\f")
		}
		at := 0
		for at < len(line) && strings.IndexByte("=: \t\f", line[at]) < 0 {
			if line[at] == '\\' && at+1 < len(line) {
				at++
			}
			at++
		}
		key := unslash(line[:min(at, len(line))])
		rest := strings.TrimLeft(line[min(at, len(line)):], " \t\f")
		if rest != "" && (rest[0] == '=' || rest[0] == ':') {
			rest = strings.TrimLeft(rest[1:], " \t\f")
		}
		var err error
		if root, err = w.put(root, strings.Split(key, "."), w.m.plainScalar(unslash(rest))); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return root, nil
}

// odd reports whether a line ends with a backslash that continues it.
func odd(s string) bool { return (len(s)-len(strings.TrimRight(s, `\`)))%2 == 1 }

func unslash(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\r", `\\`, `\`, `\:`, ":", `\=`, "=", `\ `, " ", `\#`, "#", `\!`, "!").Replace(s)
}

func (w *weaver) writeProperties(b []byte, v value, prefix string, n *yaml.Node, depth int) ([]byte, error) {
	if depth > deepestYAML {
		return nil, errors.New("nested too deeply for properties")
	}
	w.m.t.Step(1)
	w.m.t.Bound("string", int64(len(b)), w.m.t.K.Limits.String)
	member := func(key string, x value, k, c *yaml.Node) error {
		full := key
		if prefix != "" {
			full = prefix + "." + key
		}
		for _, y := range []*yaml.Node{k, c} {
			if y == nil {
				continue
			}
			for _, s := range []string{y.HeadComment, y.LineComment} {
				if s != "" {
					b = append(append(b, s...), '\n')
				}
			}
		}
		var err error
		b, err = w.writeProperties(b, x, full, c, depth+1)
		return err
	}
	switch x := v.(type) {
	case *object:
		t := x.own()
		for i, key := range t.keys {
			var k, c *yaml.Node
			for j := 0; n != nil && j+1 < len(n.Content) && n.Kind == yaml.MappingNode; j += 2 {
				if n.Content[j].Value == key {
					k, c = n.Content[j], n.Content[j+1]
				}
			}
			if err := member(key, t.vals[i], k, c); err != nil {
				return nil, err
			}
		}
		return b, nil
	case *array:
		for i, y := range x.own() {
			var c *yaml.Node
			if n != nil && n.Kind == yaml.SequenceNode && i < len(n.Content) {
				c = n.Content[i]
			}
			if err := member(fmt.Sprint(i), y, nil, c); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	text := ""
	if v != nil {
		text = strings.NewReplacer("\\", "\\\\", "\n", "\\n", "\r", "\\r", "\t", "\\t").Replace(w.m.toString(v))
	}
	if prefix == "" {
		return append(append(w.m.room(b, len(text)+1), text...), '\n'), nil
	}
	b = w.m.room(b, len(prefix)+len(w.o.propsSeparator)+len(text)+1)
	return append(append(append(append(b, prefix...), w.o.propsSeparator...), text...), '\n'), nil
}

// writeShell writes assignments of variables.
func (w *weaver) writeShell(b []byte, v value, prefix string, depth int) ([]byte, error) {
	if depth > deepestYAML {
		return nil, errors.New("nested too deeply for a shell")
	}
	w.m.t.Step(1)
	w.m.t.Bound("string", int64(len(b)), w.m.t.K.Limits.String)
	name := func(key string) string {
		key = strings.Map(func(r rune) rune {
			if r < 0x80 && (isLetter(byte(r)) || isDigit(byte(r))) {
				return r
			}
			return '_'
		}, key)
		if prefix == "" {
			if key != "" && isDigit(key[0]) {
				return "_" + key
			}
			return key
		}
		return prefix + "_" + key
	}
	var err error
	switch x := v.(type) {
	case *object:
		t := x.own()
		for i, k := range t.keys {
			if b, err = w.writeShell(b, t.vals[i], name(k), depth+1); err != nil {
				return nil, err
			}
		}
		return b, nil
	case *array:
		for i, y := range x.own() {
			if b, err = w.writeShell(b, y, name(fmt.Sprint(i)), depth+1); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	if prefix == "" {
		prefix = "value"
	}
	text := ""
	if v != nil {
		text = w.m.toString(v)
	}
	if text != "" {
		text = shellWord(text)
	}
	b = w.m.room(b, len(prefix)+len(text)+2)
	return append(append(append(append(b, prefix...), '='), text...), '\n'), nil
}

// shellWord quotes a text for a shell, where it needs that.
func shellWord(s string) string {
	unsafe := func(r rune) bool {
		return r >= 0x80 || !isLetter(byte(r)) && !isDigit(byte(r)) && !strings.ContainsRune("-./:,@%+=", r)
	}
	if s != "" && strings.IndexFunc(s, unsafe) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'"
}

// readINI reads sections of names and values.
func (w *weaver) readINI(b []byte) (value, error) {
	root := &table{}
	section := root
	name := ""
	flush := func() {
		if name != "" {
			root.put(name, w.m.made(section))
		}
	}
	for i, line := range strings.Split(clean(b), "\n") {
		w.m.t.Step(4)
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#' || line[0] == ';':
		case line[0] == '[':
			end := strings.IndexByte(line, ']')
			if end < 0 {
				return nil, fmt.Errorf("line %d: unclosed section: %s", i+1, line)
			}
			flush()
			name, section = line[1:end], &table{}
		default:
			k, v, ok := strings.Cut(line, "=")
			if !ok {
				if k, v, ok = strings.Cut(line, ":"); !ok {
					return nil, fmt.Errorf("line %d: key-value delimiter not found: %s", i+1, line)
				}
			}
			v = strings.TrimSpace(v)
			if len(v) > 1 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
				v = v[1 : len(v)-1]
			}
			section.put(strings.TrimSpace(k), v)
		}
	}
	flush()
	return w.m.made(root), nil
}

func (w *weaver) writeINI(v value) ([]byte, error) {
	o, ok := v.(*object)
	if !ok {
		return nil, fmt.Errorf("ini encoding only works for maps, got: %s", tagOf(v))
	}
	var b []byte
	put := func(t *table, inside bool) error {
		for i, k := range t.keys {
			w.m.t.Step(1)
			if kind(t.vals[i]) >= 5 {
				if inside {
					return fmt.Errorf("ini encoding has no place for a %s in a section", tagOf(t.vals[i]))
				}
				continue
			}
			text := w.m.toString(t.vals[i])
			b = append(append(append(append(w.m.room(b, len(k)+len(text)+4), k...), " = "...), text...), '\n')
		}
		return nil
	}
	t := o.own()
	if err := put(t, false); err != nil {
		return nil, err
	}
	for i, k := range t.keys {
		s, ok := t.vals[i].(*object)
		if !ok {
			if kind(t.vals[i]) >= 5 {
				return nil, fmt.Errorf("ini encoding has no place for a %s", tagOf(t.vals[i]))
			}
			continue
		}
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = append(append(append(b, '['), k...), "]\n"...)
		if err := put(s.own(), true); err != nil {
			return nil, err
		}
	}
	return b, nil
}
