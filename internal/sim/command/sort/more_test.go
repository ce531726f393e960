package sort

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func TestCommAndJoin(t *testing.T) {
	files := map[string]string{
		"a": "a\nb\nc\nc\ne\n", "b": "b\nc\nd\n", "e": "", "n": "b\nc", "u": "c\na\nb\n", "d/x": "", "blank": "1 a \n2 b \t\n3\n4 \n",
		"j1": "1 a x\n2 b y\n3 c\n3 cc\n5\n", "j2": "1 A\n3 C1\n3 C2\n4 D\n6 F G\n", "ju": "3 x\n1 y\n2 z\n9 q\n", "jt": "1:a:x\n2::y\n4:d:\n", "jt2": "1:A\n2:B\n3:C\n", "jc": "A 1\nb 2\nC 3\n", "jl": "a x\nB y\nc z\n", "h1": "id name\n1 a\n2 b\n", "h2": "id val\n1 x\n3 y\n", "bl": "  1   a\n\n 2\tb\n", "z": "a 1\x00b 2\x00",
	}
	var cases []commandtest.Case
	for _, line := range []string{
		"comm a b", "comm -1 a b", "comm -2 a b", "comm -3 a b", "comm -12 a b", "comm -13 a b", "comm -23 a b", "comm -123 a b", "comm a e", "comm e a", "comm e e", "comm a n", "comm u a", "comm a u", "comm --check-order u a", "comm --nocheck-order u a", "comm --output-delimiter=, a b", "comm --output-delimiter= a b", "comm --total a b", "comm -3 --total --output-delimiter=: a b",
		"comm -z z z", "comm a", "comm", "comm a b e", "comm a nosuch", "comm nosuch a", "comm d a", "comm - a", "comm a -", "comm -x", "comm --output-delimiter=a --output-delimiter=b a b", "comm --check-order a u", "comm u u", "comm --total -12 u a",
		"join j1 j2", "join -a1 j1 j2", "join -a2 j1 j2", "join -a1 -a2 j1 j2", "join -v1 j1 j2", "join -v2 j1 j2", "join -v1 -v2 j1 j2", "join -a1 -e X j1 j2", "join -a1 -a2 -e X -o 0,1.2,2.2 j1 j2", "join -o 1.1,2.1 j1 j2", "join -o auto -a1 -a2 -e - j1 j2", "join -o auto j1 j2", "join -1 2 -2 2 j1 j2", "join -j1 j1 j2", "join -j 1 j1 j2", "join -1 1 -2 1 j1 j2", "join -t: jt jt2", "join -t : -a1 -a2 jt jt2",
		"join -t: -e E -o 0,1.2,1.3,2.2 jt jt2", "join -t x j1 j2", "join -t xx j1 j2", "join -t: -t, jt jt2", "join -i jc jl", "join jc jl", "join --check-order ju j1", "join ju j1", "join j1 ju", "join --nocheck-order ju j1", "join -a1 ju j1", "join --header h1 h2", "join --header -a1 -a2 h1 h2", "join --header -o auto -e N -a1 h1 h2", "join --header h1 e", "join e h1", "join --header -a1 h1 e", "join bl j1", "join -a1 bl j1",
		"join -z z z", "join j1", "join", "join j1 j2 e", "join - -", "join - j2", "join j1 -", "join nosuch j1", "join d j1", "join -a3 j1 j2", "join -a x j1 j2", "join -1 0 j1 j2", "join -1 x j1 j2", "join -1 1 -1 2 j1 j2", "join -o 3.1 j1 j2", "join -o 1 j1 j2", "join -o 1.0 j1 j2", "join -o 1.x j1 j2", "join -o 0.1 j1 j2", "join -e a -e b j1 j2", "join -o 1.1 -o 2.2 j1 j2", "join -1 99999999999999999999 j1 j2",
		"join blank j1", "join -a1 -e E -o 0,1.2,1.3,1.4 blank j1", "join -v1 blank e", "join -z j1 j1", "join -j2 blank blank",
		"join -x", "join -o 1.1 2.1 j1 j2", "join -2 2 -1 1 j1 j2", "join --ignore-case jc jl", "join -v 1 j1 e", "join -a 2 e j1",
	} {
		c := in("2 stdin\n3 more\n", line)
		c.Files = files
		cases = append(cases, c)
	}
	for _, sep := range []string{"", "\t", " ", `\0`, "\n"} {
		c := in("", "join -t", sep, "j1", "j2")
		c.Files = files
		cases = append(cases, c)
	}
	commandtest.Compare(t, Commands(), cases)
}

