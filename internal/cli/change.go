package cli

import (
	"bytes"
	"fmt"
	"io"
)

// writeChange shows what changes in a text file: the lines that differ, with three around them. Nil is a file that is
// not there.
func writeChange(w io.Writer, path string, from, to []byte) {
	label := func(data []byte) string {
		if data == nil {
			return "/dev/null"
		}
		return OneLine(path)
	}
	fmt.Fprintf(w, "--- %s\n+++ %s\n", label(from), label(to))
	before, after := bytes.SplitAfter(from, []byte("\n")), bytes.SplitAfter(to, []byte("\n"))
	same := func(i, j int) bool { return bytes.Equal(before[i], after[j]) }
	head := 0
	for head < len(before) && head < len(after) && same(head, head) {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && same(len(before)-1-tail, len(after)-1-tail) {
		tail++
	}
	const around = 3
	lines := func(mark string, list [][]byte) {
		for _, line := range list {
			if len(line) > 0 {
				fmt.Fprintf(w, "%s%s\n", mark, OneLineOf(string(bytes.TrimRight(line, "\r\n")), 4096))
			}
		}
	}
	lines(" ", before[max(0, head-around):head])
	lines("-", before[head:len(before)-tail])
	lines("+", after[head:len(after)-tail])
	lines(" ", before[len(before)-tail:min(len(before), len(before)-tail+around)])
}
