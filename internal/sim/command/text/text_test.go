package text

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

// in makes a case of a command line that has no need for quotes, fed from
// standard input.
func in(stdin, line string, more ...string) commandtest.Case {
	return commandtest.Case{Args: append(strings.Fields(line), more...), Stdin: stdin, Stderr: true}
}

// on is in with the usual files.
func on(line string, more ...string) commandtest.Case {
	c := in("from stdin\nsecond\n", line, more...)
	c.Files = map[string]string{
		"a": "one\ntwo\nthree\n", "b": "1\n2\n3\n4\n5", "empty": "", "blank": "\n\n\nx\n\n\n\ny\n\n",
		"ctl": "a\tb\x01\x7f\x80\xa0\xff\xc3\xa9\r\nc\rd\r", "crlf": "a\r\nb\r\n\r\n", "d/f": "in d\n",
		"utf": "héllo wörld\n日本語 テスト\nx\u0301y\n\xff\xfe bad\n", "long": strings.Repeat("0123456789\n", 30000),
		"many": numbers(20000), "nul": "a\x00b\x00c", "tsv": "a\tb\tc\n1\t2\t3\nnone\n\t\tx\n", "colon": "r:x:0:0\nb::1\n:\n",
		"sp ace": "s\n",
	}
	return c
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("line ")
		b.WriteString(strings.Repeat("x", i%17))
		b.WriteByte('\n')
	}
	return b.String()
}

func TestCat(t *testing.T) {
	commandtest.Compare(t, Commands(), []commandtest.Case{
		on("cat"), on("cat a - b"), on("cat a nosuch b"), on("cat d"), on("cat -n a b"), on("cat -b blank a"), on("cat -s blank"),
		on("cat -sn blank blank"), on("cat -A ctl"), on("cat -v ctl"), on("cat -e ctl"), on("cat -t ctl"), on("cat -E crlf a"),
		on("cat -E ctl crlf"), on("cat -T tsv"), on("cat -bE blank"), on("cat -nET tsv b tsv"), on("cat -u a"), on("cat --number --show-ends a"),
		on("cat --show-n ctl"), on("cat --show"), on("cat -Z"), on("cat long"), on("cat -n many"), on("cat -A", "sp ace"), on("cat", "no such"), on("cat", "it's"), on("cat", ""),
		on("cat - -"), on("cat -vE utf"), on("cat -s", "empty", "blank"), on("cat x:y"), on("cat", "a\nb"), on("cat", "it's $x"),
	})
}

func TestHeadAndTail(t *testing.T) {
	for _, tool := range []string{"head", "tail"} {
		var cases []commandtest.Case
		for _, files := range []string{"", "a", "b", "empty", "long", "many", "a b", "a nosuch b", "d", "a d b", "-", "a -"} {
			for _, options := range []string{
				"", "-n 2", "-n 0", "-n -2", "-n +2", "-n +0", "-n -0", "-c 3", "-c -3", "-c +3", "-c 0", "-c 5000", "-c -5000", "-c +5000", "-n 700", "-n -700", "-n +700", "-qn1", "-vn1", "-n 1k", "-c 1kB", "-c 1KiB",
			} {
				cases = append(cases, on(tool+" "+options+" "+files))
			}
		}
		for _, extra := range []string{
			"-1", "-2 a", "-3c a", "-1k long", "-2v a", "-n", "-n x", "-c x", "-n 1x", "-n 99999999999999999999", "-c 99999999999999999999", "-n k b", "-n -k b", "-n 1Q", "--lines=1 a", "--bytes=2 a", "-z -n1 nul", "-z nul",
			"-zc2 nul", "--quiet a b", "--silent a b", "--verbose a", "-n1 -c1 a", "-c1 -n1 a", "--lin=2 a", "-1 a b", "-n2 -", "-x", "-n '' a", "-5x a",
		} {
			cases = append(cases, on(tool+" "+extra))
		}
		commandtest.Compare(t, Commands(), cases)
	}
	commandtest.Compare(t, Commands(), []commandtest.Case{
		on("tail +2 b"), on("tail +2"), on("tail -2b long"), on("tail +2c b"), on("tail -2l b"), on("tail +3 a b"), on("tail -1 -- a"), on("tail -- -1"),
		on("tail --follow=x a"), on("tail --retry a"), on("tail -s x a"), on("tail --pid=x a"), on("tail -F -"), on("tail -f"), on("tail -f -n 1 nosuch"), on("tail -n1 -f -"),
		on("tail -c5b long"), on("tail -5c"), on("head -5b long"), on("head -2qc a b"), on("tail -n +99999999999999999999 a"),
	})
}

