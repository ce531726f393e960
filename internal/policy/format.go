package policy

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// Format writes spec as a policy file. Read and Apply on an empty spec make the same spec from it, except for the ID,
// hostname, labels and whether it is ephemeral, which a policy does not hold. A spec that no policy file can express is
// Unsupported; nothing is left out.
func Format(spec paddock.Spec) ([]byte, error) {
	if len(spec.Policy.Network.Secrets) > 0 {
		return nil, fmt.Errorf("no policy file can say this: it holds no values of secrets: %w", paddock.Unsupported)
	}
	spec = essence(spec)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(newDocument(spec)), enc.Close()); err != nil {
		return nil, fmt.Errorf("write policy: %w: %w", err, paddock.Unsupported)
	}
	f, err := Read("policy", b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("no policy file can say this: %w: %w", paddock.Unsupported, err)
	}
	var again paddock.Spec
	if err := f.Apply(&again, Host{}); err != nil {
		return nil, fmt.Errorf("no policy file can say this: %w: %w", paddock.Unsupported, err)
	}
	if !reflect.DeepEqual(essence(again), spec) {
		return nil, fmt.Errorf("no policy file can say this: %+v: %w", spec, paddock.Unsupported)
	}
	return b.Bytes(), nil
}

// essence gives what a policy says of a spec, in one form.
func essence(s paddock.Spec) paddock.Spec {
	s.ID, s.Hostname, s.Labels, s.Ephemeral = "", "", nil, false
	s.Mounts = slices.Clone(s.Mounts)
	for i := range s.Mounts {
		if s.Mounts[i].Target == s.Mounts[i].Source {
			s.Mounts[i].Target = ""
		}
	}
	if len(s.Mounts) == 0 {
		s.Mounts = nil
	}
	if len(s.Env) == 0 {
		s.Env = nil
	}
	if len(s.AllowMissing) == 0 {
		s.AllowMissing = nil
	}
	f := &s.Policy.Files
	for _, list := range []*[]string{&f.DenyRead, &f.DenyWrite, &f.Protect, &f.Unprotect} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	if len(s.Policy.Audit) == 0 {
		s.Policy.Audit = nil
	}
	s.Policy.KeyAgents = slices.Clone(s.Policy.KeyAgents)
	for i := range s.Policy.KeyAgents {
		s.Policy.KeyAgents[i].Socket = "" // where the agent is depends on the caller
	}
	if len(s.Policy.KeyAgents) == 0 {
		s.Policy.KeyAgents = nil
	}
	s.Policy.Network.Rules = slices.Clone(s.Policy.Network.Rules)
	for i := range s.Policy.Network.Rules {
		essenceOfRule(&s.Policy.Network.Rules[i])
	}
	s.Policy.Network.Secrets = nil
	if len(s.Policy.Network.Rules) == 0 {
		s.Policy.Network.Rules = nil
	}
	return s
}

// essenceOfRule makes what is empty nil.
func essenceOfRule(r *paddock.NetworkRule) {
	if len(r.Ports) == 0 {
		r.Ports = nil
	}
	for _, list := range []*[]string{&r.Methods, &r.Paths, &r.RemoveHeaders} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	for _, m := range []*map[string]string{&r.Query, &r.Headers, &r.SetHeaders} {
		if len(*m) == 0 {
			*m = nil
		}
	}
	if r.Limits != nil && *r.Limits == (paddock.NetworkLimits{}) {
		r.Limits = nil
	}
	if r.Answer != nil && r.Answer.Headers != nil && len(r.Answer.Headers) == 0 {
		answer := *r.Answer
		answer.Headers = nil
		r.Answer = &answer
	}
}

// document is a policy file for the encoder. The shapes read it; this only
// writes, and Format compares the two.
type document struct {
	Version      int                 `yaml:"version"`
	Tier         paddock.Tier        `yaml:"tier,omitempty"`
	Root         string              `yaml:"root,omitempty"`
	User         string              `yaml:"user,omitempty"`
	Workspace    string              `yaml:"workspace,omitempty"`
	Mounts       []map[string]string `yaml:"mounts,omitempty"`
	Environment  map[string]any      `yaml:"environment,omitempty"`
	Limits       map[string]any      `yaml:"limits,omitempty"`
	Files        map[string]any      `yaml:"files,omitempty"`
	Network      map[string]any      `yaml:"network,omitempty"`
	ForwardAgent []string            `yaml:"forward_agent,omitempty,flow"`
	Audit        []paddock.AuditKind `yaml:"audit,omitempty,flow"`
	AllowMissing []paddock.Control   `yaml:"allow_missing,omitempty"`
}

