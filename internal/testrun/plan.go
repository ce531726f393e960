package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// baseVariable names the variable with the last landed commit, if the caller knows it.
const baseVariable = "PADDOCK_TEST_BASE"

// A plan is what a run leaves out.
type plan struct {
	turn    string            // chooses every sample
	since   string            // description of the commit to compare with
	whole   []sample.Suite    // run whole all the same
	sampled []sample.Suite    // run as a sample
	why     map[string]string // reason for each sampled suite, by name
}

// choose makes the plan of a run with a budget for whole suites. Suites whose dependencies
// changed come first. If the changes are unknown, every suite counts as changed.
func choose(budget time.Duration) (*plan, error) {
	turn, err := turnOf()
	if err != nil {
		return nil, err
	}
	p := &plan{turn: turn, why: map[string]string{}}
	changed, since, known := changes()
	p.since = since
	var candidates []sample.Suite
	if known {
		if candidates, err = affected(changed); err != nil {
			return nil, err
		}
	} else {
		candidates = sample.Suites()
	}
	p.fill(candidates, budget)
	return p, nil
}

// turnOf returns the seed of the samples: the variable, or the hash of the commit.
func turnOf() (string, error) {
	if turn, ok := os.LookupEnv(sample.TurnVariable); ok && turn != "" {
		return turn, nil
	}
	head, err := git("rev-parse", "HEAD")
	if err != nil {
		return "", fmt.Errorf("no commit chooses the sample, and %s is not set: %w", sample.TurnVariable, err)
	}
	return head, nil
}

// changes returns the files changed since the last landed commit, if that is known: from
// the variable, or as the merge base with origin's main branch. It is unknown if origin's
// main branch is this very commit.
func changes() (files []string, since string, known bool) {
	base, ok := os.LookupEnv(baseVariable)
	if !ok || base == "" {
		head, err := git("rev-parse", "HEAD")
		if err != nil {
			return nil, "no commit: whatever is here may have changed", false
		}
		base, err = git("merge-base", "HEAD", "origin/HEAD")
		if err != nil {
			base, err = git("merge-base", "HEAD", "origin/main")
		}
		if err != nil || base == head {
			return nil, "a commit that this clone does not know (" + baseVariable + " names it): everything may have changed", false
		}
	}
	committed, err := git("diff", "--name-only", base)
	if err != nil {
		return nil, base + ", which is not here: everything may have changed", false
	}
	fresh, err := git("ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, base + ", and git does not list files: everything may have changed", false
	}
	return strings.Fields(committed + "\n" + fresh), base, true
}

func git(args ...string) (string, error) {
	out, err := exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// affected returns the suites that depend on a changed file, by their test program or a
// program that they start.
func affected(files []string) ([]sample.Suite, error) {
	if slices.ContainsFunc(files, func(f string) bool { return f == "go.mod" || f == "go.sum" }) {
		return sample.Suites(), nil
	}
	deps, err := dependencies()
	if err != nil {
		return nil, err
	}
	var found []sample.Suite
	for _, s := range sample.Suites() {
		if slices.ContainsFunc(files, func(f string) bool { return dependsOn(s, f, deps) }) {
			found = append(found, s)
		}
	}
	return found, nil
}

// dependencies returns the dependencies of each package and program of the heavy suites,
// including tests: paths relative to the module.
func dependencies() (map[string]map[string]bool, error) {
	var names []string
	for _, s := range sample.Suites() {
		names = append(names, "./"+s.Package)
		for _, p := range s.Programs {
			names = append(names, "./"+p)
		}
	}
	slices.Sort(names)
	out, err := exec.Command("go", append([]string{"list", "-test", "-f", `{{.ImportPath}} {{join .Deps " "}}`}, slices.Compact(names)...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	deps := map[string]map[string]bool{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		name, ours := strings.CutPrefix(strings.TrimSuffix(words[0], ".test"), module+"/")
		if !ours {
			continue
		}
		if deps[name] == nil {
			deps[name] = map[string]bool{name: true}
		}
		for _, w := range words[1:] {
			if rest, ours := strings.CutPrefix(w, module); ours {
				deps[name][cmp.Or(strings.TrimPrefix(rest, "/"), ".")] = true
			}
		}
	}
	return deps, nil
}

// dependsOn reports whether a change of a file can change the outcome of a suite. A test
// file affects only its own package. A file other than code belongs to the nearest package
// above it.
func dependsOn(s sample.Suite, file string, deps map[string]map[string]bool) bool {
	for _, root := range append([]string{s.Package}, s.Programs...) {
		if strings.HasSuffix(file, "_test.go") {
			if path.Dir(file) == root {
				return true
			}
			continue
		}
		for dir := path.Dir(file); ; dir = path.Dir(dir) {
			if deps[root][dir] && (dir != "." || path.Dir(file) == "." && strings.HasSuffix(file, ".go")) {
				return true
			}
			if dir == "." || strings.HasSuffix(file, ".go") {
				break
			}
		}
	}
	return false
}

// fill chooses candidates to run whole, in an order determined by the turn, as long as they
// fit into the budget. The others are sampled.
func (p *plan) fill(candidates []sample.Suite, budget time.Duration) {
	order := slices.Clone(candidates)
	slices.SortStableFunc(order, func(a, b sample.Suite) int {
		return cmp.Compare(sample.Pick(p.turn, "order "+a.Name, 1<<30), sample.Pick(p.turn, "order "+b.Name, 1<<30))
	})
	left := budget
	for _, s := range order {
		if cost := time.Duration(s.Cost) * time.Second; cost <= left {
			left -= cost
			p.whole = append(p.whole, s)
		} else {
			p.why[s.Name] = fmt.Sprintf("it may have changed; its %d s more are not in the budget", s.Cost)
		}
	}
	for _, s := range sample.Suites() {
		if slices.ContainsFunc(p.whole, func(w sample.Suite) bool { return w.Name == s.Name }) {
			continue
		}
		p.why[s.Name] = cmp.Or(p.why[s.Name], "nothing that it depends on changed")
		p.sampled = append(p.sampled, s)
	}
}

// environ returns the variables for the tests.
func (p *plan) environ() []string {
	var names []string
	for _, s := range p.whole {
		names = append(names, s.Name)
	}
	return []string{sample.TurnVariable + "=" + p.turn, sample.WholeVariable + "=" + strings.Join(names, ",")}
}

// report prints what is left out and why.
func (p *plan) report(w io.Writer) {
	fmt.Fprintf(w, "heavy suites: samples are chosen by %s=%s; changes since %s\n", sample.TurnVariable, p.turn, p.since)
	for _, s := range p.whole {
		fmt.Fprintf(w, "whole:   %s (%s %s)\n", s.Name, s.Package, s.Test)
	}
	for _, s := range p.sampled {
		fmt.Fprintf(w, "sampled: %s (%s %s): %s; %s\n", s.Name, s.Package, s.Test, s.Sampled, p.why[s.Name])
	}
	if len(p.sampled) > 0 {
		fmt.Fprintln(w, "make matrix tries all of them whole")
	}
}
