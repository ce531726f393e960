package xan

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// The verbs that order rows.

// comparer compares rows by columns.
func (j *job) comparer(columns []int, numeric bool) func(a, b []string) int {
	return func(a, b []string) int {
		j.t.Step(1)
		for _, c := range columns {
			r := 0
			if numeric {
				x, ok1 := number(a[c])
				y, ok2 := number(b[c])
				switch {
				case ok1 && ok2:
					r = cmp.Compare(x, y)
				case ok1:
					r = 1 // what is no number comes first
				case ok2:
					r = -1
				}
			} else {
				r = strings.Compare(a[c], b[c])
			}
			if r != 0 {
				return r
			}
		}
		return 0
	}
}

func (j *job) sort() error {
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := j.columns(x.head)
	if err != nil {
		return err
	}
	compare := j.comparer(columns, j.a.Has("N"))
	if j.a.Has("R") {
		forward := compare
		compare = func(a, b []string) int { return forward(b, a) }
	}
	if j.a.Has("c") {
		var last []string
		return x.each(func(row []string) error {
			if last != nil && compare(last, row) > 0 {
				return errStop
			}
			last = row
			return nil
		})
	}
	if err := j.head1(x.head); err != nil {
		return err
	}
	rows, err := x.all()
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, compare)
	if j.a.Has("u") {
		rows = slices.CompactFunc(rows, func(a, b []string) bool { return compare(a, b) == 0 })
	}
	return j.rows(rows)
}

func (j *job) whole() ([][]string, error) {
	x, err := j.input()
	if err != nil {
		return nil, err
	}
	if err := j.head1(x.head); err != nil {
		return nil, err
	}
	return x.all()
}

func (j *job) reverse() error {
	rows, err := j.whole()
	if err != nil {
		return err
	}
	slices.Reverse(rows)
	return j.rows(rows)
}

// random gives a source of numbers, from --seed or the computer's clock.
func (j *job) random() (*rand.Rand, error) {
	seed := uint64(j.t.K.Now().UnixNano())
	if s, ok := j.a.Value("seed"); ok {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, &usageError{"invalid seed '" + s + "'"}
		}
		seed = n
	}
	return rand.New(rand.NewPCG(seed, 0)), nil //nolint:gosec // samples need no secret
}

func (j *job) shuffle() error {
	r, err := j.random()
	if err != nil {
		return err
	}
	rows, err := j.whole()
	if err != nil {
		return err
	}
	r.Shuffle(len(rows), func(a, b int) { rows[a], rows[b] = rows[b], rows[a] })
	return j.rows(rows)
}

// sample keeps each of n rows with the same chance, in one pass.
func (j *job) sample() error {
	s, err := j.operand("the number of rows")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return &usageError{"invalid number '" + s + "'"}
	}
	r, err := j.random()
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	if err := j.head1(x.head); err != nil {
		return err
	}
	var kept [][]string
	if err := x.each(func(row []string) error {
		if len(kept) < n {
			j.t.Grow(cost(row))
			kept = append(kept, row)
			return nil
		}
		if i := r.IntN(x.rows); i < n {
			j.t.Grow(cost(row))
			j.t.Shrink(cost(kept[i]))
			kept[i] = row
		}
		return nil
	}); err != nil {
		return err
	}
	return j.rows(kept)
}

func (j *job) dedup() error {
	x, err := j.input()
	if err != nil {
		return err
	}
	columns, err := j.columns(x.head)
	if err != nil {
		return err
	}
	if err := j.head1(x.head); err != nil {
		return err
	}
	switch {
	case j.a.Has("keep-duplicates"), j.a.Has("l"):
		return j.dedupHeld(x, columns)
	case j.a.Has("S"):
		var was, now []byte
		first := true
		return x.each(func(row []string) error {
			now = key(now[:0], row, columns)
			if !first && string(now) == string(was) {
				return nil
			}
			first = false
			was = append(was[:0], now...)
			return j.out.row(row)
		})
	}
	seen := map[string]struct{}{}
	var k []byte
	return x.each(func(row []string) error {
		k = key(k[:0], row, columns)
		if _, ok := seen[string(k)]; ok {
			return nil
		}
		j.t.Grow(64 + len(k))
		seen[string(k)] = struct{}{}
		return j.out.row(row)
	})
}

// dedupHeld keeps the last of equal rows, or all that have an equal.
func (j *job) dedupHeld(x *table, columns []int) error {
	rows, err := x.all()
	if err != nil {
		return err
	}
	last := map[string]int{}
	count := map[string]int{}
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = string(key(nil, r, columns))
		j.t.Grow(128 + len(keys[i]))
		last[keys[i]] = i
		count[keys[i]]++
	}
	for i, r := range rows {
		if j.a.Has("l") && last[keys[i]] != i || !j.a.Has("l") && count[keys[i]] < 2 {
			continue
		}
		if err := j.out.row(r); err != nil {
			return err
		}
	}
	return nil
}

// A ranking holds the rows with the largest numbers, the smallest on top.
type ranking []ranked

type ranked struct {
	n   float64
	at  int
	row []string
}

func (r ranking) Len() int { return len(r) }
func (r ranking) Less(a, b int) bool {
	if r[a].n != r[b].n {
		return r[a].n < r[b].n
	}
	return r[a].at > r[b].at
}
func (r ranking) Swap(a, b int) { r[a], r[b] = r[b], r[a] }

// Push adds a row, for container/heap.
func (r *ranking) Push(v any) {
	if x, ok := v.(ranked); ok {
		*r = append(*r, x)
	}
}

// Pop takes a row off, for container/heap.
func (r *ranking) Pop() any {
	old := *r
	x := old[len(old)-1]
	*r = old[:len(old)-1]
	return x
}

func (j *job) top() error {
	s, err := j.operand("columns")
	if err != nil {
		return err
	}
	n, err := j.number("l", 10)
	if err != nil {
		return err
	}
	x, err := j.input()
	if err != nil {
		return err
	}
	c, err := find(s, x.head)
	if err != nil {
		return err
	}
	if err := j.head1(x.head); err != nil {
		return err
	}
	sign := 1.0
	if j.a.Has("R") {
		sign = -1
	}
	var best ranking
	if err := x.each(func(row []string) error {
		f, ok := number(row[c])
		if !ok || n == 0 {
			return nil
		}
		j.t.Grow(cost(row))
		heap.Push(&best, ranked{sign * f, x.rows, row})
		if len(best) > n {
			if gone, ok := heap.Pop(&best).(ranked); ok {
				j.t.Shrink(cost(gone.row))
			}
		}
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(best, func(a, b ranked) int {
		if a.n != b.n {
			return cmp.Compare(b.n, a.n)
		}
		return cmp.Compare(a.at, b.at)
	})
	for _, r := range best {
		if err := j.out.row(r.row); err != nil {
			return err
		}
	}
	return nil
}
