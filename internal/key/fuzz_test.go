package key

import "testing"

func FuzzParse(f *testing.F) {
	p := fresh()
	for _, text := range []string{p.text(), "", "pk__", p.text()[:40], p.text() + "x", p.hexText()} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parse(text)
		if err == nil && p.text() != text && p.hexText() != text {
			t.Errorf("%q was read as %q", text, p.text())
		}
	})
}

func TestAKeyHasOneText(t *testing.T) {
	a, b := fresh(), fresh()
	if a.id == b.id || a.secret == b.secret || len(a.text()) != textSize {
		t.Fatal("two keys alike")
	}
	if got, err := parse(a.text()); err != nil || got != a {
		t.Errorf("%v", err)
	}
}
