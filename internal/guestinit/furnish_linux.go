package guestinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// furnish makes the box's own files in the tree of an image. Nothing of the sandbox runs yet, but the image, or an
// earlier sandbox with this private layer, may have any links. Every name is followed within the tree, and the guest
// kernel has nothing else.
func furnish() error {
	f, err := os.Open(Furniture)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFurniture+1))
	if err != nil {
		return err
	}
	var list []Piece
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	root, err := os.OpenRoot("/")
	if err != nil {
		return err
	}
	defer root.Close()
	for _, p := range list {
		if err := p.make(root); err != nil {
			return fmt.Errorf("%s: %w", p.Path, err)
		}
	}
	return nil
}

func (p *Piece) make(root *os.Root) error {
	name := strings.TrimPrefix(path.Clean(p.Path), "/")
	if err := parents(root, name); err != nil {
		return err
	}
	if p.Kind == PieceDir {
		return p.makeDir(root, name)
	}
	st, err := root.Lstat(name)
	there := err == nil && st.Mode().IsRegular()
	if p.Old && !there {
		return nil
	}
	text := []byte(p.Text)
	if p.Kind == PieceAppend {
		was, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		if strings.Contains(string(was), p.Text) {
			return nil // an earlier sandbox with this layer did it
		}
		if n := len(was); n > 0 && was[n-1] != '\n' {
			was = append(was, '\n')
		}
		text = slices.Concat(was, text)
	}
	if err == nil {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	return p.write(root, name, text)
}

func (p *Piece) write(root *os.Root, name string, text []byte) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Chmod(fs.FileMode(p.Mode&0o777)), f.Chown(p.UID, p.GID), f.Close())
}

func (p *Piece) makeDir(root *os.Root, name string) error {
	err := root.Mkdir(name, 0o700)
	if errors.Is(err, fs.ErrExist) {
		st, err := root.Stat(name)
		if err != nil {
			return err
		}
		if !st.IsDir() {
			return errors.New("it is no directory in the image")
		}
		if p.Keep {
			return nil
		}
	} else if err != nil {
		return err
	}
	mode := fs.FileMode(p.Mode & 0o777)
	if p.Mode&0o1000 != 0 {
		mode |= fs.ModeSticky
	}
	return errors.Join(root.Chmod(name, mode), root.Chown(name, p.UID, p.GID))
}

// parents makes the directories above a name that are not there.
func parents(root *os.Root, name string) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		switch err := root.Mkdir(name[:i], 0o755); {
		case errors.Is(err, fs.ErrExist):
		case err != nil:
			return err
		default:
			if err := root.Chown(name[:i], 0, 0); err != nil {
				return err
			}
		}
	}
	return nil
}
