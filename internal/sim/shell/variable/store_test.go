package variable_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

type meter struct{ used int }

func (m *meter) Grow(n int) { m.used += n }
func (m *meter) Shrink(n int) {
	if m.used -= n; m.used < 0 {
		panic("more memory is given back than was taken")
	}
}
func (m *meter) Bound(name budget.Name, n, limit int64) {
	if n > limit {
		panic(&budget.Exceeded{Name: name, Limit: limit})
	}
}

type host struct{}

func (host) Evaluate(expr string) (int64, error) { return strconv.ParseInt(expr, 10, 64) }
func (host) Warn(string, ...any)                 {}

func newStore() (*variable.Store, *meter) {
	m := &meter{}
	return variable.New(m, host{}, budget.Limits{}), m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, s *variable.Store, name, value string) {
	t.Helper()
	if got, ok := s.Get(name); got != value || !ok && value != "" {
		t.Errorf("%s = %q (set: %v), want %q", name, got, ok, value)
	}
}

func TestForkedStoresDoNotSeeEachOther(t *testing.T) {
	s, _ := newStore()
	must(t, s.Set("a", "1"))
	must(t, s.SetList("l", []variable.Element{{Value: "x"}, {Value: "y"}}, false))
	c := s.Fork(&meter{}, host{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range 100 {
			_ = c.Set("a", "child")
			_ = c.SetIndex("l", int64(i), "c", false)
			_ = c.SetList("l", []variable.Element{{Value: "more"}}, true)
		}
		_ = c.Unset("a")
		c.Release()
	})
	for i := range 100 {
		must(t, s.SetList("l", []variable.Element{{Value: strconv.Itoa(i)}}, true))
		must(t, s.SetInt("n", int64(i)))
	}
	wg.Wait()
	want(t, s, "a", "1")
	want(t, s, "l", "x")
	want(t, s, "n", "99")
	if v, _ := s.Var("l"); v.Array().Len() != 102 {
		t.Errorf("%d elements, want 102", v.Array().Len())
	}
	s.Fork(&meter{}, host{}).Release()
	must(t, s.Set("a", "2"))
	want(t, s, "a", "2")
}

func TestABorrowedStoreLeavesItsLenderAlone(t *testing.T) {
	s, _ := newStore()
	must(t, s.SetList("l", []variable.Element{{Value: "x"}, {Value: "y"}}, false))
	must(t, s.Set("a", "1"))
	c := s.Borrow(&meter{}, host{})
	must(t, c.Set("a", "2"))
	must(t, c.SetIndex("l", 0, "changed", false))
	must(t, c.SetList("l", []variable.Element{{Value: "z"}}, true))
	g := c.Fork(&meter{}, host{}) // lives on in the background
	must(t, c.Set("a", "3"))
	c.Release()
	want(t, s, "a", "1")
	want(t, s, "l", "x")
	must(t, s.SetIndex("l", 0, "lender", false))
	must(t, s.SetList("l", []variable.Element{{Value: "own"}}, true))
	want(t, g, "a", "2")
	want(t, g, "l", "changed")
	v, _ := g.Var("l")
	if got := v.Array().Values(); !slices.Equal(got, []string{"changed", "y", "z"}) {
		t.Errorf("the grandchild has %q", got)
	}
}

func TestLocalVariablesHideAndReveal(t *testing.T) {
	s, m := newStore()
	must(t, s.Set("x", "global"))
	s.PushFunction()
	must(t, s.Local("x", false))
	if _, ok := s.Get("x"); ok {
		t.Error("a new local variable has a value")
	}
	must(t, s.Set("x", "outer"))
	s.PushFunction()
	want(t, s, "x", "outer")
	must(t, s.Unset("x")) // the caller's: the global one is seen
	want(t, s, "x", "global")
	s.Pop()
	want(t, s, "x", "global")
	must(t, s.Local("x", false))
	must(t, s.Set("x", "again"))
	must(t, s.Unset("x")) // its own: stays local
	must(t, s.Set("x", "local still"))
	must(t, s.Beneath("x", true, func() error { return s.Set("x", "changed") }))
	want(t, s, "x", "local still")
	s.Pop()
	want(t, s, "x", "changed")
	s.PushTemporary()
	must(t, s.SetTemporary("x", "temp", false))
	if env := s.Environ(); !slices.Equal(env, []string{"x=temp"}) {
		t.Errorf("environment is %q", env)
	}
	s.Pop()
	if env := s.Environ(); len(env) != 0 {
		t.Errorf("environment is %q", env)
	}
	want(t, s, "x", "changed")
	if m.used < 0 || m.used > 8<<10 {
		t.Errorf("%d bytes are counted", m.used)
	}
}

