package agentprofile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/agentlogin"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/yamlfault"
)

// MaxDocument is the size of a profile or of a project's file, in bytes.
const MaxDocument = 64 << 10

// A Profile says how an agent is started in a sandbox.
type Profile struct {
	Version int      `yaml:"version"` // of the format: 1
	Name    string   `yaml:"name"`
	Title   string   `yaml:"title"`   // the product's name
	Program []string `yaml:"program"` // names that are looked up in PATH, the first that is there
	Package Package  `yaml:"package"`
	Args    []Args   `yaml:"args"`
	Env     []Env    `yaml:"env"`
	Allow   []string `yaml:"allow"` // hosts, as --allow takes them
	Keys    []Key    `yaml:"keys"`

	// Login are subscriptions, whose tokens stay outside of the sandbox.
	Login []agentlogin.Section `yaml:"login"`

	State  State   `yaml:"state"`
	First  []First `yaml:"first_run"`
	Memory string  `yaml:"memory"` // as --memory takes it; empty is the tier's default
	Note   string  `yaml:"note"`   // one line of text for `paddock agent ls` and the documents
}

// A Package is where the program comes from, for whoever lacks it.
type Package struct {
	NPM    string `yaml:"npm"`
	PIP    string `yaml:"pip"`
	URL    string `yaml:"url"`    // of the maker's instructions, where no registry has it
	Tested string `yaml:"tested"` // the version that Paddock's tests ran; empty is none
}

// Args are arguments that the agent gets before those of the user.
type Args struct {
	Add    []string `yaml:"add"`
	Says   string   `yaml:"says"`   // what they switch off or on, for the screen
	Unless []string `yaml:"unless"` // arguments of the user with which they are left out
}

// Env are variables of the agent. A value that begins with "~/" is a path in the sandbox's home.
type Env struct {
	Set  map[string]string `yaml:"set"`
	Says string            `yaml:"says"`
}

// A Key is an API key, which stays outside of the sandbox. The variable is the caller's, and in the sandbox it has a
// placeholder.
type Key struct {
	Variable string   `yaml:"variable"`
	Hosts    []string `yaml:"hosts"` // that get the key
}

// State says which files of an agent outlive a sandbox. All paths begin with "~/".
type State struct {
	Keep   []string `yaml:"keep"`   // directories of the sandbox's home that are kept between sandboxes
	Copy   []Copy   `yaml:"copy"`   // what a new state gets from the host
	Obeyed []string `yaml:"obeyed"` // files and directories in it that an agent of the host would obey
}

// A Copy is a file or directory of the host's home that a new state gets.
type Copy struct {
	From string   `yaml:"from"`
	To   string   `yaml:"to"`   // empty is the same path
	Keys []string `yaml:"keys"` // of a JSON object: its keys that are copied; empty copies everything
}

// Target is the path in the sandbox's home.
func (c Copy) Target() string {
	if c.To == "" {
		return c.From
	}
	return c.To
}

// A First is a JSON file of a new state that makes the agent's first questions unnecessary. Its keys are added to what is
// there. In strings, {workspace} stands for the path of the workspace, and {ends} for the last 20 characters of the
// placeholders of API keys.
type First struct {
	File string `yaml:"file"`
	JSON string `yaml:"json"`
}

// An Error is a fault of a profile or of a project's file.
type Error struct {
	Name string // of the file
	Line int    // from 1; 0 is not known
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Name, e.Text)
	}
	return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.Text)
}

// Unwrap returns [paddock.Invalid].
func (e *Error) Unwrap() error { return paddock.Invalid }

// Read parses a profile. The name is for messages. An error is an [*Error] with the line of the fault.
func Read(name string, data []byte) (*Profile, error) {
	p := &Profile{}
	d, err := decode(name, data, p)
	if err != nil {
		return nil, err
	}
	return p, d.profile(p)
}

// A document is a parsed file, for the lines of faults.
type document struct {
	name string
	top  *yaml.Node
}

// decode parses one YAML document strictly. What makes a text mean something else than it shows is refused.
func decode(name string, data []byte, into any) (*document, error) {
	fault := func(line int, text string) error { return &Error{Name: name, Line: line, Text: text} }
	switch {
	case len(data) > MaxDocument:
		return nil, fault(0, fmt.Sprintf("it has %d bytes; at most %d are allowed", len(data), MaxDocument))
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return nil, fault(0, "it is not text in UTF-8")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) != 1 {
		return nil, fault(1, `it is empty; it begins with "version: 1"`)
	}
	if err != nil {
		return nil, fault(yamlfault.Find(data, err))
	}
	if err := dec.Decode(&second); err == nil {
		return nil, fault(second.Line, "a second document")
	} else if !errors.Is(err, io.EOF) {
		return nil, fault(yamlfault.Find(data, err))
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, fault(top.Line, "it is no mapping of keys")
	}
	if line, what := disguise(top, 0); what != "" {
		return nil, fault(line, what)
	}
	dec = yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(into); err != nil {
		return nil, fault(yamlfault.Find(data, err))
	}
	return &document{name, top}, nil
}

