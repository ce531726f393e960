package policy

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestAMonitorIsReadAsItIsWritten(t *testing.T) {
	validate := validator(t)
	for _, row := range []struct {
		doc  string
		want *Monitor
	}{
		{"", nil},
		{"monitor: rules", &Monitor{On: true}},
		{`monitor: "off"`, &Monitor{}},
		{"monitor: off", &Monitor{}},
		{"monitor: {}", &Monitor{On: true}},
		{"monitor: {task: fix the tests, removed: 7, history: 3, known: [packages.example]}", &Monitor{On: true, Known: []string{"packages.example"}, Task: "fix the tests", Removed: 7, History: 3}},
		{"monitor: {command: [judge, -x], env: [TOKEN], timeout: 3s, moments: [exec, host]}", &Monitor{On: true, Command: []string{"judge", "-x"}, Env: []string{"TOKEN"}, Timeout: 3 * time.Second, Moments: []string{"exec", "host"}}},
		{"monitor: {rules: false, url: 'https://judge.example/v1', key: 'env:KEY'}", &Monitor{On: true, NoRules: true, URL: "https://judge.example/v1", Key: "env:KEY"}},
		{"monitor: {model: {interface: anthropic, name: m, key: 'file:/k', prompt: ~/p}}", &Monitor{On: true, Model: &MonitorModel{Interface: "anthropic", Name: "m", Key: "file:/k", Prompt: "~/p"}}},
	} {
		doc := "version: 1\n" + row.doc + "\n"
		f, err := Read("p", []byte(doc))
		if err != nil || !reflect.DeepEqual(f.Monitor, row.want) {
			t.Errorf("%s: %+v, %v", row.doc, f, err)
		}
		if err := validate(doc); err != nil {
			t.Errorf("%s: the schema refuses it: %v", row.doc, err)
		}
	}
}

func TestAMonitorThatSaysTwoThingsIsRefused(t *testing.T) {
	for doc, want := range map[string]string{
		"monitor: on please": "is no monitor",
		"monitor: {command: [a], url: 'https://b.example'}": "more than one of command, url and model",
		"monitor: {rules: false}":                           "nobody is asked",
		"monitor: {moments: [exec]}":                        "moments without command",
		"monitor: {moments: [lunch], command: [a]}":         `"lunch" is not known`,
		"monitor: {env: [A]}":                               "env without a command",
		"monitor: {env: [A=b], command: [a]}":               "no name of a variable",
		"monitor: {key: 'env:K'}":                           "a key without a url",
		"monitor: {key: secret, url: 'https://b.example'}":  `neither "env:" nor "file:" begins it`,
		"monitor: {command: ['']}":                          "an empty or very long text",
		"monitor: {model: {interface: anthropic}}":          `the key "name" is missing`,
		"monitor: {model: {interface: smoke, name: a}}":     `"smoke" is not known`,
		"monitor: {timeout: 1h}":                            "is no time for an answer",
		"monitor: {removed: 0}":                             "is not allowed",
		"monitor: {judge: x}":                               `unknown key "judge"`,
		"monitor: [rules]":                                  "expected text or a mapping",
	} {
		_, err := Read("p", []byte("version: 1\n"+doc+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v, want %q", doc, err, want)
		}
	}
}
