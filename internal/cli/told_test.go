package cli

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/step"
)

func TestAChangeIsToldWithAllThatItDoes(t *testing.T) {
	link := func(to string) step.State { return step.State{Kind: step.Symlink, Target: step.Text(to)} }
	file := func(mode uint32) step.State { return step.State{Kind: step.File, Mode: mode} }
	for want, d := range map[string]step.Difference{
		"created -> /etc/passwd (outside of the directory)":      {Kinds: []step.Verb{step.Created}, After: link("/etc/passwd")},
		"replaced -> ../../x\\x1b[1m (outside of the directory)": {Kinds: []step.Verb{step.Replaced}, Before: file(0o644), After: link("../../x\x1b[1m")},
		"edited -> b":                    {Kinds: []step.Verb{step.Edited}, Before: link("a"), After: link("b")},
		"created -> /w/in":               {Kinds: []step.Verb{step.Created}, After: link("/w/in")},
		"created, a program (mode 0755)": {Kinds: []step.Verb{step.Created}, After: file(0o755)},
		"created":                        {Kinds: []step.Verb{step.Created}, After: file(0o644)},
		"edited":                         {Kinds: []step.Verb{step.Edited}, Before: file(0o755), After: file(0o755)},
		"mode (0644 to 0755), a program (mode 0755)":  {Kinds: []step.Verb{step.Mode}, Before: file(0o644), After: file(0o755)},
		"replaced by a file":                          {Kinds: []step.Verb{step.Replaced}, Before: link("a"), After: file(0o644)},
		"removed":                                     {Kinds: []step.Verb{step.Removed}, Before: file(0o755)},
		"created, for everybody to write (mode 0777)": {Kinds: []step.Verb{step.Created}, After: step.State{Kind: step.Dir, Mode: 0o777}},
	} {
		d.Root, d.Path = "/w", "d/name"
		if got := toldChange(&d); got != want {
			t.Errorf("%q, not %q", got, want)
		}
		var out strings.Builder
		p := newPicker(strings.NewReader("n\n"), &out)
		if _, err := p.pick(&step.Offer{Difference: d}); err != nil || !strings.HasPrefix(out.String(), "/w/d/name: "+want+"\n") {
			t.Errorf("%q, %v", out.String(), err)
		}
	}
	r := &step.Record{Roots: []step.Root{{Path: "/w"}}}
	if got := proposed(r, &step.Change{Path: "l", Before: link("/etc")}); got != "A /w/l -> /etc (outside of the directory)" {
		t.Errorf("%q", got)
	}
	if got := proposed(r, &step.Change{Path: "f", Before: file(0o755), After: file(0o644)}); got != "M /w/f (0644 to 0755), a program (mode 0755)" {
		t.Errorf("%q", got)
	}
}
