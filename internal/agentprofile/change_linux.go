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
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A Change is a difference between what a sandbox was given and what it has now, of a file that an agent of the host
// would obey. Read puts in what the file was and is.
type Change struct {
	Name     string // relative to the sandbox's home
	Host     string // relative to the host's home
	Before   []byte // nil if it was not there
	After    []byte // nil if it is not there any more
	Exec     bool   // it can be executed now, and could not before
	unread   *unread
	executes bool
	keys     bool // only some keys of the host's file were given
	cut      string
	seen     *seen
}

// unread is where the contents of a change are, and what they were when they were compared.
type unread struct {
	dir  string        // of the state
	sums [2]*sha256sum // nil is no file
}

// Read reads what the file was and is, if that was not done. A list does not hold it, because there can be much of it. If it is
// not what was compared any more, the error is Conflict.
func (c *Change) Read() error {
	if c.unread == nil {
		return nil
	}
	var data [2][]byte
	for i, name := range []string{baseName, homeName} {
		want := c.unread.sums[i]
		if want == nil {
			continue
		}
		top, err := openDir(filepath.Join(c.unread.dir, name))
		if err != nil {
			return err
		}
		g := gathering{top: top}
		g.add(c.Name, maxDepth)
		sys.Close(top)
		if len(g.files) != 1 || g.files[0].sum != *want {
			return fmt.Errorf("~/%s: it changed in the sandbox after it was compared: %w", c.Name, paddock.Conflict)
		}
		data[i] = append([]byte{}, g.files[0].data...)
	}
	c.Before, c.After, c.unread = data[0], data[1], nil
	return nil
}

// seen is what the host had when a change was shown.
type seen struct{ there []byte }

// A Comparison is what a sandbox changed. All of it is hostile, as are the names.
type Comparison struct {
	List  []Change
	Notes []string // what is not compared, such as links
	Cut   []string // why a path that is obeyed could not be read whole: changes in it are missing
}

// Changes lists the differences of a state in files that an agent of the host would obey.
func Changes(dir, id string, p *Profile) (*Comparison, error) {
	if !stateID.MatchString(id) {
		return nil, fmt.Errorf("state %.60q: %w", id, paddock.NotFound)
	}
	var tops [2]int
	for i, name := range []string{baseName, homeName} {
		top, err := openDir(filepath.Join(dir, id, name))
		if errors.Is(err, syscall.ENOENT) {
			return nil, fmt.Errorf("state %s: %w", id, paddock.NotFound)
		}
		if err != nil {
			return nil, err
		}
		defer sys.Close(top)
		tops[i] = top
	}
	sum := &Comparison{}
	for _, at := range p.State.Obeyed {
		sum.compare(p, at[2:], filepath.Join(dir, id), tops)
	}
	slices.SortFunc(sum.List, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	sum.List = slices.CompactFunc(sum.List, func(a, b Change) bool { return a.Name == b.Name })
	return sum, nil
}

// compare compares one path that is obeyed. It has bounds of its own, so that one path cannot hide another one.
func (sum *Comparison) compare(p *Profile, at, dir string, tops [2]int) {
	var trees [2]map[string]file
	var names []string
	var cuts [2]string
	for i, top := range tops {
		g := gathering{top: top, sums: true}
		g.add(at, 0)
		trees[i] = map[string]file{}
		for _, f := range g.files {
			trees[i][f.name] = f
			names = append(names, f.name)
		}
		if cuts[i] = g.cut; g.cut != "" {
			sum.Cut = append(sum.Cut, g.cut)
		}
		sum.Notes = append(sum.Notes, g.told()...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, had := trees[0][name]
		now, has := trees[1][name]
		if !has && cuts[1] != "" {
			continue // it may be there
		}
		c := Change{Name: name, unread: &unread{dir: dir}, executes: now.exec, Exec: now.exec && !was.exec, cut: cuts[0] + cuts[1]}
		if had {
			c.unread.sums[0] = &was.sum
		}
		if has {
			c.unread.sums[1] = &now.sum
		}
		if had == has && was.sum == now.sum && !c.Exec {
			continue
		}
		c.Host, c.keys = p.hostPath(name)
		sum.List = append(sum.List, c)
	}
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

// Onto returns what the host's file is, and what the change would make of it; nil is no file. It is for whoever is asked.
func (c *Change) Onto(home string) (there, after []byte, err error) {
	top, err := openDir(home)
	if err != nil {
		return nil, nil, err
	}
	defer sys.Close(top)
	there, after, err = c.plan(top)
	if err == nil {
		c.seen = &seen{there}
	}
	return there, after, err
}

func (c *Change) plan(top int) (there, after []byte, err error) {
	if err := c.Read(); err != nil {
		return nil, nil, err
	}
	if c.cut != "" {
		return nil, nil, fmt.Errorf("~/%s: not all beside it could be compared (%s): %w", c.Host, c.cut, paddock.Denied)
	}
	g := gathering{top: top}
	if g.add(c.Host, maxDepth); len(g.notes) > 0 {
		return nil, nil, fmt.Errorf("%s on the host: %w", g.notes[0], paddock.Denied)
	}
	if len(g.files) == 1 {
		there = append([]byte{}, g.files[0].data...)
	}
	if after, err = c.onto(there); err != nil {
		return nil, nil, fmt.Errorf("~/%s: %w", c.Host, err)
	}
	return there, after, nil
}

// Take makes a change in the host's home as well. It refuses to if the host's file changed since the state was made, or
// since Onto was called, and follows no link.
func Take(dir, id, home string, c Change) error {
	top, err := openDir(home)
	if err != nil {
		return err
	}
	defer sys.Close(top)
	there, after, err := c.plan(top)
	if err != nil {
		return err
	}
	if c.seen != nil && ((there == nil) != (c.seen.there == nil) || !bytes.Equal(there, c.seen.there)) {
		return fmt.Errorf("~/%s: it changed on this machine after it was shown: %w", c.Host, paddock.Conflict)
	}
	if after == nil {
		if err := remove(top, c.Host); err != nil {
			return err
		}
	} else if err := replace(top, c.Host, after, c.executes); err != nil {
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

// ontoKeys changes in a JSON object of the host the keys that differ. Of each the host must have what the sandbox was given.
func (c *Change) ontoKeys(there []byte) ([]byte, error) {
	if !utf8.Valid(c.After) {
		return nil, fmt.Errorf("in the sandbox: it is not text in UTF-8: %w", paddock.Invalid)
	}
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
	for _, m := range after {
		was, now := find(before, m.key), find(host, m.key)
		switch {
		case same(was, &m) || same(now, &m):
		case !same(was, now):
			return nil, fmt.Errorf("on this machine the key %.60q is not what the sandbox was given: %w", m.key, paddock.Conflict)
		case now != nil:
			now.value = m.value
		default:
			host = append(host, m)
		}
	}
	for _, m := range before {
		if now := find(host, m.key); find(after, m.key) == nil && now != nil {
			if !same(now, &m) {
				return nil, fmt.Errorf("on this machine the key %.60q is not what the sandbox was given: %w", m.key, paddock.Conflict)
			}
			host = slices.DeleteFunc(host, func(o member) bool { return o.key == m.key })
		}
	}
	return formatObject(host), nil
}

// find returns the member with a key, or nil.
func find(list []member, key string) *member {
	i := slices.IndexFunc(list, func(m member) bool { return m.key == key })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// same reports whether two members have the same value. Nil is that it is absent.
func same(a, b *member) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(compact(*a), compact(*b))
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
	return replace(top, c.Name, c.After, c.executes)
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
