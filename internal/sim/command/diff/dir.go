package diff

import (
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
)

// directories compares two directories and, with -r, all below them. It keeps
// its place in a list of its own, and not on the stack.
func (d *differ) directories(a, b *side) int {
	type pairing struct {
		a, b       side
		dirA, dirB *side // nil for the first
	}
	status := 0
	stack := []pairing{{a: *a, b: *b}}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if p.dirA != nil {
			done, st := d.alone(&p.a, &p.b, p.dirA, p.dirB)
			status = max(status, st)
			if done {
				continue
			}
			if !p.a.info.IsDir() || !p.b.info.IsDir() || !d.recursive {
				status = max(status, d.pair(&p.a, &p.b, true))
				continue
			}
		}
		x, okX := d.names(&p.a)
		y, okY := d.names(&p.b)
		if !okX || !okY {
			status = 2
			continue
		}
		if p.dirA == nil && d.start != "" {
			x = slices.DeleteFunc(x, func(n string) bool { return d.order(n, d.start) < 0 })
			y = slices.DeleteFunc(y, func(n string) bool { return d.order(n, d.start) < 0 })
		}
		var below []pairing
		for len(x) > 0 || len(y) > 0 {
			d.t.Step(1)
			c := 0
			switch {
			case len(x) == 0:
				c = 1
			case len(y) == 0:
				c = -1
			default:
				c = d.order(x[0], y[0])
			}
			q := pairing{side{missing: true}, side{missing: true}, &p.a, &p.b}
			if c <= 0 {
				q.a = d.within(&p.a, x[0])
				x = x[1:]
			}
			if c >= 0 {
				q.b = d.within(&p.b, y[0])
				y = y[1:]
			}
			below = append(below, q)
		}
		for i := len(below) - 1; i >= 0; i-- {
			stack = append(stack, below[i])
		}
	}
	return status
}

func (d *differ) order(x, y string) int {
	if d.foldNames {
		if c := strings.Compare(strings.ToLower(x), strings.ToLower(y)); c != 0 {
			return c
		}
		return 0
	}
	return strings.Compare(x, y)
}

// below is what a file of a directory is called: with one slash between.
func below(dir, name string) string {
	if s := strings.TrimRight(dir, "/"); s != "" {
		dir = s
	}
	return command.JoinPath(dir, name)
}

func (d *differ) within(dir *side, name string) side {
	s := d.look(command.JoinPath(dir.name, name))
	s.label = below(dir.label, name)
	return s
}

// names lists a directory; one that is missing is empty.
func (d *differ) names(s *side) ([]string, bool) {
	if s.missing {
		return nil, true
	}
	list, err := d.t.View.Names(s.name)
	if err != nil {
		d.trouble(s.name, err)
		return nil, false
	}
	d.t.Traverse(len(list))
	if d.exclude != nil {
		list = slices.DeleteFunc(list, func(n string) bool {
			for _, p := range d.exclude {
				if ok, err := p.Match(n, meter{d.t}); ok && err == nil {
					return true
				}
			}
			return false
		})
	}
	return list, true
}

// alone says where a file is that the other directory does not have, unless
// it is compared to nothing. done is that there is no more to do.
func (d *differ) alone(a, b, dirA, dirB *side) (done bool, status int) {
	for _, s := range []*side{a, b} {
		if !s.missing && s.err != nil {
			return true, d.trouble(s.name, s.err)
		}
	}
	switch {
	case a.missing && b.missing, !a.missing && !b.missing:
		return false, 0
	case a.missing && b.name != "" && a.name == "":
		name := base(b.name)
		if d.newFile || d.newLeft {
			a.name, a.label, a.info.Mode = command.JoinPath(dirA.name, name), below(dirA.label, name), b.info.Mode
			return false, 0
		}
		d.w.String("Only in " + strings.TrimSuffix(dirB.label, "/") + ": " + name + "\n")
		return true, 1
	case b.missing && b.name == "":
		name := base(a.name)
		if d.newFile {
			b.name, b.label, b.info.Mode = command.JoinPath(dirB.name, name), below(dirB.label, name), a.info.Mode
			return false, 0
		}
		d.w.String("Only in " + strings.TrimSuffix(dirA.label, "/") + ": " + name + "\n")
		return true, 1
	}
	return false, 0
}