func newDocument(s paddock.Spec) document {
	d := document{Version: 1, Tier: s.Tier, User: s.User, ForwardAgent: forwarded(s.Policy.KeyAgents), Audit: s.Policy.Audit, AllowMissing: s.AllowMissing, Limits: map[string]any{}, Files: map[string]any{}}
	switch s.Root.Kind {
	case paddock.RootDir:
		d.Root = s.Root.Path
	case paddock.RootImage:
		d.Root = "image:" + s.Root.Image
	case paddock.RootOpen:
		d.Root = "open"
	}
	mounts := s.Mounts
	if len(mounts) > 0 && mounts[0].Write && mounts[0].Target == "" && path.Clean(mounts[0].Source) == s.Dir {
		d.Workspace, mounts = mounts[0].Source, mounts[1:]
	}
	for _, m := range mounts {
		key := "read"
		if m.Write {
			key = "write"
		}
		entry := map[string]string{key: m.Source}
		if m.Target != "" {
			entry["at"] = m.Target
		}
		d.Mounts = append(d.Mounts, entry)
	}
	if len(s.Env) > 0 {
		d.Environment = map[string]any{"set": s.Env}
	}
	put(d.Limits, "memory", s.Limits.Memory)
	put(d.Limits, "cpus", s.Limits.CPUs)
	put(d.Limits, "pids", s.Limits.PIDs)
	put(d.Limits, "disk", s.Limits.Disk)
	put(d.Limits, "files", s.Limits.Files)
	put(d.Limits, "io", s.Limits.IO)
	if s.Limits.Lifetime != 0 {
		d.Limits["timeout"] = s.Limits.Lifetime.String()
	}
	put(d.Files, "deny_read", s.Policy.Files.DenyRead)
	put(d.Files, "deny_write", s.Policy.Files.DenyWrite)
	put(d.Files, "protect", s.Policy.Files.Protect)
	put(d.Files, "unprotect", s.Policy.Files.Unprotect)
	if n := s.Policy.Network; n.Mode != paddock.NetworkNone || len(n.Rules) > 0 {
		d.Network = map[string]any{"mode": string(n.Mode)}
		var rules []map[string]any
		for _, r := range n.Rules {
			rules = append(rules, documentOfRule(r))
		}
		put(d.Network, "rules", rules)
	}
	return d
}

// put adds what is not zero.
func put(to map[string]any, key string, value any) {
	if v := reflect.ValueOf(value); !v.IsZero() {
		to[key] = value
	}
}

func documentOfRule(r paddock.NetworkRule) map[string]any {
	key := "allow"
	if r.Deny {
		key = "deny"
	}
	d := map[string]any{key: bracket(r.Host)}
	put(d, "ports", r.Ports)
	put(d, "udp", r.UDP)
	put(d, "scheme", r.Scheme)
	put(d, "methods", r.Methods)
	put(d, "paths", r.Paths)
	put(d, "query", r.Query)
	put(d, "headers", r.Headers)
	put(d, "inspect", r.Inspect)
	if l := r.Limits; l != nil {
		limits := map[string]any{}
		put(limits, "requests", l.Requests)
		put(limits, "bytes", l.Bytes)
		put(limits, "rate", l.Rate)
		d["limits"] = limits
	}
	put(d, "set_headers", r.SetHeaders)
	put(d, "remove_headers", r.RemoveHeaders)
	put(d, "proxy", r.Proxy)
	if a := r.Answer; a != nil {
		answer := map[string]any{}
		put(answer, "status", a.Status)
		put(answer, "headers", a.Headers)
		put(answer, "body", a.Body)
		d["answer"] = answer
	}
	return d
}

// bracket makes an IPv6 address one that no port can be read into.
func bracket(host string) string {
	h, err := decide.ParseHost(host)
	if err != nil {
		return host
	}
	if a, ok := h.Addr(); ok && a.Is6() {
		return "[" + host + "]"
	}
	return host
}
