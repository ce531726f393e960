package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// A desk is the terminal of a person in a test.
type desk struct {
	keys *os.File // what is written to it, the person types

	mu     sync.Mutex
	shown  strings.Builder // guarded by mu
	closed bool            // guarded by mu
	onShow func(all string)
}

func (d *desk) Write(p []byte) (int, error) {
	d.mu.Lock()
	d.shown.Write(p)
	all, tell := d.shown.String(), d.onShow
	d.mu.Unlock()
	if tell != nil {
		tell(all)
	}
	return len(p), nil
}

func (d *desk) Close() error { d.mu.Lock(); d.closed = true; d.mu.Unlock(); return nil }

func (d *desk) text() string { d.mu.Lock(); defer d.mu.Unlock(); return d.shown.String() }

// asking makes an asker, and a person who types answers[i] at the i-th prompt.
func asking(t *testing.T, answers ...string) (*asker, *desk) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	k, err := newAsker(r)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{keys: w}
	given := 0
	d.onShow = func(all string) {
		for given < min(len(answers), strings.Count(all, "(d)? ")) {
			fmt.Fprint(w, answers[given])
			given++
		}
	}
	k.terminal, k.settle, k.patience = d, time.Millisecond, time.Minute
	return k, d
}

func question(host string) gatewayclient.Question {
	return gatewayclient.Question{Host: host, Port: 443}
}

func TestAPersonDecidesWhatNoRuleDoes(t *testing.T) {
	for _, row := range []struct {
		typed []string
		want  gatewayclient.Answer
	}{
		{[]string{"o\n"}, gatewayclient.AnswerOnce},
		{[]string{" Once \n"}, gatewayclient.AnswerOnce},
		{[]string{"a\n"}, gatewayclient.AnswerAlways},
		{[]string{"always\n"}, gatewayclient.AnswerAlways},
		{[]string{"d\n"}, gatewayclient.AnswerDeny},
		{[]string{"yes\n", "o\n"}, gatewayclient.AnswerOnce},
		{[]string{"\n", "y\n", "x\n", "o\n"}, gatewayclient.AnswerDeny},
		{[]string{"\x1b[?64;1;2c\n", "\x1b]10;rgb:aaaa/aaaa/aaaa\x1b\\a\n", "d\n"}, gatewayclient.AnswerDeny},
		{[]string{strings.Repeat("a", 100) + "\n", "a\n"}, gatewayclient.AnswerAlways},
	} {
		k, d := asking(t, row.typed...)
		if got := k.ask(t.Context(), question("example.com")); got != row.want {
			t.Errorf("%q: %q, want %q", row.typed, got, row.want)
		}
		if !strings.Contains(d.text(), "connect to example.com, port 443, and no rule allows it") {
			t.Errorf("the question is %q", d.text())
		}
	}
}

func TestWhatWasDecidedIsNotAskedAgain(t *testing.T) {
	k, d := asking(t, "a\n", "d\n", "o\n", "d\n")
	for _, row := range []struct {
		host string
		want gatewayclient.Answer
	}{
		{"a.example", gatewayclient.AnswerAlways},
		{"b.example", gatewayclient.AnswerDeny},
		{"a.example", gatewayclient.AnswerAlways},
		{"b.example", gatewayclient.AnswerDeny},
		{"c.example", gatewayclient.AnswerOnce},
		{"c.example", gatewayclient.AnswerDeny},
	} {
		if got := k.ask(t.Context(), question(row.host)); got != row.want {
			t.Errorf("%s: %q, want %q", row.host, got, row.want)
		}
	}
	if n := strings.Count(d.text(), "(d)? "); n != 4 {
		t.Errorf("asked %d times", n)
	}
	want := []asked{{Host: "a.example", Port: 443, Answer: "always"}, {Host: "b.example", Port: 443, Answer: "deny"}, {Host: "c.example", Port: 443, Answer: "deny"}}
	if got := k.answers(); !slices.Equal(got, want) {
		t.Errorf("kept %v", got)
	}
}

