package policy

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/yamlfault"
)

// Read parses a policy file, version 1, in YAML. name is for messages. An error is an [*Error] of kind Invalid with
// every problem found.
func Read(name string, data []byte) (*File, error) {
	r := newReader(name, data, version1())
	top, problem := parseYAML(data)
	if problem != nil {
		return nil, &Error{Name: name, Problems: []Problem{*problem}, Kind: paddock.Invalid}
	}
	if r.plain(top, 0); len(r.problems) == 0 {
		r.walk(r.top, top, "")
	}
	if len(r.problems) == 0 {
		var notes []Problem
		r.problems, notes = r.f.conflicts()
		r.notes = append(r.notes, notes...)
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	r.f.Notes = r.notes
	return r.f, nil
}

func newReader(name string, data []byte, top *shape) *reader {
	return &reader{
		f:   &File{Name: name, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(data)), at: map[string]Position{}},
		top: top,
	}
}

// err gives the problems in the order of the document, as many as are told.
func (r *reader) err() error {
	kind, problems := paddock.Invalid, r.problems
	if len(problems) == 0 {
		kind, problems = paddock.Unsupported, r.refused
	}
	return newError(r.f.Name, kind, problems)
}

func newError(name string, kind paddock.Kind, problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	problems = slices.Clone(problems)
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	e := &Error{Name: name, Problems: problems, Kind: kind}
	if len(problems) > MaxProblems {
		e.Problems, e.More = problems[:MaxProblems], len(problems)-MaxProblems
	}
	return e
}

// parseYAML gives the value of the only document of data.
func parseYAML(data []byte) (*yaml.Node, *Problem) {
	if p := checkText(data); p != nil {
		return nil, p
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &Problem{Line: 1, Column: 1, Text: "empty document", Hint: `a policy begins with "version: 1"`}
		}
		return nil, syntaxProblem(data, err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, &Problem{Line: second.Line, Column: second.Column, Text: "a second document", Hint: "a policy file is one document"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxProblem(data, err)
	}
	if len(doc.Content) != 1 {
		return nil, &Problem{Line: 1, Column: 1, Text: "empty document", Hint: `a policy begins with "version: 1"`}
	}
	return doc.Content[0], nil
}

// checkText refuses what no document may be, before any parser sees it.
func checkText(data []byte) *Problem {
	if len(data) > MaxDocument {
		return &Problem{Text: fmt.Sprintf("document of %d bytes; at most %d are allowed", len(data), MaxDocument)}
	}
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		if (c == utf8.RuneError && size == 1) || c == 0 {
			what, hint := "a byte that is not UTF-8", "save it as text in UTF-8"
			if c == 0 {
				what, hint = "a NUL byte", "this is no text in UTF-8; a text in UTF-16 can be saved as UTF-8"
			}
			line := 1 + bytes.Count(data[:i], []byte("\n"))
			column := 1 + utf8.RuneCount(data[bytes.LastIndexByte(data[:i], '\n')+1:i])
			return &Problem{Line: line, Column: column, Text: what, Hint: hint}
		}
		i += size
	}
	return nil
}

func syntaxProblem(data []byte, err error) *Problem {
	line, what := yamlfault.Find(data, err)
	return &Problem{Line: line, Text: "not YAML: " + clip(what)}
}

// plain refuses what makes a document mean something else than it shows:
// anchors and aliases (also as bombs), merges and tags.
func (r *reader) plain(n *yaml.Node, depth int) {
	const deepest = 32
	switch {
	case depth > deepest:
		r.add(n, "", fmt.Sprintf("nested deeper than %d levels", deepest), "")
		return
	case n.Kind == yaml.AliasNode:
		r.add(n, "", "an alias", "aliases are not allowed; write the value out")
		return
	case n.Anchor != "":
		r.add(n, "", "an anchor", "anchors are not allowed; write the value out")
	case n.Tag == "!!merge":
		r.add(n, "", "a merge key", "merging is not allowed; write the keys out")
	case n.Style&yaml.TaggedStyle != 0:
		r.add(n, "", fmt.Sprintf("the tag %q", clip(n.Tag)), "tags are not allowed")
	}
	for _, c := range n.Content {
		if len(r.problems) > MaxProblems {
			return
		}
		r.plain(c, depth+1)
	}
}
