package encode

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/command/commandtest"
)

// fuzzed runs a tool within limits that make every run short.
func fuzzed(t *testing.T, stdin string, args ...string) {
	t.Helper()
	for _, arg := range args {
		for i := range len(arg) {
			if arg[i] == 0 {
				return // no argument has one
			}
		}
	}
	commandtest.RunWithin(t, Commands(), commandtest.Case{Args: args, Stdin: stdin}, budget.Limits{Steps: 100_000, Heap: 32 << 20, Record: 1 << 20})
}

func FuzzBase(f *testing.F) {
	f.Add("YWJj\nZA==")
	f.Add("MFRGG===")
	f.Fuzz(func(t *testing.T, text string) {
		for _, o := range []string{"--base64", "--base32", "--base16", "--base2lsbf", "--z85"} {
			fuzzed(t, text, "basenc", "-d", o)
			fuzzed(t, text, "basenc", "-di", o)
			fuzzed(t, text, "basenc", o)
		}
	})
}

func FuzzHexdump(f *testing.F) {
	f.Add(`8/1 "%02x " "\n"`, "abc")
	f.Add(`"%_ad" 2/2 "%3.1u" /4 "%e"`, "12345")
	f.Fuzz(func(t *testing.T, format, text string) {
		fuzzed(t, text, "hexdump", "-e", format)
		fuzzed(t, text, "hexdump", "-v", "-e", `"%07_ax " 4/1 "%_c"`, "-e", format)
	})
}

func FuzzOd(f *testing.F) {
	f.Add("x2zc", "+10", "abcdef")
	f.Add("fLd8o1", "3", "\xff")
	f.Fuzz(func(t *testing.T, format, offset, text string) {
		fuzzed(t, text, "od", "-t", format, "-j", offset)
		fuzzed(t, text, "od", "-w"+offset, "-N", offset)
	})
}

func FuzzUndump(f *testing.F) {
	f.Add("00000000: 4142\n")
	f.Add("begin 644 x\n#0V%T\n`\nend\n")
	f.Add("MD5 (a) = 00\n")
	f.Fuzz(func(t *testing.T, text string) {
		fuzzed(t, text, "xxd", "-r", "-p")
		fuzzed(t, text, "xxd", "-r", "-", "out")
		fuzzed(t, text, "uudecode", "-o", "out")
		fuzzed(t, text, "cksum", "-c")
		fuzzed(t, text, "sha1sum", "-c")
		fuzzed(t, text, "strings", "-el")
		fuzzed(t, text, "dos2unix")
	})
}

func FuzzIconv(f *testing.F) {
	f.Add("UTF-16", "ascii//TRANSLIT", "\xff\xfea\x00")
	f.Add("latin1", "utf-32", "\xe9")
	f.Fuzz(func(t *testing.T, from, to, text string) {
		fuzzed(t, text, "iconv", "-f", from, "-t", to)
		fuzzed(t, text, "iconv", "-c", "-f", from, "-t", to)
	})
}

func FuzzMarkdown(f *testing.F) {
	f.Add("<h1>a</h1><ul><li>b")
	f.Add("<table><tr><td>x")
	f.Fuzz(func(t *testing.T, text string) {
		fuzzed(t, text, "html-to-markdown")
	})
}
