package diff

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func cases(files map[string]string, lines string) []commandtest.Case {
	var list []commandtest.Case
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		args := strings.Fields(line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "␣", " ")
		}
		list = append(list, commandtest.Case{Args: args, Files: files, Stderr: true, Stdin: "1\n2\n3\n"})
	}
	return list
}

func TestDifferencesAreShownAsByGNUs(t *testing.T) {
	files := map[string]string{
		"a": "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n",
		"b": "1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n11\nnew\nnewer\n12\n13\n14\n15\n17\n18\n19\n20\n21\n",
		"c": "one\ttab\n  two  spaces\nUPPER\n\n\nend", "d": "one     tab\n two spaces \nupper\nend\n",
		"e": "", "n": "no newline", "n2": "no newline\n", "bin": "a\x00b\n", "bin2": "a\x00c\n", "dot": "1\n.\n..\n", "cr": "1\r\n2\r\n3\r\n", "s": "1\n2\n3\n",
		"f.c": "int f(void)\n{\n\ta;\n\tb;\n\tc;\n\td;\n\te;\n\tf;\n}\n\nint g(void)\n{\n\ta;\n\tb;\n\tc;\n\td;\n\te;\n}\n",
		"g.c": "int f(void)\n{\n\ta;\n\tb;\n\tc;\n\td;\n\te;\n\tf;\n}\n\nint g(void)\n{\n\ta;\n\tb;\n\tc;\n\td;\n\tx;\n}\n",
		"D/f": "1\n", "E/f": "2\n", "D/only": "q\n", "E/sub/z": "3\n", "D/sub/": "", "D/same": "s\n", "E/same": "s\n", "D/k": "file\n", "E/k/": "", "D/bin": "\x00a", "E/bin": "\x00b",
		"long1": strings.Repeat("abcdefghij", 12) + "\nx\n", "long2": strings.Repeat("abcdefghij", 12) + "\ny\té世界\n",
	}
	commandtest.Compare(t, Commands(), cases(files, `
diff a b
diff b a
diff -u --label␣x --label␣y a b
diff -U1 --label=x --label=y a b
diff -U 0 --label=x --label=y a b
diff -c --label=x --label=y a b
diff -C 1 --label=x --label=y b a
diff -e a b
diff -f a b
diff -n a b
diff -n n n2
diff -y a b
diff -y -W 40 a b
diff -y --left-column a b
diff -y --suppress-common-lines a b
diff -y -t a b
diff -y c d
diff -y long1 long2
diff -y n n2
diff -D FOO a b
diff -q a b
diff -q a a
diff -s a a
diff -s s s
diff a e
diff e a
diff -u --label=x --label=y e a
diff n n2
diff -u --label=x --label=y n n2
diff -c --label=x --label=y n2 n
diff c d
diff -b c d
diff -w c d
diff -i c d
diff -B c d
diff -Z c d
diff -E c d
diff -wB c d
diff -biB c d
diff -ubB --label=x --label=y c d
diff bin bin2
diff -a bin bin2
diff bin bin
diff -q bin bin2
diff -e s dot
diff cr s
diff --strip-trailing-cr cr s
diff -b cr s
diff -up --label=x --label=y f.c g.c
diff -cp --label=x --label=y f.c g.c
diff -u -F void --label=x --label=y f.c g.c
diff -I ^[0-9] a b
diff -I new a b
diff -u -I new --label=x --label=y a b
diff -t f.c g.c
diff -T f.c g.c
diff -uT --label=x --label=y f.c g.c
diff --color=always a b
diff --color=always -u --label=x --label=y a b
diff D E
diff -r D E
diff -rN D E
diff -rq D E
diff -qrN D E
diff -rs D E
diff -r -x f D E
diff -r -x b* -x k D E
diff D/f E
diff D E/f
diff -r -S k D E
diff s -
diff - s
diff - -
diff nope a
diff nope nope2
diff -N nope s
diff a
diff
diff a b c
diff --foo
diff -U x a b
diff -u -c a b
diff -W 0 a b
diff -3 a b
diff -u3 --label=x --label=y a b
diff --from-file=a s b
diff --to-file=a s b
diff -d a b
diff --normal a b
diff --tabsize=4 -t f.c g.c
cmp a b
cmp a a
cmp -l s cr
cmp -b a b
cmp -lb s cr
cmp -s a b
cmp s a
cmp e a
cmp n n2
cmp -n 3 a b
cmp -i 3 a b
cmp -i 3:5 a b
cmp a b 2 2
cmp s
cmp nope a
cmp -s nope a
cmp
cmp -n x a b
cmp -l -s a b
cmp a b 1 2 3
cmp --zzz
cmp -l n n2
`))
}

func TestHunksAreThoseOfGNUs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		words := 2 + rnd.IntN(12)
		if n%3 == 0 {
			words = 200
		}
		length := 5 + rnd.IntN(200)
		var a, b []string
		for range length {
			a = append(a, fmt.Sprintf("w%d", rnd.IntN(words)))
		}
		for _, line := range a {
			switch rnd.IntN(12) {
			case 0:
			case 1:
				b = append(b, fmt.Sprintf("w%d", rnd.IntN(words)))
			case 2:
				b = append(b, line, fmt.Sprintf("w%d", rnd.IntN(words)))
			default:
				b = append(b, line)
			}
		}
		files := map[string]string{"a": strings.Join(a, "\n") + "\n", "b": strings.Join(b, "\n") + "\n"}
		var list []commandtest.Case
		for _, args := range [][]string{{"diff", "a", "b"}, {"diff", "-u", "--label=a", "--label=b", "a", "b"}, {"diff", "-d", "a", "b"}, {"diff", "-y", "-W", "30", "a", "b"}} {
			list = append(list, commandtest.Case{Args: args, Files: files})
		}
		commandtest.Compare(t, Commands(), list)
	}
}
