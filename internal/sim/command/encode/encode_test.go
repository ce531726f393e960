package encode

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func in(stdin, line string, more ...string) commandtest.Case {
	return commandtest.Case{Args: append(strings.Fields(line), more...), Stdin: stdin, Stderr: true}
}

func every() string {
	var b []byte
	for i := range 256 {
		b = append(b, byte(i))
	}
	return string(b)
}

func on(line string, more ...string) commandtest.Case {
	c := in("from stdin\nsecond\n", line, more...)
	c.Files = map[string]string{
		"a": "one\ntwo\nthree\n", "bytes": every() + every(), "empty": "", "d/x": "in d\n", "zeros": "x" + strings.Repeat("\x00", 200) + "end" + strings.Repeat("\x00", 64), "long": strings.Repeat("0123456789abcdef", 100) + "!", "odd": "abc", "text": "Hello\tWorld\x00more text here\x01\x02ab\nlast",
		"floats": "\x00\x00\x80\x3f\xcd\xcc\xcc\x3d\x00\x00\x00\x00\x00\x00\xf0\x3f\x9a\x99\x99\x99\x99\x99\xb9\x3f\xff\xff\xff\xff\x00\x00\x00\x80\x01\x00\x00\x00\x00\x00\xc0\x7f\x00\x00\x00\x00\x00\x00\x00\x80\xff\x3f\x00\x00\x00\x00\x00\x00",
	}
	return c
}

func TestBaseN(t *testing.T) {
	var cases []commandtest.Case
	for _, tool := range []string{"base64", "base32", "basenc --base64url", "basenc --base32hex", "basenc --base16", "basenc --base2msbf", "basenc --base2lsbf", "basenc --z85", "basenc --base64", "basenc --base32"} {
		for _, o := range []string{"", "-w 0", "-w 10", "-w1", "bytes", "-w 5 bytes", "empty", "odd", "long", "nosuch", "d", "-w x", "-w 99999999999999999999 a", "a b", "--wrap=20 a", "-x"} {
			cases = append(cases, on(tool+" "+o))
		}
		for _, s := range []string{"YWI", "YWJjYW", "YQ==YQ==", "YQ=", "YWJ$", "Y", "YW\nJj", "YWJj=", "====", "YQ==x", "YW=j", "YWJj\nZA==\n", "", "\n", "Y W J j", "yw*b", "ME======", "MFRA====", "MFRGG===", "MFRGGZA=", "MFRGGZDF", "ME=====", "M", "MF", "MFR", "mfrggzdf", "MFRGGZDFMF", "6162", "616", "61zz", "abcd", "ABCD", "01100001", "0110000", "0110000101", "2", "HelloWorld", "Hell", "%%%%%", "#####", "MFR=GGZD", "MF=RA==="} {
			cases = append(cases, in(s, tool+" -d"), in(s, tool+" -di"), in(s, tool+" --decode --ignore-garbage"))
		}
	}
	cases = append(cases, in("x", "basenc"), in("x", "basenc -d"), in("x", "basenc --base16 --base32"), in("aGVsbG8=", "base64 -d -w 3"), in(strings.Repeat("x", 100000), "base64"), in(strings.Repeat("QUJD", 50000), "base64 -d"), in(strings.Repeat("QUJDQUJDQUJDQUJD\n", 5000), "base64 -d"))
	commandtest.Compare(t, Commands(), cases)
}

