package mcpclient

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/settingsfile"
)

// A yamlForm is Goose's file: servers are members of one mapping. Lines are put in and taken out, and the file is read again
// to see that it means what it meant before, and the server.
type yamlForm struct{}

// extensions is the name of the mapping.
const extensions = "extensions"

func (yamlForm) install(file []byte, words []string) ([]byte, error) {
	before, list, key, err := readYAML(file)
	if err != nil {
		return nil, err
	}
	line := lineEnd(file)
	at, indent := len(file), "  "
	head := ""
	switch {
	case key == nil:
		if len(file) > 0 && !bytes.HasSuffix(file, []byte("\n")) {
			head = line
		}
		head += extensions + ":" + line
	case list.Kind == yaml.MappingNode && list.Style&yaml.FlowStyle == 0 && len(list.Content) > 0:
		if memberYAML(list, server) != nil {
			return nil, fmt.Errorf("%q is in the file already: %w", extensions+"."+server, paddock.Exists)
		}
		indent = strings.Repeat(" ", list.Content[0].Column-1)
		at = behindLine(file, key.Line)
	case list.Kind == yaml.ScalarNode && list.Tag == "!!null" && list.Value == "":
		at = behindLine(file, key.Line)
		if at > 0 && file[at-1] != '\n' {
			head = line
		}
	default:
		return nil, fmt.Errorf("%q in the file is no mapping with a line for each member: %w", extensions, paddock.Unsupported)
	}
	var b bytes.Buffer
	b.Write(file[:at])
	b.WriteString(head)
	deep := indent + strings.Repeat(" ", max(len(indent), 2))
	fmt.Fprintf(&b, "%s%s:%s", indent, server, line)
	for _, text := range []string{"enabled: true", "type: stdio", "name: " + server, "cmd: " + quoteYAML(words[0]), "args:"} {
		b.WriteString(deep + text + line)
	}
	for _, word := range words[1:] {
		b.WriteString(deep + "  - " + quoteYAML(word) + line)
	}
	b.WriteString(deep + "timeout: 300" + line)
	b.Write(file[at:])
	after, _, _, err := readYAML(b.Bytes())
	if err != nil || !sameYAML(after, before) {
		return nil, fmt.Errorf("a member of %q cannot be added: %w", extensions, paddock.Unsupported)
	}
	return b.Bytes(), nil
}

// quoteYAML writes a single-quoted scalar, of text that has no control characters.
func quoteYAML(word string) string { return "'" + strings.ReplaceAll(word, "'", "''") + "'" }

func (yamlForm) remove(file, original []byte) (left []byte, found bool, err error) {
	before, list, key, err := readYAML(file)
	if err != nil {
		return nil, false, err
	}
	if key == nil || !startsUs(extensionsOf(before)[server]) {
		return file, false, nil
	}
	i := slices.IndexFunc(list.Content, func(n *yaml.Node) bool { return n == memberYAML(list, server) })
	from, to := behindLine(file, list.Content[i].Line-1), len(file)
	if i+2 < len(list.Content) {
		to = behindLine(file, list.Content[i+2].Line-1)
	} else if next := nextLine(file, list.Content[i]); next > 0 {
		to = behindLine(file, next-1)
	}
	own := file[from:to]
	kept := behind(own)
	out := slices.Concat(file[:from], kept, file[to:])
	if _, had, _, err := readYAML(original); len(list.Content) == 2 && (err != nil || had == nil) {
		start := behindLine(file, key.Line-1)
		out = slices.Concat(file[:start], kept, file[to:])
	}
	after, _, _, err := readYAML(out)
	if err != nil || !sameYAML(before, after) {
		return nil, false, fmt.Errorf("%s.%s cannot be taken out by itself: %w", extensions, server, paddock.Unsupported)
	}
	if len(out) == 0 && original == nil {
		return nil, true, nil
	}
	return out, true, nil
}

// nextLine gives the first line behind a member that is not indented as deep as the rest of it; zero is the end.
func nextLine(file []byte, member *yaml.Node) int {
	number := 0
	for line := range bytes.Lines(file) {
		number++
		text := bytes.TrimLeft(line, " ")
		if number <= member.Line || len(bytes.TrimSpace(text)) == 0 || text[0] == '#' {
			continue
		}
		if len(line)-len(text) < member.Column {
			return number
		}
	}
	return 0
}

// behindLine gives where the line of that number ends.
func behindLine(file []byte, number int) int {
	at := 0
	for line := range bytes.Lines(file) {
		if number == 0 {
			break
		}
		number--
		at += len(line)
	}
	return at
}

// readYAML gives what a file means, and the mapping of servers with its key; nil where there is none.
func readYAML(file []byte) (means map[string]any, list, key *yaml.Node, err error) {
	if len(file) > settingsfile.MaxFile {
		return nil, nil, nil, fmt.Errorf("the file is longer than %d MiB: %w", settingsfile.MaxFile>>20, paddock.Invalid)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(file, &root); err != nil {
		return nil, nil, nil, fmt.Errorf("the file cannot be read as YAML: %w: %w", err, paddock.Invalid)
	}
	means = map[string]any{}
	if root.Kind == 0 || len(root.Content) == 0 || root.Content[0].Tag == "!!null" {
		return means, nil, nil, nil
	}
	top := root.Content[0]
	if top.Kind != yaml.MappingNode || top.Style&yaml.FlowStyle != 0 {
		return nil, nil, nil, fmt.Errorf("the file is no mapping with a line for each member: %w", paddock.Invalid)
	}
	if err := root.Decode(&means); err != nil {
		return nil, nil, nil, fmt.Errorf("the file cannot be read as YAML: %w: %w", err, paddock.Invalid)
	}
	if key = memberYAML(top, extensions); key != nil {
		list = top.Content[slices.Index(top.Content, key)+1]
	}
	return means, list, key, nil
}

// memberYAML gives the key of a member.
func memberYAML(n *yaml.Node, name string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i]
		}
	}
	return nil
}

func extensionsOf(v map[string]any) map[string]any {
	list, _ := v[extensions].(map[string]any)
	return list
}

// sameYAML reports whether two files mean the same, but for our server in the first.
func sameYAML(with, without map[string]any) bool {
	if _, ok := extensionsOf(with)[server]; !ok {
		return false
	}
	if _, ok := extensionsOf(without)[server]; ok {
		return false
	}
	a, b := map[string]any{}, map[string]any{}
	for _, side := range []struct{ from, to map[string]any }{{with, a}, {without, b}} {
		for name, v := range side.from {
			if name != extensions {
				side.to[name] = v
			}
		}
		rest := map[string]any{}
		for name, v := range extensionsOf(side.from) {
			if name != server {
				rest[name] = v
			}
		}
		side.to[extensions] = rest
	}
	return reflect.DeepEqual(a, b)
}
