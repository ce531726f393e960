package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Options are the parts of a [Set].
type Options struct {
	Tools []Tool
	// Grants are tried in order; the first that allows a call is charged for it. Without
	// any, every call is refused.
	Grants []Grant
	// Recorder gets every finished call, including refused ones. The goroutine of the call
	// calls it, so it may run concurrently. It must not call the set.
	Recorder func(Record)
	// KeepArguments puts the arguments into records, including secrets.
	KeepArguments bool
	// Now is the clock; nil means [time.Now].
	Now func() time.Time
}

// A Set has tools and the authority to call them, for one sandbox or one agent. It is safe
// for concurrent use.
type Set struct {
	options     Options
	tools       []Tool // by name
	authorities []*Authority
}

// NewSet checks its options and issues the grants. It rejects a grant with a constraint or
// a budget on an argument that none of the grant's tools has. That is a spelling mistake,
// and a not_exists on it would always hold.
func NewSet(o Options) (*Set, error) {
	s := &Set{options: o}
	if o.Now == nil {
		s.options.Now = time.Now
	}
	s.tools = slices.SortedFunc(slices.Values(o.Tools), func(a, b Tool) int { return cmp.Compare(a.name, b.name) })
	for i, t := range s.tools {
		if t.in == nil {
			return nil, fmt.Errorf("tool set: a tool that Define did not make: %w", paddock.Invalid)
		}
		if i > 0 && s.tools[i-1].name == t.name {
			return nil, fmt.Errorf("tool set: %s is there twice: %w", t.name, paddock.Exists)
		}
	}
	for _, g := range o.Grants {
		a, err := Issue(g)
		if err != nil {
			return nil, fmt.Errorf("tool set: %w", err)
		}
		if err := s.add(a); err != nil {
			return nil, fmt.Errorf("tool set: %w", err)
		}
	}
	return s, nil
}

func (s *Set) add(a *Authority) error {
	var paths [][]string
	collect(a.grant.constraints, &paths)
	for _, b := range a.grant.budgets {
		if b.steps != nil {
			paths = append(paths, b.steps)
		}
	}
	for _, path := range paths {
		named, found := false, false
		for _, t := range s.tools {
			if a.grant.pattern.match(t.name) {
				named = true
				found = found || t.in.has(path)
			}
		}
		if named && !found {
			return fmt.Errorf("grant %s: none of its tools has an argument %s: %w", short(a.grant.label()), short(strings.Join(path, "/")), paddock.Invalid)
		}
	}
	s.authorities = append(s.authorities, a)
	return nil
}

func collect(ps []predicate, paths *[][]string) {
	for _, p := range ps {
		if p.of != nil {
			collect(p.of, paths)
		} else {
			*paths = append(*paths, p.steps)
		}
	}
}

// Authorities returns the grants in force, in the order of [Options.Grants], to revoke or
// read them.
func (s *Set) Authorities() []*Authority { return slices.Clone(s.authorities) }

// Delegate returns a set for another agent, with the same tools and recorder. Each child is
// delegated from the first authority of which it is an attenuation. Without children the
// new set refuses every call.
func (s *Set) Delegate(children ...Grant) (*Set, error) {
	out := &Set{options: s.options, tools: s.tools}
	for _, child := range children {
		a, err := s.delegate(child)
		if err != nil {
			return nil, fmt.Errorf("delegate %s: %w", short(child.label()), err)
		}
		if err := out.add(a); err != nil {
			return nil, fmt.Errorf("delegate: %w", err)
		}
	}
	return out, nil
}

