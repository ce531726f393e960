package gitlogin

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
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
			names = append(names, h.absolute(value, filepath.Dir(file)))
		case strings.HasPrefix(key, "credential.") && strings.HasSuffix(key, ".helper"):
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

// programs returns the files that the words of a helper can mean.
func (h *host) programs(helper string) (names []string) {
	words := strings.FieldsFunc(helper, func(r rune) bool { return strings.ContainsRune(" \t\n!\"';&|()<>=", r) })
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
