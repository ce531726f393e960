package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

type payment struct {
	Amount   int64  `json:"amount"`
	Currency string `json:"currency,omitempty"`
	Secret   string `json:"secret,omitempty"`
}

func pay(t testing.TB, name string) Tool {
	return define(t, name, func(_ context.Context, in payment) (int64, error) { return in.Amount, nil })
}

// A ledger keeps records; several calls may end at once.
type ledger struct {
	mu      sync.Mutex
	records []Record // guarded by mu
}

func (l *ledger) record(r Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
}

func newSet(t testing.TB, o Options) *Set {
	t.Helper()
	s, err := NewSet(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func call(t testing.TB, s *Set, name, args string) error {
	t.Helper()
	_, err := s.Call(t.Context(), name, json.RawMessage(args))
	return err
}

func TestARefusedCallSaysWhatStoodInTheWay(t *testing.T) {
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	set := func(g ...Grant) *Set {
		return newSet(t, Options{Tools: []Tool{pay(t, "pay/card"), pay(t, "pay/bank")}, Grants: g, Now: func() time.Time { return now }})
	}
	small := Grant{Name: "small", Tools: "pay/card", Constraints: []Constraint{{Op: Le, Path: "amount", Value: 100}}}
	secret := strings.Repeat("s3cret", 100)
	tests := []struct {
		name string
		set  *Set
		tool string
		args string
		kind paddock.Kind
		want string // in the error
	}{
		{"no grant at all", set(), "pay/card", `{"amount":1}`, paddock.Denied, "call pay/card: no grant names it: denied"},
		{"no grant for the tool", set(small), "pay/bank", `{"amount":1}`, paddock.Denied, "call pay/bank: no grant names it"},
		{"a constraint", set(small), "pay/card", `{"amount":101}`, paddock.Denied, `call pay/card: grant "small": amount <= 100 does not hold: it is 101: denied`},
		{"a missing argument", set(Grant{Tools: "**", Constraints: []Constraint{{Op: Eq, Path: "currency", Value: "EUR"}}}), "pay/card", `{"amount":1}`, paddock.Denied, `currency == "EUR" does not hold: it is missing`},
		{"each of two grants", set(small, Grant{Name: "euro", Tools: "pay/*", Constraints: []Constraint{{Op: In, Path: "currency", Value: []string{"EUR"}}}}), "pay/card", `{"amount":101}`, paddock.Denied, `it is 101; grant "euro": currency in ["EUR"] does not hold`},
		{"an end", set(Grant{Name: "old", Tools: "**", Expires: now}), "pay/card", `{"amount":1}`, paddock.Denied, `grant "old": the grant expired at 2027-01-01T00:00:00Z`},
		{"a budget", set(Grant{Tools: "**", Budgets: []Budget{{"amount", 50}}}), "pay/card", `{"amount":51}`, paddock.Exhausted, "the sum of amount is bounded by 50: 50 are left, this call takes 51"},
		{"a sum that would overflow", set(Grant{Tools: "**", Budgets: []Budget{{"amount", 1<<63 - 1}}}), "pay/card", `{"amount":-1}`, paddock.Denied, "-1 is not a whole number of minor units"},
		{"a cost that is not declared", set(Grant{Tools: "**", Budgets: []Budget{{"", 50}}}), "pay/card", `{"amount":1}`, paddock.Denied, "the tool declares none"},
		{"a missing budgeted argument", set(Grant{Tools: "**", Budgets: []Budget{{"currency", 50}}}), "pay/card", `{"amount":1}`, paddock.Denied, "it is not given as a number"},
		{"an unknown tool", set(small), "pay/cash", `{}`, paddock.NotFound, "call pay/cash: there is no such tool"},
		{"a name that is none", set(small), "pay card", `{}`, paddock.Invalid, "segment"},
		{"a bad argument", set(small), "pay/card", `{"amount":1,"amuont":2}`, paddock.Invalid, `argument "amuont": there is none of this name`},
		{"a long secret", set(Grant{Tools: "**", Constraints: []Constraint{{Op: Eq, Path: "secret", Value: "x"}}}), "pay/card", `{"amount":1,"secret":"` + secret + `"}`, paddock.Denied, "… (600 bytes)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := call(t, test.set, test.tool, test.args)
			if paddock.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v is %v; want %v, with %q", err, paddock.KindOf(err), test.kind, test.want)
			}
			if len(err.Error()) > 300 {
				t.Errorf("%d bytes of error", len(err.Error()))
			}
		})
	}
}

