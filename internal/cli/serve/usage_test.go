package serve

import (
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/usage"
)

func TestSandboxesThatHaveNoNameAnyMoreAreOneLine(t *testing.T) {
	lines := []*usage.Line{{Tenant: "acme", Sum: usage.Sum{Sandboxes: 500}}, {Tenant: "acme", Sandbox: "job", Sum: usage.Sum{Sandboxes: 1}}}
	v := invoke(t.TempDir(), nil, nil)
	if err := bills(v.App, lines, &usageFlags{each: true}, nil); err != nil {
		t.Fatal(err)
	}
	if out := v.Stdout.String(); !regexp.MustCompile(`(?m)^acme +\(others\) +500 `).MatchString(out) || !regexp.MustCompile(`(?m)^acme +job +1 `).MatchString(out) {
		t.Errorf("wrote\n%s", out)
	}
	v = invoke(t.TempDir(), nil, nil)
	if err := bills(v.App, lines, &usageFlags{each: true, json: true}, nil); err != nil {
		t.Fatal(err)
	}
	if out := v.Stdout.String(); strings.Contains(out, "others") || strings.Count(out, `"sandbox":`) != 1 {
		t.Errorf("wrote\n%s", out)
	}
}

func TestHoursAreKeptForTwoDaysAtLeast(t *testing.T) {
	f := accountFlags{host: "a", keepHours: 1}
	err := f.check(invoke(t.TempDir(), nil, nil).App)
	if err == nil || cli.HintFor(err) != "give 2 or more" {
		t.Errorf("got %v", err)
	}
	f.keepHours = 2
	if err := f.check(invoke(t.TempDir(), nil, nil).App); err != nil {
		t.Error(err)
	}
}