func TestWhoDoesNotAnswerDeniesAndIsLeftAlone(t *testing.T) {
	k, d := asking(t)
	k.patience = 10 * time.Millisecond
	for i := range maxMissed + 5 {
		if got := k.ask(t.Context(), question(fmt.Sprintf("h%d.example", i))); got != gatewayclient.AnswerDeny {
			t.Errorf("question %d: %q", i, got)
		}
	}
	if n := strings.Count(d.text(), "(d)? "); n != maxMissed {
		t.Errorf("asked %d times, want %d", n, maxMissed)
	}
	if !strings.Contains(d.text(), "nothing more is asked in this run") {
		t.Error("nobody was told that nothing more is asked")
	}
}

func TestAFloodOfQuestionsEnds(t *testing.T) {
	k, d := asking(t, slices.Repeat([]string{"o\n"}, maxQuestions+10)...)
	for i := range maxQuestions + 10 {
		k.ask(t.Context(), question(fmt.Sprintf("h%d.example", i)))
	}
	if n := strings.Count(d.text(), "(d)? "); n != maxQuestions {
		t.Errorf("asked %d times, want %d", n, maxQuestions)
	}
}

func TestMoreQuestionsAtOnceThanAPersonCanReadAreDenied(t *testing.T) {
	k, d := asking(t)
	shown := make(chan struct{})
	var once sync.Once
	d.onShow = func(all string) {
		if strings.Contains(all, "(d)? ") {
			once.Do(func() { close(shown) })
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { k.ask(ctx, question("first.example")) })
	<-shown
	for i := range maxWaiting {
		wg.Go(func() { k.ask(ctx, question(fmt.Sprintf("h%d.example", i))) })
	}
	for len(k.waiting) <= maxWaiting {
		select {
		case <-t.Context().Done():
			t.Fatal("the questions do not wait")
		case <-time.After(time.Millisecond):
		}
	}
	if got := k.ask(t.Context(), question("more.example")); got != gatewayclient.AnswerDeny {
		t.Errorf("one more: %q", got)
	}
	cancel()
	wg.Wait()
}

func TestAQuestionThatNobodyWaitsForAnyMoreEnds(t *testing.T) {
	k, d := asking(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.onShow = func(all string) {
		if strings.Contains(all, "(d)? ") {
			cancel()
		}
	}
	if got := k.ask(ctx, question("example.com")); got != gatewayclient.AnswerDeny {
		t.Errorf("%q", got)
	}
}

func TestAHostileNameCannotDriveTheTerminalThatAsks(t *testing.T) {
	k, d := asking(t, "d\n")
	k.ask(t.Context(), question("\x1b[2Jevil\r\nallow it? \u202e"))
	_, after, _ := strings.Cut(d.text(), "paddock: ")
	line, _, _ := strings.Cut(after, "\r\n")
	if strings.ContainsAny(line, "\x1b\u202e\r\n") || !strings.Contains(line, `\x1b[2Jevil\r\nallow it? \u{202e}, port`) {
		t.Errorf("shown: %q", line)
	}
}

func TestWhatWasTypedBeforeAQuestionIsNoAnswer(t *testing.T) {
	k, d := asking(t)
	k.settle, k.patience = 20*time.Millisecond, 100*time.Millisecond
	fmt.Fprint(d.keys, "a\n")
	if got := k.ask(t.Context(), question("example.com")); got != gatewayclient.AnswerDeny {
		t.Errorf("%q", got)
	}
}

func TestOutputWaitsWhileAQuestionStands(t *testing.T) {
	k, d := asking(t)
	var out strings.Builder
	h := &held{&out, k.screen}
	wrote := make(chan struct{})
	d.onShow = func(all string) {
		if strings.Count(all, "(d)? ") == 1 && strings.HasSuffix(all, "(d)? ") {
			go func() {
				fmt.Fprint(h, "output")
				close(wrote)
			}()
			fmt.Fprint(d.keys, "d\n")
		}
		select {
		case <-wrote:
			t.Error("output was written while the question stood")
		default:
		}
	}
	k.ask(t.Context(), question("example.com"))
	<-wrote
	if out.String() != "output" {
		t.Errorf("got %q", out.String())
	}
}

func TestKeysOfARawTerminalAnswerOnlyWhileAQuestionStands(t *testing.T) {
	k, d := asking(t)
	r, w := io.Pipe()
	defer w.Close()
	b := &keyboard{Reader: r, echo: d}
	k.keyboard = b
	read := make(chan string, 8)
	go func() {
		buf := make([]byte, 64)
		for {
			n, err := b.Read(buf)
			if err != nil {
				return
			}
			read <- string(buf[:n])
		}
	}()
	fmt.Fprint(w, "ls\r")
	if got := <-read; got != "ls\r" {
		t.Errorf("the command got %q", got)
	}
	for _, row := range []struct {
		typed string
		want  gatewayclient.Answer
	}{{"x\x7fo\r", gatewayclient.AnswerOnce}, {"\x03", gatewayclient.AnswerDeny}} {
		asked := 0
		d.onShow = func(all string) {
			if n := strings.Count(all, "(d)? "); n > asked && strings.HasSuffix(all, "(d)? ") {
				asked = n
				go fmt.Fprint(w, row.typed) // it is read when the question waits for it
			}
		}
		if got := k.ask(t.Context(), question("example.com")); got != row.want {
			t.Errorf("%q: %q", row.typed, got)
		}
		d.onShow = nil
	}
	fmt.Fprint(w, "q")
	if got := <-read; got != "q" {
		t.Errorf("the command got %q afterwards", got)
	}
}

func TestAskingNeedsATerminalAndAList(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "--ask", "true")
	if code := v.Run(t.Context()); code != 125 || !strings.HasPrefix(v.Stderr.String(), "paddock: --ask: there is no terminal to ask at") {
		t.Errorf("%d, %q", code, v.Stderr.String())
	}
	if f.Created != 0 {
		t.Error("a sandbox was made")
	}
}

func TestWhatWasAllowedIsToldAtTheEndWithItsFlags(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	f := &fake.Fake{About: fake.GoodInfo()}
	row := AsTier(f, paddock.Jail)
	row.Open = func(g Gear) (paddock.Driver, error) {
		// The gateway's part: a question, which the person answers. The pipe is
		// read only, so that what is shown is lost.
		answered := make(chan struct{})
		var person sync.WaitGroup
		defer person.Wait()
		defer close(answered)
		person.Go(func() {
			for {
				select {
				case <-answered:
					return
				case <-time.After(50 * time.Millisecond):
					fmt.Fprint(w, "a\n")
				}
			}
		})
		if got := g.Ask(t.Context(), question("example.com")); got != gatewayclient.AnswerAlways {
			t.Errorf("answered %q", got)
		}
		return f, nil
	}
	dir := t.TempDir()
	v := invoke(dir, nil, []Tier{row}, "run", "--ask", "--json="+filepath.Join(dir, "result"), "true")
	v.App.Tty = func() (*os.File, error) { return r, nil }
	if code := v.Run(t.Context()); code != 0 {
		t.Errorf("%d, %q", code, v.Stderr.String())
	}
	if got := f.Made().Policy.Network.Mode; got != paddock.NetworkList {
		t.Errorf("the mode is %q", got)
	}
	if want := "paddock: allowed for this run alone: example.com:443\nhint: to allow it from the start: --allow example.com:443\n"; v.Stderr.String() != want {
		t.Errorf("said %q", v.Stderr.String())
	}
	data, err := os.ReadFile(filepath.Join(dir, "result"))
	if err != nil || !strings.Contains(string(data), `"answer": "always"`) {
		t.Errorf("%s, %v", data, err)
	}
}
