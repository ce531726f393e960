package text

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func TestTacAndRev(t *testing.T) {
	commandtest.Compare(t, Commands(), []commandtest.Case{
		on("tac"), on("tac a"), on("tac b"), on("tac a b"), on("tac empty"), on("tac many"), on("tac -b a"), on("tac -b b"), on("tac -s : colon"), on("tac -bs : colon"), on("tac -s ee a"), on("tac -s", "", "nul"), on("tac -rs [0-9] b"), on("tac -r -s", "[ex]", "a"),
		on("tac -rb -s", "[ex]", "a"), on("tac nosuch a"), on("tac -r -s", "", "a"), on("tac -rs", "[", "a"), on("tac -z"), on("tac --separator=o a"), on("tac --before -s t a"), in("aXXbXXc", "tac -s XX"), in("aaaa", "tac -s aa"), in("1a2b3", "tac -rs", "[ab]"), in("1ab2ab3", "tac -rs", "a\\|b"), in("x1yy22z", "tac -rs", "[0-9][0-9]*"),
		on("rev"), on("rev a b"), on("rev tsv"), on("rev nosuch a"), in("héllo 日本\nabc", "rev"), in("", "rev"), in("\n\nx\n", "rev"), on("rev many"),
	})
}

func TestNl(t *testing.T) {
	pages := "h0\n\\:\\:\\:\nhead\n\\:\\:\nbody\n\nbody2\n\\:\nfoot\n\n\\:\\:\\:\nhead2\n\\:\\:\nb3\n\n\n\nb4\n"
	var cases []commandtest.Case
	for _, o := range []string{
		"", "-ba", "-bn", "-bt", "-bpo", "-b p^b", "-ha -fa", "-ha -fa -ba", "-i5", "-v10", "-i -3 -v 2", "-l2 -ba", "-l3 -ba", "-n ln", "-n rz", "-n rn", "-s: ", "-w3", "-w1 -ba", "-p -ba", "-p", "-nrz -w10 -s|", "-d: ", "-dxy", "-d x", "-v -5 -nrz -ba", "-v -5 -nln", "-i x", "-v x", "-w 0", "-w x", "-l 0", "-l x", "-n x", "-b x", "-h x", "-f x -b y",
		"-b p[", "-x", "--body-numbering=a", "--number-format=rz --number-width=4", "--line-increment=2", "--join-blank-lines=2 -ba", "--no-renumber", "--section-delimiter=zz", "--number-separator=xx", "--starting-line-number=7", "--header-numbering=t", "--footer-numbering=t", "-v 9223372036854775807 -ba", "-v 9223372036854775808", "-i 0 -ba", "-w 99999999999", "nosuch", "-l 2",
	} {
		cases = append(cases, in(pages, "nl "+o))
	}
	cases = append(cases, on("nl a b"), on("nl a nosuch b"), on("nl d"), on("nl blank - a"), in(pages, "nl -d", ""), in("::\nx\n", "nl -d", "::"), in("a\n", "nl -s", ""), in("", "nl -ba"), in("x", "nl -b", ""), on("nl utf"))
	commandtest.Compare(t, Commands(), cases)
}

const prose = `This is a paragraph. It has several sentences, some of them long; others
short. Does it?   Yes!  (Perhaps "not".)  And so on and so forth, until the
end of it all.

  Indented first line, and then
more text that is not indented at all and goes on for longer than one would like to read in one line.

	Tabbed text here
	and here, with	tabs	between words, and some more words to make it long enough to wrap around.
- a list item that is rather long and will have to be wrapped somewhere, at some point, maybe here
  continues here
- another

# a comment
# continues here and is long enough that it must be wrapped when the width is small
 # indented prefix

Averyveryverylongwordthatdoesnotfitintoanyreasonablelinewidthatallbutmustbeprintedanywayregardless of what follows it.
x
`

func TestFmt(t *testing.T) {
	var cases []commandtest.Case
	for _, o := range []string{
		"", "-w 40", "-w 20", "-w 1", "-w 0", "-40", "-s", "-s -w 30", "-u", "-u -w 50", "-c", "-c -w 40", "-t", "-t -w 40", "-p#", "-p # -w 30", "-p - -w 40", "-g 30", "-g 50 -w 60", "-g 70 -w 60", "-w x", "-w 2501", "-w 2500", "-g 80", "-w 40 -30", "-30 -u", "--width=33", "--goal=20 --width=40", "--prefix=>", "--split-only", "--uniform-spacing",
		"--crown-margin", "--tagged-paragraph", "nosuch", "-x", "-w -1", "-ut -w 45", "-cs -w 40",
	} {
		cases = append(cases, in(prose, "fmt "+o))
	}
	cases = append(cases, in(strings.Repeat("word another, third. ", 2000), "fmt"), in(strings.Repeat("w ", 5000)+"\n", "fmt -w 50"), in(strings.Repeat("x", 12000)+" y z\n", "fmt"), in(strings.Repeat("longer", 300)+" "+strings.Repeat("abc ", 3000), "fmt -w 100"), in("", "fmt"), in("\n\n", "fmt"), in("a", "fmt"), in("  a\n  b\n", "fmt -p", "  "), in(" # a\n # b\n", "fmt -p", " # "),
		in("a\x00b\f c\v d\n", "fmt"), in("a\r\nb\r\n", "fmt"), on("fmt a b nosuch tsv"), on("fmt d"), on("fmt blank"), in("é ü "+strings.Repeat("日本 ", 30), "fmt -w 20"))
	commandtest.Compare(t, Commands(), cases)
}

