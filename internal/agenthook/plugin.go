package agenthook

import (
	_ "embed"
	"strings"
)

//go:embed opencode.js
var pluginText string

// pluginMark begins every plug-in of ours.
const pluginMark = "// Written by `paddock hooks install opencode`;"

// plugin gives the program that OpenCode loads.
func (a Agent) plugin(program string, flags, own []string) ([]byte, error) {
	text := pluginText
	for _, e := range []Event{Step, End} {
		command, err := a.Command(e, program, flags, own)
		if err != nil {
			return nil, err
		}
		quoted, err := marshal(command)
		if err != nil {
			return nil, err
		}
		text = strings.Replace(text, `"`+strings.ToUpper(string(e))+`"`, string(quoted), 1)
	}
	return []byte(text), nil
}
