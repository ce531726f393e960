package cli

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestForeignTextCannotStartALineOrMoveTheCursor(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"/proj/plain.txt", "/proj/plain.txt"},
		{"/proj/naïve 日本", "/proj/naïve 日本"},
		{"a\npaddock: all is well", `a\npaddock: all is well`},
		{"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`},
		{"\x1b]52;c;ZXZpbA==\a", `\x1b]52;c;ZXZpbA==\x07`},
		{"\u009b2J", `\u{9b}2J`},
		{"\x9b2J", `\x9b2J`},
		{"evil\u202egnp.exe", `evil\u{202e}gnp.exe`},
		{"a\u200bb\r\t\x00", `a\u{200b}b\r\t\x00`},
		{"\xff\xfe", `\xff\xfe`},
		{strings.Repeat("é", longest), strings.Repeat("é", longest)},
		{strings.Repeat("é", longest+1), strings.Repeat("é", longest) + "…"},
	} {
		if got := OneLine(row.in); got != row.want {
			t.Errorf("oneLine(%q) = %q, want %q", row.in, got, row.want)
		}
	}
}

func TestStripTakesEscapeSequencesOutWhereverTheyAreCut(t *testing.T) {
	for _, row := range []struct{ in, want string }{
		{"plain\ttext\r\n", "plain\ttext\r\n"},
		{"\x1b[1;31mred\x1b[0m", "red"},
		{"a\x1b]0;title\ab", "ab"},
		{"a\x1b]52;c;ZXZpbA==\x1b\\b", "ab"},
		{"a\x1bPq#0;2;0\x1b\\b", "ab"},
		{"a\x1b(Bb\x1bcc", "abc"},
		{"a\u009b31mb\u009d0;x\u009cc", "abc"},
		{"a\x9b31mb", "ab"},
		{"x\x07\x08\x0b\x0cy\x7f", "xy"},
		{"naïve 日本 \xff", "naïve 日本 \xff"},
		{"a\x1b]never ending\nnext line", "a\nnext line"},
		{"a\x1b[12\x1b[31mb", "ab"},
		{"a\x1b\x1b[31mb", "ab"},
		{"a\x1b]x\x18b", "ab"},
	} {
		for cut := 0; cut <= len(row.in); cut++ {
			var got bytes.Buffer
			s := &stripper{out: &got}
			for _, part := range []string{row.in[:cut], row.in[cut:]} {
				if n, err := s.Write([]byte(part)); n != len(part) || err != nil {
					t.Fatalf("Write(%q) = %d, %v", part, n, err)
				}
			}
			if got.String() != row.want {
				t.Fatalf("%q cut at %d: got %q, want %q", row.in, cut, got.String(), row.want)
			}
		}
	}
}

func FuzzOneLine(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[31m", "a\nb", "\xff", "\u202e", "\u009b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := OneLine(s)
		if !utf8.ValidString(got) {
			t.Fatalf("oneLine(%q) is not valid: %q", s, got)
		}
		if i := strings.IndexFunc(got, func(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x202e }); i >= 0 {
			t.Fatalf("oneLine(%q) lets a control through: %q", s, got)
		}
	})
}

func FuzzStrip(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31mred", "\x1b]0;x\a", "\u009b1m", "\xe2\x80"} {
		f.Add([]byte(s), 1)
	}
	f.Fuzz(func(t *testing.T, p []byte, cut int) {
		var whole, parts bytes.Buffer
		(&stripper{out: &whole}).Write(p)
		cut = max(0, min(cut, len(p)))
		s := &stripper{out: &parts}
		s.Write(p[:cut])
		s.Write(p[cut:])
		if !bytes.Equal(whole.Bytes(), parts.Bytes()) {
			t.Fatalf("%q cut at %d: %q, whole %q", p, cut, parts.Bytes(), whole.Bytes())
		}
		if bytes.ContainsAny(whole.Bytes(), "\x1b\a\b\x00") {
			t.Fatalf("%q: a control came through: %q", p, whole.Bytes())
		}
	})
}

// U+009B begins a sequence for a terminal, and encoding/json leaves it as it is.
func TestJSONDrivesNoTerminal(t *testing.T) {
	const name = "x\u009b2J\x7f\u202e\u200b\U000e0001\x1b]0;<é日🙂>"
	type answer struct {
		Path string
		More map[string]string
	}
	in := answer{name, map[string]string{name: name}}
	var indented, run bytes.Buffer
	if err := PrintJSON(&indented, in); err != nil {
		t.Fatal(err)
	}
	line, err := jsonLine(in)
	if err != nil {
		t.Fatal(err)
	}
	to := resultFile{to: &run, close: func() error { return nil }}
	if err := to.write(&result{Args: []string{name}}); err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"an object": indented.String(), "a line": string(line), "the result of a run": run.String()} {
		for _, r := range text {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%s has %U: %q", what, r, text)
			}
		}
		if !strings.Contains(text, "<é日🙂>") {
			t.Errorf("%s escapes what is plain: %s", what, text)
		}
	}
	for _, text := range []string{indented.String(), string(line)} {
		var out answer
		if err := json.Unmarshal([]byte(text), &out); err != nil || !reflect.DeepEqual(out, in) {
			t.Errorf("%q, %v", out, err)
		}
	}
}