// disguise finds what makes a document mean something else than it shows.
func disguise(n *yaml.Node, depth int) (line int, what string) {
	const deepest = 16
	switch {
	case depth > deepest:
		return n.Line, fmt.Sprintf("nested deeper than %d levels", deepest)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return n.Line, "an alias or anchor; write the value out"
	case n.Tag == "!!merge":
		return n.Line, "a merge key; write the keys out"
	case n.Style&yaml.TaggedStyle != 0:
		return n.Line, "a tag"
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return n.Line, "a key without a value"
	}
	for _, c := range n.Content {
		if line, what = disguise(c, depth+1); what != "" {
			return line, what
		}
	}
	return 0, ""
}

// fault is an error about the value at a path of keys and indices.
func (d *document) fault(at []any, format string, args ...any) error {
	n := d.top
	for _, step := range at {
		next := child(n, step)
		if next == nil {
			break
		}
		n = next
	}
	return &Error{Name: d.name, Line: n.Line, Text: fmt.Sprintf(format, args...)}
}

func child(n *yaml.Node, step any) *yaml.Node {
	switch s := step.(type) {
	case string:
		for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
			if n.Content[i].Value == s {
				return n.Content[i+1]
			}
		}
	case int:
		if n.Kind == yaml.SequenceNode && s < len(n.Content) {
			return n.Content[s]
		}
	}
	return nil
}

var (
	agentName = regexp.MustCompile(`\A[a-z][a-z0-9-]{0,31}\z`)
	variable  = regexp.MustCompile(`\A[A-Za-z_][A-Za-z0-9_]{0,127}\z`)
)

