package agenthook

import (
	"os/exec"
	"strings"
	"testing"
)

// hostile are commands that want out of a shell's word.
func hostile() []string {
	all := make([]byte, 255)
	for i := range all {
		all[i] = byte(i + 1)
	}
	return []string{
		"", "ls", "'", "''", "'; touch /tmp/out; '", `\'; id; \'`, `\`, `a\`, "$(id)", "`id`", "a\nb", "a\n'\nb", "!!", "!$",
		"%27", "%", "%%", "%2", "a %27; id; %27", "a|b <c >d", "cat <<'E'\nx\nE\n", "\x1b[2K\rls", "\u202ecod.exe", "é", "\xff\xfe", "-e", "--", "~root", "=ls", "#", "{a,b}", "*", string(all),
	}
}

func TestAWordComesBackAsItWas(t *testing.T) {
	t.Parallel()
	for _, word := range hostile() {
		if got, err := Decode(Encode(word)); err != nil || got != word {
			t.Errorf("%q came back as %q, %v", word, got, err)
		}
	}
}

func TestNoShellSeesMoreThanOneWord(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"sh", "bash", "dash", "zsh", "fish", "csh", "tcsh", "ksh", "busybox"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		args := []string{"-c"}
		if shell == "busybox" {
			args = []string{"sh", "-c"}
		}
		for _, word := range hostile() {
			line, err := Line("/usr/bin/env", "printf", "[%s]", word, "end")
			if err != nil {
				t.Fatal(err)
			}
			// The program prints its words as they arrive, which is encoded.
			line = strings.Replace(line, " '[%25s]' ", " '[%s]' ", 1)
			out, err := exec.Command(path, append(args, line)...).CombinedOutput()
			if want := "[" + Encode(word) + "][end]"; err != nil || string(out) != want {
				t.Errorf("%s: the word %q arrived as %q, want %q (%v)", shell, word, out, want, err)
			}
		}
	}
}

func TestAPathThatNoShellTakesIsRefused(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/a'b", `/a\b`, "/a\nb", "/a!b", "/a%b"} {
		if line, err := Line(path, "x"); err == nil {
			t.Errorf("%q became %s", path, line)
		}
	}
}

func TestTheRestOfALineIsOneWord(t *testing.T) {
	t.Parallel()
	for _, word := range hostile() {
		if got, err := unquote(quoted(Encode(word))); err != nil || got != word {
			t.Errorf("%q came back as %q, %v", word, got, err)
		}
	}
	for _, text := range []string{"a b", "'a' b", "'a'; id", "$(id)", "'a' 'b'", "'a", "a'", "'", "''a", "a\n", "'%41'", ";id", "&", ">x", "'a'&&b"} {
		if word, err := unquote(text); err == nil {
			t.Errorf("%q is the word %q", text, word)
		}
	}
}

func FuzzWords(f *testing.F) {
	for _, word := range hostile() {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		text := Encode(word)
		if strings.ContainsAny(text, "'\\!|<\n\r\x00") {
			t.Fatalf("%q became %q", word, text)
		}
		if got, err := Decode(text); err != nil || got != word {
			t.Fatalf("%q came back as %q, %v", word, got, err)
		}
		if got, err := Decode(word); err == nil && Encode(got) != word {
			t.Fatalf("%q was read as %q, which is written %q", word, got, Encode(got))
		}
		if got, err := unquote(word); err == nil && quoted(Encode(got)) != word {
			t.Fatalf("%q passed as the one word %q", word, got)
		}
	})
}
