package inner

import (
	"strings"
	"testing"
)

func TestWordsOfOthersMoveNothing(t *testing.T) {
	for text, want := range map[string]string{
		"no room":                   "no room",
		"zwei Wörter":               "zwei Wörter",
		"\x1b]52;c;AAAA\a\r\nroot#": "�]52;c;AAAA�� root#",
		"a\u202eb\xff":              "a�b�",
		strings.Repeat("x", 5000):   strings.Repeat("x", 30) + "…",
	} {
		if got := Words(text, 30); got != want {
			t.Errorf("%.40q becomes %q, and not %q", text, got, want)
		}
	}
}
