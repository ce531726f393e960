package vfs

import (
	"io"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// MkdirAll makes a directory with its parents. One that is there is fine.
func (v *View) MkdirAll(path string, mode uint32) error {
	if i, err := v.Stat(path); err == nil {
		if i.IsDir() {
			return nil
		}
		return linux.ENOTDIR
	}
	for i := 1; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' || path[i-1] == '/' {
			continue
		}
		err := v.Mkdir(path[:i], mode)
		if err == nil {
			continue
		}
		// Whoever stands there already may answer with another error first.
		x, serr := v.Stat(path[:i])
		switch {
		case serr != nil:
			return err
		case !x.IsDir():
			return linux.ENOTDIR
		}
	}
	return nil
}

// RemoveAll removes a file or a directory with all in it. One that is not
// there is fine. It goes on after an error, and gives the first.
func (v *View) RemoveAll(path string) error {
	err := v.Unlink(path)
	switch err {
	case nil, linux.ENOENT:
		return nil
	case linux.EISDIR:
	default:
		return err
	}
	if strings.Trim(path, "/") == "" {
		return linux.EBUSY
	}
	if err = v.Rmdir(path); err != linux.ENOTEMPTY {
		return err
	}
	return v.clear(path)
}

// clear removes a directory that holds something. It goes down by working
// directories and not by paths, which could get too long.
func (v *View) clear(path string) error {
	type level struct {
		view View
		name string
		left []string
	}
	var first error
	keep := func(err error) {
		if err != nil && err != linux.ENOENT && first == nil {
			first = err
		}
	}
	enter := func(in View, name string) (level, bool) {
		l := level{view: in, name: name}
		below := in
		info, err := in.Lstat(name)
		if err != nil || !info.IsDir() {
			keep(err)
			return l, false
		}
		if err := below.Chdir(name); err != nil || below.Dir != info.Ino {
			keep(err)
			return l, false
		}
		l.left, err = below.Names(".")
		keep(err)
		return l, err == nil
	}
	start, ok := enter(*v, path)
	if !ok {
		return first
	}
	stack := []level{start}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.left) == 0 {
			keep(top.view.Rmdir(top.name))
			stack = stack[:len(stack)-1]
			continue
		}
		name := top.left[len(top.left)-1]
		top.left = top.left[:len(top.left)-1]
		in := top.view
		if err := in.Chdir(top.name); err != nil {
			keep(err)
			top.left = nil
			continue
		}
		switch err := in.Unlink(name); err {
		case nil, linux.ENOENT:
		case linux.EISDIR:
			if err = in.Rmdir(name); err == linux.ENOTEMPTY {
				if l, ok := enter(in, name); ok {
					stack = append(stack, l)
				}
			} else {
				keep(err)
			}
		default:
			keep(err)
		}
	}
	return first
}

// ReadFile returns what a file holds, if it is at most limit bytes; a longer
// one is EFBIG.
func (v *View) ReadFile(path string, limit int64) ([]byte, error) {
	h, err := v.Open(path, linux.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	i, err := h.Info()
	if err != nil {
		return nil, err
	}
	if i.Size > limit {
		return nil, linux.EFBIG
	}
	b := make([]byte, 0, i.Size+1)
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := h.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case int64(len(b)) > limit:
			return nil, linux.EFBIG
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		}
	}
}

// WriteFile makes a file, or cuts one that is there, and writes it.
func (v *View) WriteFile(path string, b []byte, mode uint32) error {
	h, err := v.Open(path, linux.O_WRONLY|linux.O_CREAT|linux.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if _, err = h.Write(b); err != nil {
		_ = h.Close() // the write's error says it
		return err
	}
	return h.Close()
}
