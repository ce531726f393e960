package sort

import (
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A head is the next line of a file that is merged.
type head struct {
	r     *command.Reader
	line  []byte
	index int
}

// merging merges sorted files.
func (j *job) merging(names []string) int {
	var heads []*head
	defer func() {
		for _, h := range heads {
			h.r.Close()
		}
	}()
	for i, name := range names {
		r, err := command.OpenReader(j.t, name)
		if err != nil {
			j.t.Errorf("cannot read: %s: %s", command.QuoteFile(name), vfs.Message(err))
			return 2
		}
		heads = append(heads, &head{r: r, index: i})
	}
	if j.output == "" {
		w := command.StdoutStatus(j.t, 2)
		return j.merged(names, heads, func(line []byte) { w.Line(line, j.end) })
	}
	// The output may be one of the inputs.
	var held []byte
	if status := j.merged(names, heads, func(line []byte) {
		held = append(append(command.Room(j.t, held, len(line)+1), line...), j.end)
	}); status != 0 {
		return status
	}
	return j.writing(func(w *command.Writer) { w.Bytes(held) })
}

func (j *job) merged(names []string, all []*head, emit func([]byte)) int {
	heads := make([]*head, 0, len(all))
	next := func(h *head) (more, failed bool) {
		line, _, ok := h.r.Line(j.end)
		if err := h.r.Err(); err != nil {
			j.t.Errorf("read failed: %s: %s", command.QuoteFile(names[h.index]), vfs.Message(err))
			return false, true
		}
		h.line = line
		return ok, false
	}
	for _, h := range all {
		more, failed := next(h)
		if failed {
			return 2
		}
		if more {
			heads = append(heads, h)
			j.sink(heads, len(heads)-1, -1)
		}
	}
	var last []byte
	any := false
	for len(heads) > 0 {
		h := heads[0]
		if !j.unique || !any || j.differ(last, h.line) {
			emit(h.line)
			if j.unique {
				last = append(last[:0], h.line...)
				any = true
			}
		}
		more, failed := next(h)
		if failed {
			return 2
		}
		if !more {
			heads = heads[1:]
			continue
		}
		j.sink(heads, 0, 1)
	}
	return 0
}

func (s *sorter) differ(a, b []byte) bool {
	if len(s.keys) == 0 {
		return string(a) != string(b)
	}
	return s.byKeys(a, b) != 0
}

// sink moves the head at i to its place, towards the end or the beginning.
func (s *sorter) sink(heads []*head, i, way int) {
	for {
		k := i + way
		if k < 0 || k >= len(heads) {
			return
		}
		c := s.compare(heads[i].line, heads[k].line)
		if c == 0 {
			c = heads[i].index - heads[k].index
		}
		if c*way < 0 {
			return
		}
		heads[i], heads[k] = heads[k], heads[i]
		i = k
	}
}

// checkOrder looks whether a file is sorted.
func (j *job) checkOrder(name string) int {
	if !j.seed() {
		return 2
	}
	r, err := command.OpenReader(j.t, name)
	if err != nil {
		j.t.Errorf("open failed: %s: %s", command.QuoteFile(name), vfs.Message(err))
		return 2
	}
	defer r.Close()
	var last []byte
	for n := 1; ; n++ {
		line, _, ok := r.Line(j.end)
		if !ok {
			break
		}
		if n > 1 {
			c := 0
			if len(j.keys) > 0 {
				c = j.byKeys(last, line)
			}
			if c == 0 && (len(j.keys) == 0 || !j.unique && !j.stable) {
				c = j.compare(last, line)
			}
			if c > 0 || c == 0 && j.unique {
				if j.check == 'c' {
					j.t.Errorf("%s:%d: disorder: %s", command.QuoteFile(name), n, line)
				}
				return 1
			}
		}
		last = append(last[:0], line...)
	}
	if err := r.Err(); err != nil {
		j.t.Errorf("read failed: %s: %s", command.QuoteFile(name), vfs.Message(err))
		return 2
	}
	return 0
}
