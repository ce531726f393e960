package parse

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func FuzzNext(f *testing.F) {
	files, err := filepath.Glob("../testdata/script/*.sh")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, s := range []string{
		"a=([$(x)]=1 b+=(2)", "${a[", "$((1+(2)", "cat <<E <<F\n$(\nE\nF", "case x in (a|b) c;; esac", "[[ a =~ (b|c) && ! d ]]",
		"x\\\n=1 $\\\n(a)", "`\\``", "\"${x:-'}'}\"", "coproc a { b; }", "{a}>b 3<&-", "\x00\xff\x80", "$'\\", "for ((a;b;c)) { d; }", "! time -p -- a |& b &",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 1<<16 {
			return
		}
		steps := 0
		p := New(script, Options{
			Alias: func(name string) (string, bool) {
				switch name {
				case "a":
					return "b ", true
				case "b":
					return "a c", true
				case "e":
					return "", true
				}
				return "", false
			},
			ExtGlob: func() bool { return true },
			Depth:   100,
			Step:    func(n int) { steps += n },
		})
		for lines := 0; ; lines++ {
			l, err := p.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				var s *SyntaxError
				var d *TooDeep
				if !errors.As(err, &s) && !errors.As(err, &d) {
					t.Fatalf("%v", err)
				}
				return
			}
			if l != nil && len(l.Items) == 0 {
				t.Fatal("an empty list")
			}
			if lines > 4*len(script)+4 {
				t.Fatal("no progress")
			}
		}
	})
}
