package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A Definition is a tool in the form that model APIs use.
type Definition struct {
	Name        string          `json:"name"` // in the form of Tool.AgentName
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// Describe returns the definitions of [Set.Tools]. The descriptions state the bounds, so a
// model need not discover them by refusals.
func (s *Set) Describe() []Definition {
	var out []Definition
	for _, t := range s.Tools() {
		text := []string{}
		if t.about != "" {
			text = append(text, t.about)
		}
		for _, a := range s.granting(t) {
			text = append(text, "Allowed: "+a.grant.bounds()+".")
		}
		out = append(out, Definition{t.AgentName(), strings.Join(text, "\n"), t.Schema()})
	}
	return out
}

// Prompt returns the commands with their bounds, for a model that writes scripts.
func (s *Set) Prompt() string {
	var b strings.Builder
	for _, t := range s.Tools() {
		fmt.Fprintf(&b, "%s%s\n", strings.ReplaceAll(t.name, "/", " "), t.in.usage(""))
		if t.about != "" {
			first, _, _ := strings.Cut(t.about, "\n")
			fmt.Fprintf(&b, "    %s\n", first)
		}
		for _, a := range s.granting(t) {
			fmt.Fprintf(&b, "    allowed: %s\n", a.grant.bounds())
		}
	}
	return b.String()
}

// bounds returns the restrictions of a grant in words.
func (c *checked) bounds() string {
	var parts []string
	for i := range c.constraints {
		parts = append(parts, c.constraints[i].String())
	}
	parts = append(parts, fmt.Sprintf("at most %d calls", c.MaxCalls))
	for _, b := range c.Budgets {
		parts = append(parts, fmt.Sprintf("%s at most %d in all", b, b.Total))
	}
	if !c.Expires.IsZero() {
		parts = append(parts, "until "+c.Expires.Format(time.RFC3339))
	}
	return strings.Join(parts, "; ")
}

// Commands returns the first words of the tools of [Set.Tools]: the command names that the
// set occupies.
func (s *Set) Commands() []string {
	var out []string
	for _, t := range s.Tools() {
		out = append(out, t.Segments()[0])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Command finds the tool that a command line names, and returns the words after its name.
// If two tools match, it returns the one with the longer name. Words that name no tool
// return [paddock.NotFound], or [HelpWanted] if they are the beginning of tool names and
// end in --help.
func (s *Set) Command(words []string) (Tool, []string, error) {
	n := 0
	for n < len(words) && n < maxSegments && isSegment(words[n]) {
		n++
	}
	tools := s.Tools()
	for ; n > 0; n-- {
		name := strings.Join(words[:n], "/")
		for _, t := range tools {
			if t.name == name {
				return t, words[n:], nil
			}
		}
	}
	if len(words) > 1 {
		if last := words[len(words)-1]; (last == "--help" || last == "-h") && s.Help(words[:len(words)-1]...) != "" {
			return Tool{}, nil, HelpWanted
		}
	}
	return Tool{}, nil, fmt.Errorf("%s: no tool of this name is granted: %w", cut(strings.Join(words[:min(len(words), maxSegments)], " "), maxAgentName), paddock.NotFound)
}

// Help lists the tools whose names begin with these words, one per line. It is empty if
// there are none.
func (s *Set) Help(words ...string) string {
	type entry struct{ command, about string }
	var list []entry
	width := 0
	for _, t := range s.Tools() {
		segments := t.Segments()
		if len(segments) < len(words) || !slices.Equal(segments[:len(words)], words) {
			continue
		}
		about, _, _ := strings.Cut(t.about, "\n")
		e := entry{strings.Join(segments, " "), about}
		list, width = append(list, e), max(width, len(e.command))
	}
	var b strings.Builder
	for _, e := range list {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-*s  %s", width, e.command, e.about), " ") + "\n")
	}
	return b.String()
}