func TestEveryCallIsRecorded(t *testing.T) {
	var l ledger
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	failing := define(t, "fail", func(context.Context, struct{}) (int, error) { return 0, errors.New("no luck") })
	panicking := define(t, "panic", func(context.Context, struct{}) (int, error) { panic("oh") })
	costly, err := pay(t, "costly").WithCost(3)
	if err != nil {
		t.Fatal(err)
	}
	s := newSet(t, Options{
		Tools: []Tool{pay(t, "pay"), failing, panicking, costly}, Recorder: l.record, KeepArguments: true, Now: clock,
		Grants: []Grant{
			{Name: "p", Tools: "pay", MaxCalls: 1, Constraints: []Constraint{{Op: Lt, Path: "amount", Value: 10}}},
			{Tools: "fail"}, {Tools: "panic"}, {Tools: "costly", Budgets: []Budget{{"", 3}}},
		},
	})
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, step := range []struct {
		ctx        context.Context
		name, args string
		want       Record
	}{
		{t.Context(), "pay", `{"amount":10}`, Record{Tool: "pay", Arguments: json.RawMessage(`{"amount":10}`), Outcome: OutcomeDenied}},
		{t.Context(), "pay", ` {"amount" : 5.0} `, Record{Tool: "pay", Arguments: json.RawMessage(`{"amount":5}`), Outcome: OutcomeDone, Grant: "p"}},
		{t.Context(), "pay", `{"amount":5}`, Record{Tool: "pay", Arguments: json.RawMessage(`{"amount":5}`), Outcome: OutcomeExhausted}},
		{t.Context(), "pay", `{"x":1}`, Record{Tool: "pay", Arguments: json.RawMessage(`{"x":1}`), Outcome: OutcomeInvalid}},
		{t.Context(), "pay", `{`, Record{Tool: "pay", Outcome: OutcomeInvalid}},
		{t.Context(), "none", `{}`, Record{Tool: "none", Outcome: OutcomeInvalid}},
		{t.Context(), strings.Repeat("é", 100), `{}`, Record{Tool: strings.Repeat("é", 32) + "…", Outcome: OutcomeInvalid}},
		{t.Context(), "fail", `{}`, Record{Tool: "fail", Arguments: json.RawMessage(`{}`), Outcome: OutcomeFailed, Grant: "fail"}},
		{t.Context(), "panic", ``, Record{Tool: "panic", Arguments: json.RawMessage(`{}`), Outcome: OutcomeFailed, Grant: "panic"}},
		{t.Context(), "costly", `{"amount":1}`, Record{Tool: "costly", Arguments: json.RawMessage(`{"amount":1}`), Outcome: OutcomeDone, Grant: "costly", Cost: 3}},
		{t.Context(), "costly", `{"amount":1}`, Record{Tool: "costly", Arguments: json.RawMessage(`{"amount":1}`), Outcome: OutcomeExhausted}},
		{canceled, "fail", `{}`, Record{Tool: "fail", Arguments: json.RawMessage(`{}`), Outcome: OutcomeFailed}},
	} {
		before := len(l.records)
		_, err := s.Call(step.ctx, step.name, json.RawMessage(step.args))
		if len(l.records) != before+1 {
			t.Fatalf("%s %s: %d records", step.name, step.args, len(l.records)-before)
		}
		got := l.records[before]
		if (err != nil) != (got.Error != "") || (got.DeniedBy != "") != (got.Outcome == OutcomeDenied || got.Outcome == OutcomeExhausted) {
			t.Errorf("%s %s: %v and %+v", step.name, step.args, err, got)
		}
		if len(got.Digest) != 64 || got.Duration <= 0 || got.Time.IsZero() {
			t.Errorf("%+v", got)
		}
		if got.Tool != step.want.Tool || string(got.Arguments) != string(step.want.Arguments) || got.Outcome != step.want.Outcome || got.Grant != step.want.Grant || got.Cost != step.want.Cost {
			t.Errorf("%s %s: %+v, want %+v", step.name, step.args, got, step.want)
		}
	}
	if l.records[1].Digest != l.records[2].Digest || l.records[0].Digest == l.records[1].Digest {
		t.Error("digests do not tell arguments apart, or tell spellings apart")
	}
	quiet := newSet(t, Options{Tools: []Tool{pay(t, "pay")}, Grants: []Grant{{Tools: "pay"}}, Recorder: l.record})
	if err := call(t, quiet, "pay", `{"amount":1,"secret":"x"}`); err != nil || l.records[len(l.records)-1].Arguments != nil {
		t.Error("arguments are kept unasked", err)
	}
}

