package sort

import (
	"slices"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

var tsortSpec = &command.Spec{
	Name: "tsort", Synopsis: "[OPTION] [FILE]",
	About: "Write totally ordered list consistent with the partial ordering in FILE.",
}

// A vertex is a name, and what has to come after it, latest first.
type vertex struct {
	name    string
	before  int // how many have to come before it
	after   *edge
	done    bool
	visited *vertex // the next in a walk that looks for a loop
}

type edge struct {
	to   *vertex
	next *edge
}

func runTsort(t *kernel.Task) int {
	a, status, ok := tsortSpec.Parse(t)
	if !ok {
		return status
	}
	if status := command.CheckCount(t, tsortSpec, a.Operands, 0, 1); status != 0 {
		return status
	}
	name := command.InputNames(a.Operands)[0]
	result := 0
	if !(command.ReadErrors{Read: "%s: read error"}.One(t, name, func(_ string, r *command.Reader) {
		list, odd := vertices(t, r)
		if r.Err() != nil {
			return
		}
		if odd {
			t.Errorf("%s: input contains an odd number of tokens", command.QuoteFile(name))
			result = 1
			return
		}
		result = topological(t, name, list)
	})) {
		return 1
	}
	return result
}

// vertices reads pairs of names.
func vertices(t *kernel.Task, r *command.Reader) (list []*vertex, odd bool) {
	known := map[string]*vertex{}
	var first *vertex
	take := func(word []byte) {
		t.Step(1)
		v := known[string(word)]
		if v == nil {
			t.Grow(len(word) + 160)
			v = &vertex{name: string(word)}
			known[v.name] = v
			list = append(list, v)
		}
		if first == nil {
			first = v
			return
		}
		if first != v {
			t.Grow(16)
			first.after = &edge{v, first.after}
			v.before++
		}
		first = nil
	}
	var word []byte
	for b, ok := r.Piece(); ok; b, ok = r.Piece() {
		for _, c := range b {
			if c == ' ' || c == '\t' || c == '\n' {
				if len(word) > 0 {
					take(word)
					word = word[:0]
				}
				continue
			}
			word = append(word, c)
			if len(word) > 1<<16 {
				t.Bound("record", int64(len(word)), t.K.Limits.Record)
			}
		}
	}
	if len(word) > 0 {
		take(word)
	}
	slices.SortFunc(list, func(a, b *vertex) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return list, first != nil
}

func topological(t *kernel.Task, name string, list []*vertex) int {
	w := command.Stdout(t)
	status, left := 0, len(list)
	for left > 0 {
		var queue []*vertex
		for _, v := range list {
			if v.before == 0 && !v.done {
				queue = append(queue, v)
			}
		}
		for len(queue) > 0 {
			v := queue[0]
			queue = queue[1:]
			w.String(v.name)
			w.Byte('\n')
			t.Step(1)
			v.done = true
			left--
			for e := v.after; e != nil; e = e.next {
				e.to.before--
				if e.to.before == 0 {
					queue = append(queue, e.to)
				}
			}
		}
		if left > 0 {
			t.Errorf("%s: input contains a loop:", command.QuoteFile(name))
			status = 1
			breakLoop(t, list)
		}
	}
	return status
}

// breakLoop finds a loop, shows it, and takes out one edge of it.
func breakLoop(t *kernel.Task, list []*vertex) {
	var at *vertex
	for {
		for _, v := range list {
			t.Step(1)
			if v.before == 0 {
				continue
			}
			if at == nil {
				at = v
				continue
			}
			for p := &v.after; *p != nil; p = &(*p).next {
				if (*p).to != at {
					continue
				}
				if v.visited == nil {
					v.visited = at
					at = v
					break
				}
				for at != nil {
					next := at.visited
					t.Errorf("%s", at.name)
					if at == v {
						(*p).to.before--
						*p = (*p).next
						break
					}
					at.visited = nil
					at = next
				}
				for at != nil {
					next := at.visited
					at.visited = nil
					at = next
				}
				return
			}
		}
	}
}
