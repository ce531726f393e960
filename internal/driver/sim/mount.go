package sim

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sync/atomic"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A mounted is a host directory or file that appears in a box.
type mounted struct {
	target string
	dir    bool
	root   *hostRoot
	hidden []string // paths in the box of what the caller keeps to itself
}

// A hostRoot is an open directory of the host, which boxes and snapshots share.
type hostRoot struct {
	*os.Root
	refs atomic.Int64
}

func openRoot(dir string) (*hostRoot, error) {
	// With the dot it is opened as a directory: had it become a pipe since it
	// was looked at, opening it would wait.
	r, err := os.OpenRoot(dir + "/.")
	if err != nil {
		return nil, err
	}
	h := &hostRoot{Root: r}
	h.refs.Store(1)
	return h, nil
}

func (h *hostRoot) hold() { h.refs.Add(1) }

func (h *hostRoot) drop() {
	if h.refs.Add(-1) == 0 {
		h.Close()
	}
}

// mount shows a host directory or file. It is opened here, once; what is done
// later goes through what was opened.
func (b *box) mount(m paddock.Mount) error {
	source := filepath.Clean(m.Source)
	st, err := os.Stat(source)
	var real string
	if err == nil {
		real, err = filepath.EvalSymlinks(source)
	}
	if err != nil {
		kind := paddock.Denied
		if errors.Is(err, os.ErrNotExist) {
			kind = paddock.NotFound
		}
		return fmt.Errorf("mount %s: %w: %w", m.Source, err, kind)
	}
	if real != source {
		return fmt.Errorf("mount %s: leads through a symbolic link, which somebody inside could have made; name the real place if it is meant, %s: %w", m.Source, real, paddock.Invalid)
	}
	kept := b.d.o.Private.Real()
	if err := kept.Refuse("mount", real); err != nil {
		return err
	}
	x := mounted{target: path.Clean(cmp.Or(m.Target, m.Source)), dir: st.IsDir()}
	x.hidden = kept.In(real, x.target)
	o := vfs.MountOptions{ReadOnly: !m.Overlay, Name: m.Source, Type: "host", UID: b.user.uid, GID: b.user.gid}
	var below vfs.Lower
	if x.dir {
		if x.root, err = openRoot(source); err != nil {
			return fmt.Errorf("mount %s: %w: %w", m.Source, err, paddock.Denied)
		}
		below, err = vfs.HostDir(x.root.Root)
	} else {
		if x.root, err = openRoot(filepath.Dir(source)); err != nil {
			return fmt.Errorf("mount %s: %w: %w", m.Source, err, paddock.Denied)
		}
		below, err = vfs.HostFile(x.root.Root, filepath.Base(source))
	}
	b.mounts = append(b.mounts, x)
	if err != nil {
		return fmt.Errorf("mount %s: %w: %w", m.Source, err, paddock.Invalid)
	}
	if err := x.same(st, filepath.Base(source)); err != nil {
		return fmt.Errorf("mount %s: %w: %w", m.Source, err, paddock.Conflict)
	}
	if err := b.fs.Mount(x.target, below, o); err != nil {
		kind, words := classify(err)
		return fmt.Errorf("mount %s at %s: %s: %w", m.Source, x.target, words, kind)
	}
	return nil
}

// same reports whether what was opened is what was looked at: a link that took
// its place meanwhile was followed.
func (x mounted) same(was os.FileInfo, name string) error {
	if x.dir {
		name = "."
	}
	is, err := x.root.Lstat(name)
	if err == nil && !os.SameFile(was, is) {
		err = errors.New("it was replaced while it was opened")
	}
	return err
}

// policy puts the rules of a file policy in place of those that were.
func (b *box) policy(p paddock.FilePolicy) error {
	clean := func(list []string) []string {
		out := make([]string, len(list))
		for i, name := range list {
			out[i] = path.Clean(name)
		}
		return out
	}
	read, write := clean(p.DenyRead), clean(p.DenyWrite)
	for _, m := range b.mounts {
		read = append(read, m.hidden...)
	}
	if len(read)+len(write) == 0 {
		b.fs.SetRules(nil)
		return nil
	}
	b.fs.SetRules(func(name string) (mayRead, mayWrite bool) {
		mayRead, mayWrite = true, true
		for _, d := range read {
			if hostroot.Within(name, d) {
				return false, false
			}
		}
		for _, d := range write {
			if hostroot.Within(name, d) {
				mayWrite = false
			}
		}
		return mayRead, mayWrite
	})
	return nil
}
