package text

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func pieces() []string {
	var list []string
	for _, p := range []string{"x", "out", "p.", "xx"} {
		for _, s := range []string{"aa", "ab", "ac", "ad", "ae", "af", "aaa", "aab", "00", "01", "02", "03", "04", "05", "06", "07", "10", "0a", "0f", "000", "001", "a", "b", "c", "0", "1", "2", "aa.txt", "ab.txt", "00.txt", "-1", "-0", "zaaa", "9000"} {
			list = append(list, p+s)
		}
	}
	return list
}

func TestSplit(t *testing.T) {
	text := ""
	for i := range 25 {
		text += strings.Repeat(string(rune('a'+i)), i+1) + "\n"
	}
	var cases []commandtest.Case
	for _, o := range []string{
		"", "-l 10", "-l 5", "-10", "-b 100", "-b 1k", "-C 50", "-C 10", "-C 1000", "-n 3", "-n 30", "-n l/3", "-n l/10", "-n r/3", "-n 2/3", "-n l/2/3", "-n r/2/3", "-n 1/1", "-n l/26 -e", "-n 400 -e", "-n 50", "-d -l 10", "-x -l 10", "--numeric-suffixes=5 -l 10", "--hex-suffixes=2 -l 1", "-a 3 -l 10", "-a 1 -l 10", "-a 1 -l 1", "--additional-suffix=.txt -l 10", "-d --additional-suffix=.txt -n 2",
		"-t a", "-t a -l 1", "--verbose -l 10", "-l 0", "-b 0", "-l x", "-b x", "-n x", "-n 0", "-n 4/3", "-n 0/3", "-n l/x", "-a x", "-l 5 -b 5", "-l 5 -n 2", "-t ab", "--additional-suffix=a/b", "-e -n r/30", "-n r/30", "--numeric-suffixes=x", "-u -n r/3", "-n 5 -a 1", "-n 300 -a 1", "-d -n 12", "--suffix-length=3 --lines=20", "--bytes=200", "--line-bytes=60", "--number=2", "-l 99999999999999999999", "-z", "-12 -l 5", "-n l/3/3", "-l1 -d", "-n 1", "-n l/1", "--numeric-suffixes=99 -l 20", "-C 60 -d",
	} {
		for _, f := range []string{"", "-", "f", "f out", "empty out", "g p."} {
			c := in(text, "split "+o+" "+f)
			c.Files = map[string]string{"f": text, "empty": "", "g": "no newline at end", "d/x": ""}
			c.Look = pieces()
			cases = append(cases, c)
		}
	}
	for _, o := range []string{"nosuch", "f a b", "d", "-l 1 f nodir/x", "xaa", "-l1000 xaa x"} {
		c := in("", "split "+o)
		c.Files = map[string]string{"f": text, "xaa": "in the way\n", "d/x": ""}
		c.Look = pieces()
		cases = append(cases, c)
	}
	many := in(strings.Repeat("1\n", 700), "split -l 1 - out")
	many.Look = append(pieces(), "outyz", "outzaaa", "outzaab", "outzabx")
	digits := in(strings.Repeat("1\n", 105), "split -d -l 1 - out")
	digits.Look = append(pieces(), "out89", "out9000", "out9014", "out9015")
	nul := in("a\x00b\x00c", "split -l 1 -t", `\0`)
	nul.Look = pieces()
	commandtest.Compare(t, Commands(), append(cases, many, digits, nul))
}