// profile checks what the types do not say.
func (d *document) profile(p *Profile) error {
	switch {
	case p.Version != 1:
		return d.fault([]any{"version"}, `the version is missing or not known; it begins with "version: 1"`)
	case !agentName.MatchString(p.Name):
		return d.fault([]any{"name"}, "%q is no name of an agent: small letters, digits and -", p.Name)
	case len(p.Program) == 0:
		return d.fault([]any{"program"}, "the program is missing")
	case len(p.State.Keep) == 0:
		return d.fault([]any{"state"}, "no directory is kept: state.keep names the agent's directories")
	}
	for i, name := range p.Program {
		if name == "" || strings.ContainsAny(name, "/\n") || strings.HasPrefix(name, "-") {
			return d.fault([]any{"program", i}, "%q is no name of a program", name)
		}
	}
	for _, t := range []struct{ key, text string }{{"title", p.Title}, {"note", p.Note}} {
		if !plain(t.text) {
			return d.fault([]any{t.key}, "it is more than one line of text")
		}
	}
	for _, check := range []func() error{
		func() error { return d.args(p.Args) },
		func() error { return d.env(p.Env) },
		func() error { return d.hosts([]any{"allow"}, p.Allow) },
		func() error { return d.keys(p.Keys) },
		func() error { return d.state(p.State) },
		func() error { return d.login(p) },
		func() error { return d.firsts(p) },
		func() error { return d.memory(p.Memory) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// plain reports whether a text can be shown on one line as it is.
func plain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) && len(text) <= 300
}

func (d *document) args(list []Args) error {
	for i, a := range list {
		at := []any{"args", i}
		switch {
		case len(a.Add) == 0:
			return d.fault(at, "it adds nothing")
		case a.Says == "" || !plain(a.Says):
			return d.fault(at, "what it does is not said: says: TEXT, one line for the screen")
		}
	}
	return nil
}

func (d *document) env(list []Env) error {
	for i, e := range list {
		at := []any{"env", i}
		if len(e.Set) == 0 || !plain(e.Says) {
			return d.fault(at, "it sets nothing, or says more than one line")
		}
		for name, value := range e.Set {
			switch {
			case !variable.MatchString(name):
				return d.fault(append(at, "set"), "%q is no name of a variable", name)
			case reserved(name):
				return d.fault(append(at, "set", name), "%s is not for a profile to set", name)
			case strings.HasPrefix(value, "~/"):
				if err := d.inHome(append(at, "set", name), value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// reserved reports whether a variable changes what runs, or whom it trusts.
func reserved(name string) bool {
	return slices.Contains([]string{"HOME", "PATH", "SHELL", "USER", "LOGNAME", "TMPDIR", "BASH_ENV", "ENV", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"}, name) ||
		strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "GIT_CONFIG") || strings.HasPrefix(name, "PADDOCK_")
}

func (d *document) hosts(at []any, list []string) error {
	for i, host := range list {
		here := append(slices.Clone(at), i)
		if strings.Contains(host, ",") {
			return d.fault(here, "%q: one host in each line of the list", host)
		}
		if _, err := policy.Rules(host, false, nil); err != nil {
			return d.fault(here, "%q: %v", host, err)
		}
	}
	return nil
}

func (d *document) keys(list []Key) error {
	for i, k := range list {
		at := []any{"keys", i}
		switch {
		case !variable.MatchString(k.Variable):
			return d.fault(append(at, "variable"), "%q is no name of a variable", k.Variable)
		case len(k.Hosts) == 0:
			return d.fault(at, "the hosts are missing that get the key")
		}
		if err := d.hosts(append(at, "hosts"), k.Hosts); err != nil {
			return err
		}
		for j, host := range k.Hosts {
			if strings.ContainsAny(host, "*/") || strings.HasPrefix(host, "group:") {
				return d.fault(append(at, "hosts", j), "%q: a key goes to hosts by their whole names", host)
			}
		}
	}
	return nil
}

// login checks the subscriptions. Their files are written into directories that are kept.
func (d *document) login(p *Profile) error {
	for i, s := range p.Login {
		at := []any{"login", i}
		if err := s.Check(); err != nil {
			return d.fault(at, "%v", err)
		}
		if err := d.kept(append(at, "file"), p.State, s.File); err != nil {
			return err
		}
		for _, c := range p.State.Copy {
			if within(s.File, c.Target()) || within(s.File, c.From) {
				return d.fault(at, "%s has tokens, and is copied by state.copy", s.File)
			}
		}
	}
	return nil
}

// within reports whether a path is a directory, or below it.
func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// inHome checks a path below the home.
func (d *document) inHome(at []any, name string) error {
	rest, ok := strings.CutPrefix(name, "~/")
	if !ok || rest == "" || path.Clean("/"+rest) != "/"+rest || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) || len(name) > 255 {
		return d.fault(at, "%q is no path below the home, such as ~/.agent/settings.json", name)
	}
	return nil
}

func (d *document) state(s State) error {
	for i, name := range s.Keep {
		at := []any{"state", "keep", i}
		if err := d.inHome(at, name); err != nil {
			return err
		}
		for j, other := range s.Keep {
			if j != i && (name == other || strings.HasPrefix(name, other+"/")) {
				return d.fault(at, "%s is in %s already", name, other)
			}
		}
		if first, _, _ := strings.Cut(name[2:], "/"); slices.Contains(sensitive(), first) {
			return d.fault(at, "%s is no directory of an agent", name)
		}
		shared := []string{"~/.config", "~/.local", "~/.local/share", "~/.local/state", "~/.local/bin", "~/.local/lib"}
		if !strings.HasPrefix(name, "~/.") || slices.Contains(shared, name) || strings.HasPrefix(name+"/", "~/.cache/") {
			return d.fault(at, "%s holds more than an agent's files", name)
		}
	}
	for i, c := range s.Copy {
		at := []any{"state", "copy", i}
		if err := d.inHome(append(at, "from"), c.From); err != nil {
			return err
		}
		if first, _, _ := strings.Cut(c.From[2:], "/"); slices.Contains(sensitive(), first) {
			return d.fault(append(at, "from"), "%s is never copied", c.From)
		}
		if err := d.kept(append(at, "to"), s, c.Target()); err != nil {
			return err
		}
	}
	for i, name := range s.Obeyed {
		if err := d.kept([]any{"state", "obeyed", i}, s, name); err != nil {
			return err
		}
	}
	return nil
}

// sensitive lists directories and files of a home that hold keys, and are no agent's.
func sensitive() []string {
	return []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".password-store", ".mozilla", ".bashrc", ".profile", ".zshrc", ".bash_history", ".zsh_history"}
}

// kept checks that a path is below a directory that is kept.
func (d *document) kept(at []any, s State, name string) error {
	if err := d.inHome(at, name); err != nil {
		return err
	}
	if !slices.ContainsFunc(s.Keep, func(dir string) bool { return strings.HasPrefix(name, dir+"/") }) {
		return d.fault(at, "%s is in no directory of state.keep", name)
	}
	return nil
}

func (d *document) firsts(p *Profile) error {
	for i, f := range p.First {
		at := []any{"first_run", i}
		if err := d.kept(append(at, "file"), p.State, f.File); err != nil {
			return err
		}
		var object map[string]any
		if err := json.Unmarshal([]byte(f.JSON), &object); err != nil || object == nil {
			return d.fault(append(at, "json"), "it is no JSON object")
		}
	}
	return nil
}

func (d *document) memory(text string) error {
	if text != "" && !regexp.MustCompile(`\A[1-9][0-9]{0,5}[MG]\z`).MatchString(text) {
		return d.fault([]any{"memory"}, "%q is no size, such as 4G", text)
	}
	return nil
}
