package regex

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// logText makes n bytes of a log.
func logText(n int) []byte {
	var b bytes.Buffer
	levels := []string{"INFO", "DEBUG", "INFO", "warning", "INFO", "error"}
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "2024-%02d-%02dT10:%02d:%02d.%03dZ [%s] 10.0.%d.%d \"GET /api/v1/items/%d HTTP/1.1\" %d %dms\n",
			i%12+1, i%28+1, i/60%60, i%60, i%1000, levels[i*7%23%len(levels)], i%256, i*13%256, i*31, 200+i%5*100, i*17%900)
	}
	return b.Bytes()
}

func benchmarkLines(b *testing.B, pattern string, opt Options) {
	b.Helper()
	text := logText(10 << 20)
	opt.Lines = true
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := Compile(pattern, opt)
		if err != nil {
			b.Fatal(err)
		}
		lines := 0
		for at := 0; ; lines++ {
			start, end, err := r.FindLine(text, at)
			if err != nil {
				b.Fatal(err)
			}
			if start < 0 {
				break
			}
			at = end + 1
		}
		b.ReportMetric(float64(lines), "lines")
	}
}

func BenchmarkLines(b *testing.B) {
	for _, p := range []string{
		"items/31000 ", "no such thing", "error|warning", "[0-9]+ms$", "^2024.*GET", "^2023", "([0-9]{1,3}\\.){3}[0-9]{1,3}", `\berror\b`, "[[:alpha:]]+ 500 8", `(.)\1\1`,
	} {
		b.Run(p, func(b *testing.B) { benchmarkLines(b, p, Options{Flavour: GrepERE}) })
	}
	b.Run("fold", func(b *testing.B) { benchmarkLines(b, "ERROR", Options{Flavour: GrepERE, IgnoreCase: true}) })
	b.Run("word", func(b *testing.B) { benchmarkLines(b, "error", Options{Flavour: GrepERE, Word: true}) })
}

func BenchmarkFind(b *testing.B) {
	line := []byte("2024-11-21T10:20:30.123Z [INFO] 10.0.0.1 \"GET /api/v1/items/17 HTTP/1.1\" 200 17ms")
	for _, p := range []string{`([0-9]+)ms$`, `^([^ ]*) \[([A-Z]*)\] (.*)$`, `GET`, `[0-9]+`, `x.*y`} {
		b.Run(p, func(b *testing.B) {
			r, err := Compile(p, Options{Flavour: ERE})
			if err != nil {
				b.Fatal(err)
			}
			var dst []int
			b.ReportAllocs()
			for b.Loop() {
				if m, err := r.Find(line, 0, dst); err != nil {
					b.Fatal(err)
				} else if m != nil {
					dst = m
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, p := range []string{"abc", `^([^ ]*) \[([A-Z]*)\] (.*)$`, "[[:alpha:]_][[:alnum:]_]*"} {
		b.Run(p, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := Compile(p, Options{Flavour: ERE})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := r.Match([]byte("xyz abc")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBacktrack searches in vain, from every start, with a back-reference.
func BenchmarkBacktrack(b *testing.B) {
	text := []byte(strings.Repeat("abcdefghij", 200))
	for _, p := range []string{`(a|b|c|d|e|f|g|h|i|j)*x\1`, `(.)(.*)\1\2Z`, `([a-j]+)([a-j]+)-\1`} {
		b.Run(p, func(b *testing.B) {
			r, err := Compile(p, Options{Flavour: ERE})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				_, _ = r.Find(append(text, "-xZ"...), 0, nil)
			}
		})
	}
}
