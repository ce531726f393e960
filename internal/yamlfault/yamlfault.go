// Package yamlfault says where a text is not YAML, and what is wrong with it. The parser names the
// line on which the enclosing list or mapping began, or the one before, and types of Go.
package yamlfault

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds on the search for a line, in parses and in bytes that are parsed.
const (
	maxTries = 1000
	maxBytes = 32 << 20
)

var (
	unknownField = regexp.MustCompile(`field (.*) not found in type .*`)
	wrongType    = regexp.MustCompile(`cannot unmarshal (!!\w+)( .*)? into .*`)
	firstLine    = regexp.MustCompile(`\Aline (\d+): `)
)

// Find returns the line of a fault, from 1, and the fault in words. data is what the parser read,
// and err what it returned. The line is zero if it is not known.
func Find(data []byte, err error) (line int, what string) {
	var kinds *yaml.TypeError
	if errors.As(err, &kinds) && len(kinds.Errors) > 0 {
		line, what = cut(kinds.Errors[0])
		what = unknownField.ReplaceAllString(what, `unknown key "$1"`)
		return line, wrongType.ReplaceAllString(what, "the value$2 does not fit here")
	}
	line, what = cut(strings.TrimPrefix(err.Error(), "yaml: "))
	if at := search(data, line, err.Error()); at > 0 {
		line = at
	}
	return line, what
}

// cut takes the line from the parser's text.
func cut(text string) (line int, what string) {
	m := firstLine.FindStringSubmatch(text)
	if m == nil {
		return 0, text
	}
	line, err := strconv.Atoi(m[1])
	if err != nil {
		return 0, text
	}
	return line, text[len(m[0]):]
}

// search returns the first line at which the text before its end has the same fault. It begins at
// the parser's line, which is never behind the fault by more than one. It returns zero if it gave up.
func search(data []byte, from int, fault string) int {
	_, fault = cut(strings.TrimPrefix(fault, "yaml: "))
	end, line, parsed := 0, 0, 0
	for tries := 0; tries < maxTries && parsed < maxBytes && end < len(data); {
		if n := bytes.IndexByte(data[end:], '\n'); n >= 0 {
			end += n + 1
		} else {
			end = len(data)
		}
		line++
		if line < from-1 {
			continue
		}
		tries++
		parsed += end
		var n yaml.Node
		if err := yaml.Unmarshal(data[:end], &n); err != nil {
			if _, what := cut(strings.TrimPrefix(err.Error(), "yaml: ")); what == fault {
				return line
			}
		}
	}
	return 0
}