func TestChecksums(t *testing.T) {
	var cases []commandtest.Case
	tools := []string{"md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "b2sum -l 128", "cksum", "cksum -a md5", "cksum -a sha256", "cksum -a blake2b", "cksum -a blake2b -l 160", "cksum -a sm3", "cksum -a sm3 --untagged", "cksum -a bsd", "cksum -a sysv", "cksum -a crc", "sum", "sum -r", "sum -s"}
	for _, tool := range tools {
		for _, o := range []string{"", "a", "a bytes", "-", "empty", "nosuch a", "d", "long zeros", "--tag a", "-z a", "-b a", "-t a", "--tag -b a", "--tag -t a", "--zero a bytes", "-x"} {
			if o != "d" || tool != "cksum" && tool != "cksum -a crc" { // it does not see that it cannot read
				cases = append(cases, on(tool+" "+o))
			}
		}
		cases = append(cases, on(tool, "a\nb", "back\\slash"))
		odd := on(tool, "new\nline", "back\\slash", "sp ace")
		odd.Files["new\nline"], odd.Files["back\\slash"], odd.Files["sp ace"] = "1", "2", "3"
		cases = append(cases, odd)
	}
	const md5 = "5b9b6e7bd0a9a2c3e0d1b9b8d9a3f5c1"
	one := commandtest.Real(t, on("md5sum a bytes empty")).Stdout
	tag := commandtest.Real(t, on("md5sum --tag a bytes")).Stdout
	two := commandtest.Real(t, on("sha256sum a bytes")).Stdout
	b2 := commandtest.Real(t, on("b2sum a")).Stdout + commandtest.Real(t, on("b2sum -l 64 --tag a")).Stdout + commandtest.Real(t, on("b2sum -l 64 a")).Stdout
	all := tag + commandtest.Real(t, on("cksum -a sha1 a bytes")).Stdout + commandtest.Real(t, on("cksum -a sm3 a")).Stdout
	bad := md5 + "  a\n" + one
	junk := "nonsense\n" + one + "# comment\n\n" + md5 + "  nosuch\n" + strings.ToUpper(one[:32]) + one[32:48] + "\n" + md5[:30] + "  a\n" + md5 + " a\n" + md5 + "a\n"
	for i, list := range []string{one, tag, two, b2, all, bad, junk, "", "junk\n", strings.ReplaceAll(one, "  ", " *"), strings.ReplaceAll(one, "\n", "\r\n"), "\\" + one[:32] + "  a\n", md5 + "  nosuch\n", one[:32] + "  -\n", strings.Replace(one, "  a", " a", 1)} {
		for _, tool := range []string{"md5sum", "sha256sum", "b2sum", "b2sum -l 64", "cksum", "cksum -a md5", "cksum -a sha1"} {
			for _, o := range []string{"-c", "-c --quiet", "-c --status", "-c --warn", "-c --strict", "-c --ignore-missing", "-cw --ignore-missing --quiet", "--check list"} {
				c := on(tool + " " + o)
				if strings.HasSuffix(o, "list") {
					c.Files["list"] = list
				} else {
					c.Stdin = list
				}
				if tool == "cksum" && (i == 3 || i == 4) {
					c.Stderr = false // what kind it says is that of the last line
				}
				cases = append(cases, c)
			}
		}
	}
	for _, o := range []string{"-c nosuch", "-c d", "-c a b", "-c --tag", "-c -b", "-c -z", "--quiet a", "--status a", "--strict a", "--warn a", "--ignore-missing a"} {
		cases = append(cases, on("md5sum "+o), on("cksum "+o))
	}
	for _, o := range []string{"-l 7 a", "-l 520 a", "-l 0 a", "-l x a", "-l 8 a", "-l 512 a"} {
		cases = append(cases, on("b2sum "+o), on("cksum -a blake2b "+o))
	}
	cases = append(cases, on("cksum -a foo"), on("cksum -a s"), on("cksum -a md5 -l 8 a"), on("cksum -a crc -c a"), on("cksum --untagged -a md5 a"), on("cksum --untagged --tag -a md5 a"), on("cksum --debug -a md5 a"))
	commandtest.Compare(t, Commands(), cases)
	r := commandtest.Run(t, Commands(), on("crc32 a empty"))
	if r.Stdout != "d6fb8bdb\ta\n00000000\tempty\n" && !strings.HasSuffix(r.Stdout, "00000000\tempty\n") {
		t.Errorf("%+v", r)
	}
}

func TestOd(t *testing.T) {
	var cases []commandtest.Case
	for _, o := range []string{
		"", "-c", "-a", "-b", "-d", "-o", "-s", "-x", "-i", "-l", "-f", "-e", "-h", "-H", "-X", "-D", "-O", "-I", "-L", "-B", "-F", "-t x1", "-t x1z", "-t c", "-t a", "-t o1", "-t u1", "-t d1", "-t x2", "-t x4", "-t x8", "-t d8", "-t u8", "-t o8", "-t dL", "-t xI", "-t xS", "-t xC", "-t f4", "-t f8", "-t fF", "-t fD", "-t fL", "-t f", "-t d", "-t x",
		"-An -t x1", "-Ad", "-Ax", "-Ao -c", "-An -c", "-t x1 -t c", "-t x1c", "-t x2 -c -b", "-t x1z -t d4", "-c -f", "-w8", "-w4 -t x1", "-w -t x1", "-w1 -c", "-w3", "-w3 -t x1", "-w32 -x", "-v", "-v -t x1", "-N 5", "-N 0", "-N 16 -t x1", "-j 3", "-j 3 -N 5 -c", "-j 1k", "-j 0x10", "-j 010", "-N 1b", "-j 100000", "-S 3", "-S", "-S 4 -Ad", "-S0", "-S 3 -t x1",
		"--endian=big -x", "--endian=little -x", "--endian=big -t x8", "--endian=b -t f4", "--endian=x", "-t y", "-t x3", "-t f3", "-t", "-A x1", "-A q", "-j x", "-N x", "-N 1x", "-w x", "-w0", "-N 99999999999999999999", "--format=x1", "--address-radix=d", "--skip-bytes=2 --read-bytes=3", "--width=4", "--output-duplicates", "--strings=3", "-z", "-t cz", "-t az -t x2z", "-bc", "-xc", "-tx1 -w17",
	} {
		for _, f := range []string{"", "bytes", "a odd", "zeros", "floats", "text", "empty", "long"} {
			cases = append(cases, on("od "+o+" "+f))
		}
	}
	for _, o := range []string{"nosuch", "nosuch a", "d", "bytes +10", "bytes 10", "bytes +0x10", "bytes +1b", "+5", "+5 -c", "bytes 5 -c", "bytes +x", "a bytes", "--traditional bytes 10", "--traditional bytes 10 20", "--traditional -x bytes 10 20", "--traditional 10", "--traditional a b c d", "-Ax --traditional bytes 3 8", "-An --traditional bytes 3 8", "- -c", "a - odd -c"} {
		cases = append(cases, on("od "+o))
	}
	cases = append(cases, on("od -t", "", "a"), on("od -A", "", "a"))
	commandtest.Compare(t, Commands(), cases)
}

func TestXxd(t *testing.T) {
	var cases []commandtest.Case
	for _, o := range []string{
		"", "-p", "-ps", "-plain", "-i", "-b", "-e", "-u", "-c 8", "-c8", "-cols 4", "-g 1", "-g4", "-g 0", "-g 3", "-g 8", "-groupsize 2", "-group 2", "-l 5", "-l5", "-len 5", "-s 3", "-s3", "-skip 2", "-seek 2", "-s +2", "-s 0x4", "-o 16", "-o16", "-a", "-E", "-d", "-C -i", "-capitalize -i", "-p -c 10", "-p -c 0", "-p -u", "-i -c 4", "-i -u", "-i -n name", "-n x -i", "-b -c 4", "-b -g 2", "-b -g 0", "-e -g 2", "-e -g 8", "-e -g 3", "-e -c 8", "-e -c 10", "-c 20 -g 3", "-c 257", "-c -1", "-c 0", "-c 300 -p", "-a -c 8", "-l 0", "-u -b", "-u -e", "-d -s 5", "-z", "--", "-autoskip", "-bits", "-uppercase", "-g 16", "-g 32", "-c 5", "-h",
	} {
		for _, f := range []string{"", "bytes", "zeros", "odd", "empty", "text"} {
			c := on("xxd " + o + " " + f)
			c.Stderr = false
			cases = append(cases, c)
		}
	}
	for _, s := range []string{
		"00000000: 6865 6c6c 6f0a                           hello.\n", "00000000: 68 65 6c  hel\n00000005: 61\n", "0: 61626364\n8: 6566\n", "junk\n00000000: 61\n", "00000000 6162\n", "", "00000010: 41 42\n00000000: 43\n", "0000000: 4142 4344 zz\n", "10: 41\n", "00000000: 4",
	} {
		for _, o := range []string{"-r", "-r -s 4", "-r -c 2", "-r -p"} {
			c := in(s, "xxd "+o)
			c.Stderr = false
			cases = append(cases, c)
		}
	}
	for _, s := range []string{"68656c6c6f0a\n", "68 65 6c\n6c 6f", "686", "6865zz6c", "68\n65", "0x41 0x42", "", "4142\t43\n"} {
		cases = append(cases, in(s, "xxd -r -p"), in(s, "xxd -p -r"), in(s, "xxd -rp"))
	}
	for _, o := range []string{"nosuch", "a out", "-r dump out", "-r dump", "-i a out", "a b c", "-s -4 a", "-s -100 a", "-r -p hex out", "-s 100 a", "-i d/x", "-", "- out", "-r dump patched"} {
		c := on("xxd " + o)
		c.Stderr = false
		c.Look = []string{"out", "patched"}
		c.Files["dump"], c.Files["hex"], c.Files["patched"] = "00000002: 4142\n", "414243", "0123456789"
		cases = append(cases, c)
	}
	commandtest.Compare(t, Commands(), cases)
}

func TestHexdump(t *testing.T) {
	var cases []commandtest.Case
	for _, o := range []string{"", "-C", "-b", "-c", "-d", "-o", "-x", "-X", "-v", "-Cv", "-n 5", "-n 20 -C", "-s 3", "-s 3 -C", "-s 0x10 -n 4 -C", "-s 1k", "-bc", "-xC", "--canonical", "-n 0", "-n x", "-s x", "-z", "-e", "-n 16 -x", "-C -n 33"} {
		for _, f := range []string{"", "bytes", "zeros", "odd", "empty", "text", "a odd", "nosuch a", "nosuch", "long"} {
			c := on("hexdump " + o + " " + f)
			c.Stderr = false
			cases = append(cases, c)
		}
	}
	for _, f := range []string{"bytes", "zeros", "odd", "empty", ""} {
		cases = append(cases, on("hd "+f), on("hd -n 10 "+f))
		for _, e := range []string{
			`16/1 "%02x " "\n"`, `1/1 "%02X"`, `/1 "%02x"`, `"%08_ax: " 8/1 "%02x " "  |" 8/1 "%_p" "|\n"`, `4/4 "%d " "\n"`, `2/2 "%u-" "\n"`, `8/1 "%3_u " "\n"`, `8/1 "%3_c" "\n"`, `"%_ad\n" 4/1 "%c,"`, `4/1 "%o " "\n"`, `1/8 "%x\n"`, `1/4 "%f\n"`, `2/8 "%e " "\n"`, `"%3.3s|\n"`, `3/1 "%02x" "_" 2/1 "%d" "\n"`, `"%07_Ax end\n"`, `/2 "%x "`, `16/1 "%_p" "\n"`, `bad`, `"unclosed`, `"%q"`, `"%_q"`, `3/3 "%d"`, `"%s"`, `1/1 "%i "`, `"\t" 1/1 "%x\n"`, `1/1 "%-4x|"`, `1/1 "%+d "`, `1/1 "%#x "`, `2/1 "%x" "\n" 2/1 "%d" "\n"`, `"a" "b" 1/1 "%x" "%%"`,
		} {
			c := on("hexdump -v -e", e)
			if f != "" {
				c.Args = append(c.Args, f)
			}
			c.Stderr = false
			cases = append(cases, c)
		}
	}
	commandtest.Compare(t, Commands(), cases)
}

func TestStrings(t *testing.T) {
	var cases []commandtest.Case
	for _, o := range []string{"", "-a", "-n 2", "-n2", "-2", "-n 10", "-t d", "-t x", "-t o", "-o", "-f", "-w", "-e s", "-e S", "-e l", "-e b", "-e L", "-e B", "-s ,", "-s | -n 3", "-td -n 3", "-n 0", "-n x", "-t q", "-e q", "-z", "--bytes=3", "--radix=d", "--print-file-name", "-10", "-f -t x -n 2"} {
		for _, f := range []string{"", "bytes", "text", "empty", "a text", "nosuch", "d", "wide", "wide4"} {
			c := on("strings " + o + " " + f)
			c.Stderr = false
			c.Files["wide"] = "h\x00e\x00l\x00l\x00o\x00\n\x00\x00W\x00o\x00r\x00l\x00dx"
			c.Files["wide4"] = "h\x00\x00\x00e\x00\x00\x00l\x00\x00\x00l\x00\x00\x00o\x00\x00\x00\x00\x00\x00W\x00\x00\x00o\x00\x00\x00r\x00\x00\x00l"
			cases = append(cases, c)
		}
	}
	commandtest.Compare(t, Commands(), cases)
}

func TestIconv(t *testing.T) {
	text := "héllo wörld – “quoted” … € ß ﬁ ½ © Ж 日本 ñ Å œ\n"
	var cases []commandtest.Case
	for _, o := range []string{
		"-f utf-8 -t utf-16", "-f utf-8 -t utf-16le", "-f utf-8 -t UTF-16BE", "-t utf-32", "-t UTF-32LE", "-t UCS-2", "-t ucs-4", "-t ascii//TRANSLIT", "-t ascii", "-c -t ascii", "-t ASCII//IGNORE", "-t latin1", "-c -t latin1", "-t ISO-8859-15//TRANSLIT", "-t cp1252", "-c -t windows-1252", "-f latin1 -t utf-8", "-f cp1252 -t utf8", "-f ISO_8859-1 -t utf-8", "-f koi8-r", "-t foo", "-f foo", "-f foo -t bar", "", "-f utf8 -t utf8",
		"-f utf-16 -t utf-8", "-f UTF-16LE -t UTF-8", "-f us-ascii -t utf-8", "-s -t ascii", "nosuch", "-t ascii//TRANSLIT//IGNORE", "-c -t ISO-8859-5", "-f cp437 -t utf-8", "-f ISO-8859-7", "-f utf-32be -t utf-8",
	} {
		for _, s := range []string{text, "plain\n", "a\xffb\n", "a\xc3", "", "\xe9t\xe9\n", "\xff\xfea\x00b\x00", "\xfe\xff\x00a\x00b", "a\x00=\xd8\x00\xdeb\x00", "\x00\x00\x00a"} {
			c := in(s, "iconv "+o)
			c.Stderr = strings.HasPrefix(s, "a\xff") && !strings.Contains(o, "foo")
			cases = append(cases, c)
		}
	}
	files := on("iconv -t utf-16le a odd -o out")
	files.Look = []string{"out"}
	commandtest.Compare(t, Commands(), append(cases, files, in("", "iconv -x"), in(strings.Repeat("é日", 50000), "iconv -t utf-16"), in(strings.Repeat("\xe9", 100000), "iconv -f latin1 -t utf-8")))
}

func TestLineBreaks(t *testing.T) {
	run := func(stdin, want string, args ...string) {
		t.Helper()
		if r := commandtest.Run(t, Commands(), commandtest.Case{Args: args, Stdin: stdin}); r.Stdout != want {
			t.Errorf("%q: %q, want %q", args, r.Stdout, want)
		}
	}
	run("a\r\nb\rc\n", "a\nb\rc\n", "dos2unix")
	run("a\nb\r\nc", "a\r\nb\r\nc", "unix2dos")
	run("a\rb\r\nc\n", "a\nb\r\nc\n", "mac2unix")
	run("a\nb", "a\rb", "unix2mac")
	r := commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"dos2unix", "f", "bin", "none"}, Files: map[string]string{"f": "x\r\ny\r\n", "bin": "\x00\r\n"}, Look: []string{"f", "bin"}})
	if r.Files["f"] != "x\ny\n" || r.Files["bin"] != "\x00\r\n" || r.Status != 2 || !strings.Contains(r.Stderr, "dos2unix: converting file f to Unix format...\ndos2unix: Binary symbol 0x00 found at line 1\ndos2unix: Skipping binary file bin\ndos2unix: none: No such file or directory\n") {
		t.Errorf("%+v", r)
	}
}

