package interpreter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// hard are texts that grow in a request.
func hard() map[string]string {
	return map[string]string{
		"plain": "x = 1\n", "HTML": "<a href=\"/?a=1&b=2\">'</a>", "quotes": `'"`, "slashes": `\`, "lines": "\r\n\t", "separators": "\u2028\u2029\u0085",
		"characters": "é€😀", "control characters": "\x01\x1b\x7f", "nothing": "",
	}
}

func TestTheSizeOfARequestIsKnownBeforeItIsMade(t *testing.T) {
	for name, l := range languages() {
		for what, text := range hard() {
			text = strings.Repeat(text, 10_000)
			c := Cell{Code: text, Env: map[string]string{"A": text, "B": ""}}
			size := l.size(c)
			request := l.request(1<<62, c, size)
			if len(request) > size || len(request) < size-150 || cap(request) > size+size/4 {
				t.Errorf("%s, %s: %d bytes in memory of %d, and expected are %d", name, what, len(request), cap(request), size)
			}
		}
	}
}

func TestARequestIsNotMuchLongerThanItsCode(t *testing.T) {
	for _, name := range []Language{Python, JavaScript, TypeScript} {
		l := languages()[name]
		for _, text := range []string{"<", ">", "&", "'", `"`, `\`, "\n", "\u2028", "é", "if a < b && c > d: print('<p>')\n"} {
			c := Cell{Code: strings.Repeat(text, maxCode/len(text))}
			if n := len(l.request(1, c, l.size(c))); n > 2*len(c.Code)+100 {
				t.Errorf("%s: %d bytes of %q are %d in the request", name, len(c.Code), text, n)
			}
		}
	}
}

func TestARequestInJSONHoldsTheCell(t *testing.T) {
	for what, text := range hard() {
		c := Cell{Code: text, Env: map[string]string{"A": text, "B": "b"}}
		line := jsonRequest(7, c, 0)
		var got struct {
			Seq  string            `json:"n"`
			Code string            `json:"code"`
			Env  map[string]string `json:"env"`
		}
		if err := json.Unmarshal(line, &got); err != nil || got.Seq != "7" || got.Code != text || !maps.Equal(got.Env, c.Env) || strings.Count(string(line), "\n") != 1 {
			t.Errorf("%s: %q: %+v, %v", what, line, got, err)
		}
	}
	if got := string(jsonRequest(7, Cell{}, 0)); got != `{"n":"7","code":"","env":{}}`+"\n" {
		t.Errorf("%q", got)
	}
}

func TestARequestInBase64HoldsTheCell(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 3<<10 - 1, 3 << 10, 3<<10 + 1, 20_000} {
		text := strings.Repeat("é", n)[:n]
		if got, want := string(append64(nil, text)), "="+encoded(text); got != want {
			t.Errorf("%d bytes: %.20q…, want %.20q…", n, got, want)
		}
	}
}

func encoded(text string) string {
	data, err := json.Marshal([]byte(text))
	if err != nil {
		panic(err)
	}
	return strings.Trim(string(data), `"`)
}

func TestAQuotedTextIsOneWordOfAShell(t *testing.T) {
	var args, want []string
	for _, text := range hard() {
		args, want = append(args, string(appendQuoted(nil, text, "=", text))), append(want, text+"="+text)
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "printf '%s\\0' "+strings.Join(args, " ")).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSuffix(string(out), "\x00"); got != strings.Join(want, "\x00") {
		t.Errorf("%q, want %q", got, strings.Join(want, "\x00"))
	}
}

// Many short variables take much more memory than their text.
func TestVariablesCountWithWhatTheyTakeInMemory(t *testing.T) {
	i, err := New(Options{Sandbox: struct{ paddock.Sandbox }{}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	i.found = true
	env := map[string]string{}
	for n := range 1_000_000 {
		env[fmt.Sprint("a", n)] = ""
	}
	if err := i.Run(t.Context(), Cell{Code: "1", Env: env}, nil); paddock.KindOf(err) != paddock.Exhausted {
		t.Errorf("a cell: %v", err)
	}
	if _, err := i.Create(t.Context(), Spec{Env: env}); paddock.KindOf(err) != paddock.Exhausted {
		t.Errorf("a context: %v", err)
	}
	if i.cells.held != 0 {
		t.Errorf("%d bytes are held of none", i.cells.held)
	}
}

func TestVariablesOfAContextCountUntilItIsRemoved(t *testing.T) {
	i, err := New(Options{Sandbox: struct{ paddock.Sandbox }{}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	i.found = true
	s, err := i.add(context.Background(), Spec{Env: map[string]string{"A": strings.Repeat("x", 1000)}}, false)
	if err != nil {
		t.Fatal(err)
	}
	if i.cells.held < 1000 {
		t.Errorf("%d bytes are counted", i.cells.held)
	}
	i.drop(s)
	i.drop(s)
	if i.cells.held != 0 {
		t.Errorf("%d bytes are held of none", i.cells.held)
	}
}
