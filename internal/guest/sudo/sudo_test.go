package sudo

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestOptionsMeanWhatTheyMeanToSudo(t *testing.T) {
	for line, want := range map[string]options{
		"id":                            {args: []string{"id"}},
		"-u joe id -u":                  {user: "joe", args: []string{"id", "-u"}},
		"-ujoe -- id":                   {user: "joe", args: []string{"id"}},
		"-nEHu #7 id":                   {user: "7", keep: true, home: true, args: []string{"id"}},
		"--user=joe --chdir /x id":      {user: "joe", dir: "/x", args: []string{"id"}},
		"--preserve-env=A,B X=1 id Y=2": {names: []string{"A", "B"}, set: []string{"X=1"}, args: []string{"id", "Y=2"}},
		"-- X=1 id":                     {set: []string{"X=1"}, args: []string{"id"}},
		"-i":                            {login: true},
		"-s id -E":                      {shell: true, args: []string{"id", "-E"}},
		"-S -p prompt -k id":            {forgives: true, args: []string{"id"}},
		"-k":                            {mode: nothing, forgives: true},
		"-K":                            {mode: nothing},
		"-nv":                           {mode: validate},
		"-l":                            {mode: list},
		"-V":                            {mode: showVersion},
		"/a=b id":                       {args: []string{"/a=b", "id"}},
		"- id":                          {args: []string{"-", "id"}},
	} {
		got, err := parse(strings.Fields(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if len(got.args) == 0 {
			got.args = nil
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v, not %+v", line, *got, want)
		}
	}
	for _, line := range []string{"", "-u", "-E", "-Y id", "--user", "--frob id", "--u joe id", "-g x id", "--group=x id", "-e f", "-b id", "-R / id", "-D x id", "-i -s", "-i -E", "--login=yes id", "-u  "} {
		if o, err := parse(strings.Fields(line)); err == nil {
			t.Errorf("%q is taken for %+v", line, o)
		}
	}
}

func TestOfTheEnvironmentSudoKeepsWhatIsNamed(t *testing.T) {
	all := []string{"A=1", "LC_ALL=C", "LD_PRELOAD=x", "PATH=/p", "SHELL=/s", "HOME=/h", "odd", "=x"}
	for line, want := range map[string]string{
		"id": "LC_ALL=C", "-s id": "LC_ALL=C SHELL=/s", "--preserve-env=A id": "A=1 LC_ALL=C",
		"-E id": "A=1 LC_ALL=C LD_PRELOAD=x PATH=/p SHELL=/s HOME=/h",
	} {
		o, err := parse(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range o.environment(all) {
			got = append(got, string(v))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, not %q", line, got, want)
		}
	}
}

func TestARequestIsACommandOfTheOtherUser(t *testing.T) {
	root, me := Account{"root", 0, 0, "/root", "/bin/bash"}, Account{"user", 1000, 1001, "/home/user", "/bin/sh"}
	words := func(list ...string) (out [][]byte) {
		for _, w := range list {
			out = append(out, []byte(w))
		}
		return out
	}
	program, args, env, dir := (&Request{Args: words("id", "-u"), Dir: []byte("/x"), Env: words("PATH=/evil", "TERM=vt", "USER=me"), Set: words("A=1")}).Command(root, me)
	if program != "id" || !slices.Equal(args, []string{"id", "-u"}) || dir != "/x" || !reflect.DeepEqual(env, map[string]string{
		"PATH": SecurePath, "TERM": "vt", "USER": "root", "LOGNAME": "root", "HOME": "/root", "SHELL": "/bin/bash", "A": "1",
		"SUDO_USER": "user", "SUDO_UID": "1000", "SUDO_GID": "1001", "SUDO_COMMAND": "id -u",
	}) {
		t.Errorf("%s %q %v %s", program, args, env, dir)
	}
	program, args, env, dir = (&Request{Login: true, Shell: true, Args: words("a b", "$x;")}).Command(root, me)
	if program != "/bin/bash" || !slices.Equal(args, []string{"-bash", "-c", `a\ b $x\;`}) || dir != "/root" || env["HOME"] != "/root" {
		t.Errorf("%s %q %v %s", program, args, env, dir)
	}
	_, _, env, _ = (&Request{Args: words("id"), Env: words("HOME=/h"), KeepHome: true}).Command(root, me)
	if env["HOME"] != "/h" {
		t.Errorf("%v", env)
	}
}

// FuzzDecode: whatever is said, what is taken is a command that could be started.
func FuzzDecode(f *testing.F) {
	good, err := json.Marshal(Request{User: []byte("root"), Args: [][]byte{[]byte("id")}, Dir: []byte("/"), Env: [][]byte{[]byte("A=1")}})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{good, nil, []byte("{}"), []byte(`{"args":["aWQ="]}{}`), []byte(`{"shell":true}`), []byte(`{"args":["AA=="]}`), []byte(`{"args":["aWQ="],"x":1}`), []byte(`{"args":[null]}`)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			if !errors.Is(err, paddock.Invalid) {
				t.Errorf("refused without a kind: %v", err)
			}
			return
		}
		program, args, env, dir := r.Command(Account{Name: "root", Home: "/root", Shell: "/bin/sh"}, Account{Name: "user"})
		if program == "" || len(args) == 0 || dir == "" || dir[0] != '/' {
			t.Errorf("%q %q %q", program, args, dir)
		}
		for _, text := range append(args, program, dir) {
			if strings.ContainsRune(text, 0) {
				t.Errorf("a NUL in %q", text)
			}
		}
		for name, value := range env {
			if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
				t.Errorf("the variable %q=%q", name, value)
			}
		}
		again, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(again[Head:]); err != nil && len(again) < MaxRequest {
			t.Errorf("what was taken is refused when it is said again: %v", err)
		}
	})
}

func TestAnAnswerIsBounded(t *testing.T) {
	data, err := Encode(Answer{Code: 3, Signal: 9})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := ReadAnswer(bytes.NewReader(data)); err != nil || a.Code != 3 || a.Signal != 9 {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := ReadAnswer(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff})); !errors.Is(err, paddock.Invalid) {
		t.Errorf("%v", err)
	}
}