func TestUuencodedIsDecodedAgain(t *testing.T) {
	for _, m := range [][]string{nil, {"-m"}} {
		for _, data := range []string{"", "x", "hello", every()} {
			r := commandtest.Run(t, Commands(), commandtest.Case{Args: append(append([]string{"uuencode"}, m...), "name"), Stdin: data})
			back := commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"uudecode", "-o", "-"}, Stdin: r.Stdout})
			if back.Stdout != data || back.Status != 0 {
				t.Errorf("%q: %q, %+v", data, r.Stdout, back)
			}
		}
	}
	r := commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"uuencode", "x"}, Stdin: "Cat"})
	if r.Stdout != "begin 644 x\n#0V%T\n`\nend\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func TestMarkdown(t *testing.T) {
	r := commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"html-to-markdown"}, Stdin: "<h1>T</h1><p>a <b>b</b> <a href='/x'>l</a></p><ul><li>1</li><li>2</li></ul><table><tr><th>h</th></tr><tr><td>c</td></tr></table>"})
	if want := "# T\n\na **b** [l](/x)\n\n- 1\n- 2\n\n| h |\n|---|\n| c |\n"; r.Stdout != want {
		t.Errorf("%q, want %q", r.Stdout, want)
	}
	r = commandtest.Run(t, Commands(), commandtest.Case{Args: []string{"html-to-markdown"}, Stdin: strings.Repeat("<div>", 100000)})
	if r.Status == 0 {
		t.Errorf("%+v", r)
	}
}
