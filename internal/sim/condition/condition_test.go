package condition_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/condition"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

func host() *condition.Host {
	return &condition.Host{View: &vfs.View{FS: vfs.New(vfs.Options{}), Dir: vfs.Root}}
}

func TestConditionsAreDecidedAsByBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here to compare with")
	}
	words := []string{"", "a", "b", "=", "!", "(", ")", "-a", "-o", "-n", "-z", "1", "-eq", "-d", "/"}
	var lists [][]string
	for _, x := range words {
		lists = append(lists, []string{x})
		for _, y := range words {
			lists = append(lists, []string{x, y})
			for _, z := range words {
				lists = append(lists, []string{x, y, z})
			}
		}
	}
	var script strings.Builder
	for _, l := range lists {
		script.WriteString("test")
		for _, w := range l {
			script.WriteString(" '" + w + "'")
		}
		script.WriteString(" 2>/dev/null; echo $?\n")
	}
	cmd := exec.Command(bash)
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(string(out))
	for i, l := range lists {
		got := "1"
		yes, err := host().Test(l, 100)
		if yes {
			got = "0"
		}
		if err != nil {
			got = "2"
		}
		if got != want[i] {
			t.Errorf("test %q: %s (%v), want %s", l, got, err, want[i])
		}
	}
}

func FuzzTest(f *testing.F) {
	f.Add("( a = b -o ! c ) -a -d /")
	f.Add("! ( ( ( (")
	f.Fuzz(func(t *testing.T, line string) {
		_, err := host().Test(strings.Split(line, " "), 100)
		var e *condition.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%q: %v", line, err)
		}
	})
}
