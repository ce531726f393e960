package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/agentprofile"
)

// What can be taken over is shown, also with bytes that are no UTF-8.
func TestAChangeIsShownThoughItIsNotUTF8(t *testing.T) {
	c := &agentprofile.Change{Name: ".x/s", Host: ".x/s", Before: []byte("a\n"), After: []byte("hook\xff\n\x1b[2J\n")}
	text := changeText(c)
	if !strings.Contains(text, "+hook") || strings.Contains(text, "\xff") || strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	if !isBinaryText([]byte("a\x00b")) {
		t.Error("a file with NUL is text")
	}
}

// What a project adds is shown at the terminal, where the question is, and stands directly above it.
func TestWhatAProjectAddsStandsAboveTheQuestion(t *testing.T) {
	dir := t.TempDir()
	tty := filepath.Join(dir, "tty")
	if err := os.WriteFile(tty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	a := &App{Stderr: &stderr, Data: func() (string, error) { return filepath.Join(dir, "data"), nil }, Tty: func() (*os.File, error) { return os.OpenFile(tty, os.O_RDWR|os.O_APPEND, 0) }}
	data := []byte("version: 1\nagents:\n  all:\n    allow: [evil.example]\n    env:\n      - {set: {A: b}}\n    args:\n      - {add: [--x], says: x}\n" + strings.Repeat("#\n", 500))
	if err := a.approve(dir, data, ""); !errors.Is(err, paddock.Denied) {
		t.Errorf("nobody answered: %v", err)
	}
	shown, err := os.ReadFile(tty)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(shown), "\n")
	last := strings.Join(lines[max(0, len(lines)-5):], "\n")
	for _, want := range []string{"hosts evil.example", "variables A=b", "arguments --x", "[y/N]"} {
		if !strings.Contains(last, want) {
			t.Errorf("above the question is no %q: %s", want, last)
		}
	}
	if !strings.Contains(string(shown), "allow: [evil.example]") {
		t.Error("the file is not shown at the terminal")
	}
}

// What a sandbox changed stands at the terminal above the question too, wherever standard error leads.
func TestWhatIsTakenStandsAboveTheQuestion(t *testing.T) {
	dir := t.TempDir()
	tty := filepath.Join(dir, "tty")
	if err := os.WriteFile(tty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	a := &App{Stderr: &stderr, Tty: func() (*os.File, error) { return os.OpenFile(tty, os.O_RDWR|os.O_APPEND, 0) }}
	if err := a.takeOne(dir, "probe", dir, &agentprofile.Change{Name: ".x/s", Host: ".x/s", After: []byte("evil\n")}, false); err != nil {
		t.Error(err)
	}
	shown, err := os.ReadFile(tty)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(shown); !strings.Contains(text, "+evil") || strings.Index(text, "+evil") > strings.Index(text, "[y/N]") {
		t.Errorf("at the terminal is %q", text)
	}
}

// The list of changes is written one by one, and is a list all the same.
func TestChangesAreAListInJSON(t *testing.T) {
	for _, list := range [][]agentprofile.Change{nil, {{Host: "a", After: []byte("1\n")}}, {{Host: "a", After: []byte("1\n")}, {Host: "b<", Before: []byte("2\n")}}} {
		var one, all strings.Builder
		a := &App{Stdout: &one}
		if err := a.changesAsJSON(list); err != nil {
			t.Error(err)
		}
		shown := []shownChange{}
		for _, c := range list {
			shown = append(shown, shownChange{"~/" + c.Host, changeText(&c)})
		}
		if err := PrintJSON(&all, shown); err != nil || one.String() != all.String() {
			t.Errorf("%s, want %s: %v", one.String(), all.String(), err)
		}
	}
}
