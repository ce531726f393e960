package sort

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func in(stdin, line string, more ...string) commandtest.Case {
	return commandtest.Case{Args: append(strings.Fields(line), more...), Stdin: stdin, Stderr: true}
}

// random makes lines that have much in common.
func random(n int, seed int64) string {
	r := rand.New(rand.NewSource(seed))
	words := []string{"alpha", "beta", "Gamma", "delta", " lead", "x-y", "10", "9", "-3", "+4", "1e3", "0.5", "2K", "3M", "1G", "Jan", "feb", "DEC", "v1.10", "v1.9", "a\tb", "é", "", "\x01\x02", "~", "file.txt", "file2.txt", "file10.txt", ".hid"}
	var b strings.Builder
	for range n {
		for range 1 + r.Intn(3) {
			b.WriteString(words[r.Intn(len(words))])
			b.WriteString([]string{" ", "\t", ":", "", "  "}[r.Intn(5)])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func numbers(n int) string {
	r := rand.New(rand.NewSource(7))
	var b strings.Builder
	for range n {
		switch r.Intn(6) {
		case 0:
			fmt.Fprintf(&b, "%d\n", r.Intn(1000))
		case 1:
			fmt.Fprintf(&b, "-%d.%d\n", r.Intn(100), r.Intn(100))
		case 2:
			fmt.Fprintf(&b, "  %03d.%02d0 x\n", r.Intn(100), r.Intn(10))
		case 3:
			fmt.Fprintf(&b, "%d%d%d%d%d\n", r.Int63(), r.Int63(), r.Intn(10), r.Intn(10), r.Intn(10))
		case 4:
			fmt.Fprintf(&b, "%g%c\n", r.Float64()*1000, "KMGTki x"[r.Intn(8)])
		case 5:
			fmt.Fprintf(&b, "%ge%d\n", r.Float64(), r.Intn(40)-20)
		}
	}
	return b.String()
}

func sortCase(line string, more ...string) commandtest.Case {
	c := in("c\nb 2\na\nB 1\n", line, more...)
	c.Files = map[string]string{
		"mix": random(400, 1), "big": random(5000, 2), "num": numbers(400), "manynum": numbers(3000), "s1": "a\nc\ne\n", "s2": "b\nc\nd", "s3": "", "d/f": "x\n", "nul": "b\x00a\nx\x00c", "unsorted": "b\na\nc\n",
		"dup": strings.Repeat("same line that is long enough\nsame line\n", 500) + "same line that is long enouhg\n", "zeros": strings.Repeat("a\x00\na\na\x00\x00\n", 50), "long": strings.Repeat(strings.Repeat("x", 300)+"b\n"+strings.Repeat("x", 300)+"a\n", 60),
		"csv": "k1,3,x\nk2,1,y\nk1,2,z\nk3,,w\nk2,10,v\n", "nonl": "b\na", "ver": "a1\na10\na2\na1.5\na1.10\na\n1.2.3\n1.2\n1.10\n.a\n..\n.\nb.tar.gz\nb2.tar.gz\nb10.tar.gz\nb~\nb\na-1\na_1\nA1\n01\n1\n001\n\n",
	}
	return c
}

func TestSort(t *testing.T) {
	var cases []commandtest.Case
	for _, o := range []string{
		"", "-r", "-n", "-nr", "-g", "-gr", "-h", "-hr", "-M", "-Mr", "-V", "-Vr", "-f", "-d", "-i", "-df", "-dfi", "-b", "-u", "-nu", "-fu", "-s", "-rs", "-ns", "-fs", "-bf", "-Vu", "-Mu", "-hu", "-gu", "-ru",
		"-k2", "-k2,2", "-k1,1", "-k1.2", "-k1.2,1.3", "-k2n", "-k2,2n", "-k2nr", "-k2,2 -k1,1", "-k1,1 -k2n", "-k1b,1", "-k2b", "-k2.2b,2.3b", "-bk2", "-nk2", "-t: -k2", "-t: -k2,2", "-t: -k2n -k1r", "-t: -k3", "-k1f -k2r", "-k1,1f -s", "-sk2,2",
		"-uk1,1", "-uk2n", "-k2,1", "-k1.3,1.2", "-k3.5", "-rk2", "-rk2n", "-k2 -r", "-k2r -n", "-k1d", "-k1i", "-k1M", "-k2h", "-k1V", "-k1,1V -k2r", "-k1g -u", "-t: -k1,1.2", "-k1.1,1.0", "-k1,2.0", "-k1,3b", "-n -k1", "-b -k2,2.1b", "-fr -k1", "-k1rn -k2f",
		"--numeric-sort", "--reverse", "--key=2,2 --field-separator=:", "--sort=numeric", "--sort=h", "--sort=version -r", "--stable --ignore-case", "--unique", "-S 1M", "-S 50%", "-T /tmp", "--parallel=4", "--batch-size=4", "--compress-program=gzip", "-y5",
	} {
		for _, f := range []string{"", "mix", "big", "num", "manynum", "dup zeros long", "csv nonl s2", "ver"} {
			cases = append(cases, sortCase("sort "+o+" "+f))
		}
	}
	for _, o := range []string{
		"-m s1 s2", "-m s1 s2 s3", "-mu s1 s2 s1", "-mr unsorted s1", "-m unsorted s2 mix", "-m -k1,1 s1 s2", "-ms -k1.1,1.0 s1 s2", "-c s1", "-c unsorted", "-C unsorted", "-c dup", "-cu dup", "-C s1", "-c", "-cn num", "-cr s1", "-cs -k2 mix", "-c s1 s2", "--check=quiet unsorted",
		"--check=silent s1", "--check=diagnose-first unsorted", "--check=x s1", "--check unsorted", "-cC s1", "-co x s1", "nosuch", "s1 nosuch", "d", "s1 d", "-c nosuch", "-m nosuch s1", "-m d s1", "-k0", "-k", "-k1.0", "-kx", "-k1.x", "-k1,x", "-k1,0", "-k1x", "-k1,1x", "-k1.2.3", "-k,1",
		"-k1,", "-t", "-t ab", "-t: -t, csv", "-t: -t: csv", "-nM", "-dn", "-in", "-k1nM", "-k1dn", "-nhg", "-dV ver", "--sort=foo", "-z nul", "-z mix nul", "+1 -2 mix", "+1.1 -2.2 mix", "+0n -1 num", "+1n s1", "-o out", "-o out s1 s2", "-o d s1", "-o nodir/x s1", "-o a -o b s1", "-x",
		"--files0-from=nosuch", "--files0-from=list", "--files0-from=list a", "--files0-from=bad", "--files0-from=empty", "-S x", "--parallel=0", "--parallel=x", "--batch-size=x", "-- s1", "-t \\0 nul", "-t x mix", "- s1", "s1 -", "-R s3", "--random-source=mix -R mix", "--random-source=s1 -R s1", "-R --random-source=nosuch s1",
		"-k1R --random-source=mix csv", "-k99999999999999999999 mix", "-k1,99999999999999999999 mix", "--key", "-Ru --random-source=mix mix",
	} {
		c := sortCase("sort " + o)
		c.Look = []string{"out", "a", "b"}
		c.Files["list"], c.Files["bad"], c.Files["empty"] = "s1\x00s2\x00", "s1\x00\x00s2", ""
		cases = append(cases, c)
	}
	cases = append(cases, sortCase("sort -t", "", "s1"), sortCase("sort -t", " ", "-k2", "mix"), sortCase("sort -t", "\t", "-k2", "mix"), sortCase("sort -k", " 2", "mix"), sortCase("sort", "-k", "1,1", "-k", "2,2n", "mix"), sortCase("sort -k", "", "mix"), sortCase("sort -t", "\n", "mix"))
	for _, o := range []string{"s1 -o s1", "unsorted -uo unsorted", "-m s2 s1 -o s1"} {
		c := sortCase("sort " + o)
		c.Look = []string{"s1", "unsorted"}
		cases = append(cases, c)
	}
	commandtest.Compare(t, Commands(), cases)
}

func TestSortOfSpecialNumbers(t *testing.T) {
	text := "nan\n-nan\ninf\n-inf\n0x10\n0x1p4\n1e400\n-1e400\n1e-400\n0\n-0\n+0\nx\n\n.5\n5.\n.\n-\n+5\n 7\n\t3\n0x\n1e\n1e+\ninfinity\nInFx\n00\n-00.0\n-.0\n-1K\n-1M\n1K\n1M\n1024\n1Ki\n0K\n0M\n-0K\n9Y\n1Z\n100k\n"
	var cases []commandtest.Case
	for _, o := range []string{"-n", "-g", "-h", "-ns", "-gs", "-hs", "-nr", "-gr", "-hr", "-nu", "-gu", "-hu"} {
		cases = append(cases, in(text, "sort "+o))
		if o != "-gu" { // where a NaN is not a NaN
			cases = append(cases, in(strings.Repeat(text, 3), "sort "+o))
		}
	}
	commandtest.Compare(t, Commands(), cases)
}

func TestUniq(t *testing.T) {
	text := "a\na\nb\nB\nb\nc c\nc d\nx c\n\n\n  y 1\n y 1\ny 1\nlast\nlast"
	var cases []commandtest.Case
	for _, o := range []string{
		"", "-c", "-d", "-u", "-D", "-i", "-ci", "-di", "-ui", "-Di", "-f1", "-f 1 -c", "-s1", "-s 1 -c", "-w1", "-w 1 -c", "-w0", "-f1 -s1", "-f1 -w1", "-f1 -s1 -w1", "-cd", "-cu", "-du", "-dD", "-uD", "-z", "--all-repeated", "--all-repeated=none", "--all-repeated=prepend",
		"--all-repeated=separate", "--all-repeated=sep", "--all-repeated=x", "--group", "--group=separate", "--group=prepend", "--group=append", "--group=both", "--group=x", "--group -c", "--group -d", "--group -D", "-cD", "-1", "-2 -c", "-12", "-1 -f2", "+1", "+1 -c", "--count", "--repeated", "--unique",
		"--skip-fields=1", "--skip-chars=1", "--check-chars=2", "--ignore-case", "-f x", "-s x", "-w x", "-f 99999999999999999999", "-s 99999999999999999999", "-w 99999999999999999999 -c", "-x", "in", "-c in out", "in out extra", "nosuch", "in nodir/out", "d", "-c - out", "in -", "--group=both -i", "--all-repeated=prepend -i", "-u --group", "-dz", "--group -z",
	} {
		c := in(text, "uniq "+o)
		c.Files = map[string]string{"in": text, "d/x": ""}
		c.Look = []string{"out"}
		cases = append(cases, c)
	}
	cases = append(cases, in("", "uniq"), in("", "uniq -c"), in("", "uniq --group=both"), in("\n", "uniq -c"), in("a\x00a\x00b", "uniq -zc"), in("é\nÉ\n", "uniq -i"), in(strings.Repeat("q\n", 1234567), "uniq -c"))
	commandtest.Compare(t, Commands(), cases)
}
