package mcpclient

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/paddock-sandbox/paddock/internal/settingsfile"
)

// A jsonForm is a file of JSON, with comments or without, that has servers as members of an object.
type jsonForm struct {
	object []string
	entry  func(words []string) any
}

// An entry is a server as most clients write one.
type entry struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

func typed(words []string) any { return entry{"stdio", words[0], words[1:]} }
func plain(words []string) any { return entry{"", words[0], words[1:]} }

// oneCommand is a server as OpenCode writes one.
func oneCommand(words []string) any {
	return struct {
		Type    string   `json:"type"`
		Command []string `json:"command"`
		Enabled bool     `json:"enabled"`
	}{"local", words, true}
}

func (f jsonForm) install(file []byte, words []string) ([]byte, error) {
	if len(bytes.TrimSpace(file)) == 0 {
		file = []byte("{}\n")
	}
	return settingsfile.Put(file, f.object, server, f.entry(words))
}

func (f jsonForm) remove(file, original []byte) (left []byte, found bool, err error) {
	root, err := settingsfile.Parse(file)
	if err != nil {
		return nil, false, err
	}
	above := ""
	for _, name := range f.object {
		above += "/" + settingsfile.Pointer(name)
	}
	at := root.Find(above + "/" + server)
	if at == nil || !ours(at) {
		return file, false, nil
	}
	keepComments(root.Find(above))
	if err := settingsfile.Drop(&root, above+"/"+server); err != nil {
		return nil, false, err
	}
	if servers, ok := root.Find(above).Value.(*hujson.Object); ok && len(servers.Members) == 0 && !has(original, above) {
		if err := settingsfile.Drop(&root, above); err != nil {
			return nil, false, err
		}
	}
	if o, ok := root.Value.(*hujson.Object); ok && len(o.Members) == 0 && original == nil && !bytes.ContainsRune(root.Pack(), '/') {
		return nil, true, nil
	}
	return root.Pack(), true, nil
}

// keepComments moves comments before our member to what follows it, because they are not about it.
func keepComments(servers *hujson.Value) {
	o, ok := servers.Value.(*hujson.Object)
	if !ok {
		return
	}
	for i := range o.Members {
		name, ok := o.Members[i].Name.Value.(hujson.Literal)
		if !ok || name.String() != server || !bytes.ContainsRune(o.Members[i].Name.BeforeExtra, '/') {
			continue
		}
		next := &o.AfterExtra
		if i+1 < len(o.Members) {
			next = &o.Members[i+1].Name.BeforeExtra
		}
		*next = append(bytes.TrimRight(bytes.Clone(o.Members[i].Name.BeforeExtra), " \t\r\n"), *next...)
		o.Members[i].Name.BeforeExtra = nil
	}
}

// has reports whether a file has what a pointer leads to.
func has(file []byte, at string) bool {
	if len(bytes.TrimSpace(file)) == 0 {
		return false
	}
	root, err := settingsfile.Parse(file)
	return err == nil && root.Find(at) != nil
}

// ours reports whether a server is one that Install wrote: it starts `paddock mcp`, whatever else was added to it.
func ours(v *hujson.Value) bool {
	standard := v.Clone()
	standard.Standardize()
	var e struct {
		Command any      `json:"command"`
		Args    []string `json:"args"`
	}
	if json.Unmarshal(standard.Pack(), &e) != nil {
		return false
	}
	words := e.Args
	if list, ok := e.Command.([]any); ok {
		for _, word := range list {
			text, _ := word.(string)
			words = append(words, text)
		}
	}
	return slices.Contains(words, "mcp")
}
