// Package gitignore parses .gitignore files and matches paths against them.
package gitignore

import "strings"

// A Verdict is what rules say of a path.
type Verdict uint8

// What rules say.
const (
	None    Verdict = iota // nothing
	Ignored                // leave it out
	Kept                   // do not, whatever rules before said
)

// Rules are the lines of a file, of which the last that matches decides.
type Rules struct{ list []rule }

type rule struct {
	glob *Glob
	keep bool
	dirs bool // it is for directories only
	base bool // it is about the last name of a path
}

// maxRules bounds the lines of one file.
const maxRules = 100_000

// Parse reads a file. Lines that are malformed are left out.
func Parse(text string, fold bool) *Rules {
	r := &Rules{}
	text = strings.TrimPrefix(text, "\xef\xbb\xbf")
	for line := range strings.SplitSeq(text, "\n") {
		if len(r.list) >= maxRules {
			break
		}
		r.Add(strings.TrimSuffix(line, "\r"), fold)
	}
	return r
}

// Add reads one line. It is false where that is malformed.
func (r *Rules) Add(line string, fold bool) bool {
	if strings.HasPrefix(line, "#") {
		return true
	}
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	var x rule
	if strings.HasPrefix(line, "!") {
		x.keep = true
		line = line[1:]
	}
	if line == "" {
		return true
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		x.dirs = true
		line = rest
	}
	x.base = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if rest, ok := strings.CutPrefix(line, "**/"); ok && !strings.Contains(rest, "/") && rest != "**" {
		x.base = true
		line = rest
	}
	if line == "" {
		return true
	}
	g, ok := Compile(line, fold)
	if !ok {
		return false
	}
	x.glob = g
	r.list = append(r.list, x)
	return true
}

// Empty says whether there are no rules.
func (r *Rules) Empty() bool { return r == nil || len(r.list) == 0 }

// Len counts the rules.
func (r *Rules) Len() int {
	if r == nil {
		return 0
	}
	return len(r.list)
}

// Keeps says whether some rule keeps files.
func (r *Rules) Keeps() bool {
	for i := range r.list {
		if r.list[i].keep {
			return true
		}
	}
	return false
}

// Match says what the rules say of a path below their directory.
func (r *Rules) Match(path string, dir bool) Verdict {
	if r == nil || len(r.list) == 0 {
		return None
	}
	base := path[strings.LastIndexByte(path, '/')+1:]
	for i := len(r.list) - 1; i >= 0; i-- {
		x := &r.list[i]
		if x.dirs && !dir {
			continue
		}
		name := path
		if x.base {
			name = base
		}
		if x.glob.Match(name) {
			if x.keep {
				return Kept
			}
			return Ignored
		}
	}
	return None
}
