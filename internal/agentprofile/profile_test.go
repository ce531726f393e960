package agentprofile

import (
	"errors"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestEveryEmbeddedProfileIsValid(t *testing.T) {
	names := Names()
	if len(names) == 0 {
		t.Fatal("there are none")
	}
	for _, name := range names {
		p, err := Builtin(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if p.Name != name || p.Title == "" {
			t.Errorf("%s.yaml is of %q, %q", name, p.Name, p.Title)
		}
	}
}

const least = "version: 1\nname: x\ntitle: X\nprogram: [x]\nstate:\n  keep: [~/.x]\n"

func TestAFaultIsToldWithItsLine(t *testing.T) {
	if _, err := Read("p", []byte(least)); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ text, want string }{
		{"", "p:1: it is empty"},
		{"- x\n", "p:1: it is no mapping"},
		{"name: x\n", "the version is missing"},
		{strings.Replace(least, "name: x", "name: ../x", 1), "p:2: "},
		{strings.Replace(least, "[x]", "[a/b]", 1), "p:4: "},
		{least + "hosts: [a]\n", `p:7: unknown key "hosts"`},
		{least + "memory: lots\n", "p:7: "},
		{least + "allow:\n  - a.example\n  - 'a b'\n", "p:9: "},
		{least + "allow: [a, b\n", "p:"},
		{least + "env:\n  - set: {LD_PRELOAD: /x}\n", "p:8: LD_PRELOAD"},
		{least + "env:\n  - set: {A: ~/../x}\n", "p:8: "},
		{least + "args:\n  - add: [-y]\n", "p:8: what it does is not said"},
		{least + "args:\n  - add: [-y]\n    says: \"a\\u001b[2J\"\n", "p:8: "},
		{least + "keys:\n  - variable: K\n    hosts: ['*.example']\n", "p:9: "},
		{least + "keys:\n  - variable: K\n", "p:8: the hosts are missing"},
		{strings.Replace(least, "~/.x", "~/.ssh", 1), "p:6: "},
		{strings.Replace(least, "~/.x", "~/.config", 1), "p:6: "},
		{strings.Replace(least, "~/.x", "~/.x/../..", 1), "p:6: "},
		{strings.Replace(least, "~/.x", "/etc", 1), "p:6: "},
		{least + "  obeyed: [~/.y/z]\n", "p:7: "},
		{least + "  copy:\n    - from: ~/.ssh/id\n      to: ~/.x/id\n", "p:8: ~/.ssh/id is never copied"},
		{least + "first_run:\n  - file: ~/.x/s.json\n    json: '[]'\n", "p:9: it is no JSON object"},
		{least + "login:\n  - name: x\n    file: ~/.x/token\n", "p:8: "},
		{least + "login:\n  - {name: x, file: ~/.y/token, access: a, login: x, use: [{host: a.example, paths: [/x]}]}\n", "p:8: ~/.y/token is in no directory"},
		{least + "note: &a b\n", "p:7: an alias"},
		{least + "title: Y\n", "p:"},
		{least + "---\n" + least, "p:"},
		{least + "note: \xff\n", "not text in UTF-8"},
		{strings.Repeat("#", MaxDocument+1), "at most"},
	} {
		_, err := Read("p", []byte(row.text))
		var e *Error
		if !errors.As(err, &e) || !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: %v, want %s", row.text, err, row.want)
		}
	}
}

// A profile that was read has nothing that its users must check again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(least))
	for _, name := range Names() {
		data, err := embedded.ReadFile("profiles/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read("p", data)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Errorf("%v is no *Error", err)
			}
			return
		}
		for _, dir := range p.State.Keep {
			if !strings.HasPrefix(dir, "~/.") || strings.Contains(dir, "..") && strings.Contains("/"+dir+"/", "/../") {
				t.Errorf("it keeps %q", dir)
			}
		}
		for _, a := range p.Args {
			if !plain(a.Says) || a.Says == "" {
				t.Errorf("it says %q", a.Says)
			}
		}
	})
}
