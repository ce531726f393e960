package placeholder

import (
	"errors"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// environment returns the placeholders of secrets by name.
func environment(t *testing.T, secrets ...paddock.Secret) map[string]string {
	t.Helper()
	list, err := New([]byte("seed"), secrets)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for i, s := range secrets {
		env[s.Name] = list[i]
	}
	return env
}

func TestAPlaceholderLooksLikeTheValueAndIsNot(t *testing.T) {
	for _, v := range []string{"ghp_0123456789abcdefABCDEF0123456789abcd", "sk-ant-api03-abcdefghijklmnopqrstuvwxyz", "AKIAABCDEFGHIJKLMNOP", "0123456789abcdef0123456789abcdef", "1234567890", "short1", strings.Repeat("long-Value/", 1000)} {
		env := environment(t, paddock.Secret{Name: "A", Value: v}, paddock.Secret{Name: "B", Value: v})
		p := env["A"]
		switch {
		case len(p) < shortest || len(v) >= shortest && len(v) <= longest && len(p) != len(v):
			t.Errorf("%.20s: the placeholder has %d characters", v, len(p))
		case p == env["B"] || p == v:
			t.Errorf("%.20s: placeholders are not their own", v)
		case env["A"] != environment(t, paddock.Secret{Name: "A", Value: v})["A"]:
			t.Errorf("%.20s: the same seed gives another", v)
		case strings.HasPrefix(v, "ghp_") && !strings.HasPrefix(p, "ghp_"), strings.HasPrefix(v, "AKIA") && strings.Trim(p[4:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "", v[0] == '0' && strings.Trim(p, "0123456789abcdef") != "":
			t.Errorf("%.20s: %s is of another kind", v, p)
		}
		for i := 8; i+8 < min(len(v), len(p)); i++ {
			if strings.HasPrefix(v, "sk-ant") && i < 13 {
				continue
			}
			if strings.Contains(p, v[i:i+8]) {
				t.Errorf("%.20s: %s holds a part of it", v, p)
			}
		}
	}
}

// A program that knows keys by their ends knows the placeholder in the next sandbox too. The rest is another one, so that
// the placeholder of one sandbox stands for nothing in another.
func TestAPlaceholderHasTheEndThatIsAskedFor(t *testing.T) {
	const end = "k3yEnd0123456789abcd"
	for _, v := range []string{"sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789", "short1", strings.Repeat("x", 1000)} {
		var fresh []string
		for _, seed := range []string{"one", "two"} {
			list, err := New([]byte(seed), []paddock.Secret{{Name: "A", Value: v, End: end}})
			if err != nil {
				t.Fatal(err)
			}
			before, ok := strings.CutSuffix(list[0], end)
			if !ok || len(before) < shortest || len(list[0]) > longest {
				t.Errorf("%.20s: the placeholder is %s", v, list[0])
			}
			fresh = append(fresh, before)
		}
		if fresh[0] == fresh[1] {
			t.Errorf("%.20s: two sandboxes have the placeholder %s", v, fresh[0]+end)
		}
	}
	for _, end := range []string{strings.Repeat("x", longestEnd+1), "a b", "a\n", "%41"} {
		if _, err := New([]byte("seed"), []paddock.Secret{{Name: "A", Value: "a value", End: end}}); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%q: %v", end, err)
		}
	}
}

func TestAValueThatCannotBeKeptIsRefusedWithoutSayingIt(t *testing.T) {
	for _, s := range []paddock.Secret{{Name: "A", Value: "12345"}, {Name: "A", Value: strings.Repeat("x", longestValue+1)}, {Name: "A", Value: "first one\nline two"}} {
		if _, err := New(nil, []paddock.Secret{s}); !errors.Is(err, paddock.Invalid) || strings.Contains(err.Error(), s.Value[:5]) {
			t.Errorf("%v", err)
		}
	}
	environment(t, paddock.Secret{Name: "A", Value: "first one\nline two", Places: []paddock.SecretPlace{paddock.SecretBody}})
}
