package protect

import (
	"strings"
	"sync"
)

// A Content says how a protected name of git may come to be although it is protected: whoever asks Match decides by what
// the file will hold.
type Content uint8

const (
	// None is a name that no content lets through.
	None Content = iota
	// Config is a configuration, whose keys are judged.
	Config
	// Hooks is a directory of hooks: it and samples in it can be made.
	Hooks
	// Empty is a directory in which nothing can be made.
	Empty
	// Modules is the directory of the submodules' repositories.
	Modules
	// Common is the file that leads from a linked working tree's directory to the repository.
	Common
	// Back is the file that leads from there to the working tree.
	Back
)

// contents returns the built-in names that are judged by content. Nobody changes the map.
var contents = sync.OnceValue(func() map[string]Content {
	return map[string]Content{
		".git/config": Config, ".git/config.worktree": Config, ".git/worktrees/*/config": Config, ".git/worktrees/*/config.worktree": Config,
		".git/hooks": Hooks, ".git/worktrees/*/hooks": Hooks,
		".git/branches": Empty, ".git/remotes": Empty, ".git/modules": Modules,
		".git/worktrees/*/commondir": Common, ".git/worktrees/*/gitdir": Back,
	}
})

// Content returns how the content of a protected name is judged. rule is a text that Match returned.
func (s *Set) Content(rule string) Content {
	for i := range s.rules {
		if s.rules[i].text == rule {
			return s.rules[i].content
		}
	}
	return None
}

// Sample reports whether a file of this name in a directory of hooks is a sample, which git never runs.
func Sample(name string) bool {
	stem, ok := strings.CutSuffix(name, ".sample")
	return ok && stem != "" && !strings.ContainsFunc(stem, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}

// InModules reports whether a path is below ".git/modules" where a link could lead to another repository: not where git
// keeps objects, references and logs, whose names are free.
func (s *Set) InModules(rel string) bool {
	comps, _ := split(rel)
	for i := range comps {
		for _, k := range s.candidates(comps[i]) {
			r := &s.rules[k]
			if r.content == Modules && r.match(comps[i:]) == Protected {
				return !free(comps[i+len(r.parts):])
			}
		}
	}
	return false
}

// free reports whether one of the directories above the last name is one in which git uses any name. The first is that
// of a submodule.
func free(below []string) bool {
	for i := 1; i < len(below)-1; i++ {
		switch below[i] {
		case "objects", "refs", "logs":
			return true
		}
	}
	return false
}

// modules judges a path below ".git/modules", where every directory may be a repository.
func (s *Set) modules(r *rule, below []string) (rule string, hit Hit) {
	if len(below) < 2 {
		return r.text, Prefix
	}
	for i := 1; i < len(below); i++ {
		if i > 1 && free(below[:i+1]) {
			break
		}
		text, h := s.match(append([]string{".git"}, below[i:]...))
		if h == Protected {
			return text, h
		}
		if h == Prefix && hit == Miss {
			rule, hit = text, h
		}
	}
	return rule, hit
}

// ModuleName reports whether a submodule of this name has its repository where InModules holds for everything.
func ModuleName(name string) bool {
	comps, up := split(name)
	return !up && len(comps) > 0 && !free(append(comps, "", ""))
}
