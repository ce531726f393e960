package step

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// around is how many equal lines are shown before and after a difference.
const around = 3

// Unified returns the differences of two texts as diff -u writes them, with the names of both. It is empty if they are the
// same.
func Unified(from, to string, a, b []byte) string { return unified(from, to, a, b) }

// unified compares two texts line by line. Lines are as in diff -u; names that need it are quoted.
func unified(from, to string, a, b []byte) string {
	x, y := lines(a), lines(b)
	edits := compare(x, y)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", quoted(from), quoted(to))
	for i := 0; i < len(edits); {
		if edits[i].op == ' ' {
			i++
			continue
		}
		start, end := max(0, i-around), i // a hunk goes on while less than twice around lies between differences
		for k := i; k < len(edits) && k-end <= 2*around; k++ {
			if edits[k].op != ' ' {
				end = k
			}
		}
		end = min(len(edits), end+1+around)
		hunk(&out, edits[start:end])
		i = end
	}
	return out.String()
}

func quoted(name string) string {
	if q := strconv.Quote(name); len(q) != len(name)+2 {
		return q
	}
	return name
}

type edit struct {
	op   byte // ' ', '-' or '+'
	line []byte
	x, y int // lines before it
}

func hunk(out *strings.Builder, edits []edit) {
	var x, y int
	for _, e := range edits {
		if e.op != '+' {
			x++
		}
		if e.op != '-' {
			y++
		}
	}
	at := func(before, n int) string {
		if n > 0 {
			before++
		}
		if n == 1 {
			return strconv.Itoa(before)
		}
		return fmt.Sprintf("%d,%d", before, n)
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n", at(edits[0].x, x), at(edits[0].y, y))
	for _, e := range edits {
		out.WriteByte(e.op)
		out.Write(e.line)
		if !bytes.HasSuffix(e.line, []byte{'\n'}) {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// lines splits a text behind each line break.
func lines(text []byte) [][]byte {
	all := bytes.SplitAfter(text, []byte{'\n'})
	if n := len(all); n > 0 && len(all[n-1]) == 0 {
		all = all[:n-1]
	}
	return all
}

// maxDifferences bounds the search for the fewest differences, whose cost is the square of it.
const maxDifferences = 1000

// compare finds differences of two lists of lines: the fewest if they are not many (Myers, An O(ND) Difference
// Algorithm), otherwise all between the equal lines at both ends.
func compare(x, y [][]byte) []edit {
	head := 0
	for head < len(x) && head < len(y) && bytes.Equal(x[head], y[head]) {
		head++
	}
	tail := 0
	for tail < len(x)-head && tail < len(y)-head && bytes.Equal(x[len(x)-1-tail], y[len(y)-1-tail]) {
		tail++
	}
	var edits []edit
	i, j := 0, 0
	add := func(op byte) {
		e := edit{op: op, x: i, y: j}
		if op == '+' {
			e.line = y[j]
		} else {
			e.line = x[i]
		}
		if op != '+' {
			i++
		}
		if op != '-' {
			j++
		}
		edits = append(edits, e)
	}
	for range head {
		add(' ')
	}
	for _, op := range middle(x[head:len(x)-tail], y[head:len(y)-tail]) {
		add(op)
	}
	for range tail {
		add(' ')
	}
	return edits
}

// middle returns the edits that make y of x.
func middle(x, y [][]byte) []byte {
	classes := map[string]int{}
	class := func(all [][]byte) []int {
		c := make([]int, len(all))
		for i, l := range all {
			n, ok := classes[string(l)]
			if !ok {
				n = len(classes)
				classes[string(l)] = n
			}
			c[i] = n
		}
		return c
	}
	a, b := class(x), class(y)
	most := min(len(a)+len(b), maxDifferences)
	// far[k] is how far in a the best way with so many differences comes on diagonal k, which is the place in a less that
	// in b.
	far := make([]int, 2*most+3)
	var trace [][]int
	for d := 0; d <= most; d++ {
		for k := -d; k <= d; k += 2 {
			var i int
			if k == -d || k != d && far[most+1+k-1] < far[most+1+k+1] {
				i = far[most+1+k+1]
			} else {
				i = far[most+1+k-1] + 1
			}
			j := i - k
			for i < len(a) && j < len(b) && a[i] == b[j] {
				i, j = i+1, j+1
			}
			far[most+1+k] = i
			if i >= len(a) && j >= len(b) {
				return back(trace, len(a), len(b))
			}
		}
		trace = append(trace, append([]int(nil), far[most+1-d:most+2+d]...))
	}
	return append(bytes.Repeat([]byte{'-'}, len(a)), bytes.Repeat([]byte{'+'}, len(b))...)
}

// back goes the way back. trace has far for each number of differences, from the lowest diagonal on.
func back(trace [][]int, i, j int) []byte {
	var ops []byte
	for d := len(trace); d > 0; d-- {
		far := trace[d-1] // of d-1 differences: diagonals from 1-d to d-1
		at := func(k int) int {
			if k < 1-d || k > d-1 {
				return -1
			}
			return far[k+d-1]
		}
		k := i - j
		up := k == -d || k != d && at(k-1) < at(k+1)
		var pi int
		if up {
			pi = at(k + 1)
		} else {
			pi = at(k - 1)
		}
		pk := k - 1
		if up {
			pk = k + 1
		}
		pj := pi - pk
		mi, mj := pi, pj+1 // after the difference
		if !up {
			mi, mj = pi+1, pj
		}
		for i > mi && j > mj {
			ops = append(ops, ' ')
			i, j = i-1, j-1
		}
		if up {
			ops = append(ops, '+')
			j--
		} else {
			ops = append(ops, '-')
			i--
		}
	}
	for ; i > 0; i-- {
		ops = append(ops, ' ')
	}
	for a, b := 0, len(ops)-1; a < b; a, b = a+1, b-1 {
		ops[a], ops[b] = ops[b], ops[a]
	}
	return ops
}
