package tool

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

const (
	maxSegments  = 16
	maxAgentName = 64 // limit of model APIs
)

// cleanName returns a tool's name with slashes; dots are equivalent.
func cleanName(name string) (string, error) {
	name = strings.ReplaceAll(name, ".", "/")
	segments := strings.Split(name, "/")
	if len(segments) > maxSegments {
		return "", fmt.Errorf("tool name %s: more than %d segments: %w", short(name), maxSegments, paddock.Invalid)
	}
	for _, s := range segments {
		if !isSegment(s) {
			return "", fmt.Errorf("tool name %s: segment %s is not of a-z 0-9 _ -, with a letter or digit at both ends: %w", short(name), short(s), paddock.Invalid)
		}
	}
	return name, nil
}

// isSegment reports whether s can be a part of a name. It must end in a letter or digit, so
// that no command word looks like a flag, and so that the names for models can be converted
// back.
func isSegment(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !alnum && (c != '_' && c != '-' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return s != ""
}

// agentName writes a clean name in the characters that models may use: a slash becomes one
// underscore, an underscore two. No segment begins or ends with an underscore, so every run
// of underscores is unambiguous.
func agentName(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "_", "__"), "/", "_")
}

// FromAgentName converts a name of [Tool.AgentName] back.
func FromAgentName(agent string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(agent); {
		if agent[i] != '_' {
			b.WriteByte(agent[i])
			i++
			continue
		}
		run := len(agent[i:]) - len(strings.TrimLeft(agent[i:], "_"))
		switch {
		case run == 1:
			b.WriteByte('/')
		case run%2 == 0:
			b.WriteString(agent[i : i+run/2])
		default:
			return "", fmt.Errorf("agent's tool name %s: no name is written so: %w", short(agent), paddock.Invalid)
		}
		i += run
	}
	name, err := cleanName(b.String())
	if err != nil || agentName(name) != agent {
		return "", fmt.Errorf("agent's tool name %s: no name is written so: %w", short(agent), paddock.Invalid)
	}
	return name, nil
}

// A pattern matches names by segments: "*" matches any one, "**" any number (including
// none), and any other segment itself.
type pattern []string

func parsePattern(text string) (pattern, error) {
	segments := strings.Split(strings.ReplaceAll(text, ".", "/"), "/")
	if len(segments) > maxSegments {
		return nil, fmt.Errorf("tool pattern %s: more than %d segments", short(text), maxSegments)
	}
	for _, s := range segments {
		if s != "*" && s != "**" && !isSegment(s) {
			return nil, fmt.Errorf("tool pattern %s: %s is neither a segment of a name nor * nor **", short(text), short(s))
		}
	}
	return segments, nil
}

func (p pattern) String() string { return strings.Join(p, "/") }

// places is a set of positions in a pattern, one bit each: where the match of the segments
// read so far may be. Position len(p) is the end.
type places uint32

// settle adds the positions that are reached without reading a segment.
func (p pattern) settle(s places) places {
	for i, segment := range p {
		if segment == "**" && s&(1<<i) != 0 {
			s |= 1 << (i + 1)
		}
	}
	return s
}

// step reads one segment. The empty segment represents one that no pattern contains
// literally.
func (p pattern) step(s places, segment string) places {
	var next places
	for i, want := range p {
		switch {
		case s&(1<<i) == 0:
		case want == "**":
			next |= 1 << i
		case want == "*" || want == segment:
			next |= 1 << (i + 1)
		}
	}
	return p.settle(next)
}

func (p pattern) ends(s places) bool { return s&(1<<len(p)) != 0 }

func (p pattern) match(name string) bool {
	at := p.settle(1)
	for segment := range strings.SplitSeq(name, "/") {
		at = p.step(at, segment)
	}
	return p.ends(at)
}

// within reports whether other matches every name that p matches. It walks both in parallel
// over every segment that either contains literally, and one that neither contains, because
// all other segments are equivalent to the patterns.
func (p pattern) within(other pattern) bool {
	type pair struct{ own, other places }
	letters := append([]string{""}, p...)
	letters = append(letters, other...)
	start := pair{p.settle(1), other.settle(1)}
	seen, queue := map[pair]bool{start: true}, []pair{start}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, letter := range letters {
			if letter == "*" || letter == "**" {
				continue
			}
			next := pair{p.step(at.own, letter), other.step(at.other, letter)}
			if p.ends(next.own) && !other.ends(next.other) {
				return false
			}
			if next.own == 0 || seen[next] {
				continue
			}
			if len(seen) > 1<<14 {
				return false // too costly to decide counts as not proven
			}
			seen[next] = true
			queue = append(queue, next)
		}
	}
	return true
}