func TestWC(t *testing.T) {
	var cases []commandtest.Case
	for _, files := range []string{"", "a", "b", "empty", "utf", "ctl", "many", "a b utf", "a nosuch", "d", "a d", "- a", "-", "long tsv"} {
		for _, options := range []string{"", "-l", "-w", "-c", "-m", "-L", "-lw", "-mc", "-lwmcL", "-wm"} {
			cases = append(cases, on("wc "+options+" "+files))
		}
	}
	files0 := on("wc --files0-from=list")
	files0.Files["list"] = "a\x00b\x00nosuch\x00\x00utf"
	files1 := in("a\x00", "wc -l --files0-from=-")
	files1.Files = files0.Files
	files2 := in("long\x00b\x00", "wc --files0-from=-")
	files2.Files = map[string]string{"long": strings.Repeat("word and word\n", 100), "b": "x\n"}
	files3 := on("wc --files0-from=list")
	files3.Files = map[string]string{"list": "long\x00b\x00", "long": files2.Files["long"], "b": "x\n"}
	commandtest.Compare(t, Commands(), append(cases, files0, files1, files2, files3, on("wc --files0-from=nosuch"), on("wc --files0-from=a b"), on("wc -x"),
		in("\u2003a\u00a0b\u3000c \u200bd\n\te\vf\fg\rh\n", "wc -lwmL"), in(strings.Repeat("é", 70000), "wc -lwm"), in("x"+strings.Repeat("日", 70000), "wc -L")))
}

func TestCut(t *testing.T) {
	var cases []commandtest.Case
	for _, list := range []string{"1", "2", "1,3", "2-", "-2", "2-3", "1-2,3", "3,1", "1,1-2,2", "5", "1-", "2,4-", "1-2,4-5"} {
		for _, options := range []string{
			"-b", "-c", "-f", "--complement -f", "--complement -b", "-s -f", "--output-delimiter=: -f", "--output-delimiter=<> -b", "-d: -f", "-d: -s -f", "-d: --complement --output-delimiter=, -f",
			"-z -b", "-z -d: -f", "--output-delimiter= -f", "--complement --output-delimiter=+ -c",
		} {
			cases = append(cases, on("cut "+options+list+" a tsv colon utf b nul empty"))
		}
	}
	for _, wrong := range []string{
		"", "-f", "-f 0", "-f 0-", "-f a", "-f 1a", "-f -", "-f 3-2", "-f 1--2", "-f 1-2-3", "-b 0", "-b a", "-b -", "-c 2-1", "-b 1-2-3", "-f 99999999999999999999", "-b 99999999999999999999", "-f 1 -b 1", "-f 1 -f 2",
		"-d ab -f 1", "-d : -b 1", "-s -b 1", "-f1 nosuch d a", "-f ,", "-f 1,", "-f 1,,2", "--fields=1 tsv", "--only-delimited --fields=2 tsv", "-nb1 a", "-f1-,2 tsv", "-f -0",
	} {
		cases = append(cases, on("cut "+wrong))
	}
	cases = append(cases, on("cut -f", "1 3", "tsv"), on("cut -f", "1\t2", "tsv"), on("cut -d", "", "-f1", "nul"), on("cut -f1 -d", "\n", "a"), on("cut -f2,3 -d", "\n", "a"), on("cut -s -f2 -d", "\n", "b"), on("cut -f5 -d", "\n", "b"),
		on("cut -f1 -d", "\n", "empty"), in("x", "cut -f1 -d", "\n"), in("x\n", "cut -s -f1 -d", "\n"), in("x\n", "cut -f2 -d", "\n"), in("x", "cut -s -f1 -d", "\n"), on("cut -f", "", "a"), on("cut -d", "é", "-f1", "utf"))
	commandtest.Compare(t, Commands(), cases)
}

