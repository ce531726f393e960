package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/yamlfault"
)

// A configuration file of a server has the flags of paddock serve as keys, and
// nothing else, so that there is one set of words, and a new flag is a new key.
// What a flag would refuse is refused here, with the line. Who can write the file has
// the server, so it must be nobody's but its owner's; and since it is copied into
// repositories and tickets, secrets are not in it: they come by files and the
// environment.

// Bounds of what is read.
const (
	maxConfig   = 1 << 20
	maxListItem = 1000
)

// notInFile are flags that are no keys, each with where else it is said.
func notInFile() map[string]string {
	return map[string]string{
		"config": "it is this file", "check": "it is said where the server is started", "help": "it is no setting",
		"private": "it is the command line's own", "idle": "it is the command line's own",
		"key": "a secret does not stand in this file: key-file names one that holds it, or PADDOCK_KEY does",
	}
}

// settingTypes tell what a key's value is, by the type of its flag.
type settingType int

const (
	settingText settingType = iota
	settingBool
	settingNumber
	settingList
)

func typeOf(f *pflag.Flag) settingType {
	if _, ok := f.Value.(pflag.SliceValue); ok {
		return settingList
	}
	switch f.Value.Type() {
	case "bool":
		return settingBool
	case "int", "int64", "uint", "uint64", "number", "float64":
		return settingNumber
	}
	return settingText
}

func (t settingType) String() string {
	return [...]string{"a text", "true or false", "a number", "a list of texts"}[t]
}

// keys gives the flags that are keys of the file, by name.
func keys(fs *pflag.FlagSet) map[string]*pflag.Flag {
	all, not := map[string]*pflag.Flag{}, notInFile()
	fs.VisitAll(func(f *pflag.Flag) {
		if not[f.Name] == "" {
			all[f.Name] = f
		}
	})
	return all
}

// A setting is one key of a file.
type setting struct {
	name string
	line int
	text string   // of what is no list
	list []string // of a list
}

// same tells whether two settings say the same.
func (s setting) same(o setting) bool { return s.text == o.text && slices.Equal(s.list, o.list) }

// parseConfig reads a file into flags that are nobody's yet; name is for messages.
func parseConfig(name string, data []byte, fs *pflag.FlagSet) (map[string]setting, error) {
	wrong := func(line int, hint, format string, args ...any) error {
		return cli.WithHint(fmt.Errorf("%s:%d: %w: %w", name, line, fmt.Errorf(format, args...), paddock.Invalid), "%s", hint)
	}
	if len(data) > maxConfig {
		return nil, cli.WithHint(fmt.Errorf("%s: it is larger than 1 MiB: %w", name, paddock.Invalid), "is it the right file?")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 && doc.Content[0].Tag == "!!null" {
		return map[string]setting{}, nil
	}
	if err != nil {
		line, what := yamlfault.Find(data, err)
		return nil, wrong(max(1, line), "it is YAML: lines of key: value", "%s", "not YAML: "+what)
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, wrong(max(1, more.Line), "leave the others out", "there is more than one document")
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, wrong(top.Line, "it is lines of key: value", "it is no mapping")
	}
	known, not := keys(fs), notInFile()
	settings := map[string]setting{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		f := known[key.Value]
		switch _, twice := settings[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			return nil, wrong(key.Line, "it is lines of key: value", "a key is no text")
		case twice:
			return nil, wrong(key.Line, "leave one out", "%s is there twice", key.Value)
		case f == nil && not[key.Value] != "":
			return nil, wrong(key.Line, not[key.Value], "%s is no key of this file", key.Value)
		case f == nil:
			hint := "docs/server/operations.md lists the keys"
			if near := policy.Nearest(key.Value, slices.Sorted(maps.Keys(known))); near != "" {
				hint = "did you mean " + near + "?"
			}
			return nil, wrong(key.Line, hint, "%q is not known", key.Value)
		}
		s, problem := readSetting(f, value)
		if problem == "" {
			if err := s.set(f); err != nil {
				problem = err.Error()
			}
		}
		if problem != "" {
			return nil, wrong(value.Line, f.Name+" is "+typeOf(f).String()+": "+plainUsage(f), "%s: %s", f.Name, problem)
		}
		s.line = key.Line
		settings[f.Name] = s
	}
	return settings, nil
}

// readSetting takes a value as its flag's type has it; problem says why it is not.
func readSetting(f *pflag.Flag, v *yaml.Node) (s setting, problem string) {
	s.name = f.Name
	if v.Kind == yaml.AliasNode || v.Anchor != "" {
		return s, "anchors and aliases are not for this file"
	}
	want := typeOf(f)
	if want == settingList {
		if v.Kind != yaml.SequenceNode || len(v.Content) > maxListItem {
			return s, "it is not a list of at most 1,000 texts"
		}
		for _, item := range v.Content {
			if item.Kind != yaml.ScalarNode || item.Tag != "!!str" {
				return s, "an item of the list is no text"
			}
			s.list = append(s.list, item.Value)
		}
		return s, ""
	}
	if v.Kind != yaml.ScalarNode {
		return s, "it is not " + want.String()
	}
	ok := false
	switch want {
	case settingBool:
		ok = v.Tag == "!!bool"
	case settingNumber:
		ok = v.Tag == "!!int" || v.Tag == "!!float"
	default:
		ok = v.Tag == "!!str" || v.Tag == "!!int" && f.Value.Type() == "SIZE"
	}
	if !ok {
		return s, "it is not " + want.String()
	}
	s.text = v.Value
	return s, ""
}

// set gives a flag its value.
func (s setting) set(f *pflag.Flag) error {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.Replace(s.list)
	}
	return f.Value.Set(s.text)
}

