package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// overBudget is the exit status of a run that used its budget up: that of timeout(1), which stops commands too.
const overBudget = 124

// An allowance bounds what a sandbox may use in all. Zero is no bound.
type allowance struct {
	cpu     time.Duration
	network int64 // bytes, in both directions together
}

// registerBudget adds the flag.
func registerBudget(fs *pflag.FlagSet, texts *[]string) {
	fs.StringSliceVar(texts, "budget", nil, "stop the sandbox when it has used more in all: `NAME=VALUE`, cpu=TIME of its processors or network=SIZE in both directions (repeatable; commas between several)")
}

// parseBudget reads the values of --budget.
func parseBudget(texts []string) (allowance, error) {
	var b allowance
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return b, WithHint(fmt.Errorf("--budget %s: there is no value: %w", text, paddock.Invalid), "write NAME=VALUE, such as cpu=10m")
		}
		switch name {
		case "cpu":
			d, err := time.ParseDuration(value)
			if err != nil || d <= 0 {
				return b, WithHint(fmt.Errorf("--budget cpu: %q cannot be its value: %w", value, paddock.Invalid), "it is a time: a number and a unit, such as 30s or 5m, and more than nothing")
			}
			if b.cpu != 0 {
				return b, budgetTwice(name)
			}
			b.cpu = d
		case "network":
			n, err := policy.ParseSize(value)
			if err != nil || n <= 0 {
				return b, WithHint(fmt.Errorf("--budget network: %q cannot be its value: %w", value, paddock.Invalid), "it is a size: a number and a unit, such as 512M or 2GiB, and more than nothing")
			}
			if b.network != 0 {
				return b, budgetTwice(name)
			}
			b.network = n
		default:
			return b, WithHint(fmt.Errorf("--budget %s: there is no such budget: %w", name, paddock.Invalid), "budgets are cpu and network")
		}
	}
	return b, nil
}

func budgetTwice(name string) error {
	return WithHint(fmt.Errorf("--budget %s is there twice: %w", name, paddock.Invalid), "leave one out")
}

// A spending watches what a sandbox uses, and removes the sandbox when its budget is used up. A nil one watches nothing.
type spending struct {
	budget allowance
	every  time.Duration
	stop   func(context.Context) error // removes the sandbox
	look   func(context.Context) (paddock.Status, error)

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
func (b allowance) spend(ctx context.Context, sb *oneShot, network paddock.NetworkMode) (*spending, error) {
	if b == (allowance{}) {
		return nil, nil
	}
	s := &spending{budget: b, every: spendingEvery, stop: sb.Remove, look: sb.Status, over: make(chan struct{})}
	if b.network != 0 && network == paddock.NetworkNone {
		return nil, WithHint(fmt.Errorf("--budget network: this sandbox has no network: %w", paddock.Invalid), "leave it out, or allow hosts with --allow")
	}
	st, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	if what := b.unmeasured(&st); what != "" {
		return nil, WithHint(fmt.Errorf("--budget %s: nothing measures it in this sandbox: %w", what, paddock.Unsupported), "%s", budgetHint(what))
	}
	s.wg.Go(func() { s.watch(context.WithoutCancel(ctx)) })
	return s, nil
}

func budgetHint(what string) string {
	if what == "network" {
		return "only a network with rules is counted (--allow HOST); leave the budget out for another"
	}
	return "control groups measure it: paddock doctor tells what they lack; --timeout bounds a run without them"
}

// unmeasured names what a status lacks of the budget.
func (b allowance) unmeasured(st *paddock.Status) string {
	switch {
	case b.cpu != 0 && st.Usage.CPU < 0:
		return "cpu"
	case b.network != 0 && st.Traffic == nil:
		return "network"
	}
	return ""
}

// exceeded says which part of the budget a status exceeds.
func (b allowance) exceeded(st *paddock.Status) string {
	switch {
	case b.cpu != 0 && st.Usage.CPU > b.cpu:
		return fmt.Sprintf("its budget of processor time, %s, is used up", b.cpu)
	case b.network != 0 && st.Traffic != nil && st.Traffic.Plus(paddock.Traffic{In: st.Traffic.Out}).In > b.network:
		return fmt.Sprintf("its budget of network traffic, %s, is used up", BytesInWords(b.network))
	}
	return ""
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
		case err != nil || s.budget.unmeasured(&st) != "":
			if blind++; blind == blindLooks {
				why = "what it uses of its budget cannot be measured any more"
			}
		default:
			blind, why = 0, s.budget.exceeded(&st)
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
