package toolcommand_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/toolcommand"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/command/commandtest"
	"github.com/paddock-sandbox/paddock/internal/sim/command/javascript"
	"github.com/paddock-sandbox/paddock/internal/sim/shell"
	"github.com/paddock-sandbox/paddock/tool"
)

type pair struct {
	A int64 `json:"a" doc:"the first"`
	B int64 `json:"b" doc:"the second"`
}

type message struct {
	To   string  `json:"to"`
	Text *string `json:"text"`
}

type ledger struct {
	mu      sync.Mutex
	records []tool.Record // guarded by mu
}

func (l *ledger) record(r tool.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records = append(l.records, r)
}

func define[In, Out any](t *testing.T, name, about string, f func(context.Context, In) (Out, error)) tool.Tool {
	t.Helper()
	x, err := tool.Define(name, about, f)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func set(t *testing.T, l *ledger) *tool.Set {
	t.Helper()
	s, err := tool.NewSet(tool.Options{
		Tools: []tool.Tool{
			define(t, "math/add", "Add two numbers.", func(_ context.Context, p pair) (int64, error) { return p.A + p.B, nil }),
			define(t, "math/div", "Divide.", func(_ context.Context, p pair) (int64, error) {
				if p.B == 0 {
					return 0, errors.New("division by zero")
				}
				return p.A / p.B, nil
			}),
			define(t, "mail/send", "Send a message.", func(_ context.Context, m message) (map[string]string, error) {
				return map[string]string{"sent": m.To}, nil
			}),
			define(t, "hold", "Wait for ever.", func(ctx context.Context, _ struct{}) (bool, error) {
				<-ctx.Done()
				return false, ctx.Err()
			}),
		},
		Grants: []tool.Grant{
			{Tools: "math/*", MaxCalls: 50, Constraints: []tool.Constraint{{Op: tool.Le, Path: "a", Value: 1000}}},
			{Tools: "mail/send", Constraints: []tool.Constraint{{Op: tool.EndsWith, Path: "to", Value: "@example.com"}}, MaxCalls: 2},
			{Tools: "hold"},
		},
		Recorder: l.record,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func computer(s *tool.Set) []command.Command {
	return slices.Concat([]command.Command{{Name: "bash", Aliases: []string{"sh"}, Run: shell.Program}}, javascript.Commands(toolcommand.Caller(s)), toolcommand.Commands(s))
}

func TestToolsAreCommandsWithStatusesOfTheirOwn(t *testing.T) {
	for _, c := range []struct {
		args   []string
		stdout string
		stderr string // part of it
		status int
	}{
		{[]string{"math", "add", "--a", "1", "--b", "2"}, "3\n", "", 0},
		{[]string{"math", "add", "--a=-1", "--b=2"}, "1\n", "", 0},
		{[]string{"math", "add", "--json", `{"a":5,"b":6}`}, "11\n", "", 0},
		{[]string{"math", "add", "--json", "-"}, "7\n", "", 0},
		{[]string{"math", "add", "--a", "1"}, "", "b", 2},
		{[]string{"math", "add", "--nope", "1"}, "", "nope", 2},
		{[]string{"math", "mul"}, "", "math", 2},
		{[]string{"math", "div", "--a", "1", "--b", "0"}, "", "division by zero", 1},
		{[]string{"math", "add", "--a", "1001", "--b", "0"}, "", "a", 1},
		{[]string{"mail", "send", "--to", "x@evil.com"}, "", "@example.com", 1},
		{[]string{"mail", "send", "--to", "x@example.com"}, `{"sent":"x@example.com"}` + "\n", "", 0},
		{[]string{"tools", "call", "math.add", `{"a":2,"b":2}`}, "4\n", "", 0},
		{[]string{"tools", "call", "math.add", `{"a":`}, "", "", 2},
		{[]string{"tools", "describe", "nope"}, "", "no such tool", 2},
		{[]string{"tools", "what"}, "", "what", 2},
	} {
		l := &ledger{}
		r := commandtest.Run(t, computer(set(t, l)), commandtest.Case{Args: c.args, Stdin: `{"a":3,"b":4}`})
		if r.Stdout != c.stdout || r.Status != c.status || !strings.Contains(r.Stderr, c.stderr) {
			t.Errorf("%q: %+v", c.args, r)
		}
	}
	for _, args := range [][]string{{"math", "--help"}, {"math", "add", "--help"}, {"tools"}, {"tools", "list", "math"}, {"tools", "prompt"}, {"tools", "describe", "math.add"}, {"tools", "--help"}} {
		r := commandtest.Run(t, computer(set(t, &ledger{})), commandtest.Case{Args: args})
		if r.Status != 0 || !strings.Contains(r.Stdout, "math") && args[len(args)-1] != "--help" || r.Stdout == "" {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

func TestOneScriptCallsManyToolsAndEachCallIsRecorded(t *testing.T) {
	l := &ledger{}
	code := `
const sums = await Promise.all([1,2,3].map(i => tools.math.add({a: i, b: i})));
console.log(sums, await tools["math"].add({a: 1, b: 1}));
for (const f of [() => tools.math.add({a: 2000, b: 1}), () => tools.mail.send({to: "x@evil.com"}), () => tools.math.div({a: 1, b: 0}), () => tools.no.such({}), () => tools.math.add({a: "1", b: 2})])
  try { await f(); console.log("allowed"); } catch (e) { console.log(e instanceof Error, e.message.length > 0, /1000|example|zero|such|a/.test(e.message)); }
console.log((await tools.mail.send({to: "a@example.com", text: "hi"})).sent, (await tools.mail.send({to: "b@example.com"})).sent);
try { await tools.mail.send({to: "c@example.com"}); } catch (e) { console.log("third refused"); }
const { execSync } = require("child_process"); console.log(execSync("math add --a 40 --b 2; echo $?", {shell: "/usr/bin/sh"}).toString());
`
	r := commandtest.Run(t, computer(set(t, l)), commandtest.Case{Args: []string{"js-exec", "-c", code}})
	want := "[ 2, 4, 6 ] 2\n" + strings.Repeat("true true true\n", 5) + "a@example.com b@example.com\nthird refused\n42\n0\n\n"
	if r.Stdout != want || r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	outcomes := map[tool.Outcome]int{}
	for _, x := range l.records {
		outcomes[x.Outcome]++
	}
	if outcomes[tool.OutcomeDone] != 7 || outcomes[tool.OutcomeDenied] != 2 || outcomes[tool.OutcomeFailed] != 1 || outcomes[tool.OutcomeInvalid] != 2 || outcomes[tool.OutcomeExhausted] != 1 {
		t.Errorf("%v", outcomes)
	}
}

func TestCallsAreCountedAndAWaitingToolIsLeftByAKill(t *testing.T) {
	l := &ledger{}
	r := commandtest.RunWithin(t, computer(set(t, l)), commandtest.Case{Args: []string{"bash", "-c", "for i in 1 2 3 4 5 6; do math add --a 1 --b 2; done"}}, budget.Limits{ToolCalls: 3})
	if r.Stdout != "3\n3\n3\n" || !strings.Contains(r.Stderr, `"tool_calls"`) {
		t.Errorf("%+v", r)
	}
	for _, script := range []string{"hold", "js-exec -c 'await tools.hold()'"} {
		r = commandtest.RunWithin(t, computer(set(t, l)), commandtest.Case{Args: []string{"bash", "-c", script}}, budget.Limits{Wall: 200 * time.Millisecond})
		if !strings.Contains(r.Stderr, `"wall"`) {
			t.Errorf("%q: %+v", script, r)
		}
	}
}
