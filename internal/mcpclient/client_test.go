package mcpclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
)

func words() []string {
	return []string{"/opt/it's/paddock", "mcp", "--allow=group:code-hosts", `--env=A="b" \ c`}
}

// samples are files that clients have, by the ends of their names.
func samples() map[string][]string {
	return map[string][]string{
		"json": {
			"", "{}", "{}\n", "{\n}\n", "{\r\n  \"a\": 1\r\n}\r\n", "{\n\t// mine\n\t\"theme\": \"dark\", // too\n}\n",
			`{"mcpServers":{"other":{"command":"x"}},"mcp":{"other":{"type":"local","command":["x"]}},"servers":{},"context_servers":{"o":{"command":"x","args":["mcpx"]}}}`,
			"{\n  \"mcpServers\": {\n    // the other one\n    \"other\": {\"command\": \"x\"}, /* c */\n  },\n  \"z\": [1, 2,],\n}",
		},
		"toml": {
			"", "model = \"x\"", "# mine\nmodel = \"x\" # too\n\n[profiles.a]\nb = 1\n\n", "[mcp_servers.other]\r\ncommand = \"x\"\r\nargs = [\r\n  \"[mcp_servers.paddock]\",\r\n]\r\n",
			"a = '''\n[mcp_servers.paddock]\n'''\n", "mcp_servers.other.command = \"x\"\n",
		},
		"yaml": {
			"", "GOOSE_MODEL: x", "# mine\nGOOSE_MODEL: x # too\n", "extensions:\n    # the other one\n    other:\n        type: stdio # c\n        cmd: x\n\n# behind\nz: [1, 2]\n",
			"extensions:\nz: 1\n", "extensions:\n  o: {cmd: x}\n  # last\n", "a: 1\r\nextensions:\r\n  o:\r\n    cmd: x\r\n",
		},
	}
}

func formOf(c Client) string {
	switch c.form.(type) {
	case tomlForm:
		return "toml"
	case yamlForm:
		return "yaml"
	}
	return "json"
}

func TestAServerIsPutInAndTakenOutToTheByte(t *testing.T) {
	for _, c := range Clients() {
		for _, before := range samples()[formOf(c)] {
			with, err := c.Install([]byte(before), words())
			if err != nil {
				t.Errorf("%s: %q: %v", c.Name, before, err)
				continue
			}
			if got := started(t, c, with); strings.Join(got, "\n") != strings.Join(words(), "\n") {
				t.Errorf("%s: %q: it starts %q", c.Name, with, got)
			}
			for _, line := range strings.Split(before, "\n") {
				if line = strings.Trim(line, "{}\r"); strings.Contains(before, "\n") && !bytes.Contains(with, []byte(line)) {
					t.Errorf("%s: %q is not in %q", c.Name, line, with)
				}
			}
			if _, err := c.Install(with, words()); !errors.Is(err, paddock.Exists) {
				t.Errorf("%s: a second one: %v", c.Name, err)
			}
			original := []byte(before)
			if before == "" {
				original = nil
			}
			left, found, err := c.Remove(with, original)
			if err != nil || !found {
				t.Errorf("%s: take it out of %q: %v, %v", c.Name, with, found, err)
				continue
			}
			if before == "" && left != nil {
				t.Errorf("%s: of a new file is left %q", c.Name, left)
			}
			if normal(t, c, left) != normal(t, c, original) {
				t.Errorf("%s: %q is left of %q", c.Name, left, before)
			}
			if _, found, err := c.Remove(left, original); before != "" && (found || err != nil) {
				t.Errorf("%s: it is taken out twice: %v, %v", c.Name, found, err)
			}
		}
	}
}

// started gives the words of the server in a file.
func started(t *testing.T, c Client, file []byte) []string {
	t.Helper()
	v := map[string]any{}
	var err error
	switch formOf(c) {
	case "toml":
		err = toml.Unmarshal(file, &v)
	case "yaml":
		err = yaml.Unmarshal(file, &v)
	default:
		var standard []byte
		if standard, err = hujson.Standardize(bytes.Clone(file)); err == nil {
			err = json.Unmarshal(standard, &v)
		}
	}
	if err != nil {
		t.Fatalf("%s: %q: %v", c.Name, file, err)
	}
	for _, name := range []string{"mcpServers", "mcp", "servers", "context_servers", "mcp_servers", "extensions"} {
		list, _ := v[name].(map[string]any)
		e, ok := list["paddock"].(map[string]any)
		if !ok {
			continue
		}
		var words []string
		for _, key := range []string{"cmd", "command", "args"} {
			switch x := e[key].(type) {
			case string:
				words = append(words, x)
			case []any:
				for _, one := range x {
					words = append(words, one.(string))
				}
			}
		}
		return words
	}
	return nil
}

