package gitlogin

import (
	"strings"
	"testing"
)

func TestRemotesOfAConfiguration(t *testing.T) {
	c := Read([]byte(`[core]
	bare = false
[remote "origin"]
	url = https://github.com/owner/repo.git
	fetch = +refs/heads/*:refs/remotes/origin/*
[remote "same"]
	url = https://github.com/owner/repo.git
[remote "mine"]
	url = https://alice@git.example:8443/a/b/
	pushurl = https://git.example/push
[remote "ssh"]
	url = git@github.com:owner/other.git
[credential]
	helper = !touch /tmp/planted
`))
	var got []string
	for _, r := range c.Remotes {
		got = append(got, r.String())
	}
	if want := "github.com/owner/repo|alice@git.example:8443/a/b|git.example/push"; strings.Join(got, "|") != want || len(c.Notes) > 0 || c.Named {
		t.Errorf("%q, %q, %v", got, c.Notes, c.Named)
	}
	if c := Read([]byte("[user]\n\temail = a@work.example\n")); !c.Named {
		t.Error("whom the repository names is not seen")
	}
}

// What could mean anything else than one repository of one host is left out, and said.
func TestURLsThatAreLeftOut(t *testing.T) {
	for _, url := range []string{
		"https://a:password@h.example/x", "https://h.example", "https://h.example/", "https://h.example/../x", "https://h.example/a/../x",
		"https://h.example/a//b", "https://h.example/*", "https://h.example/%2e%2e/x", "https://h.example/a%0ahost=evil", "https://h.example/x?y", `"https://h.example/x#y"`,
		"https://*.example/x", "https://h.example:0/x", "https://h.example:x/x", "https://a%0ab@h.example/x", "https:///x", "https://h.example/" + strings.Repeat(strings.Repeat("a", 99)+"/", 2) + "b", "https:h.example/x", "https://h_.ex ample/x",
	} {
		if c := Read([]byte("[remote \"o\"]\n\turl = " + url + "\n")); len(c.Remotes) > 0 || len(c.Notes) != 1 {
			t.Errorf("%s: %v, %q", url, c.Remotes, c.Notes)
		}
	}
	if c := Read([]byte("[remote \"o\"]\n\turl = https://h.example/x\\\n")); len(c.Remotes) > 0 || len(c.Notes) != 1 {
		t.Errorf("a configuration that is not understood: %v, %q", c.Remotes, c.Notes)
	}
	if c := Read([]byte(strings.Repeat("[remote \"o\"]\nurl = https://h.example/x\n", 2) + manyRemotes())); len(c.Remotes) != remotesMax || len(c.Notes) == 0 {
		t.Errorf("%d remotes, %d notes", len(c.Remotes), len(c.Notes))
	}
}

func manyRemotes() string {
	var b strings.Builder
	for i := range 2 * remotesMax {
		b.WriteString("[remote \"r\"]\nurl = https://h.example/" + strings.Repeat("y", i+1) + "\n")
	}
	return b.String()
}

// Whatever a configuration says, what git on the host is asked about is one line each.
func FuzzRead(f *testing.F) {
	f.Add([]byte("[remote \"o\"]\n\turl = https://a@h.example:84/x/y.git\n"))
	f.Add([]byte("[remote \"o\"]\n\turl = \"https://[::1]/x\"\n"))
	f.Fuzz(func(t *testing.T, config []byte) {
		c := Read(config)
		for _, r := range c.Remotes {
			if text := r.host() + r.Path + r.User + r.asked; strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '*' || c == '%' }) {
				t.Errorf("%q", text)
			}
			if r.Port == 0 || !r.Host.IsValid() || !strings.HasPrefix(r.Path, "/") || strings.Contains(r.Path, "/../") {
				t.Errorf("%+v", r)
			}
		}
		if len(c.Remotes) > remotesMax {
			t.Errorf("%d remotes", len(c.Remotes))
		}
	})
}
