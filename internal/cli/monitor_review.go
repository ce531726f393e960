package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/monitor"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// A judgedBy is what a proposal keeps of the monitor of its run, so that the same one judges the application. It has no value
// of a key or variable: they are by their names.
type judgedBy struct {
	Rules   bool           `json:"rules"`
	Command []string       `json:"command,omitempty"` // the program by its whole path
	Env     []string       `json:"env,omitempty"`
	URL     string         `json:"url,omitempty"`
	Key     string         `json:"key,omitempty"`
	Model   *judgedByModel `json:"model,omitempty"`
	Timeout string         `json:"timeout,omitempty"` // as of time.Duration
	Task    string         `json:"task,omitempty"`
	Removed int            `json:"removed,omitempty"`
	Moments []string       `json:"moments,omitempty"`
	Policy  string         `json:"policy,omitempty"` // digest of the sandbox's policy
}

// A judgedByModel is a [policy.MonitorModel].
type judgedByModel struct {
	Interface string `json:"interface"`
	Name      string `json:"name"`
	Key       string `json:"key,omitempty"`
	URL       string `json:"url,omitempty"`
	Prompt    string `json:"prompt,omitempty"`
}

// keptOf returns what a proposal keeps of a monitor.
func keptOf(s *policy.Monitor, judge monitor.Judge, digest string) (json.RawMessage, error) {
	addresses := []string{s.URL}
	k := judgedBy{Rules: !s.NoRules, Env: s.Env, URL: s.URL, Key: s.Key, Task: s.Task, Removed: s.Removed, Moments: s.Moments, Policy: digest}
	if c, ok := judge.(*monitor.Command); ok {
		k.Command = c.Args
	}
	if s.Model != nil {
		m := judgedByModel(*s.Model)
		k.Model, addresses = &m, append(addresses, m.URL)
	}
	if s.Timeout > 0 {
		k.Timeout = s.Timeout.String()
	}
	for _, address := range addresses {
		if u, err := url.Parse(address); err != nil || u.RawQuery != "" {
			return nil, WithHint(fmt.Errorf("url: with --review it is kept with the proposal, and what follows the ? may be a key: %w", paddock.Invalid), "name the key in a policy: monitor.key")
		}
	}
	return json.Marshal(&k)
}

// readKept reads what a proposal keeps of its monitor. Nothing is no monitor. What another version added is an error: without
// it, somebody else would be asked.
func readKept(text json.RawMessage) (s policy.Monitor, digest string, err error) {
	if len(text) == 0 {
		return s, "", nil
	}
	var k judgedBy
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&k); err != nil {
		return s, "", fmt.Errorf("the proposal does not say it as this version of Paddock does: %w: %w", err, paddock.Invalid)
	}
	s = policy.Monitor{On: true, NoRules: !k.Rules, Command: k.Command, Env: k.Env, URL: k.URL, Key: k.Key, Task: k.Task, Removed: k.Removed, Moments: k.Moments}
	judges := 0
	for _, there := range []bool{len(k.Command) > 0, k.URL != "", k.Model != nil} {
		if there {
			judges++
		}
	}
	if judges > 1 || judges == 0 && s.NoRules {
		return s, "", fmt.Errorf("the proposal does not say who is asked: %w", paddock.Invalid)
	}
	if k.Model != nil {
		m := policy.MonitorModel(*k.Model)
		s.Model = &m
	}
	if k.Timeout != "" {
		if s.Timeout, err = time.ParseDuration(k.Timeout); err != nil || s.Timeout <= 0 {
			return s, "", fmt.Errorf("the proposal has no time for an answer that there is: %w", paddock.Invalid)
		}
	}
	return s, k.Policy, nil
}

// A reviewJudge is the monitor of an application. A nil one is none.
type reviewJudge struct {
	a      *App
	ctx    context.Context
	m      *monitor.Monitor
	rec    *step.Record
	events *record // nil if nothing is recorded
	remedy string  // of a refusal
}

