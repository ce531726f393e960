package hostroot

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A Private has what the caller keeps to itself, such as the keys and the state of a server, as real paths. No
// sandbox may see it, whatever is mounted.
type Private struct {
	Paths []string // files and directories
	Shown []string // directories in Paths that may be mounted nevertheless, such as images
}

// Refuse returns an error if a directory or file that a sandbox is to have is part of what is private.
func (p Private) Refuse(what, source string) error {
	within := func(dir string) bool { return Within(source, dir) }
	if i := slices.IndexFunc(p.Paths, within); i >= 0 && !slices.ContainsFunc(p.Shown, within) {
		return fmt.Errorf("%s %s: in %s is what this server keeps to itself, which no sandbox may see: %w", what, source, p.Paths[i], paddock.Denied)
	}
	return nil
}

// In returns the places in a sandbox where a mount of source at target would show what is private.
func (p Private) In(source, target string) []string {
	var list []string
	for _, private := range p.Paths {
		if Within(private, source) {
			list = append(list, path.Join(target, strings.TrimPrefix(private, strings.TrimSuffix(source, "/"))))
		}
	}
	return list
}

// Hide has a spec deny reading what is private in its mounts, for a tier that follows no links of a host's.
func (p Private) Hide(spec *paddock.Spec) error {
	for _, m := range spec.Mounts {
		source, err := filepath.EvalSymlinks(m.Source)
		if err != nil {
			source = filepath.Clean(m.Source) // the tier says what is wrong with it
		}
		if err := p.Refuse("mount", source); err != nil {
			return err
		}
		if private := p.In(source, cmp.Or(m.Target, m.Source)); len(private) > 0 {
			spec.Policy.Files.DenyRead = slices.Concat(spec.Policy.Files.DenyRead, private)
		}
	}
	return nil
}

// Within reports whether a clean path is a directory or below it.
func Within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// Place returns what to hide so that nobody sees a file with a secret: its directory, because a renewed file has the
// same name but is another file. If the directory is not for such files alone, it is the file.
func Place(file string) string {
	dir := filepath.Dir(file)
	shared := slices.Contains(SystemDirs(), dir) || Within(dir, "/etc/ssl") || Within(dir, "/etc/pki") || !Within(dir, "/etc") && !Within(dir, "/opt")
	if shared {
		return file
	}
	return dir
}
