package encode

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
)

func FuzzBase(f *testing.F) {
	f.Add("YWJj\nZA==")
	f.Add("MFRGG===")
	f.Fuzz(func(t *testing.T, text string) {
		for _, o := range []string{"--base64", "--base32", "--base16", "--base2lsbf", "--z85"} {
			commandtest.Fuzz(t, Commands(), text, "basenc", "-d", o)
			commandtest.Fuzz(t, Commands(), text, "basenc", "-di", o)
			commandtest.Fuzz(t, Commands(), text, "basenc", o)
		}
	})
}

func FuzzHexdump(f *testing.F) {
	f.Add(`8/1 "%02x " "\n"`, "abc")
	f.Add(`"%_ad" 2/2 "%3.1u" /4 "%e"`, "12345")
	f.Fuzz(func(t *testing.T, format, text string) {
		commandtest.Fuzz(t, Commands(), text, "hexdump", "-e", format)
		commandtest.Fuzz(t, Commands(), text, "hexdump", "-v", "-e", `"%07_ax " 4/1 "%_c"`, "-e", format)
	})
}

func FuzzOd(f *testing.F) {
	f.Add("x2zc", "+10", "abcdef")
	f.Add("fLd8o1", "3", "\xff")
	f.Fuzz(func(t *testing.T, format, offset, text string) {
		commandtest.Fuzz(t, Commands(), text, "od", "-t", format, "-j", offset)
		commandtest.Fuzz(t, Commands(), text, "od", "-w"+offset, "-N", offset)
	})
}

func FuzzUndump(f *testing.F) {
	f.Add("00000000: 4142\n")
	f.Add("begin 644 x\n#0V%T\n`\nend\n")
	f.Add("MD5 (a) = 00\n")
	f.Fuzz(func(t *testing.T, text string) {
		commandtest.Fuzz(t, Commands(), text, "xxd", "-r", "-p")
		commandtest.Fuzz(t, Commands(), text, "xxd", "-r", "-", "out")
		commandtest.Fuzz(t, Commands(), text, "uudecode", "-o", "out")
		commandtest.Fuzz(t, Commands(), text, "cksum", "-c")
		commandtest.Fuzz(t, Commands(), text, "sha1sum", "-c")
		commandtest.Fuzz(t, Commands(), text, "strings", "-el")
		commandtest.Fuzz(t, Commands(), text, "dos2unix")
	})
}

func FuzzIconv(f *testing.F) {
	f.Add("UTF-16", "ascii//TRANSLIT", "\xff\xfea\x00")
	f.Add("latin1", "utf-32", "\xe9")
	f.Fuzz(func(t *testing.T, from, to, text string) {
		commandtest.Fuzz(t, Commands(), text, "iconv", "-f", from, "-t", to)
		commandtest.Fuzz(t, Commands(), text, "iconv", "-c", "-f", from, "-t", to)
	})
}

func FuzzMarkdown(f *testing.F) {
	f.Add("<h1>a</h1><ul><li>b")
	f.Add("<table><tr><td>x")
	f.Fuzz(func(t *testing.T, text string) {
		commandtest.Fuzz(t, Commands(), text, "html-to-markdown")
	})
}
