package policy

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A Monitor says who judges what a sandbox does, beside its rules. It is no boundary.
type Monitor struct {
	On      bool     // false is "off"
	NoRules bool     // without the built-in rules
	Command []string // a program of the host that is asked
	Env     []string // names of the caller's variables that it gets besides the usual ones
	URL     string   // an endpoint that is asked
	Key     string   // of URL: "env:VARIABLE" or "file:PATH"; empty is none
	Model   *MonitorModel
	Timeout time.Duration // of one answer; zero is the default
	Task    string        // that the user stated
	History int           // earlier steps in a question; zero is the default
	Removed int           // removed paths of a step from which on it is judged; zero is the default
	Known   []string      // hosts that give packages out, which rules do not take for new
	Moments []string      // at which command, url or model is asked; empty is all
}

// A MonitorModel is a language model that judges.
type MonitorModel struct {
	Interface string // "anthropic" or "openai"
	Name      string
	Key       string // "env:VARIABLE" or "file:PATH"; empty is none
	URL       string // of the interface; empty is the vendor's
	Prompt    string // a file, absolute or "~/…"; empty is the built-in text
}

// Bounds of a monitor's settings.
const (
	maxMonitorTime = 10 * time.Minute
	maxMonitorTask = 4096 // bytes
)

// MonitorHint says how a monitor is written.
const MonitorHint = `write "rules", "off", or a mapping with rules and one of command, url and model`

// monitorMoments are the moments of package monitor at which something is asked.
var monitorMoments = []string{"exec", "host", "secret", "effect", "apply"}

func monitorShape() *shape {
	plain := func(doc string, set func(*Monitor, string)) *shape {
		return &shape{kind: text, doc: doc, read: func(r *reader, n *yaml.Node, key string) {
			if n.Value == "" || len(n.Value) > MaxPath || strings.ContainsRune(n.Value, 0) {
				r.add(n, key, "an empty or very long text", "leave the key out, or give it a value")
				return
			}
			set(r.monitor(), n.Value)
		}}
	}
	count := func(doc string, most float64, set func(*Monitor, int)) *shape {
		return &shape{kind: whole, doc: doc, min: 1, max: most, read: func(r *reader, n *yaml.Node, key string) {
			v, err := strconv.Atoi(n.Value)
			if err != nil {
				r.add(n, key, clip(n.Value)+" is not allowed", "")
				return
			}
			set(r.monitor(), v)
		}}
	}
	texts := func(doc string, set func(*Monitor, string)) *shape {
		return &shape{kind: list, doc: doc, elem: plain("", set)}
	}
	moments := &shape{kind: list, doc: "The moments at which command, url or model is asked; without it all. The rules are asked at all.", elem: &shape{kind: text, oneOf: monitorMoments, read: func(r *reader, n *yaml.Node, _ string) {
		m := r.monitor()
		m.Moments = append(m.Moments, n.Value)
	}}}
	whole := &shape{kind: object, doc: "A monitor: the built-in rules, and at most one of command, url and model beside them.", read: checkMonitor, fields: []field{
		{"rules", &shape{kind: boolean, doc: "Whether the built-in rules are asked; true if left out.", read: func(r *reader, n *yaml.Node, _ string) {
			r.monitor().NoRules = n.Value != "true" && n.Value != "True" && n.Value != "TRUE"
		}}},
		{"command", texts("A program of the host with its arguments: it gets the question as JSON on standard input, and answers with JSON on standard output.", func(m *Monitor, v string) { m.Command = append(m.Command, v) })},
		{"env", texts("Names of your variables that the command gets besides PATH, HOME and the like.", func(m *Monitor, v string) { m.Env = append(m.Env, v) })},
		{"url", plain("An endpoint that gets the question in a POST: https, or http on loopback.", func(m *Monitor, v string) { m.URL = v })},
		{"key", sourceShape("Where the bearer token of url comes from: \"env:VARIABLE\" or \"file:PATH\".", func(m *Monitor, v string) { m.Key = v })},
		{"model", modelShape()},
		{"timeout", &shape{kind: text, doc: "How long an answer may take, such as \"10s\" (10s if left out, 30s for a model). A later one is a denial.", pattern: timePattern, read: readMonitorTime}},
		{"task", &shape{kind: text, doc: "What you want done, in your words.", read: func(r *reader, n *yaml.Node, key string) {
			if len(n.Value) > maxMonitorTask || !utf8.ValidString(n.Value) {
				r.add(n, key, "a task of more than 4096 bytes", "say it in fewer words")
				return
			}
			r.monitor().Task = n.Value
		}}},
		{"history", count("Earlier commands that a question tells; 10 if left out.", 100, func(m *Monitor, v int) { m.History = v })},
		{"removed", count("Removed files of one command from which on it is judged; 100 if left out.", 1<<20, func(m *Monitor, v int) { m.Removed = v })},
		{"known", texts("Hosts that give packages out, besides those of your package clients' configuration: rules do not take them for new.", func(m *Monitor, v string) { m.Known = append(m.Known, v) })},
		{"moments", moments},
	}}
	return &shape{
		kind: textOrObject, doc: "Who judges what the sandbox does: \"rules\" are the built-in ones, \"off\" is nobody. A monitor is no boundary.", elem: whole,
		read: func(r *reader, n *yaml.Node, key string) {
			switch {
			case n.Kind == yaml.MappingNode:
			case n.Value == "rules":
				r.f.Monitor = &Monitor{On: true}
			case n.Value == "off":
				r.f.Monitor = &Monitor{}
			default:
				r.add(n, key, "\""+clip(n.Value)+"\" is no monitor", MonitorHint)
			}
		},
	}
}

