package step

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// A difference applied to one text gives the other, and no line that both have at the same place is in it.
func TestDifferencesOfLinesAreWhatMakesOneTextOfTheOther(t *testing.T) {
	for seed := range 300 {
		x := rand.New(rand.NewPCG(uint64(seed), 3))
		text := func() []byte {
			var b strings.Builder
			for range x.IntN(40) {
				fmt.Fprintf(&b, "%c\n", 'a'+x.IntN(4))
			}
			if x.IntN(3) == 0 {
				b.WriteString("end")
			}
			return []byte(b.String())
		}
		a, b := text(), text()
		var from, to []byte
		changed := 0
		for _, e := range compare(lines(a), lines(b)) {
			if e.op != '+' {
				from = append(from, e.line...)
			}
			if e.op != '-' {
				to = append(to, e.line...)
			}
			if e.op != ' ' {
				changed++
			}
		}
		if string(from) != string(a) || string(to) != string(b) {
			t.Fatalf("seed %d: %q\n%q\n%q\n%q", seed, a, from, b, to)
		}
		if want := fewest(lines(a), lines(b)); changed != want {
			t.Fatalf("seed %d: %d changes instead of %d", seed, changed, want)
		}
	}
}

// fewest is the least number of lines to remove and add, the simple way.
func fewest(a, b [][]byte) int {
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := range a {
		last := row[0]
		row[0] = i + 1
		for j := range b {
			best := min(row[j+1], row[j]) + 1
			if string(a[i]) == string(b[j]) {
				best = min(best, last)
			}
			last, row[j+1] = row[j+1], best
		}
	}
	return row[len(b)]
}

func TestUnifiedTextIsAsDiffWritesIt(t *testing.T) {
	a := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n"
	b := "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\nend"
	want := "--- a\n+++ \"b\\n\"\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -13,3 +13,4 @@\n 13\n 14\n 15\n+end\n\\ No newline at end of file\n"
	if got := unified("a", "b\n", []byte(a), []byte(b)); got != want {
		t.Errorf("%s", got)
	}
	if got, want := unified("/dev/null", "b", nil, []byte("x\n")), "--- /dev/null\n+++ b\n@@ -0,0 +1 @@\n+x\n"; got != want {
		t.Errorf("%s", got)
	}
}

func TestALargeDifferenceIsBounded(t *testing.T) {
	var a, b []byte
	for i := range 20_000 {
		a = fmt.Appendf(a, "a%d\n", i)
		b = fmt.Appendf(b, "b%d\n", i)
	}
	if got := len(compare(lines(a), lines(b))); got != 40_000 {
		t.Error(got)
	}
}

func TestDiffOfOneStepAndOfSeveral(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	plant(t, dir, map[string]string{"a": "one\ntwo\n", "gone": "bye\n", "moved": "m\n", "bin": "\x00\x01", "mode": "x\n"})
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.write(0, "a", "one\n2\n", os.O_TRUNC))
	must(t, b.remove(0, "gone"))
	must(t, b.move(0, "moved", 0, "there", Free))
	must(t, b.write(0, "bin", "\x00\x02\x03", os.O_TRUNC))
	must(t, b.write(0, "new", "n\n", 0))
	must(t, b.write(0, "brief", "b\n", 0))
	must(t, b.chmod(0, "mode", 0o600))
	first := end(t, b.r)
	b.r = begin(t, j, dir)
	must(t, b.write(0, "a", "one\nzwei\n", os.O_TRUNC))
	must(t, b.remove(0, "brief"))
	must(t, b.write(0, "there", "m\nmore\n", os.O_TRUNC))
	second := end(t, b.r)
	show := func(first, last int64, paths ...string) (out []string) {
		list, err := j.Diff(t.Context(), first, last, paths)
		must(t, err)
		for _, d := range list {
			s := fmt.Sprintf("%s %v", d.Path, d.Kinds)
			if d.From != "" {
				s += fmt.Sprintf(" from %s", d.From)
			}
			if d.Binary {
				s += " binary"
			}
			if d.Why != "" {
				s += " (" + d.Why + ")"
			}
			for _, l := range strings.Split(d.Text, "\n") {
				if strings.HasPrefix(l, "-") && !strings.HasPrefix(l, "---") || strings.HasPrefix(l, "+") && !strings.HasPrefix(l, "+++") {
					s += " " + l
				}
			}
			out = append(out, s)
		}
		return out
	}
	for _, c := range []struct {
		first, last int64
		paths       []string
		want        []string
	}{
		{first.Number, first.Number, nil, []string{
			"a [edited] -two +2", "bin [edited] binary", "brief [created] +b", "gone [removed] -bye", "mode [mode]", "new [created] +n", "there [moved] from moved",
		}},
		{second.Number, second.Number, nil, []string{"a [edited] -2 +zwei", "brief [removed] -b", "there [edited] +more"}},
		{first.Number, second.Number, nil, []string{
			"a [edited] -two +zwei", "bin [edited] binary", "gone [removed] -bye", "mode [mode]", "new [created] +n", "there [moved edited] from moved +more",
		}},
		{first.Number, second.Number, []string{dir + "/a"}, []string{"a [edited] -two +zwei"}},
	} {
		if got := show(c.first, c.last, c.paths...); !slices.Equal(got, c.want) {
			t.Errorf("%d to %d:\n%s", c.first, c.last, strings.Join(got, "\n"))
		}
	}
	must(t, os.WriteFile(dir+"/new", []byte("user\n"), 0o644))
	if got := show(first.Number, first.Number, dir+"/new"); !slices.Equal(got, []string{"new [created] (the contents from after are not there any more)"}) {
		t.Errorf("%q", got)
	}
}
