package expand_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
)

func BenchmarkFields(b *testing.B) {
	for _, src := range []string{
		`c "$x"`, `c $x`, `c "a${x}b"`, `c ${x#a} ${x%b}`, `c $((i+1))`, `c $(($i+1))`, `c "${a[1]}"`, `c "${a[@]}"`, `c ${x:1:2} ${#x}`, `c {1..20}`, `c "${x//l/L}"`,
	} {
		b.Run(src, func(b *testing.B) {
			m := newMini(b)
			m.run("x=hello; i=41; a=(1 2 3)\n")
			l, err := parse.New([]byte(src), parse.Options{}).Next()
			if err != nil {
				b.Fatal(err)
			}
			words := l.Items[0].(*parse.Simple).Words
			b.ReportAllocs()
			var args []string
			for b.Loop() {
				args = args[:0]
				for i := range words[1:] {
					var err error
					if args, err = m.x.Fields(args, words[i+1].X); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkAssign(b *testing.B) {
	for _, src := range []string{`i=$((i+1))`, `x=$y`, `x=abc$y`, `a[i]=$x`, `a+=(x)`} {
		b.Run(src, func(b *testing.B) {
			m := newMini(b)
			m.run("y=hello; i=41\n")
			l, err := parse.New([]byte(src), parse.Options{}).Next()
			if err != nil {
				b.Fatal(err)
			}
			a := l.Items[0].(*parse.Simple).Assigns[0].X
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n++; n%100000 == 0 {
					_ = m.vars.Unset("a")
				}
				if err := m.x.Assign(a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
