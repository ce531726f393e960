package agenthook

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/paddock-sandbox/paddock/internal/settingsfile"
)

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
		if file, err = settingsfile.Append(file, e.list, e.value); err != nil {
			return nil, err
		}
	}
	return file, nil
}

// versioned tells that a file of the agent's hooks has a version.
func (a Agent) versioned() bool { return a.Name == "cursor" || a.Name == "copilot" }

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
	root, err := settingsfile.Parse(file)
	if err != nil {
		return nil, false, err
	}
	had, err := settingsfile.Parse(cmpOr(original, []byte("{}")))
	if err != nil {
		had = hujson.Value{Value: &hujson.Object{}}
	}
	o, _ := root.Value.(*hujson.Object)
	hooks := settingsfile.Member(o, "hooks")
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
		if !a.clear(&root, "/hooks/"+settingsfile.Pointer(name.String()), list) {
			continue
		}
		found = true
		if len(list.Elements) == 0 && had.Find("/hooks/"+settingsfile.Pointer(name.String())) == nil {
			if err := settingsfile.Drop(&root, "/hooks/"+settingsfile.Pointer(name.String())); err != nil {
				return nil, false, err
			}
		}
	}
	if !found {
		return file, false, nil
	}
	if len(events.Members) == 0 && had.Find("/hooks") == nil {
		if err := settingsfile.Drop(&root, "/hooks"); err != nil {
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
			found = settingsfile.Drop(root, where) == nil || found
			continue
		}
		inner := settingsfile.Member(o, "hooks")
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
				here = settingsfile.Drop(root, fmt.Sprintf("%s/hooks/%d", where, j)) == nil || here
			}
		}
		if here && len(group.Elements) == 0 {
			here = settingsfile.Drop(root, where) == nil
		}
		found = found || here
	}
	return found
}

// is tells whether an object is a hook of ours.
func (a Agent) is(o *hujson.Object) bool {
	return slices.ContainsFunc([]string{"command", "bash"}, func(name string) bool {
		v := settingsfile.Member(o, name)
		if v == nil {
			return false
		}
		l, ok := v.Value.(hujson.Literal)
		return ok && l.Kind() == '"' && a.ours(l.String())
	})
}