func TestCsplit(t *testing.T) {
	text := "intro\nCHAPTER 1\none\ntwo\nCHAPTER 2\nthree\nCHAPTER 3\nfour\nfive\nend"
	var cases []commandtest.Case
	for _, args := range [][]string{
		{"f", "3"}, {"f", "3", "6"}, {"f", "/CHAPTER/"}, {"f", "/CHAPTER/", "{*}"}, {"f", "/CHAPTER/", "{1}"}, {"f", "/CHAPTER/", "{5}"}, {"f", "%CHAPTER%"}, {"f", "%CHAPTER%", "/CHAPTER/", "{*}"}, {"f", "/CHAPTER/+1"}, {"f", "/CHAPTER/-1", "{1}"}, {"f", "/CHAPTER/1", "{*}"}, {"f", "/CHAPTER 3/-2"}, {"f", "2", "{2}"}, {"f", "2", "{*}"}, {"f", "3", "{9}"}, {"f", "3", "{9}", "-k"},
		{"-k", "f", "2", "{*}"}, {"-z", "f", "/intro/", "/CHAPTER/", "{*}"}, {"-s", "f", "3"}, {"-q", "f", "3"}, {"-f", "out", "f", "3"}, {"-n", "3", "f", "3"}, {"-b", "%d", "f", "3"}, {"-b", "%03d.txt", "f", "3"}, {"-b", "%x", "f", "3"}, {"-b", "abc", "f", "3"}, {"-b", "%d%d", "f", "3"}, {"-b", "%s", "f", "3"}, {"-b", "%", "f", "3"}, {"--suppress-matched", "f", "/CHAPTER/", "{*}"}, {"--suppress-matched", "f", "3", "6"}, {"--suppress-matched", "f", "%CHAPTER%"},
		{"f", "0"}, {"f", "x"}, {"f", "/x"}, {"f", "/nomatch/"}, {"f", "%nomatch%"}, {"f", "/nomatch/", "{*}"}, {"f", "/[/"}, {"f", "/a/x"}, {"f", "3", "2"}, {"f", "3", "3"}, {"f", "/CHAPTER/", "{x}"}, {"f", "/CHAPTER/", "{1"}, {"f", "100"}, {"f", "10"}, {"f", "11"}, {"f"}, {}, {"nosuch", "1"}, {"-", "/two/"}, {"-", "2"}, {"f", "/CHAPTER/-5"}, {"f", "/end/+5"}, {"f", "1"}, {"empty", "/x/"}, {"-f", "nodir/x", "f", "3"}, {"-x"}, {"-n", "x", "f", "2"}, {"f", "/CHAPTER/+2", "{*}"}, {"f", "/CHAPTER/-1", "{*}"}, {"-z", "f", "1", "3"}, {"--prefix=p.", "--digits=1", "f", "4"}, {"-ks", "f", "/nomatch/"}, {"f", "2", "/CHAPTER/", "8"},
	} {
		c := in("one\ntwo\nthree\n", "csplit", args...)
		c.Files = map[string]string{"f": text, "empty": "", "d/x": ""}
		c.Look = append(pieces(), "xx00", "xx01", "xx02", "xx03", "xx04", "xx05", "xx0", "xx1", "xx000.txt", "xx001.txt")
		cases = append(cases, c)
	}
	commandtest.Compare(t, Commands(), cases)
}

func TestEnvsubst(t *testing.T) {
	var cases []commandtest.Case
	for _, args := range [][]string{nil, {"$A"}, {"${A} and $B"}, {"-v", "$A ${B} $A"}, {"--variables", "$A"}, {"-v"}, {"a", "b"}, {"-x"}, {""}, {"$NONE"}} {
		c := in("a $A ${A} $B ${B $C $ $1 ${} $A$B ${A}x $_ \\$A '$A' ${NONE}. $$A $AB\n${A:-x}\nlast $A", "envsubst", args...)
		c.Env = []string{"A=1", "B=two words", "AB=ab"}
		cases = append(cases, c)
	}
	commandtest.Compare(t, Commands(), cases)
}

func TestSpongeWritesWhatItReads(t *testing.T) {
	r := commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"sponge", "f"}, Stdin: "new\n", Files: map[string]string{"f": "old old old\n"}, Look: []string{"f"}})
	if r.Files["f"] != "new\n" || r.Status != 0 {
		t.Errorf("%+v", r)
	}
	r = commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"sponge", "-a", "f"}, Stdin: "new\n", Files: map[string]string{"f": "old\n"}, Look: []string{"f"}})
	if r.Files["f"] != "old\nnew\n" {
		t.Errorf("%+v", r)
	}
}
