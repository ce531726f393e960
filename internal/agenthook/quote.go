package agenthook

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// MaxCommand is the longest text of a step in a shell's words, in bytes. Linux starts no program with a longer argument
// than 128 KiB, and the shell of an agent gets all words and what it adds itself in one.
const MaxCommand = 100 << 10

const hexDigits = "0123456789ABCDEF"

// plain reports whether a byte means itself between single quotes, in every shell that an agent may have: sh, bash, zsh,
// csh and fish. A backslash means something to fish there, an exclamation mark to csh and to an interactive bash, and a
// newline ends the word of csh. Beyond ASCII it depends on the locale, and some characters show another text than there is.
// Claude Code looks for | and < in a command, without regard to quotes, and writes it anew around them.
func plain(c byte) bool { return c >= ' ' && c <= '~' && !strings.ContainsRune(`'\!%|<`, rune(c)) }

// Encode writes a word so that it has only bytes that mean themselves between single quotes. Every other byte is %XX.
func Encode(word string) string {
	var b strings.Builder
	for i := range len(word) {
		if c := word[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}

// Decode gives the word that Encode wrote, and refuses every other text.
func Decode(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '%':
			if i+2 >= len(text) {
				return "", fmt.Errorf("a word of a hook ends in the middle of a byte: %w", paddock.Invalid)
			}
			high, low := strings.IndexByte(hexDigits, text[i+1]), strings.IndexByte(hexDigits, text[i+2])
			if high < 0 || low < 0 || plain(byte(high<<4|low)) {
				return "", fmt.Errorf("a word of a hook has %q, which stands for no byte: %w", text[i:i+3], paddock.Invalid)
			}
			b.WriteByte(byte(high<<4 | low))
			i += 2
		case plain(c):
			b.WriteByte(c)
		default:
			return "", fmt.Errorf("a word of a hook has the byte %#x: %w", c, paddock.Invalid)
		}
	}
	return b.String(), nil
}

// Line writes a program's call as one command of a shell. Each word but the program's path is encoded; the program
// decodes them. A path that means something between single quotes is refused.
func Line(program string, words ...string) (string, error) {
	if program == "" || Encode(program) != program {
		return "", fmt.Errorf("the path %q cannot be written for every shell: %w", program, paddock.Unsupported)
	}
	var b strings.Builder
	b.WriteString(quoted(program))
	for _, w := range words {
		b.WriteByte(' ')
		b.WriteString(quoted(Encode(w)))
	}
	return b.String(), nil
}

// quoted puts an encoded word between single quotes, but for one that needs none.
func quoted(word string) string {
	bare := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@,+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !bare(r) }) < 0 {
		return word
	}
	return "'" + word + "'"
}

// unquote gives the one word that the rest of a line is, as quoted wrote it.
func unquote(text string) (string, error) {
	inner := text
	if begun, ok := strings.CutPrefix(text, "'"); ok {
		if ended, ok := strings.CutSuffix(begun, "'"); ok {
			inner = ended
		}
	}
	word, err := Decode(inner)
	if err != nil || quoted(Encode(word)) != text {
		return "", fmt.Errorf("the rest of the command is not one word: %w", paddock.Denied)
	}
	return word, nil
}
