package agentprofile

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A Change is a difference between what a sandbox was given and what it has now, of a file that an agent of the host
// would obey.
type Change struct {
	Name     string // relative to the sandbox's home
	Host     string // relative to the host's home
	Before   []byte // nil if it was not there
	After    []byte // nil if it is not there any more
	Exec     bool   // it can be executed now, and could not before
	executes bool
	keys     bool // only some keys of the host's file were given
}

// Changes lists the differences of a state in files that an agent of the host would obey. The notes are about what
// cannot be compared, such as links. It is hostile, as all the names are.
func Changes(dir, id string, p *Profile) (list []Change, notes []string, err error) {
	if !stateID.MatchString(id) {
		return nil, nil, fmt.Errorf("state %.60q: %w", id, paddock.NotFound)
	}
	var trees [2]map[string]file
	for i, name := range []string{baseName, homeName} {
		top, err := openDir(filepath.Join(dir, id, name))
		if errors.Is(err, syscall.ENOENT) {
			return nil, nil, fmt.Errorf("state %s: %w", id, paddock.NotFound)
		}
		if err != nil {
			return nil, nil, err
		}
		g := gathering{top: top}
		for _, at := range p.State.Obeyed {
			err = errors.Join(err, g.add(at[2:], 0))
		}
		sys.Close(top)
		if err != nil {
			return nil, nil, err
		}
		trees[i] = map[string]file{}
		for _, f := range g.files {
			trees[i][f.name] = f
		}
		notes = append(notes, g.notes...)
	}
	var names []string
	for _, tree := range trees {
		for name := range tree {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, had := trees[0][name]
		now, has := trees[1][name]
		c := Change{Name: name, executes: now.exec, Exec: now.exec && !was.exec}
		if had {
			c.Before = append([]byte{}, was.data...)
		}
		if has {
			c.After = append([]byte{}, now.data...)
		}
		if had == has && bytes.Equal(was.data, now.data) && !c.Exec {
			continue
		}
		c.Host, c.keys = p.hostPath(name)
		list = append(list, c)
	}
	return list, notes, nil
}

// hostPath returns the path in the host's home of a file of the sandbox's home, and whether only some keys of it are
// copied.
func (p *Profile) hostPath(name string) (host string, keys bool) {
	for _, c := range p.State.Copy {
		if to := c.Target()[2:]; within(name, to) {
			return path.Join(c.From[2:], strings.TrimPrefix(name, to)), len(c.Keys) > 0
		}
	}
	return name, false
}

// Take makes a change in the host's home as well. It refuses to if the host's file changed since the state was made, and
// follows no link.
func Take(dir, id, home string, c Change) error {
	top, err := openDir(home)
	if err != nil {
		return err
	}
	defer sys.Close(top)
	g := gathering{top: top}
	if err := g.add(c.Host, maxDepth); err != nil {
		return err
	}
	if len(g.notes) > 0 {
		return fmt.Errorf("%s on the host: %w", g.notes[0], paddock.Denied)
	}
	var there []byte
	if len(g.files) == 1 {
		there = append([]byte{}, g.files[0].data...)
	}
	after, err := c.onto(there)
	if err != nil {
		return fmt.Errorf("~/%s: %w", c.Host, err)
	}
	if after == nil {
		if err := remove(top, c.Host); err != nil {
			return err
		}
	} else if err := put(top, c.Host, after, modeOf(file{exec: c.executes})); err != nil {
		if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENOTDIR) {
			return fmt.Errorf("%w: a link is on the way: %w", err, paddock.Denied)
		}
		return err
	}
	return c.settle(filepath.Join(dir, id, baseName))
}

// onto returns what the host's file becomes.
func (c *Change) onto(there []byte) ([]byte, error) {
	switch {
	case c.keys && there != nil && c.After != nil:
		return c.ontoKeys(there)
	case (there == nil) != (c.Before == nil) || !bytes.Equal(there, c.Before):
		if c.Before == nil || there == nil || !c.keys {
			return nil, fmt.Errorf("it changed on this machine too, or is not what the sandbox was given: %w", paddock.Conflict)
		}
	}
	if c.keys && c.After == nil {
		return nil, fmt.Errorf("the sandbox was given only a part of it, so it is not removed: %w", paddock.Conflict)
	}
	return c.After, nil
}

// ontoKeys changes in a JSON object of the host the keys that differ.
func (c *Change) ontoKeys(there []byte) ([]byte, error) {
	host, err := parseObject(there)
	if err != nil {
		return nil, fmt.Errorf("on this machine: %w: %w", err, paddock.Conflict)
	}
	var before []member
	if c.Before != nil {
		if before, err = parseObject(c.Before); err != nil {
			return nil, err
		}
	}
	after, err := parseObject(c.After)
	if err != nil {
		return nil, fmt.Errorf("in the sandbox: %w: %w", err, paddock.Invalid)
	}
	find := func(list []member, key string) int {
		return slices.IndexFunc(list, func(m member) bool { return m.key == key })
	}
	for _, m := range after {
		if i := find(before, m.key); i >= 0 && bytes.Equal(compact(before[i]), compact(m)) {
			continue
		}
		if i := find(host, m.key); i >= 0 {
			host[i].value = m.value
		} else {
			host = append(host, m)
		}
	}
	for _, m := range before {
		if i := find(host, m.key); i >= 0 && find(after, m.key) < 0 {
			host = slices.Delete(host, i, i+1)
		}
	}
	return formatObject(host), nil
}

func compact(m member) []byte { return formatObject([]member{m}) }

// settle keeps that the sandbox has what the host has.
func (c *Change) settle(base string) error {
	top, err := openDir(base)
	if err != nil {
		return err
	}
	defer sys.Close(top)
	if c.After == nil {
		return remove(top, c.Name)
	}
	return put(top, c.Name, c.After, modeOf(file{exec: c.executes}))
}

// remove removes a file below an open directory, and follows no link.
func remove(top int, name string) error {
	dir, err := sys.OpenDirBeneath(top, path.Dir(name))
	if err != nil {
		return fmt.Errorf("~/%s: %w", name, err)
	}
	defer sys.Close(dir)
	if err := sys.UnlinkAt(dir, path.Base(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("~/%s: %w", name, err)
	}
	return nil
}
