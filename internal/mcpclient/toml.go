package mcpclient

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/settingsfile"
)

// A tomlForm is Codex's file: each server is a table. A table is written at the end, and the file is read again to see that
// it means what it meant before, and the server.
type tomlForm struct{}

// tables is the name of the table of servers.
const tables = "mcp_servers"

var (
	ourTable = regexp.MustCompile(`^[ \t]*\[[ \t]*"?` + tables + `"?[ \t]*\.[ \t]*"?` + server + `"?[ \t]*[.\]]`)
	anyTable = regexp.MustCompile(`^[ \t]*\[`)
	inline   = regexp.MustCompile(`(?m)^[ \t]*["']?` + tables + `["']?[ \t]*=`)
)

func (tomlForm) install(file []byte, words []string) ([]byte, error) {
	before, err := readTOML(file)
	if err != nil {
		return nil, err
	}
	if _, ok := servers(before)[server]; ok {
		return nil, fmt.Errorf("%q is in the file already: %w", tables+"."+server, paddock.Exists)
	}
	if inline.Match(file) {
		return nil, fmt.Errorf("%q is written in one line, to which nothing can be added: %w", tables, paddock.Unsupported)
	}
	line := lineEnd(file)
	var b bytes.Buffer
	b.Write(file)
	if len(file) > 0 {
		if !bytes.HasSuffix(file, []byte("\n")) {
			b.WriteString(line)
		}
		b.WriteString(line)
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quoteTOML(word)
	}
	fmt.Fprintf(&b, "[%s.%s]%scommand = %s%sargs = [%s]%s", tables, server, line, quoted[0], line, strings.Join(quoted[1:], ", "), line)
	after, err := readTOML(b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("a table cannot be added at its end: %w", err)
	}
	if !sameBut(after, before) {
		return nil, fmt.Errorf("a table at its end would change what it means: %w", paddock.Unsupported)
	}
	return b.Bytes(), nil
}

// quoteTOML writes a basic string, of text that has no control characters.
func quoteTOML(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

func (tomlForm) remove(file, original []byte) (left []byte, found bool, err error) {
	before, err := readTOML(file)
	if err != nil {
		return nil, false, err
	}
	if !startsUs(servers(before)[server]) {
		return file, false, nil
	}
	out, total := without(file, 0)
	after, err := readTOML(out)
	for skip := 1; skip < total && (err != nil || !sameBut(before, after)); skip++ { // what looks like a table may be in a text
		out, _ = without(file, skip)
		after, err = readTOML(out)
	}
	if err != nil || !sameBut(before, after) {
		return nil, false, fmt.Errorf("%s.%s is not written as a table of its own, and cannot be taken out by itself: %w", tables, server, paddock.Unsupported)
	}
	if len(out) == 0 && original == nil {
		return nil, true, nil
	}
	return out, true, nil
}

// mostTables bounds how many lines that look like our table are tried.
const mostTables = 20

// without gives a file without our tables, but for the first that many, and how many there are.
func without(file []byte, skip int) (out []byte, total int) {
	var block []byte
	inside := false
	for line := range bytes.Lines(file) {
		if anyTable.Match(line) {
			ours := ourTable.Match(line)
			if ours {
				total++
				ours = total > skip
			}
			if inside && !ours {
				out = join(out, behind(block))
			}
			block, inside = nil, ours
		}
		if inside {
			block = append(block, line...)
		} else {
			out = append(out, line...)
		}
	}
	out = join(out, behind(block))
	if !bytes.HasSuffix(file, []byte("\n\n")) { // the empty line before the table was ours
		for _, end := range []string{"\r\n", "\n"} {
			if bytes.HasSuffix(out, []byte("\n"+end)) {
				out = out[:len(out)-len(end)]
				break
			}
		}
	}
	return out, min(total, mostTables)
}

// join puts lines behind others, with one empty line between where both have one.
func join(out, rest []byte) []byte {
	for _, end := range []string{"\r\n", "\n"} {
		if bytes.HasPrefix(rest, []byte(end)) && (len(out) == 0 || bytes.HasSuffix(out, []byte("\n"+end))) {
			rest = rest[len(end):]
			break
		}
	}
	return append(out, rest...)
}

// behind gives the empty lines and comments at the end of a table, which belong to what follows. The first line is the
// table's own.
func behind(block []byte) []byte {
	lines := bytes.SplitAfter(block, []byte("\n"))
	i := len(lines)
	for i > 1 {
		text := bytes.TrimSpace(lines[i-1])
		if len(text) > 0 && text[0] != '#' {
			break
		}
		i--
	}
	rest := bytes.Join(lines[min(i, len(lines)):], nil)
	if len(bytes.TrimSpace(rest)) == 0 {
		return nil
	}
	return rest
}

func readTOML(file []byte) (map[string]any, error) {
	if len(file) > settingsfile.MaxFile {
		return nil, fmt.Errorf("the file is longer than %d MiB: %w", settingsfile.MaxFile>>20, paddock.Invalid)
	}
	v := map[string]any{}
	if err := toml.Unmarshal(file, &v); err != nil {
		return nil, fmt.Errorf("the file cannot be read as TOML: %s: %w", strconv.Quote(err.Error()), paddock.Invalid)
	}
	return v, nil
}

func servers(v map[string]any) map[string]any {
	list, _ := v[tables].(map[string]any)
	return list
}

// startsUs reports whether a server starts `paddock mcp`.
func startsUs(v any) bool {
	e, _ := v.(map[string]any)
	args, _ := e["args"].([]any)
	for _, word := range args {
		if word == "mcp" {
			return true
		}
	}
	return false
}

// sameBut reports whether two files mean the same, but for our server in the first.
func sameBut(with, without map[string]any) bool {
	list := servers(with)
	if _, ok := list[server]; !ok {
		return false
	}
	rest := map[string]any{}
	for name, v := range list {
		if name != server {
			rest[name] = v
		}
	}
	other := servers(without)
	if len(rest) != len(other) || len(rest) > 0 && !reflect.DeepEqual(rest, other) {
		return false
	}
	for _, m := range []struct{ a, b map[string]any }{{with, without}, {without, with}} {
		for name, v := range m.a {
			if name != tables && !reflect.DeepEqual(v, m.b[name]) {
				return false
			}
		}
	}
	return true
}

// lineEnd is how lines of a file end.
func lineEnd(file []byte) string {
	if bytes.Contains(file, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}