// monitor returns the monitor of the file that is read.
func (r *reader) monitor() *Monitor {
	if r.f.Monitor == nil {
		r.f.Monitor = &Monitor{On: true}
	}
	return r.f.Monitor
}

func sourceShape(doc string, set func(*Monitor, string)) *shape {
	return &shape{kind: text, doc: doc, pattern: `^(env|file):.+$`, read: func(r *reader, n *yaml.Node, key string) {
		if err := checkSource(n.Value); err != nil {
			r.add(n, key, err.Error(), sourceHint)
			return
		}
		set(r.monitor(), n.Value)
	}}
}

func modelShape() *shape {
	model := func(m *Monitor) *MonitorModel {
		if m.Model == nil {
			m.Model = &MonitorModel{}
		}
		return m.Model
	}
	word := func(doc string, set func(*MonitorModel, string)) *shape {
		return &shape{kind: text, doc: doc, read: func(r *reader, n *yaml.Node, key string) {
			if n.Value == "" || len(n.Value) > MaxPath {
				r.add(n, key, "an empty or very long text", "leave the key out, or give it a value")
				return
			}
			set(model(r.monitor()), n.Value)
		}}
	}
	return &shape{kind: object, doc: "A language model that is asked. The questions go to its server, with commands, paths and names of hosts.", need: []string{"interface", "name"}, fields: []field{
		{"interface", &shape{kind: text, doc: "What the server speaks: anthropic (Messages) or openai (Chat Completions, as many servers do).", oneOf: []string{"anthropic", "openai"}, read: func(r *reader, n *yaml.Node, _ string) {
			model(r.monitor()).Interface = n.Value
		}}},
		{"name", word("The name of the model, as its server has it.", func(m *MonitorModel, v string) { m.Name = v })},
		{"key", sourceShape("Where the key comes from: \"env:VARIABLE\" or \"file:PATH\". No sandbox sees it.", func(m *Monitor, v string) { model(m).Key = v })},
		{"url", word("The server, without the path of the interface: https, or http on loopback; the vendor's if left out.", func(m *MonitorModel, v string) { m.URL = v })},
		{"prompt", &shape{kind: text, doc: "A file with what the model is told, in place of the built-in text.", pattern: pathPattern, read: func(r *reader, n *yaml.Node, key string) {
			if p, ok := r.path(n, key); ok {
				model(r.monitor()).Prompt = p
			}
		}}},
	}}
}

func readMonitorTime(r *reader, n *yaml.Node, key string) {
	d, err := parseTimeout(n.Value)
	if err != nil || d > maxMonitorTime {
		r.add(n, key, "\""+clip(n.Value)+"\" is no time for an answer", "between a moment and 10m, such as \"10s\"")
		return
	}
	r.monitor().Timeout = d
}

// checkMonitor looks at the keys together.
func checkMonitor(r *reader, n *yaml.Node, key string) {
	m := r.monitor()
	asked := 0
	for _, there := range []bool{len(m.Command) > 0, m.URL != "", m.Model != nil} {
		if there {
			asked++
		}
	}
	switch {
	case asked > 1:
		r.add(n, key, "more than one of command, url and model", "one is asked: choose it")
	case asked == 0 && m.NoRules:
		r.add(n, key, "a monitor that nobody is asked by: rules are off, and there is no command, url or model", `for none, write "monitor: off"`)
	case asked == 0 && len(m.Moments) > 0:
		r.add(n, key, "moments without command, url or model: the rules are asked at all moments", "leave moments out")
	case len(m.Env) > 0 && len(m.Command) == 0:
		r.add(n, key, "env without a command that gets the variables", "leave env out")
	case m.Key != "" && m.URL == "":
		r.add(n, key, "a key without a url that it is for", "the key of a model is model.key")
	}
	for _, name := range m.Env {
		if err := checkName(name); err != nil {
			r.add(n, key, "env: \""+clip(name)+"\" is no name of a variable", "letters, digits and _")
		}
	}
}