func TestTsort(t *testing.T) {
	commandtest.Compare(t, Commands(), []commandtest.Case{
		in("a b\nb c\n", "tsort"), in("a b b c c a\n", "tsort"), in("a b c", "tsort"), in("a a\n", "tsort"), in("z z y x x w\nb a c a\n", "tsort"), in("a b a c a d b e c e d e\n", "tsort"), in("", "tsort"), in("a b b a c d d c\n", "tsort"), in("a b b c c d d b x a\n", "tsort"), in("1 2 2 3 3 1 3 4 4 5 5 3 6 1\n", "tsort -"), in("", "tsort nosuch"), in("", "tsort a b"), in("", "tsort -x"),
		in("main parse parse lex lex util main util util libc b libc", "tsort"),
	})
}

func TestShuf(t *testing.T) {
	bytes := ""
	for i := range 3000 {
		bytes += string([]byte{byte(i * i * 31), byte(i * 77 >> 2)})
	}
	var cases []commandtest.Case
	for _, o := range []string{
		"-i 1-10", "-i 1-1000", "-i 5-5", "-i 1-100 -n 5", "-i 0-65535 -n 20", "-i 1-10 -r -n 20", "-e a b c d e", "-e a b c -n 2", "-e a b -r -n 9", "f", "-n 3 f", "-r -n 7 f", "-n 0 f", "", "-n 3", "-n 100", "-r -n 5", "-n 0", "-z f", "-o out f", "-i 1-0", "-i 2-1", "-i 3-1", "-i x", "-i 1", "-i 1-x", "-n x", "-i 1-2 -i 1-2", "-e -i 1-2", "-i 1-2 f", "f g", "nosuch", "-r -n1 empty", "empty", "-e", "-r -e -n1", "-x", "-o a -o b f", "d",
		"-i 0-18446744073709551615 -n 3", "-i 0-99999999999999999999", "--head-count=2 --input-range=1-9", "--echo x y", "--repeat --head-count=2 f", "-n 5 -n 2 f", "one", "-n1 one", "-i 1-20000 -n 1000",
	} {
		c := in("s1\ns2\ns3\ns4\ns5\ns6\n", "shuf --random-source=bytes "+o)
		c.Files = map[string]string{"bytes": bytes, "f": "1\n2\n3\n4\n5\n6\n7\n8\n9", "empty": "", "one": "x", "d/x": ""}
		c.Look = []string{"out"}
		cases = append(cases, c)
	}
	short := in("", "shuf --random-source=bytes -i 1-100000")
	short.Files = map[string]string{"bytes": "abc"}
	commandtest.Compare(t, Commands(), append(cases, short, in("", "shuf --random-source=nosuch -i 1-2")))
	r := commandtest.Run(t, Commands(), in("", "shuf -i 1-3"))
	if len(r.Stdout) != 6 || r.Status != 0 {
		t.Errorf("%+v", r)
	}
}

func TestLook(t *testing.T) {
	words := "Apple\napple\nbanana\nband-aid\nbandit\ncat\nzebra\n"
	var cases []commandtest.Case
	for _, o := range []string{"ban words", "a words", "z words", "x words", "-f a fold", "-d banda dict", "-df BANDA dict", "-t n bandxx words", "cat words", "catx words", "a nosuch", "a", "", "a b c", " words", "-x", "app words", "Apple words"} {
		c := in("", "look "+o)
		c.Files = map[string]string{"words": words, "fold": "Apple\napple\nBanana\n", "dict": "bana-na\nband-aid\nbandit\n"}
		cases = append(cases, c)
	}
	commandtest.Compare(t, Commands(), cases)
}
