package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/allowance"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// overBudget is the exit status of a run that used its budget up: that of timeout(1), which stops commands too.
const overBudget = 124

// registerBudget adds the flag, and says what happens when the budget is used up.
func registerBudget(fs *pflag.FlagSet, texts *[]string, then string) {
	fs.StringSliceVar(texts, "budget", nil, then+": `NAME=VALUE`, cpu=TIME of its processors, network=SIZE in both directions, or cost=NUMBER by the prices of the policy file (repeatable; commas between several)")
}

const (
	budgetStops  = "stop the sandbox when it has used more in all"
	budgetPauses = "pause the sandbox when it has used so much in all"
)

// parseBudget reads the values of --budget. Those that begin with + are added where may is true, and else refused.
func parseBudget(texts []string, may bool) (by allowance.Raise, err error) {
	seen := map[string]bool{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return by, WithHint(fmt.Errorf("--budget %s: there is no value: %w", text, paddock.Invalid), "write NAME=VALUE, such as cpu=10m")
		}
		to, amount := &by.Set, value
		if more, adds := strings.CutPrefix(value, "+"); adds && may {
			to, amount = &by.Add, more
		}
		var hint string
		switch name {
		case "cpu":
			hint = "it is a time: a number and a unit, such as 30s or 5m, and more than nothing"
			to.CPU, err = time.ParseDuration(amount)
			ok = err == nil && to.CPU > 0
		case "network":
			hint = "it is a size: a number and a unit, such as 512M or 2GiB, and more than nothing"
			to.Network, err = policy.ParseSize(amount)
			ok = err == nil && to.Network > 0
		case "cost":
			hint = "it is a decimal number, such as 0.50, and more than nothing; its unit is that of the prices"
			to.Cost, err = allowance.ParseDecimal(amount)
			ok = err == nil && strings.Trim(amount, "0.") != ""
		default:
			return by, WithHint(fmt.Errorf("--budget %s: there is no such budget: %w", name, paddock.Invalid), "budgets are cpu, network and cost")
		}
		if !ok || strings.HasPrefix(amount, "+") { // which is a time for Go
			return by, WithHint(fmt.Errorf("--budget %s: %q cannot be its value: %w", name, value, paddock.Invalid), "%s", hint)
		}
		if seen[name] {
			return by, WithHint(fmt.Errorf("--budget %s is there twice: %w", name, paddock.Invalid), "leave one out")
		}
		seen[name] = true
	}
	return by, nil
}

// budget returns what the flags and the policy file say together. A flag stands before the file.
func (p *plan) budget(texts []string) (b allowance.Budget, err error) {
	by, err := parseBudget(texts, false)
	if err != nil {
		return b, err
	}
	if p.file != nil {
		b = p.file.Budget
	}
	if by.Set.CPU != 0 {
		b.CPU = by.Set.CPU
	}
	if by.Set.Network != 0 {
		b.Network = by.Set.Network
	}
	if by.Set.Cost != "" {
		b.Cost = by.Set.Cost
	}
	if b.Cost == "" {
		b.Prices = allowance.Prices{}
	} else if b.Prices == (allowance.Prices{}) {
		return b, WithHint(fmt.Errorf("--budget cost: there are no prices: %w", paddock.Invalid),
			"write yours into a file for --policy, such as: budget: {prices: {cpu_second: 0.00001, network_gib: 0.09}}")
	}
	return b, b.Check()
}

// unbudgeted refuses a policy with a budget where there is none.
func (p *plan) unbudgeted() error {
	if p.file == nil || !p.file.Budget.Bounds() {
		return nil
	}
	return WithHint(fmt.Errorf("%s: budget: only paddock run, shell, create and fork keep a budget: %w", p.file.Where("budget"), paddock.Unsupported), "leave the key out here")
}

// A spending watches what a sandbox uses, and removes the sandbox when its budget is used up. A nil one watches nothing.
type spending struct {
	budget allowance.Budget
	every  time.Duration
	stop   func(context.Context) error // removes the sandbox
	look   func(context.Context) (paddock.Status, error)

	meter allowance.Meter // of spend, and then of watch

	over chan struct{} // closed when nobody watches any more
	wg   sync.WaitGroup

	mu   sync.Mutex
	why  string          // guarded by mu: why the sandbox was stopped
	last *paddock.Status // guarded by mu
}

// spendingEvery is the time between two looks.
const spendingEvery = time.Second

// blindLooks is how many looks in a row may fail before the sandbox is stopped, because nobody knows what it uses.
const blindLooks = 5

// spend watches a sandbox until end is called. It fails if the sandbox cannot be measured.
func spend(ctx context.Context, b allowance.Budget, sb *oneShot, network paddock.NetworkMode) (*spending, error) {
	if !b.Bounds() {
		return nil, nil
	}
	s := &spending{budget: b, every: spendingEvery, stop: sb.Remove, look: sb.Status, over: make(chan struct{})}
	if b.Network != 0 && network == paddock.NetworkNone {
		return nil, WithHint(fmt.Errorf("--budget network: this sandbox has no network: %w", paddock.Invalid), "leave it out, or allow hosts with --allow")
	}
	st, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	if what := b.Unmeasured(&st); what != "" {
		return nil, WithHint(fmt.Errorf("--budget %s: nothing measures it in this sandbox: %w", what, paddock.Unsupported), "%s", budgetHint(what))
	}
	s.meter.Look(&st, time.Now())
	s.wg.Go(func() { s.watch(context.WithoutCancel(ctx)) })
	return s, nil
}

func budgetHint(what string) string {
	if what == "network" {
		return "only a network with rules is counted (--allow HOST); leave the budget out for another"
	}
	return "control groups measure it: paddock doctor tells what they lack; --timeout bounds a run without them"
}

// watch looks again and again.
func (s *spending) watch(ctx context.Context) {
	t := time.NewTicker(s.every)
	defer t.Stop()
	blind := 0
	for {
		select {
		case <-s.over:
			return
		case <-t.C:
		}
		st, err := s.look(ctx)
		why := ""
		switch {
		case err != nil || s.budget.Unmeasured(&st) != "":
			if blind++; blind == blindLooks {
				why = "what it uses of its budget cannot be measured any more"
			}
		default:
			blind = 0
			s.meter.Look(&st, time.Now())
			if x := s.budget.Exceeded(s.meter.Use); x != (allowance.Excess{}) {
				why = x.Words()
			}
			s.mu.Lock()
			s.last = &st
			s.mu.Unlock()
		}
		if why == "" {
			continue
		}
		s.mu.Lock()
		s.why = why
		s.mu.Unlock()
		gone, cancel := context.WithTimeout(ctx, 6*Patience)
		_ = s.stop(gone) // what is left the removal at the end tells
		cancel()
		return
	}
}

// end stops watching. It returns why the sandbox was stopped, or an empty text, and the last status that was seen.
func (s *spending) end() (why string, last *paddock.Status) {
	if s == nil {
		return "", nil
	}
	close(s.over)
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why, s.last
}
