package arith_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/arith"
)

func FuzzEval(f *testing.F) {
	for _, seed := range []string{"1+", "a[i++]+=x?y:2**z", "m[a b]++,(1", "++x++", "1?2:x=5", "64#@_", "a[a[\"1\"]]", "0 && (x=", "x y z 08", "a[$x]=b[`]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := newStore()
		s.text["x"], s.text["y"] = "y+1", text
		s.ints["i"] = 3
		s.arr["a"] = map[int64]string{0: "4", 1: "x"}
		s.keyed["m"] = map[string]string{}
		s.left = 1 << 14
		e := arith.Compile(text)
		n, err := e.Eval(s)
		if err == nil && e.Err() != nil {
			t.Fatalf("%q: Eval hides %v", text, e.Err())
		}
		if err != nil && n != 0 {
			t.Fatalf("%q: %d and %v", text, n, err)
		}
	})
}