func TestAPanickingToolIsAnError(t *testing.T) {
	s := open(t, define(t, "t", func(context.Context, struct{}) (int, error) {
		var empty string
		return 1 / len(empty), nil
	}))
	if err := call(t, s, "t", ""); paddock.KindOf(err) != paddock.Internal || !strings.Contains(err.Error(), "panicked") {
		t.Error(err)
	}
}

func TestTheFirstGrantThatAllowsIsCharged(t *testing.T) {
	s := newSet(t, Options{Tools: []Tool{pay(t, "pay")}, Grants: []Grant{
		{Tools: "pay", MaxCalls: 1, Constraints: []Constraint{{Op: Lt, Path: "amount", Value: 10}}},
		{Tools: "**", MaxCalls: 2},
	}})
	for i, amount := range []int{5, 50, 5} {
		if err := call(t, s, "pay", fmt.Sprintf(`{"amount":%d}`, amount)); err != nil {
			t.Fatal(i, err)
		}
	}
	if a, b := s.Authorities()[0].Usage().Calls, s.Authorities()[1].Usage().Calls; a != 1 || b != 2 {
		t.Errorf("%d and %d calls", a, b)
	}
	if err := call(t, s, "pay", `{"amount":5}`); !errors.Is(err, paddock.Exhausted) {
		t.Error(err)
	}
}