// applyConfig sets what the command line has not.
func applyConfig(fs *pflag.FlagSet, settings map[string]setting) error {
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		s, f := settings[name], fs.Lookup(name)
		if f.Changed {
			continue
		}
		if err := s.set(f); err != nil {
			return fmt.Errorf("%s: %w: %w", name, err, paddock.Invalid)
		}
	}
	return nil
}

// readConfig reads the bytes of a configuration file that is its owner's alone to
// change.
func readConfig(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--config: %w: %w", err, paddock.Denied)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("--config: %w: %w", err, paddock.Denied)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("--config %s: it is no file: %w", name, paddock.Invalid)
	}
	if err := trustworthy(info); err != nil {
		return nil, cli.WithHint(fmt.Errorf("--config %s: %w", name, err), "chown root %s && chmod go-w %s", name, name)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("--config: %w: %w", err, paddock.Denied)
	}
	return data, nil
}

// trustworthy refuses a file that another user than root and this one could have written:
// the flags in it give away the server.
func trustworthy(info fs.FileInfo) error {
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others than its owner can write it: %w", paddock.Denied)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("it is another user's: %w", paddock.Denied)
	}
	return nil
}

// readSecretFile reads a small file, such as of a key, that is nobody else's to read or write.
// What is no file, such as a pipe, is not looked at.
func readSecretFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := secretive(info); err != nil {
		return nil, cli.WithHint(fmt.Errorf("%s: %w", name, err), "chmod o-rwx,g-w %s; as a secret of Kubernetes: defaultMode: 0400", name)
	}
	return io.ReadAll(io.LimitReader(f, cli.MaxSiteFile))
}

// secretive refuses a file that holds a secret and is not kept as one.
func secretive(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return nil
	}
	if info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("everybody on the machine can read or write it: %w", paddock.Denied)
	}
	return trustworthy(info)
}

// configure reads the file of --config into the flags that were not given. It
// gives what the file says.
func configure(a *cli.App, fs *pflag.FlagSet, name string) (map[string]setting, error) {
	data, err := readConfig(name)
	if err != nil {
		return nil, err
	}
	settings, err := parseConfig(name, data, serveCommand(a).Flags())
	if err != nil {
		return nil, err
	}
	return settings, applyConfig(fs, settings)
}

// plainUsage is a flag's help without its marks.
func plainUsage(f *pflag.Flag) string { return strings.ReplaceAll(f.Usage, "`", "") }
