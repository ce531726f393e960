package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// closeTime bounds Close and its last requests to the server.
const closeTime = 5 * time.Minute

// A sandbox is a sandbox of the server.
type sandbox struct {
	d  *Driver
	id paddock.ID

	born *paddock.Status // the server's answer to Create; nil for an opened sandbox
}

func (s *sandbox) Born() (paddock.Status, bool) {
	if s.born == nil {
		return paddock.Status{}, false
	}
	return s.born.Clone(), true
}

func (s *sandbox) ID() paddock.ID { return s.id }

func (s *sandbox) path(rest string) string { return "/v1/sandboxes/" + string(s.id) + rest }

func (s *sandbox) call(ctx context.Context, what string, c call) error {
	c.path = s.path(c.path)
	if err := s.d.call(ctx, c); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (s *sandbox) Status(ctx context.Context) (paddock.Status, error) {
	var st paddock.Status
	err := s.call(ctx, "status", call{method: "GET", answer: &st, repeat: true})
	return st, err
}

func (s *sandbox) Processes(ctx context.Context) ([]paddock.ProcessInfo, error) {
	var list api.Processes
	if err := s.call(ctx, "processes", call{method: "GET", path: "/processes", answer: &list, repeat: true}); err != nil {
		return nil, err
	}
	out := make([]paddock.ProcessInfo, len(list.Processes))
	for i, p := range list.Processes {
		out[i] = p.Info()
	}
	return out, nil
}

func (s *sandbox) FS() paddock.FS { return files{s} }

func (s *sandbox) Update(ctx context.Context, u paddock.Update) error {
	if err := text(paddock.Spec{Labels: u.Labels, Policy: policyOf(u)}); err != nil {
		return fmt.Errorf("update: %w", err)
	}
	return s.call(ctx, "update", call{method: "PATCH", body: u, repeat: true})
}

func policyOf(u paddock.Update) paddock.Policy {
	if u.Policy == nil {
		return paddock.Policy{}
	}
	return *u.Policy
}

func (s *sandbox) Snapshot(ctx context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	var made api.Snapshot
	if err := s.call(ctx, "snapshot", call{method: "POST", path: "/snapshots", body: o, answer: &made}); err != nil {
		return "", err
	}
	if err := named("snapshot", string(made.ID)); err != nil {
		return "", fmt.Errorf("snapshot: %w", err)
	}
	return made.ID, nil
}

func (s *sandbox) Pause(ctx context.Context) error {
	return s.call(ctx, "pause", call{method: "POST", path: "/pause", repeat: true})
}

func (s *sandbox) Resume(ctx context.Context) error {
	return s.call(ctx, "resume", call{method: "POST", path: "/resume", repeat: true})
}

func (s *sandbox) Remove(ctx context.Context) error {
	// ask also works on a closed driver, so that a caller may clean up after Close.
	if err := s.d.ask(ctx, call{method: "DELETE", path: s.path(""), repeat: true}); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	s.d.removed(s.id)
	if s.d.open() != nil {
		s.d.http.CloseIdleConnections()
	}
	return nil
}

// text refuses a spec with text that is not UTF-8, because JSON would change it.
func text(spec paddock.Spec) error {
	var all []string
	for name, value := range spec.Env {
		all = append(all, name, value)
	}
	for name, value := range spec.Labels {
		all = append(all, name, value)
	}
	for _, m := range spec.Mounts {
		all = append(all, m.Source, m.Target)
	}
	p := spec.Policy
	all = slices.Concat(all, p.Files.DenyRead, p.Files.DenyWrite, p.Files.Protect, p.Files.Unprotect,
		[]string{string(spec.ID), spec.Root.Path, string(spec.Root.Snapshot), spec.Root.Image, spec.User, spec.Dir, spec.Hostname})
	for _, a := range p.KeyAgents {
		all = slices.Concat(all, []string{a.Socket}, a.Keys)
	}
	for _, s := range p.Network.Secrets {
		all = append(all, s.Name, s.Value)
	}
	for _, r := range p.Network.Rules {
		all = slices.Concat(all, []string{r.Host}, r.Paths)
		for _, m := range []map[string]string{r.Query, r.Headers, r.SetHeaders} {
			for name, value := range m {
				all = append(all, name, value)
			}
		}
		if r.Answer != nil {
			all = append(all, r.Answer.Body)
		}
	}
	for _, s := range all {
		if !utf8.ValidString(s) {
			return fmt.Errorf("%q is not UTF-8, and goes over the network as JSON: %w", strings.ToValidUTF8(s, "?"), paddock.Invalid)
		}
	}
	return nil
}