func TestAppendingIsLinear(t *testing.T) {
	s, m := newStore()
	for range 200_000 {
		must(t, s.Append("text", "0123456789"))
		must(t, s.SetList("list", []variable.Element{{Value: "x"}}, true))
	}
	if m.used < 2_000_000 {
		t.Errorf("only %d bytes are counted", m.used)
	}
	must(t, s.Unset("text"))
	must(t, s.Unset("list"))
	if m.used > 8<<10 {
		t.Errorf("%d bytes are still counted", m.used)
	}
}

func TestManyForksLeaveNoChain(t *testing.T) {
	s, m := newStore()
	for i := range 1000 {
		must(t, s.SetInt("n", int64(i)))
		must(t, s.Set("v"+strconv.Itoa(i%50), strings.Repeat("x", 100)))
		c := s.Fork(&meter{}, host{})
		if i%3 != 0 {
			c.Release()
		}
	}
	want(t, s, "n", "999")
	if m.used > 100<<10 {
		t.Errorf("%d bytes are counted", m.used)
	}
}

func TestAssociativeArraysHaveBashOrder(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{5, 100, 3000, 9000} {
		s, _ := newStore()
		must(t, s.Declare("m", variable.Associate, 0))
		var script strings.Builder
		script.WriteString("declare -A m\n")
		for i := range n {
			key := strconv.Itoa(r.IntN(2 * n))
			if i%7 == 0 {
				key += "é\xff key"
			}
			if i%11 == 3 {
				must(t, s.UnsetAt("m", key))
				fmt.Fprintf(&script, "unset 'm[%s]'\n", key)
				continue
			}
			must(t, s.SetKey("m", key, "", false))
			fmt.Fprintf(&script, "m['%s']=\n", key)
		}
		script.WriteString("printf '%s\\n' \"${!m[@]}\"")
		c := exec.Command(bash)
		c.Stdin = strings.NewReader(script.String())
		out, err := c.Output()
		must(t, err)
		v, _ := s.Var("m")
		var got strings.Builder
		for k := range v.Assoc().All() {
			got.WriteString(k + "\n")
		}
		if got.String() != string(out) {
			t.Errorf("the order of %d keys differs", n)
		}
	}
}

// What is done again and again costs what it leaves behind, and not less each time.
func TestWhatIsRepeatedGivesNothingBackThatWasNotTaken(t *testing.T) {
	steps := map[string]func(s *variable.Store, i int) error{
		"a number that is read": func(s *variable.Store, i int) error {
			if err := s.SetInt("n", int64(i)); err != nil {
				return err
			}
			s.Get("n")
			return nil
		},
		"a number that becomes text": func(s *variable.Store, i int) error {
			if err := s.SetInt("n", int64(i)); err != nil {
				return err
			}
			if err := s.Append("n", "0"); err != nil {
				return err
			}
			s.Int("n")
			return s.Set("n", "some text")
		},
		"a number that becomes an array": func(s *variable.Store, i int) error {
			if err := s.SetInt("n", int64(i)); err != nil {
				return err
			}
			if err := s.SetAt("n", "3", "three", false); err != nil {
				return err
			}
			return s.Unset("n")
		},
		"a number in a subshell": func(s *variable.Store, i int) error {
			if err := s.SetInt("n", int64(i)); err != nil {
				return err
			}
			m := &meter{}
			c := s.Borrow(m, host{})
			c.Get("n")
			err := c.Append("n", "1")
			c.Get("n")
			return err
		},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			s, m := newStore()
			for i := range 20_000 {
				must(t, step(s, 1_000_000+i))
			}
			if m.used > 16<<10 {
				t.Errorf("%d bytes are counted", m.used)
			}
		})
	}
}
