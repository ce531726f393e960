package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
)

const configSchema = "../../../docs/reference/serve.schema.json"

// serveSettings gives the flags of serve, nobody's yet.
func serveSettings(t testing.TB) *pflag.FlagSet {
	t.Helper()
	return serveCommand(invoke(t.TempDir(), nil, nil).App).Flags()
}

// property describes a key for a JSON Schema.
func property(f *pflag.Flag) map[string]any {
	p := map[string]any{"description": plainUsage(f)}
	switch typeOf(f) {
	case settingBool:
		p["type"] = "boolean"
	case settingNumber:
		p["type"] = "integer"
		p["minimum"] = 1
		if _, least, ok := strings.Cut(f.Usage, "at least "); ok { // as the flag's own words have it
			if n, err := strconv.Atoi(strings.TrimRight(least, ")")); err == nil {
				p["minimum"] = n
			}
		}
	case settingList:
		p["type"], p["maxItems"] = "array", maxListItem
		p["items"] = map[string]any{"type": "string"}
	default:
		p["type"] = "string"
		switch f.Value.Type() {
		case "time":
			p["pattern"] = `^([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)`
		case "level":
			p["enum"] = []string{"debug", "info", "warn", "error"}
		}
	}
	return p
}

// The schema is made of the flags, so that a new flag is in it.
// PADDOCK_UPDATE=1 writes it.
func TestTheSchemaOfTheConfigurationIsThatOfTheFlags(t *testing.T) {
	properties := map[string]any{}
	for name, f := range keys(serveSettings(t)) {
		properties[name] = property(f)
	}
	var want bytes.Buffer
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Configuration of paddock serve", "type": []string{"object", "null"},
		"additionalProperties": false, "properties": properties,
	}); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("PADDOCK_UPDATE") == "1" {
		if err := os.WriteFile(filepath.FromSlash(configSchema), want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(filepath.FromSlash(configSchema))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want.Bytes()) {
		t.Error("docs/reference/serve.schema.json does not say what the flags say; write it anew: PADDOCK_UPDATE=1 go test ./internal/cli/serve -run TestTheSchemaOfTheConfiguration")
	}
}

func compiledSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(configSchema))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("serve.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("serve.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAConfigurationIsWhatTheFlagsAre(t *testing.T) {
	text := `# a comment
listen: unix:/run/paddock.sock
tiers: [gvisor, microvm]
max-connections: 77
idle-pause: 5m
trusted: true
log-level: warn
`
	fs := serveSettings(t)
	if err := fs.Parse([]string{"--max-connections", "5"}); err != nil {
		t.Fatal(err)
	}
	settings, err := parseConfig("f", []byte(text), serveSettings(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := applyConfig(fs, settings); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"listen": "unix:/run/paddock.sock", "tiers": "[gvisor,microvm]", "max-connections": "5", "idle-pause": "5m0s", "trusted": "true", "log-level": "warn",
		"max-sandboxes": "",
	} {
		if got := fs.Lookup(name).Value.String(); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	if err := compiledSchema(t).Validate(doc); err != nil {
		t.Error(err)
	}
}

func TestEveryFlagOfServeIsAKeyOrSaysWhyNot(t *testing.T) {
	fs, not := serveSettings(t), notInFile()
	known := keys(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		if (known[f.Name] == nil) == (not[f.Name] == "") {
			t.Errorf("%s is a key %v, and no key because %q", f.Name, known[f.Name] != nil, not[f.Name])
		}
		if f.Hidden && known[f.Name] != nil {
			t.Errorf("%s is hidden, and a key", f.Name)
		}
	})
}

func TestWhatIsWrongInAConfigurationIsToldWithItsLine(t *testing.T) {
	schema := compiledSchema(t)
	for _, row := range []struct{ text, message, hint string }{
		{"a: 1\n", `f:1: "a" is not known`, "docs/server/operations.md"},
		{"\nmax-conections: 1\n", `f:2: "max-conections" is not known`, `did you mean max-connections?`},
		{"max_connections: 1\n", `f:1: "max_connections" is not known`, "did you mean max-connections?"},
		{"listen: a:1\nlisten: b:1\n", "listen is there twice", ""},
		{"key: secret\n", "f:1: key is no key of this file", "a secret does not stand in this file"},
		{"idle: 5m\n", "idle is no key of this file", "the command line's own"},
		{"config: other\n", "config is no key of this file", "it is this file"},
		{"trusted: yes please\n", "trusted: it is not true or false", ""},
		{"trusted: 'true'\n", "trusted: it is not true or false", ""},
		{"max-connections: 0\n", "max-connections: not a whole number above 0", ""},
		{"max-connections: '5'\n", "max-connections: it is not a number", ""},
		{"idle-pause: 5\n", "idle-pause: it is not a text", ""},
		{"idle-pause: soon\n", "idle-pause: a time is a number and a unit", ""},
		{"log-level: loud\n", "log-level: it is debug", ""},
		{"tiers: jail\n", "tiers: it is not a list", ""},
		{"tiers: [[jail]]\n", "tiers: an item of the list is no text", ""},
		{"listen: {a: b}\n", "listen: it is not a text", ""},
		{"listen: &a x:1\nhost: *a\n", "anchors and aliases", ""},
		{"- listen\n", "it is no mapping", ""},
		{"listen: a:1\n---\nhost: b\n", "more than one document", ""},
		{"listen: [\n", "f:1: not YAML:", "it is YAML"},
		{"? [a]\n: b\n", "a key is no text", ""},
		{"<<: {listen: a}\n", `"<<" is not known`, ""},
	} {
		_, err := parseConfig("f", []byte(row.text), serveSettings(t))
		if !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), row.message) || !strings.Contains(cli.HintFor(err), row.hint) {
			t.Errorf("%q: %v (%s)", row.text, err, cli.HintFor(err))
		}
		var doc any
		if yaml.Unmarshal([]byte(row.text), &doc) != nil || strings.ContainsAny(row.text, "&-'<") || strings.Contains(row.text, "soon") {
			continue // what a schema does not see
		}
		if schema.Validate(doc) == nil {
			t.Errorf("%q: the schema allows it", row.text)
		}
	}
}

