package file

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// after makes a program that prepares the working directory and then runs a
// tool on it.
func after(prepare func(t *kernel.Task) error) []command.Command {
	return append(Commands(), command.Command{Name: "after", Run: func(t *kernel.Task) int {
		if err := prepare(t); err != nil {
			t.Errorf("%s", err)
			return 99
		}
		s, err := t.Call(kernel.Command{Args: t.Args[1:]})
		if err != nil {
			return 98
		}
		return s.Shell()
	}})
}

// deep makes directories within each other, deeper than a path is long.
func deep(t *kernel.Task) error {
	own := t.View.Dir
	defer func() { t.View.Dir = own }()
	for range 5000 {
		if err := t.View.Mkdir("nn", 0o755); err != nil {
			return err
		}
		if err := t.View.Chdir("nn"); err != nil {
			return err
		}
	}
	return t.View.WriteFile("leaf", []byte("x"), 0o644)
}

func TestTreesMayBeDeeperThanPathsAreLong(t *testing.T) {
	const root = "nn"
	for _, args := range [][]string{
		{"rm", "-r", root}, {"cp", "-r", root, "copy"}, {"chmod", "-R", "u+x", root}, {"chown", "-R", "1000", root}, {"du", "-s", root}, {"tree", "--noreport", "-i", root}, {"mv", root, "moved"},
	} {
		r := commandtest.Run(t, after(deep), commandtest.Case{Args: append([]string{"after"}, args...)})
		if r.Status != 0 {
			t.Errorf("%v: status %d: %.300s", args, r.Status, r.Stderr)
		}
	}
}

func TestManyFilesAreRemovedQuickly(t *testing.T) {
	many := func(t *kernel.Task) error {
		if err := t.View.Mkdir("d", 0o755); err != nil {
			return err
		}
		for i := range 100_000 {
			if err := t.View.WriteFile(fmt.Sprintf("d/%d", i), nil, 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	begun := time.Now()
	r := commandtest.Run(t, after(many), commandtest.Case{Args: []string{"after", "rm", "-rf", "d"}})
	if r.Status != 0 {
		t.Errorf("status %d: %s", r.Status, r.Stderr)
	}
	t.Logf("made and removed in %v", time.Since(begun))
}

// A move of a directory looks at what is in it where its path may become too long.
func TestAMoveNearTheBoundOfDepthIsCounted(t *testing.T) {
	long := strings.Repeat("l", 200)
	prepare := func(t *kernel.Task) error {
		for i := range 50 {
			if err := t.View.WriteFile(fmt.Sprintf("d/%d", i), nil, 0o644); err != nil {
				return err
			}
		}
		own := t.View.Dir
		defer func() { t.View.Dir = own }()
		for {
			switch err := t.View.Mkdir("nn", 0o755); err {
			case nil:
			case linux.ENAMETOOLONG:
				return nil
			default:
				return err
			}
			if err := t.View.Chdir("nn"); err != nil {
				return err
			}
		}
	}
	files := map[string]string{"d/x": ""}
	args := []string{"after", "mv", "d", long}
	if r := commandtest.RunWithin(t, after(prepare), commandtest.Case{Args: args, Files: files}, budget.Limits{Traversal: 60}); r.Status != 0 {
		t.Errorf("60 entries: status %d: %s", r.Status, r.Stderr)
	}
	r := commandtest.RunWithin(t, after(prepare), commandtest.Case{Args: args, Files: files}, budget.Limits{Traversal: 20})
	if r.Status != 137 || !strings.Contains(r.Stderr, `"traversal"`) {
		t.Errorf("20 entries: status %d: %s", r.Status, r.Stderr)
	}
}

func TestAWalkIsCounted(t *testing.T) {
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("d/%d", i)] = ""
	}
	for _, args := range [][]string{{"ls", "d"}, {"rm", "-r", "d"}, {"cp", "-r", "d", "e"}, {"du", "d"}, {"tree", "d"}, {"chmod", "-R", "700", "d"}} {
		r := commandtest.RunWithin(t, Commands(), commandtest.Case{Args: args, Files: files}, budget.Limits{Traversal: 20})
		if r.Status != 137 || !strings.Contains(r.Stderr, `"traversal"`) {
			t.Errorf("%v: status %d: %s", args, r.Status, r.Stderr)
		}
	}
}
