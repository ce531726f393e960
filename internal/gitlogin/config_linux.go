package gitlogin

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// outOfReach refuses a configuration of the host's git that a box could write, or that names a program or a file that a
// box could: it would choose what runs outside. Files that are not there yet count too.
func (h *host) outOfReach(ctx context.Context, lookup func(string) (string, bool), reach func(string) bool) error {
	own := []string{"/etc/gitconfig"}
	if h.home != "" {
		own = append(own, filepath.Join(h.home, ".gitconfig"), filepath.Join(h.home, ".config/git/config"))
	}
	if dir, _ := lookup("XDG_CONFIG_HOME"); dir != "" {
		own = append(own, filepath.Join(dir, "git/config"))
	}
	for _, name := range own {
		if reach(name) {
			return inReach(name)
		}
	}
	text, err := h.run(ctx, "", "config", "--null", "--show-origin", "--list")
	if err != nil {
		return fmt.Errorf("the configuration of your git: %w", err)
	}
	fields := strings.Split(text, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		file, isFile := strings.CutPrefix(fields[i], "file:")
		if !isFile {
			continue
		}
		file = h.absolute(file, "/")
		key, value, _ := strings.Cut(fields[i+1], "\n")
		names := []string{file}
		switch {
		case key == "include.path", strings.HasPrefix(key, "includeif.") && strings.HasSuffix(key, ".path"):
			if strings.HasPrefix(value, "%(") || strings.HasPrefix(value, "~") && !strings.HasPrefix(value, "~/") {
				return notKnown(key, value)
			}
			names = append(names, h.absolute(value, filepath.Dir(file)))
		case strings.HasPrefix(key, "credential.") && strings.HasSuffix(key, ".helper"):
			if !plainHelper(value) {
				return notKnown(key, value)
			}
			names = append(names, h.programs(value)...)
		}
		for _, name := range names {
			if reach(name) {
				return inReach(name)
			}
		}
	}
	return nil
}

// absolute returns a path of a configuration as git reads it.
func (h *host) absolute(name, dir string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(h.home, rest)
	}
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// notKnown refuses a setting that may mean any path, so also one that a box can write.
func notKnown(key, value string) error {
	return fmt.Errorf("%s = %.80q in your git's configuration: what it runs or reads is not known beforehand, so your git's login is not used; write it as one absolute path: %w",
		key, value, paddock.Denied)
}

const ends = " \t\r\n!\"';&|()<>=:,{}" // of a word

// moves are words after which others are found elsewhere, or are other words.
func moves() []string {
	return []string{"cd", "pushd", "eval", "source", ".", "PATH", "HOME", "IFS", "CDPATH", "ENV", "BASH_ENV"}
}

// plainHelper reports whether each path that a helper's line means stands in it as it is. The shell reads the line, so
// variables, patterns, paths from a directory that is not known, and parts in quotes can be any path.
func plainHelper(helper string) bool {
	for rest := helper; ; {
		from := strings.IndexAny(rest, "\"'")
		if from < 0 {
			break
		}
		text, after, closed := strings.Cut(rest[from+1:], rest[from:from+1])
		joined := from > 0 && !strings.Contains(ends, rest[from-1:from]) || after != "" && !strings.Contains(ends, after[:1])
		if !closed || joined || strings.Contains(text, "/") && strings.ContainsAny(text, ends) {
			return false
		}
		rest = after
	}
	for _, word := range strings.FieldsFunc(helper, func(r rune) bool { return strings.ContainsRune(ends, r) }) {
		home := strings.HasPrefix(word, "~/")
		switch {
		case isArgument(word): // of the helper: what git wants of it
		case strings.ContainsAny(word, "$`\\"), slices.Contains(moves(), word):
			return false
		case strings.HasPrefix(word, "~") && !home, strings.Contains(word, "/") && !home && !filepath.IsAbs(word):
			return false
		case strings.Contains(word, "/") && strings.ContainsAny(word, "*?["):
			return false
		}
	}
	return true
}

// isArgument reports whether a word of a shell's line is one of the words that git gave.
func isArgument(word string) bool {
	return word == "$1" || word == "$@" || word == "$*" || word == "$#"
}

// programs returns the files that the words of a helper can mean.
func (h *host) programs(helper string) (names []string) {
	words := strings.FieldsFunc(helper, func(r rune) bool { return strings.ContainsRune(ends, r) })
	for _, word := range words {
		switch {
		case strings.HasPrefix(word, "~/"):
			names = append(names, h.absolute(word, "/"))
		case filepath.IsAbs(word):
			names = append(names, word)
		case !strings.Contains(word, "/"):
			for _, name := range []string{word, "git-credential-" + word} {
				if found := h.find(name); found != "" {
					names = append(names, found)
				}
			}
		}
	}
	return names
}