func (s *Set) delegate(child Grant) (*Authority, error) {
	if len(s.authorities) == 0 {
		return nil, fmt.Errorf("there is nothing to delegate: %w", paddock.Denied)
	}
	var errs []error
	for _, a := range s.authorities {
		own, err := a.Delegate(child)
		if err == nil {
			return own, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Tools returns the tools that some grant names, sorted by name. Others are not shown.
func (s *Set) Tools() []Tool {
	var out []Tool
	for _, t := range s.tools {
		if len(s.granting(t)) > 0 {
			out = append(out, t)
		}
	}
	return out
}

func (s *Set) granting(t Tool) []*Authority {
	var out []*Authority
	for _, a := range s.authorities {
		if a.grant.pattern.match(t.name) {
			out = append(out, a)
		}
	}
	return out
}

func (s *Set) find(name string) (Tool, bool) {
	i, ok := slices.BinarySearchFunc(s.tools, name, func(t Tool, name string) int { return cmp.Compare(t.name, name) })
	if !ok {
		return Tool{}, false
	}
	return s.tools[i], true
}

// A Refusal is the error of a call that no grant allows. It is [paddock.Denied], or
// [paddock.Exhausted] if only a number prevents the call. It has one reason for each grant
// that names the tool.
type Refusal struct {
	Tool    string
	Reasons []string
	Kind    paddock.Kind
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("call %s: %s: %v", e.Tool, strings.Join(e.Reasons, "; "), e.Kind)
}

// Unwrap returns the kind.
func (e *Refusal) Unwrap() error { return e.Kind }

// Call calls the tool of this name (with slashes or dots) with a JSON object of arguments;
// no arguments are the empty object. Arguments that do not fit the tool return
// [paddock.Invalid], an unknown name [paddock.NotFound], and a call that no grant allows a
// [*Refusal]. An error of the function is returned wrapped. A panic of the function becomes
// an error, and the process continues.
//
// A call counts once it is admitted, whatever its result. A refused call does not count.
func (s *Set) Call(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	r := Record{Time: s.options.Now(), Tool: cut(name, maxAgentName)}
	out, err := s.call(ctx, name, args, &r)
	r.Duration = s.options.Now().Sub(r.Time)
	if r.Digest == "" { // the arguments were not even read
		r.Digest = digest(args)
	}
	if err != nil {
		r.Error = cut(err.Error(), maxRecordError)
	}
	if s.options.Recorder != nil {
		s.options.Recorder(r)
	}
	return out, err
}

func (s *Set) call(ctx context.Context, name string, args json.RawMessage, r *Record) (json.RawMessage, error) {
	r.Outcome = OutcomeInvalid
	clean, err := cleanName(name)
	if err != nil {
		return nil, fmt.Errorf("call: %w", err)
	}
	t, ok := s.find(clean)
	if !ok {
		return nil, fmt.Errorf("call %s: there is no such tool: %w", clean, paddock.NotFound)
	}
	r.Tool = t.name
	run, bound, err := s.prepare(t, args, r)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w: %w", t.name, err, paddock.Invalid)
	}
	if err := ctx.Err(); err != nil {
		r.Outcome = OutcomeFailed
		kind := paddock.Canceled
		if errors.Is(err, context.DeadlineExceeded) {
			kind = paddock.Timeout
		}
		return nil, fmt.Errorf("call %s: %w: %w", t.name, err, kind)
	}
	if refusal := s.admit(t, bound, r); refusal != nil {
		return nil, refusal
	}
	r.Outcome = OutcomeFailed
	out, err := guarded(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", t.name, err)
	}
	r.Outcome = OutcomeDone
	return out, nil
}

// prepare reads the arguments and stores them in the record: as the function will see them,
// or as they came if they do not fit.
func (s *Set) prepare(t Tool, args json.RawMessage, r *Record) (invoke, any, error) {
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	v, err := parse(args, maxArgumentBytes)
	if err != nil {
		return nil, nil, fmt.Errorf("arguments: %w", err)
	}
	run, bound, err := t.prepare(v)
	if err == nil {
		v = bound
	}
	text := encode(v)
	r.Digest = digest(text)
	if s.options.KeepArguments {
		r.Arguments = text
	}
	return run, bound, err
}

// admit charges the first authority that allows the call.
func (s *Set) admit(t Tool, bound any, r *Record) error {
	refusal := &Refusal{Tool: t.name, Kind: paddock.Denied}
	now := s.options.Now()
	for _, a := range s.granting(t) {
		cost, d := a.admit(now, t, bound)
		if d == nil {
			r.Grant, r.Cost = a.grant.label(), cost
			return nil
		}
		if d.kind == paddock.Exhausted {
			refusal.Kind = paddock.Exhausted
		}
		refusal.Reasons = append(refusal.Reasons, fmt.Sprintf("grant %s: %s", short(a.grant.label()), d.reason))
	}
	if refusal.Reasons == nil {
		refusal.Reasons = []string{"no grant names it"}
	}
	r.Outcome = OutcomeDenied
	if refusal.Kind == paddock.Exhausted {
		r.Outcome = OutcomeExhausted
	}
	r.DeniedBy = strings.Join(refusal.Reasons, "; ")
	return refusal
}

// guarded runs a tool's function, which may get arguments that its author did not expect. A
// panic must not end the host or escape the record.
func guarded(ctx context.Context, run invoke) (out json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("it panicked: %s: %w", short(fmt.Sprint(p)), paddock.Internal)
		}
	}()
	return run(ctx)
}
