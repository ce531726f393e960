package command_test

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// onTask runs f on a task, and gives why its run was stopped.
func onTask(t *testing.T, limits budget.Limits, f func(*kernel.Task)) error {
	t.Helper()
	fs := vfs.New(vfs.Options{})
	k := kernel.New(kernel.Options{FS: fs, Limits: limits, Programs: func(string) (kernel.Program, bool) { return nil, false }})
	task, err := k.NewRun().NewTask(vfs.View{FS: fs, Dir: vfs.Root}, []string{"x"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	task.Go(func(task *kernel.Task) int { f(task); return 0 })
	<-task.Done()
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	return task.Run.Cause()
}

func sameAsGo(t *testing.T, pattern, text string) {
	t.Helper()
	real, wrong := regexp.Compile(pattern)
	cause := onTask(t, budget.Limits{Steps: 50_000_000, Heap: 256 << 20}, func(task *kernel.Task) {
		x, err := command.CompileGo(task, pattern)
		if (err == nil) != (wrong == nil) || wrong != nil && err.Error() != wrong.Error() {
			if wrong == nil && strings.Contains(err.Error(), "regular expression") {
				return // the engine refuses what is too big
			}
			t.Errorf("%q: %v, want %v", pattern, err, wrong)
		}
		if err != nil || wrong != nil {
			return
		}
		got, err := x.FindAllStringSubmatchIndex(text)
		if want := real.FindAllStringSubmatchIndex(text, -1); err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%q in %q: %v %v, want %v", pattern, text, got, err, want)
		}
	})
	if cause != nil {
		t.Logf("%q: %v", pattern, cause)
	}
}

func TestExpressionsOfGoMeanWhatTheyDoInGo(t *testing.T) {
	texts := []string{"", "a", "abc\nabd\n", "foo bar-baz foo\n", "Straße ſ K k K", "aaa", "x.y[z]\\{2}", "a\n", "\n\n", "日本 語a", "a1_b 22"}
	for _, pattern := range []string{
		"", "a", "a*", "a*?", "a+?b?", "(a)(b)?", "(?i)k", "(?i)s+", "^", "$", "(?m)^", "(?m)$", `\z`, `\A`, "^a$", "(?m)^a.*$", ".", "(?s).", ".*", "(?s).*", `\b`, `\B`, `\bfoo\b`, "[^a]", "[[:alpha:]]+", `\pL+`, `\d+`, `\w+`, `\W`, `\s`,
		"(?P<n>o+)", "a|ab|abc", "(?:a|ab)(?:c|bcd)?", "a{2}", "a{0,2}", "(a{1,2}){2}", `\.`, `[\]\[-]`, `\Qa.b\E`, `x\.y`, "(", "a**", `(a)\1`, "(?=a)", "[b-a]", `\pX`, "(a|)+", "(a*)*", "[^\\x00-\\x{10FFFF}]", "a$|b", "(?U)a+",
	} {
		for _, text := range texts {
			sameAsGo(t, pattern, text)
		}
	}
}

func FuzzExpressionsOfGo(f *testing.F) {
	f.Add("(a|b)*?c$", "abc\nc")
	f.Add("(?i)ſ+|[k-m]", "Ss K")
	repeated := regexp.MustCompile(`\)[*+?{]`)
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if repeated.MatchString(pattern) && strings.ContainsAny(pattern, "|?") {
			return // where it prefers to be empty, Go has rules of its own
		}
		if len(pattern) < 40 && len(text) < 100 && strings.ToValidUTF8(text, "") == text && !strings.Contains(text, "\ufffd") {
			sameAsGo(t, pattern, text)
		}
	})
}

func TestAnExpressionOfGoReachesCheckpoints(t *testing.T) {
	text := strings.Repeat("a", 4<<20)
	ready := make(chan *kernel.Task, 1)
	go func() {
		task := <-ready
		task.Run.Stop(&budget.Exceeded{Name: "wall", Limit: 1})
	}()
	began := time.Now()
	cause := onTask(t, budget.Limits{Steps: 1 << 60}, func(task *kernel.Task) {
		x, err := command.CompileGo(task, "(a{1,30}){1,9}c")
		if err != nil {
			t.Error(err)
			return
		}
		ready <- task
		for range 1 << 30 {
			if _, err := x.FindAllStringSubmatchIndex(text); err != nil {
				t.Error(err)
			}
		}
	})
	if cause == nil {
		t.Error("it was not stopped")
	}
	t.Log(time.Since(began))
}
