package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A ladder is a driver whose sandboxes of all tiers are of the tier sim.
type ladder struct {
	paddock.Driver

	mu     sync.Mutex
	broken error // of a creation from a snapshot
	stuck  error // of a removal
	tiers  map[paddock.ID]paddock.Tier
	specs  []paddock.Spec // of all creations
	kept   int            // snapshots that are there
}

type rung struct {
	paddock.Sandbox
	l *ladder
}

func (l *ladder) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	if tier == paddock.MicroVM {
		return paddock.Info{Tier: tier}, nil
	}
	info, err := l.Driver.Info(ctx, paddock.Sim)
	info.Tier = tier
	return info, err
}

func (l *ladder) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.specs = append(l.specs, spec)
	if spec.Root.Kind == paddock.RootSnapshot && l.broken != nil {
		return nil, l.broken
	}
	tier := spec.Tier
	spec.Tier = paddock.Sim
	sb, err := l.Driver.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	l.tiers[sb.ID()] = tier
	return &rung{sb, l}, nil
}

func (l *ladder) Open(ctx context.Context, id paddock.ID) (paddock.Sandbox, error) {
	sb, err := l.Driver.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	return &rung{sb, l}, nil
}

func (l *ladder) RemoveSnapshot(ctx context.Context, id paddock.SnapshotID) error {
	l.mu.Lock()
	l.kept--
	l.mu.Unlock()
	return l.Driver.RemoveSnapshot(ctx, id)
}

func (r *rung) Unwrap() paddock.Sandbox { return r.Sandbox }

func (r *rung) Status(ctx context.Context) (paddock.Status, error) {
	st, err := r.Sandbox.Status(ctx)
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	st.Tier = r.l.tiers[r.ID()]
	return st, err
}

func (r *rung) Snapshot(ctx context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	r.l.mu.Lock()
	r.l.kept++
	r.l.mu.Unlock()
	return r.Sandbox.Snapshot(ctx, o)
}

func (r *rung) Remove(ctx context.Context) error {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if r.l.stuck != nil {
		return r.l.stuck
	}
	return r.Sandbox.Remove(ctx)
}

func newLadder(t *testing.T) (*trial, *ladder) {
	l := &ladder{tiers: map[paddock.ID]paddock.Tier{}}
	return newTrial(t, func(c *Caller) {
		l.Driver = c.Driver
		c.Driver = l
	}), l
}

func TestASandboxClimbs(t *testing.T) {
	tr, l := newLadder(t)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a","tier":"sim","labels":{"x":"1"},"env":{"E":"v"},"limits":{"memory":100000000},"policy":{"files":{"deny_read":["/root"]}}}`)
	tr.want(204, "PUT", "/v1/sandboxes/a/files?path=/tmp/kept", "text")
	var got api.Escalated
	if err := json.Unmarshal(tr.want(201, "POST", "/v1/sandboxes/a/escalate", `{"tier":"gvisor","id":"b"}`), &got); err != nil || got.Left != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	if st := got.Sandbox; st.ID != "b" || st.Labels["x"] != "1" || st.Labels[api.From] != "a" {
		t.Errorf("it is %+v", st)
	}
	tr.want(404, "GET", "/v1/sandboxes/a", "")
	if text := tr.want(200, "GET", "/v1/sandboxes/b/files?path=/tmp/kept", ""); string(text) != "text" {
		t.Errorf("the file has %q", text)
	}
	s := l.specs[len(l.specs)-1]
	if s.Tier != paddock.GVisor || s.Env["E"] != "v" || s.Limits.Memory != 100000000 || len(s.Policy.Files.DenyRead) != 1 {
		t.Errorf("it was made by %+v", s)
	}
	if l.kept != 0 {
		t.Errorf("%d snapshots are left", l.kept)
	}
}

func TestASandboxThatCannotClimbStays(t *testing.T) {
	tr, l := newLadder(t)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a","tier":"jail"}`)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"busy","tier":"jail"}`)
	tr.want(201, "POST", "/v1/sandboxes/busy/processes", `{"args":["cat"],"input":true,"detached":true}`)
	for _, row := range []struct {
		id, body string
		code     int
		says     string
	}{
		{"a", `{"tier":"none"}`, 400, "name one of"},
		{"a", `{"tier":"jail"}`, 400, "already"},
		{"a", `{"tier":"sim"}`, 403, "isolates less"},
		{"a", `{"tier":"microvm"}`, 501, "cannot make a sandbox"},
		{"a", `{"tier":"gvisor","id":"busy"}`, 409, "stays as it is"},
		{"busy", `{"tier":"gvisor"}`, 409, "1 processes run"},
		{"nobody", `{"tier":"gvisor"}`, 404, ""},
	} {
		if text := tr.want(row.code, "POST", "/v1/sandboxes/"+row.id+"/escalate", row.body); !strings.Contains(string(text), row.says) {
			t.Errorf("%s: %s", row.body, text)
		}
	}
	l.broken = fmt.Errorf("no room: %w", paddock.Exhausted)
	if text := tr.want(429, "POST", "/v1/sandboxes/busy/escalate", `{"tier":"gvisor","end":true}`); !strings.Contains(string(text), "stays as it is") {
		t.Errorf("%s", text)
	}
	l.broken = nil
	for _, id := range []string{"a", "busy"} {
		tr.want(200, "POST", "/v1/sandboxes/"+id+"/processes", `{"args":["echo","hi"]}`)
	}
	if l.kept != 0 {
		t.Errorf("%d snapshots are left", l.kept)
	}
	l.stuck = errors.New("it does not end")
	var got api.Escalated
	if err := json.Unmarshal(tr.want(201, "POST", "/v1/sandboxes/a/escalate", `{"tier":"gvisor","id":"b"}`), &got); err != nil || got.Left == "" {
		t.Errorf("%+v, %v", got, err)
	}
	tr.want(200, "GET", "/v1/sandboxes/a", "")
	l.stuck = nil
	tr.want(201, "POST", "/v1/sandboxes/b/escalate", `{"tier":"sim","weaker":true,"id":"c"}`)
}
