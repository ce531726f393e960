package build

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// files are what a file system is read by. No name has a link in it, but for its last part.
type files interface {
	Lstat(name string) (fs.FileInfo, error)
	ReadLink(name string) (string, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Open(name string) (fs.File, error)
}

// A tree is the files of an image while it is made: those of a file system, and what instructions have added since it
// was made. Nothing that is added takes the place of a directory.
type tree struct {
	base  files // nil is none
	close func() error
	added map[string]node // by name, without a slash before it
}

// A node is what is known of a file.
type node struct {
	mode fs.FileMode // its kind and permissions
	link string
}

func (n node) isDir() bool { return n.mode.IsDir() }

const maxLinks = 40

// look returns what has a name in the tree. No part of the name but the last may be a link.
func (t *tree) look(name string) (node, bool, error) {
	if name == "" {
		return node{mode: fs.ModeDir | 0o755}, true, nil
	}
	if n, ok := t.added[name]; ok {
		return n, true, nil
	}
	if t.base == nil {
		return node{}, false, nil
	}
	return lookIn(t.base, name)
}

func lookIn(f files, name string) (node, bool, error) {
	if name == "" {
		name = "."
	}
	st, err := f.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return node{}, false, nil
	}
	if err != nil {
		return node{}, false, fmt.Errorf("%s: %w: %w", clip(name), err, paddock.Denied)
	}
	n := node{mode: st.Mode()}
	if n.mode&fs.ModeSymlink != 0 {
		if n.link, err = f.ReadLink(name); err != nil {
			return node{}, false, fmt.Errorf("%s: %w: %w", clip(name), err, paddock.Denied)
		}
	}
	return n, true, nil
}

// resolve follows the links of a name as the tree would, and returns the name without any. The last part is followed if
// last is true. What is not there is returned as it is written.
func (t *tree) resolve(name string, last bool) (at string, there bool, n node, err error) {
	return resolve(t.look, name, last)
}

func resolve(look func(string) (node, bool, error), name string, last bool) (at string, there bool, n node, err error) {
	rest := strings.Split(name, "/")
	there, n = true, node{mode: fs.ModeDir | 0o755}
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if at = path.Dir(at); at == "." {
				at = ""
			}
			if n, there, err = look(at); err != nil {
				return "", false, n, err
			}
			continue
		}
		if len(part) > maxPart || strings.Count(at, "/") >= maxDepth || len(at) > maxName {
			return "", false, n, fmt.Errorf("%s: it is too long or in too many directories: %w", clip(name), paddock.Invalid)
		}
		if there && !n.isDir() {
			return "", false, n, fmt.Errorf("%s: it is in /%s, which is no directory: %w", clip(name), clip(at), paddock.Invalid)
		}
		next := path.Join(at, part)
		if n, there, err = look(next); err != nil {
			return "", false, n, err
		}
		if !there || n.mode&fs.ModeSymlink == 0 || len(strings.Join(rest, "")) == 0 && !last {
			at = next
			continue
		}
		if links++; links > maxLinks || len(rest) > maxName {
			return "", false, n, fmt.Errorf("%s: its links lead in a circle: %w", clip(name), paddock.Invalid)
		}
		to := n.link
		if path.IsAbs(to) {
			at = ""
		}
		if n, there, err = look(at); err != nil {
			return "", false, n, err
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return at, there, n, nil
}

// read returns the content of a small file of the tree's file system, or nothing if it is not there.
func (t *tree) read(name string, most int64) ([]byte, error) {
	if t.base == nil {
		return nil, nil
	}
	look := func(name string) (node, bool, error) { return lookIn(t.base, name) }
	at, there, n, err := resolve(look, name, true)
	if err != nil || !there {
		return nil, err
	}
	if !n.mode.IsRegular() {
		return nil, fmt.Errorf("/%s of the image is no file: %w", name, paddock.Invalid)
	}
	f, err := t.base.Open(at)
	if err != nil {
		return nil, fmt.Errorf("/%s of the image: %w: %w", name, err, paddock.Invalid)
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("/%s of the image: %w: %w", name, err, paddock.Invalid)
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("/%s of the image has more than %d bytes: %w", name, most, paddock.Exhausted)
	}
	return data, nil
}

// account finds a user or group in a file of accounts, and returns the numbers of the line.
func (t *tree) account(file, name string) (first, second string, err error) {
	data, err := t.read(file, 1<<20)
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(data)) {
		if p := strings.Split(strings.TrimSpace(line), ":"); len(p) > 3 && p[0] == name {
			return p[2], p[3], nil
		}
	}
	return "", "", fmt.Errorf("there is no %q in /%s of the image: name a number, or add it before: %w", clip(name), file, paddock.NotFound)
}