func TestAnEmptyConfigurationIsNone(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "null\n", "{}\n"} {
		if got, err := parseConfig("f", []byte(text), serveSettings(t)); err != nil || len(got) != 0 {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestAConfigurationThatAnybodyCanWriteIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	clitest.Plant(t, name, "host: a\n", 0o644)
	if _, err := readConfig(name); err != nil {
		t.Error(err)
	}
	for _, mode := range []os.FileMode{0o666, 0o664, 0o646} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := readConfig(name); !errors.Is(err, paddock.Denied) {
			t.Errorf("%v: %v", mode, err)
		}
	}
	if _, err := readConfig(filepath.Dir(name)); err == nil {
		t.Error("a directory is a configuration")
	}
}

func TestAKeyThatOthersCanReadIsRefused(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	clitest.Plant(t, name, "secret", 0o600)
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o644: false, 0o660: false, 0o602: false} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		got, err := readSecretFile(name)
		if good && (err != nil || string(got) != "secret") || !good && !errors.Is(err, paddock.Denied) {
			t.Errorf("%v: %q, %v", mode, got, err)
		}
	}
}

func TestAFileOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root alone can give a file away")
	}
	name := filepath.Join(t.TempDir(), "f")
	clitest.Plant(t, name, "host: a\n", 0o600)
	if err := os.Chown(name, 64102, 64102); err != nil {
		t.Fatal(err)
	}
	if _, err := readConfig(name); !errors.Is(err, paddock.Denied) {
		t.Errorf("a configuration: %v", err)
	}
	if _, err := readSecretFile(name); !errors.Is(err, paddock.Denied) {
		t.Errorf("a key: %v", err)
	}
}

func TestWhatCanBeReloadedIsAndTheRestIsTold(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	clitest.Plant(t, name, "max-connections: 10\nhost: a\nlog-level: warn\n", 0o600)
	v := invoke(dir, nil, nil)
	f := &operateFlags{config: name}
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	f.register(fs)
	(&accountFlags{}).register(fs)
	settings, err := parseConfig(name, []byte("max-connections: 10\nhost: a\nlog-level: warn\n"), serveSettings(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := applyConfig(fs, settings); err != nil {
		t.Fatal(err)
	}
	r := &reload{name: name, file: maps.Clone(settings), given: map[string]bool{"max-connections-per-address": true}, flags: fs, f: f}
	f.each = 3
	again := func(text string) (now, waits []string) {
		t.Helper()
		clitest.Plant(t, name, text, 0o600)
		now, waits, err := r.again(v.App)
		if err != nil {
			t.Fatal(err)
		}
		return now, waits
	}
	if now, waits := again("max-connections: 20\nhost: b\nmax-connections-per-address: 9\n"); !slices.Equal(now, []string{"log-level", "max-connections"}) || !slices.Equal(waits, []string{"host"}) {
		t.Errorf("changed %q, waiting %q", now, waits)
	}
	if c := f.connections(); c.Most != 20 || c.Each != 3 || f.level.Level != 0 {
		t.Errorf("%+v, %v", c, f.level)
	}
	if now, waits := again("max-connections: 20\nhost: a\n"); len(now) != 0 || len(waits) != 0 {
		t.Errorf("changed %q, waiting %q", now, waits)
	}
	if now, _ := again("host: a\n"); !slices.Equal(now, []string{"max-connections"}) || f.most != 0 {
		t.Errorf("changed %q: %d", now, f.most)
	}
	clitest.Plant(t, name, "max-connections: no\n", 0o600)
	if _, _, err := r.again(v.App); !errors.Is(err, paddock.Invalid) || f.most != 0 {
		t.Errorf("%v: %d", err, f.most)
	}
	if !r.seen.Equal(changed(name)) || r.seen.Before(time.Unix(1, 0)) {
		t.Error("it would be read again and again")
	}
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte("listen: a:1\ntiers: [jail]\n"))
	f.Add([]byte("a: &a [*a]\n"))
	schema := compiledSchema(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		settings, err := parseConfig("f", data, serveSettings(t))
		if err != nil {
			return
		}
		var doc any
		if err := yaml.Unmarshal(data, &doc); err != nil {
			t.Fatalf("read, and not YAML: %v", err)
		}
		if err := schema.Validate(doc); err != nil {
			t.Errorf("read, and not in the schema: %v", err)
		}
		if err := applyConfig(serveSettings(t), settings); err != nil {
			t.Error(err)
		}
	})
}
