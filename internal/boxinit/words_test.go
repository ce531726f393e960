package boxinit

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

func TestAnEndOfInitHasAReason(t *testing.T) {
	for status, want := range map[int]string{0: "nobody asks", 1: "could not make", 2: "status 2, in a crash", 77: "no reason that is known"} {
		if got := Ended(status); !strings.Contains(got, want) {
			t.Errorf("%d is %q", status, got)
		}
	}
}
