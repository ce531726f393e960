package step

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// universe lists all paths of three names, three deep.
func universe() (all []key) {
	var add func(prefix string, depth int)
	add = func(prefix string, depth int) {
		for _, n := range []string{"a", "b", "c"} {
			all = append(all, key{0, prefix + n})
			if depth > 1 {
				add(prefix+n+"/", depth-1)
			}
		}
	}
	add("", 3)
	return all
}

func view(x *names) string {
	var b strings.Builder
	for _, k := range universe() {
		is, was, _ := x.find(k)
		fmt.Fprintf(&b, "%s: %d %v\n", k.path, is, was)
	}
	return b.String()
}

// What is told and then taken back changes nothing, and the nodes are counted right.
func TestAChangeOfNamesThatFailedIsTakenBack(t *testing.T) {
	all := universe()
	for seed := range 400 {
		x := rand.New(rand.NewPCG(uint64(seed), 1))
		n := newNames(1)
		for range 40 {
			a, b := all[x.IntN(len(all))], all[x.IntN(len(all))]
			before, what := view(n), ""
			var back func()
			switch x.IntN(4) {
			case 0:
				what, back = fmt.Sprint("create ", a), n.create(a, nil)
			case 1:
				what, back = fmt.Sprint("remove ", a), n.remove(a)
			default:
				if related(a, b) {
					continue
				}
				how := How(x.IntN(3))
				what, back = fmt.Sprint("move ", a, b, how), n.move(a, b, how, [2]uint64{1, 2})
			}
			if x.IntN(3) == 0 {
				back()
				if after := view(n); after != before {
					t.Fatalf("seed %d, %s: was\n%s\nis\n%s", seed, what, before, after)
				}
			}
			count := 0
			n.tops[0].walk(func(m *node) {
				if m.up == nil {
					return
				}
				count++
				if m.up.down[m.name] != m {
					t.Fatalf("seed %d, %s: %v is not in its directory", seed, what, m.at())
				}
			})
			if count != n.count {
				t.Fatalf("seed %d, %s: %d nodes are counted as %d", seed, what, count, n.count)
			}
		}
	}
}

func TestNamesFollowMovedDirectories(t *testing.T) {
	n := newNames(2)
	k := func(root int, p string) key { return key{root, p} }
	n.move(k(0, "d"), k(1, "x/e"), Free, [2]uint64{})
	n.create(k(1, "x/e/new"), nil)
	n.remove(k(1, "x/e/old"))
	n.move(k(1, "x"), k(0, "y"), Free, [2]uint64{})
	for _, c := range []struct {
		at  key
		is  origin
		was key
	}{
		{k(0, "y/e"), original, k(0, "d")},
		{k(0, "y/e/f/g"), original, k(0, "d/f/g")},
		{k(0, "y/e/new"), made, key{}},
		{k(0, "y/e/old"), gone, key{}},
		{k(0, "y/z"), original, k(1, "x/z")},
		{k(0, "d"), gone, key{}},
		{k(1, "x"), gone, key{}},
		{k(1, "q"), original, k(1, "q")},
	} {
		if is, was, _ := n.find(c.at); is != c.is || is == original && was != c.was {
			t.Errorf("%v: %d %v", c.at, is, was)
		}
	}
	n.move(k(0, "y"), k(1, "x"), Free, [2]uint64{})
	n.move(k(1, "x/e"), k(0, "d"), Free, [2]uint64{})
	if is, was, m := n.find(k(0, "d")); is != original || was != k(0, "d") || m.is != inherited {
		t.Errorf("back: %d %v %v", is, was, m)
	}
}
