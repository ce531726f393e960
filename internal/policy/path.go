package policy

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

const pathHint = `an absolute path ("/srv/data"), or one below the home ("~/data")`

// checkPath tells what is wrong with a path of a policy file. It begins with
// "/" or "~/", or is "~".
func checkPath(s string) error {
	switch {
	case s == "":
		return errors.New("empty path")
	case len(s) > MaxPath:
		return fmt.Errorf("path of %d bytes; at most %d are allowed", len(s), MaxPath)
	case strings.IndexByte(s, 0) >= 0:
		return errors.New("path with a NUL byte")
	case strings.ContainsAny(s, "\n\r"):
		return errors.New("path with a line break")
	case !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError):
		return errors.New("path that is not UTF-8")
	case s != "~" && !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, "~/"):
		if s[0] == '~' {
			return errors.New("the home of another user; only the caller's own, \"~/\", is known")
		}
		return errors.New("relative path")
	}
	for _, part := range strings.Split(s, "/") {
		if part == ".." {
			return errors.New(`path with ".."`)
		}
		if len(part) > 255 {
			return fmt.Errorf("path with a name of %d bytes; file systems have at most 255", len(part))
		}
	}
	return nil
}

// resolve makes a checked path absolute and clean. home is Host.Home.
func resolve(s, home string) (string, error) {
	if s == "~" || strings.HasPrefix(s, "~/") {
		if !path.IsAbs(home) {
			return "", errors.New(`"~" has no meaning: the caller's home is not known`)
		}
		if isGlob(home) {
			return "", fmt.Errorf("\"~\" would be read as a glob: the caller's home is %s", home)
		}
		s = home + s[1:]
	}
	if len(s) > MaxPath {
		return "", fmt.Errorf("path of %d bytes; at most %d are allowed", len(s), MaxPath)
	}
	return path.Clean(s), nil
}

// within tells whether name is dir or below it. Both are clean and absolute.
func within(name, dir string) bool {
	return name == dir || dir == "/" || (strings.HasPrefix(name, dir) && name[len(dir)] == '/')
}