// normal gives what of a file must come back. White space of JSON may differ where a comma was, and nothing else.
func normal(t *testing.T, c Client, file []byte) string {
	t.Helper()
	if formOf(c) != "json" {
		return strings.TrimRight(string(file), "\r\n")
	}
	if len(bytes.TrimSpace(file)) == 0 {
		return ""
	}
	v, err := hujson.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(" ", "", "\n", "", "\r", "", "\t", "", ",", "").Replace(v.String())
}

func TestWhatUsersAddedToTheServerGoesWithItAndNothingElse(t *testing.T) {
	for name, rows := range map[string][][2]string{
		"codex": {
			{"a = 1\n\n[mcp_servers.paddock]\ncommand = \"p\"\nargs = [\"mcp\"]\n# mine\n[mcp_servers.paddock.env]\nB = \"c\"\n\n# behind\n[z]\n", "a = 1\n\n# behind\n[z]\n"},
		},
		"goose": {
			{"extensions:\n  paddock:\n    cmd: p\n    args: [mcp]\n    envs:\n      A: b\n  z:\n    cmd: q\n", "extensions:\n  z:\n    cmd: q\n"},
		},
		"claude": {
			{`{"mcpServers":{"paddock":{"command":"p","args":["mcp"],"env":{"A":"b"}},"z":{}}}`, `{"mcpServers":{"z":{}}}`},
		},
	} {
		c, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			left, found, err := c.Remove([]byte(row[0]), []byte(row[0]))
			if err != nil || !found || string(left) != row[1] {
				t.Errorf("%s: %q leaves %q, %v, %v", name, row[0], left, found, err)
			}
		}
	}
}

func TestAnothersServerOfThatNameStays(t *testing.T) {
	for name, file := range map[string]string{
		"claude": `{"mcpServers":{"paddock":{"command":"riding-school"}}}`,
		"codex":  "[mcp_servers.paddock]\ncommand = \"riding-school\"\n",
		"goose":  "extensions:\n  paddock:\n    cmd: riding-school\n",
	} {
		c, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		if left, found, err := c.Remove([]byte(file), nil); found || err != nil || string(left) != file {
			t.Errorf("%s: %q, %v, %v", name, left, found, err)
		}
		if _, err := c.Install([]byte(file), words()); !errors.Is(err, paddock.Exists) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFileThatCannotBeReadIsNotChanged(t *testing.T) {
	for name, files := range map[string][]string{
		"claude": {"[]", "{", `{"mcpServers":[]}`, `{"mcpServers":1}`, "\xff", strings.Repeat("[", 100_000)},
		"codex":  {"a", "[a", "mcp_servers = 1", "mcp_servers = {other = {command = \"x\"}}", "a = '''", "\xff", "mcp_servers = []"},
		"goose":  {"[]", "a: [", "extensions: {}", "extensions: {a: {}}", "extensions: [1]", "extensions: x", "{a: 1}", "--- a\n--- b\n", "\xff", "a: *b"},
	} {
		c, err := Named(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if with, err := c.Install([]byte(file), words()); err == nil {
				t.Errorf("%s: %q became %q", name, clipped(file), with)
			}
		}
	}
}

func clipped(text string) string { return text[:min(len(text), 100)] }

func TestWordsThatNoFileHoldsAreRefused(t *testing.T) {
	for _, c := range Clients() {
		for _, word := range []string{"a\nb", "a\x00", "\x7f", "\xff"} {
			if _, err := c.Install(nil, []string{"paddock", "mcp", word}); !errors.Is(err, paddock.Invalid) {
				t.Errorf("%s: %q: %v", c.Name, word, err)
			}
		}
	}
}

func FuzzFiles(f *testing.F) {
	for _, c := range samples() {
		for _, file := range c {
			f.Add([]byte(file))
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, c := range Clients() {
			with, err := c.Install(file, words())
			if err != nil {
				continue
			}
			if got := started(t, c, with); strings.Join(got, "\n") != strings.Join(words(), "\n") {
				t.Errorf("%s: %q starts %q", c.Name, with, got)
			}
			if _, _, err := c.Remove(with, file); err != nil && !errors.Is(err, paddock.Unsupported) {
				t.Errorf("%s: %q: %v", c.Name, with, err)
			}
		}
	})
}