func TestFold(t *testing.T) {
	var cases []commandtest.Case
	for _, o := range []string{"", "-w 10", "-w10", "-10", "-s -w 20", "-b -w 10", "-bs -w 15", "-w 1", "-sw 1", "-sw 5", "-w 0", "-w x", "-w 99999999999999999999", "--width=8 --spaces", "--bytes -w 7", "nosuch", "-w 8 -5", "-s", "-w 9223372036854775807"} {
		cases = append(cases, in(prose, "fold "+o), in("a\tb\tc\bd\re\tlong word\tx\n\n é日本語text"+strings.Repeat(" x", 50), "fold "+o))
	}
	commandtest.Compare(t, Commands(), append(cases, in("", "fold"), on("fold a b nosuch"), on("fold -w3 a b d"), on("fold -w 4 many")))
}

func TestExpandAndUnexpand(t *testing.T) {
	text := "a\tb\tc\n\tx\t\ty\n        eight\n   three\t tab\n  \t  \tmix  \t  end  \nab      c       d  e\n\b\tq\nx\b\b\tr\n          ten spaces          more\n a  b   c    d     e      f       g        h\n"
	var cases []commandtest.Case
	for _, o := range []string{
		"", "-t 4", "-t 1", "-t 3,7,12", "-t 2,4", "-4", "-3,7", "-t4,8", "-t /5", "-t +5", "-t 3,/5", "-t 3,+5", "-t 3 -t 9", "-t x", "-t 0", "-t 3,2", "-t 3,3", "-t /3,4", "-t +3,4", "-t 4x", "-t 3/4", "-t 99999999999999999999", "-t ,", "-t 1,,2", "--tabs=5", "-x", "nosuch", "-t /3 -t +4", "-t //3", "-t 16",
	} {
		cases = append(cases, in(text, "expand "+o), in(text, "expand -i "+o), in(text, "unexpand "+o), in(text, "unexpand -a "+o), in(text, "unexpand --first-only "+o))
	}
	cases = append(cases, in(text, "expand -t", "3 7"), in(text, "unexpand -t", ""), in(text, "expand -t", ""), on("expand tsv - a"), on("unexpand -a tsv - a nosuch"), on("expand d"), in("a\tb", "expand"), in("        ", "unexpand"), in("a       ", "unexpand -a"), in(text, "expand --initial"), in(text, "unexpand --all"))
	commandtest.Compare(t, Commands(), cases)
}

func TestEchoAndFriends(t *testing.T) {
	commandtest.Compare(t, Commands(), []commandtest.Case{
		in("", "echo"), in("", "echo a b"), in("", "echo -n a"), in("", "echo -e", `a\tb\n\\\a\b\f\r\v\e`), in("", "echo -e", `\0101\101\x41\x4\xg\x`, `x\cy`, "z"), in("", "echo -E", `a\tb`), in("", "echo -ne", `a\n`), in("", "echo -nx a"), in("", "echo -- a"), in("", "echo -"), in("", "echo -e", `\08\400\q\`), in("", "echo -eE", `\t`), in("", "echo -e -n", `\t`),
		in("", "echo --foo"), in("", "echo", ""), in("", "echo -e", `\x4142\1018\01018`), in("", "true"), in("", "false"), in("", "true --x"), in("", "false -h x"), in("", "sleep"), in("", "sleep x"), in("", "sleep 0"), in("", "sleep 0.01s 0m"), in("", "sleep -1"), in("", "sleep 1x"), in("", "sleep 0h 0d"), in("", "sleep x y"), in("", "sleep -- -1"), in("", "sleep nan"), in("", "sleep 1e-3"), in("", "sleep 0x0p1"),
		in("", "yes -x"), in("", "printf"), in("", "printf --"), in("", "printf", "%s-%d\n", "a", "1", "b", "2"), in("", "printf", "%d\n", "x", "1y"), in("", "printf", "%q\n", "it's"), in("", "printf", "%b", `a\tb\n`), in("", "printf", `\x41\101\n`), in("", "printf", "%z"), in("", "printf", "%5.2f|%-5s|%c\n", "3.14159", "ab", "xyz"), in("", "printf", "--", "%s\n", "x"), in("", "printf", "%s"), in("", "printf", "a\\c%s", "x"), in("", "printf", "%*d|%.*f\n", "5", "42", "2", "3.14159"), in("", "printf", "%d %s\n", "12abc", "é"),
	})
}

func TestYesEndsAtALimit(t *testing.T) {
	r := commandtest.RunWithin(t, Commands(), commandtest.Case{Args: []string{"yes", "a", "b"}}, budget.Limits{Steps: 100_000})
	if r.Status == 0 || !strings.HasPrefix(r.Stdout, "a b\na b\n") {
		t.Errorf("%d %.20q", r.Status, r.Stdout)
	}
}