// reviewJudge makes the monitor that judges the application of a proposal: that of its run, unless the flags name another one.
func (a *App) reviewJudge(ctx context.Context, f *applyFlags, v *step.Reviews, n int64, changed func(string) bool) (*reviewJudge, error) {
	rec, err := v.Read(ctx, n)
	if errors.Is(err, paddock.NotFound) {
		return nil, WithHint(fmt.Errorf("there is no proposal %d: %w", n, paddock.NotFound), "`paddock review --all` lists the proposals")
	}
	if err != nil {
		return nil, err
	}
	j := &reviewJudge{a: a, ctx: ctx, rec: rec}
	j.remedy = fmt.Sprintf("nothing was applied; `paddock apply --monitor none %d` applies it without a judgement, --monitor rules asks the built-in rules alone", n)
	own, digest, err := readKept(rec.Monitor)
	if err != nil && !changed("monitor") {
		return nil, j.unasked(err)
	}
	s, err := f.over(own, changed)
	switch {
	case err != nil:
		return nil, err
	case s == nil && changed("audit"):
		return nil, WithHint(fmt.Errorf("--audit without a monitor whose verdict could be recorded: %w", paddock.Invalid), "add --monitor rules")
	case s == nil && own.On:
		fmt.Fprintln(a.Stderr, "paddock: note: the monitor of the command is not asked")
		return nil, nil
	case s == nil:
		return nil, nil
	}
	p := &plan{}
	if p.host, err = a.host(); err != nil {
		return nil, err
	}
	for _, root := range rec.Roots { // a judge must not be in what the command proposes
		p.spec.Mounts = append(p.spec.Mounts, paddock.Mount{Source: string(root.Path), Write: true})
	}
	judge, err := a.judgeOf(s, p)
	switch {
	case err != nil && !changed("monitor"):
		return nil, j.unasked(err)
	case err != nil:
		return nil, fmt.Errorf("monitor: %w", err)
	}
	o := options(s, judge, p.spec.Mounts)
	o.Sandbox, o.Tier, o.Policy = rec.Sandbox, string(rec.Tier), digest
	if changed("audit") {
		if f.audit == "" || f.audit == "-" {
			return nil, WithHint(fmt.Errorf("--audit %s is no file: %w", f.audit, paddock.Invalid), "name a file that is not there yet")
		}
		if j.events, err = a.openRecord(f.audit, p); err != nil {
			return nil, err
		}
		o.Record = j.events.lines.Record
	}
	j.m = monitor.New(o)
	return j, nil
}

// unasked is the refusal of an application whose monitor cannot be made.
func (j *reviewJudge) unasked(err error) error {
	return WithHint(&stoppedError{"the monitor that judged the command cannot be asked: " + err.Error()}, "%s", j.remedy)
}

// judge implements step.Application.Judge.
func (j *reviewJudge) judge(list []*step.Change) error {
	s := monitor.Summarize(changesOf(list))
	s.Exit = j.rec.Exit
	for _, word := range j.rec.Command {
		s.Command = append(s.Command, string(word))
	}
	d := j.m.Apply(j.ctx, s)
	if err := context.Cause(j.ctx); err != nil {
		return err
	}
	why := j.settle(d, len(list))
	// The verdict is on the disk before anything is changed.
	if err := j.close(); err != nil {
		return err
	}
	if why == "" {
		return nil
	}
	return WithHint(&stoppedError{"the monitor refused it: " + why}, "%s", j.remedy)
}

// settle does what a decision asks for, and returns why nothing is applied, or nothing.
func (j *reviewJudge) settle(d monitor.Decision, paths int) (why string) {
	why = reasonOf(d)
	patience := answerTime
	switch d.Verdict {
	case monitor.Allow:
		return ""
	case monitor.Ask:
	case monitor.Pause: // nothing runs that could be stopped
		patience = pausedTime
	default:
		return why
	}
	said, asked := j.ask(patience, why, paths)
	if !asked {
		return why + "; a person would be asked, and there is no terminal"
	}
	if j.events != nil {
		j.events.lines.Record(answer(j.rec.Sandbox, d, said))
	}
	if said == "allow" {
		return ""
	}
	return why + "; a person was asked and did not allow it"
}

// ask asks the person, if there is a terminal.
func (j *reviewJudge) ask(patience time.Duration, why string, paths int) (said string, asked bool) {
	terminal, err := j.a.Tty()
	if err != nil {
		return "", false
	}
	k, err := newAsker(terminal)
	if err != nil {
		_ = terminal.Close() // nothing was written
		return "", false
	}
	defer k.close()
	release, err := k.hold(j.ctx)
	if err != nil {
		return "", false
	}
	defer release()
	about := fmt.Sprintf("paddock: the monitor asks about proposal %d: %s\r\npaddock: %s",
		j.rec.Number, OneLineOf(why, Paragraph), pathWords(paths, "would change", "would change"))
	said, _ = k.choose(j.ctx, patience, about, "paddock: allow it (a), or deny it (d)? ", "nothing is applied", []string{"allow", "deny"})
	if said == "" {
		said = "deny"
	}
	return said, true
}

// close ends the record, of which there is nothing if nobody was asked.
func (j *reviewJudge) close() error {
	if j == nil || j.events == nil {
		return nil
	}
	events := j.events
	j.events = nil
	if err := events.close(false); err != nil {
		return WithHint(fmt.Errorf("nothing was applied, because what the monitor decided could not be recorded: %w", err), "is the disk full?")
	}
	return nil
}

// changesOf tells changes of a proposal, none of which is made yet, as a monitor sees them. Before is what a path becomes.
func changesOf(list []*step.Change) []monitor.Change {
	changes := make([]monitor.Change, 0, len(list))
	for _, c := range list {
		what := monitor.Edited
		switch is, was := &c.Before, &c.After; {
		case !was.Exists():
			what = monitor.Created
		case !is.Exists():
			what = monitor.Removed
		case is.Kind == step.File && was.Kind == step.File && is.Size == 0 && was.Size > 0:
			what = monitor.Emptied
		}
		changes = append(changes, monitor.Change{Root: c.Root, Path: string(c.Path), What: what, Link: c.Before.Kind == step.Symlink})
	}
	return changes
}
