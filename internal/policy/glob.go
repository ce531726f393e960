package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Bounds on the expansion of one glob. Past them it is refused, because a
// part of the matches would be a rule that looks kept and is not.
const (
	maxVisited = 500_000
	maxMatches = 1000
)

// isGlob tells whether a path is a pattern: it has "*", "?" or "[".
func isGlob(s string) bool { return strings.ContainsAny(s, "*?[") }

// checkGlob tells what is wrong with a pattern, which is an absolute path.
func checkGlob(s string) error {
	literal := true
	for i, part := range strings.Split(strings.Trim(s, "/"), "/") {
		if !isGlob(part) {
			continue
		}
		literal = literal && i > 0
		if part != "**" && strings.Contains(part, "**") {
			return errors.New(`"**" stands alone between slashes`)
		}
		if _, err := path.Match(part, "x"); err != nil {
			return errors.New(`a "[" without its "]"`)
		}
	}
	if !literal {
		return errors.New("a glob begins with a directory by its name, so that it does not search the whole machine")
	}
	return nil
}

// expand gives what a checked, absolute glob matches in files, sorted. A
// directory that matches is given, and not what is below it. Links are
// matched by their own name and never followed.
func expand(files fs.FS, pattern string) ([]string, error) {
	parts := strings.Split(strings.Trim(path.Clean(pattern), "/"), "/")
	n := 0
	for n < len(parts) && !isGlob(parts[n]) {
		n++
	}
	start := path.Join(parts[:n]...)
	if start == "" {
		start = "."
	}
	var found []string
	visited := 0
	err := fs.WalkDir(files, start, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if visited++; visited > maxVisited {
			return fmt.Errorf("it has more than %d files to look at", maxVisited)
		}
		here := strings.Split(name, "/")
		if name == "." {
			here = nil
		}
		switch matchParts(parts, here) {
		case matchAll:
			if found = append(found, "/"+name); len(found) > maxMatches {
				return fmt.Errorf("it matches more than %d files", maxMatches)
			}
			if d.IsDir() {
				return fs.SkipDir
			}
		case matchNone:
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	return found, err
}

type matched uint8

const (
	matchNone  matched = iota // neither this path nor one below it
	matchBegin                // one below it may
	matchAll                  // this path
)

// matchParts compares a path with a pattern, component by component. "**" is
// any number of components. It takes time that grows with the product of the
// two lengths.
func matchParts(pattern, name []string) matched {
	// states[i] tells that pattern[:i] matches what was read of name.
	states := make([]bool, len(pattern)+1)
	next := make([]bool, len(pattern)+1)
	states[0] = true
	skip := func(s []bool) {
		for i, p := range pattern {
			if s[i] && p == "**" {
				s[i+1] = true
			}
		}
	}
	skip(states)
	for _, part := range name {
		clear(next)
		alive := false
		for i, p := range pattern {
			if !states[i] {
				continue
			}
			if p == "**" {
				next[i], alive = true, true
			} else if ok, err := path.Match(p, part); ok && err == nil {
				next[i+1], alive = true, true
			}
		}
		if !alive {
			return matchNone
		}
		skip(next)
		states, next = next, states
	}
	if states[len(pattern)] {
		return matchAll
	}
	return matchBegin
}

// matchGlob tells whether pattern matches name or a directory above it.
func matchGlob(pattern, name string) bool {
	p := strings.Split(strings.Trim(pattern, "/"), "/")
	parts := strings.Split(strings.Trim(name, "/"), "/")
	for i := range parts {
		if matchParts(p, parts[:i+1]) == matchAll {
			return true
		}
	}
	return false
}