func TestAGrantWithoutANumberAllowsAHundredCalls(t *testing.T) {
	s := newSet(t, Options{Tools: []Tool{pay(t, "pay")}, Grants: []Grant{{Tools: "pay"}}})
	for i := range 100 {
		if err := call(t, s, "pay", `{"amount":1}`); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := call(t, s, "pay", `{"amount":1}`); !errors.Is(err, paddock.Exhausted) {
		t.Error(err)
	}
}

func TestACallCountsAgainstAllAncestorsOrNone(t *testing.T) {
	root := newSet(t, Options{Tools: []Tool{pay(t, "pay")}, Grants: []Grant{{Name: "root", Tools: "**", MaxCalls: 5, Budgets: []Budget{{"amount", 100}}}}})
	delegate := func(from *Set, g Grant) *Set {
		t.Helper()
		s, err := from.Delegate(g)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	left := delegate(root, Grant{Name: "left", Tools: "pay", Budgets: []Budget{{"amount", 60}}})
	right := delegate(root, Grant{Name: "right", Tools: "pay", MaxCalls: 3})
	leaf := delegate(left, Grant{Name: "leaf", Tools: "pay"})
	ok := func(s *Set, amount int) {
		t.Helper()
		if err := call(t, s, "pay", fmt.Sprintf(`{"amount":%d}`, amount)); err != nil {
			t.Error(err)
		}
	}
	exhausted := func(s *Set, amount int, want string) {
		t.Helper()
		if err := call(t, s, "pay", fmt.Sprintf(`{"amount":%d}`, amount)); !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	usage := func(s *Set, calls, spent int64) {
		t.Helper()
		if u := s.Authorities()[0].Usage(); u.Calls != calls || u.Spent[0] != spent {
			t.Errorf("used %+v, want %d calls and %d", u, calls, spent)
		}
	}
	ok(leaf, 50)
	usage(leaf, 1, 50)
	usage(left, 1, 50)
	usage(right, 0, 0)
	usage(root, 1, 50)
	ok(left, 10) // what the parent uses itself is gone for the child
	exhausted(leaf, 1, "0 are left")
	usage(leaf, 1, 50)
	ok(right, 40)
	exhausted(right, 1, `of "root", which it was delegated from`)
	usage(right, 1, 40)
	usage(root, 3, 100)
	ok(right, 0)
	ok(root, 0)
	exhausted(right, 0, "all 5 calls are used")
	usage(right, 2, 40)
}

func TestARevokedParentRevokesItsChildren(t *testing.T) {
	a, err := Issue(Grant{Name: "a", Tools: "**"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := a.Delegate(Grant{Name: "b", Tools: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.Delegate(Grant{Name: "c", Tools: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	made := pay(t, "pay")
	admitted := func(x *Authority) bool {
		_, d := x.admit(time.Now(), made, map[string]any{"amount": number("1")})
		return d == nil
	}
	if !admitted(a) || !admitted(b) || !admitted(c) {
		t.Fatal("not admitted to begin with")
	}
	b.Revoke()
	b.Revoke()
	if !admitted(a) || admitted(b) || admitted(c) {
		t.Error("revoking in the middle does not end what is below, or ends what is above")
	}
	late, err := c.Delegate(Grant{Tools: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	if admitted(late) {
		t.Error("what a revoked grant delegates is in force")
	}
	for at := a; ; {
		next, err := at.Delegate(Grant{Tools: "pay"})
		if err != nil {
			if !errors.Is(err, paddock.Exhausted) {
				t.Error(err)
			}
			break
		}
		at = next
	}
}

func TestCountersHoldUnderManyGoroutines(t *testing.T) {
	var l ledger
	root := newSet(t, Options{Tools: []Tool{pay(t, "pay")}, Recorder: l.record,
		Grants: []Grant{{Tools: "**", MaxCalls: 400, Budgets: []Budget{{"amount", 1000}}}}})
	var wg sync.WaitGroup
	const workers, each = 16, 100
	for i := range workers {
		s, err := root.Delegate(Grant{Tools: "pay", MaxCalls: 60})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for range each {
				err := call(t, s, "pay", fmt.Sprintf(`{"amount":%d}`, i%4))
				if err != nil && !errors.Is(err, paddock.Exhausted) {
					t.Error(err)
				}
				if u := s.Authorities()[0].Usage(); u.Calls > 60 {
					t.Errorf("%d calls of 60", u.Calls)
				}
			}
		})
	}
	wg.Wait()
	var done, sum int64
	for _, r := range l.records {
		if r.Outcome == OutcomeDone {
			done++
			sum += r.Cost
		}
	}
	u := root.Authorities()[0].Usage()
	if len(l.records) != workers*each || u.Calls != done || u.Spent[0] != sum || done > 400 || sum > 1000 || done == 0 {
		t.Errorf("%d records, %d done for %d, counted %+v", len(l.records), done, sum, u)
	}
}

func TestASetRefusesWhatItCouldNotBound(t *testing.T) {
	made := pay(t, "pay/card")
	for _, o := range []Options{
		{Tools: []Tool{made, made}},
		{Tools: []Tool{{}}},
		{Tools: []Tool{made}, Grants: []Grant{{}}},
		{Tools: []Tool{made}, Grants: []Grant{{Tools: "pay/*", Constraints: []Constraint{{Op: NotExists, Path: "amuont"}}}}},
		{Tools: []Tool{made}, Grants: []Grant{{Tools: "pay/*", Constraints: []Constraint{{Op: Or, Of: []Constraint{{Op: Eq, Path: "amount/x", Value: 1}}}}}}},
		{Tools: []Tool{made}, Grants: []Grant{{Tools: "pay/*", Budgets: []Budget{{"sum", 5}}}}},
		{Tools: []Tool{made}, Grants: []Grant{{Tools: "pay/*", MaxCalls: -1}}},
	} {
		if _, err := NewSet(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	s := newSet(t, Options{Tools: []Tool{made}, Grants: []Grant{{Tools: "pay/*"}}})
	if _, err := s.Delegate(Grant{Tools: "pay/*", Constraints: []Constraint{{Op: NotExists, Path: "amuont"}}}); err == nil {
		t.Error("a delegate's slip of the pen is taken")
	}
	none, err := s.Delegate()
	if err != nil || !errors.Is(call(t, none, "pay/card", `{"amount":1}`), paddock.Denied) || len(none.Tools()) != 0 {
		t.Error("nothing delegated allows something", err)
	}
	if _, err := none.Delegate(Grant{Tools: "pay/card"}); !errors.Is(err, paddock.Denied) {
		t.Error(err)
	}
}

func TestASetIsDescribedWithItsBounds(t *testing.T) {
	s := newSet(t, Options{
		Tools: []Tool{pay(t, "pay/new_card"), pay(t, "pay"), pay(t, "other")},
		Grants: []Grant{{Tools: "pay/**", MaxCalls: 3, Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), Budgets: []Budget{{"amount", 9}},
			Constraints: []Constraint{{Op: Or, Of: []Constraint{{Op: Lt, Path: "amount", Value: 5}, {Op: NotIn, Path: "currency", Value: []string{"EUR"}}}}}}},
	})
	const bounds = `(amount < 5 or currency not in ["EUR"]); at most 3 calls; the sum of amount at most 9 in all; until 2027-01-01T00:00:00Z`
	d := s.Describe()
	if len(d) != 2 || d[0].Name != "pay" || d[1].Name != "pay_new__card" || d[1].Description != "About pay/new_card.\nAllowed: "+bounds+"." || string(d[1].InputSchema) != string(s.Tools()[1].Schema()) {
		t.Errorf("%+v", d)
	}
	const flags = " --amount integer [--currency string] [--secret string]\n    About "
	want := "pay" + flags + "pay.\n    allowed: " + bounds + "\npay new_card" + flags + "pay/new_card.\n    allowed: " + bounds + "\n"
	if got := s.Prompt(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if got := s.Commands(); len(got) != 1 || got[0] != "pay" {
		t.Errorf("%v", got)
	}
	for _, test := range []struct {
		words, tool, rest string
	}{
		{"pay new_card --amount 1", "pay/new_card", "--amount 1"},
		{"pay --amount 1", "pay", "--amount 1"},
		{"pay old --amount", "pay", "old --amount"},
	} {
		made, rest, err := s.Command(strings.Split(test.words, " "))
		if err != nil || made.Name() != test.tool || strings.Join(rest, " ") != test.rest {
			t.Errorf("%s: %s %q %v", test.words, made.Name(), rest, err)
		}
	}
	for _, words := range []string{"other", "new_card", "pay/new_card", "", "-", "other --help"} {
		if _, _, err := s.Command(strings.Split(words, " ")); !errors.Is(err, paddock.NotFound) {
			t.Errorf("%q: %v", words, err)
		}
	}
	groups := newSet(t, Options{Tools: []Tool{pay(t, "a/b/c"), pay(t, "a/b/d"), pay(t, "a/x")}, Grants: []Grant{{Tools: "**"}}})
	if _, _, err := groups.Command([]string{"a", "b", "--help"}); !errors.Is(err, HelpWanted) {
		t.Error(err)
	}
	if got := groups.Help("a", "b"); got != "a b c  About a/b/c.\na b d  About a/b/d.\n" {
		t.Errorf("%q", got)
	}
}