func TestPaste(t *testing.T) {
	commandtest.Compare(t, Commands(), []commandtest.Case{
		on("paste"), on("paste a"), on("paste a b"), on("paste a b empty tsv"), on("paste empty empty"), on("paste -s a b empty"), on("paste -d, a b"), on("paste -d", ",;", "a", "b", "colon"),
		on("paste -sd", ",\\n", "b"), on("paste -d", "", "a", "b"), on("paste -d", "\\0,", "a", "b", "a"), on("paste -d", "\\t\\\\\\b\\f\\r\\v\\q", "-s", "many"), on("paste -d", "a\\", "a"), on("paste - -"), on("paste - a -"),
		on("paste a nosuch"), on("paste -s a nosuch b"), on("paste d a"), on("paste -z nul a"), on("paste -sz nul"), on("paste -d"), on("paste b a"), on("paste empty a b"), on("paste a empty b empty"),
		in("1\n2\n3\n4\n5\n", "paste - -"), in("1\n2\n3\n4\n5", "paste -d, - - -"), in("", "paste"), in("", "paste -s"), in("", "paste - -"), on("paste --serial --delimiters=+ a b"),
	})
}

func TestTr(t *testing.T) {
	text := "Hello, World! aabbcc 112233\t\\x\n\x00\xff\xc3\xa9zz--[]\n"
	var cases []commandtest.Case
	for _, c := range []string{
		"a b", "a-z A-Z", "[:lower:] [:upper:]", "[:upper:] [:lower:]", "-d a-z", "-d [:space:]", "-s a-z", "-s [:alpha:]", "-cd [:alnum:]", "-cs [:alnum:] \\n", "-C a x", "-c a-z\\n .", "-s a-z A-Z", "-ds a-c 1-3",
		"-t abc x", "abc x", "abc [x*]", "abcd [x*2]yz", "abcd [x*]z", "a-d [x*02]y", "[=a=] X", "\\n :", "\\000 @", "\\377 @", "\\12 @", "\\101 @", "a-c [:upper:]", "[:lower:] [:lower:]", "[:digit:] x", "[:alpha:] 1-9", "[:punct:] _",
		"-d [:punct:]", "-d [:cntrl:]", "-d [:print:]", "-d [:graph:]", "-d [:blank:]", "-d [:xdigit:]", "-d \\\\", "z-a x", "[:foo:] x", "[==] x", "[:: x", "[::] x", "[=ab=] x", "a [b*x]", "[a*2] b", "a [=b=]", "a [:digit:]",
		"a", "", "-d", "-d a b", "-ds a", "-s", "a b c", "-s a b c", "-x a", "[a-c] [x-z]", "a-c- 123+", "\\- _", "--delete a", "--squeeze-repeats l", "--complement -d a", "--truncate-set1 abc 1", "-ct a-z x", "-dcs a-z\\n a-z",
		"[:lower:] a-z", "a-z [:upper:]", "[:upper:][:lower:] [:lower:][:upper:]", "[:lower:]x [:upper:]", "x[:lower:] [:upper:]", "-c [:lower:] [:upper:]", "-c [:lower:] xy", "-c [:lower:] x", "\\400 x", "ab [x*][y*]", "a-\\n x",
		"[a*0] b", "abc [x*0]y", "-s [=a=]", "a\\-c 123", "[.a.] b", "[a] b", "abc xyz123", "-- -H xy", "-d -- -", "[:upper:]a [:lower:]", "\\1234 ab", "\\09 x", "abc [:upper:]x", "[:lower:] [:upper:]x",
	} {
		cases = append(cases, in(text, "tr "+c))
	}
	cases = append(cases, in(text, "tr a", ""), in(text, "tr", "", "b"), in(text, "tr -t a", ""), in(text, "tr", "a\\", "xy"), in(text, "tr -d", ""), in(text, "tr", "", ""), in(text, "tr -s", " "), in(strings.Repeat("ab", 100000), "tr -s", "ab", "c"),
		in(strings.Repeat("ab\n", 100000), "tr -d", "\n"), in(strings.Repeat("hello world\n", 20000), "tr a-z A-Z"))
	commandtest.Compare(t, Commands(), cases)
}

func TestTee(t *testing.T) {
	var cases []commandtest.Case
	for _, line := range []string{"tee", "tee x y", "tee -a a x", "tee d x", "tee -i x", "tee -p x", "tee --output-error=exit d x", "tee --output-error=warn d x", "tee --output-error=foo", "tee --append a", "tee - x", "tee nodir/x y", "tee --output-error x", "tee --output-error=e", "tee --output-error=exit-n x"} {
		c := on(line)
		c.Look = []string{"a", "x", "y", "-"}
		cases = append(cases, c)
	}
	commandtest.Compare(t, Commands(), cases)
}
