package audit_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

func TestTheDigestOfAPolicyHasAllButTheValuesOfSecrets(t *testing.T) {
	p := paddock.Policy{Network: paddock.NetworkPolicy{
		Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "a.example"}}, Secrets: []paddock.Secret{{Name: "A", Value: "one", Hosts: []string{"a.example"}}},
	}}
	digest := audit.PolicyDigest(p)
	if !strings.HasPrefix(digest, "sha256:") || len(digest) != len("sha256:")+64 || p.Network.Secrets[0].Value != "one" {
		t.Errorf("%s, %+v", digest, p)
	}
	p.Network.Secrets[0].Value = "two"
	if audit.PolicyDigest(p) != digest {
		t.Error("it depends on the value of a secret, which could be guessed by it")
	}
	for name, change := range map[string]func(*paddock.Policy){
		"a rule":               func(p *paddock.Policy) { p.Network.Rules[0].Host = "b.example" },
		"a secret's name":      func(p *paddock.Policy) { p.Network.Secrets[0].Name = "B" },
		"a path":               func(p *paddock.Policy) { p.Files.DenyRead = []string{"/x"} },
		"a kind of the record": func(p *paddock.Policy) { p.Audit = []paddock.AuditKind{paddock.AuditExec} },
	} {
		other := p
		other.Network.Rules = []paddock.NetworkRule{p.Network.Rules[0]}
		other.Network.Secrets = []paddock.Secret{p.Network.Secrets[0]}
		change(&other)
		if audit.PolicyDigest(other) == digest {
			t.Errorf("%s is not part of it", name)
		}
	}
}

func TestAStartHasBounds(t *testing.T) {
	long := strings.Repeat("\x01", 10000)
	e := audit.Event{Kind: audit.Started, Start: &audit.Start{Tier: long, Root: long, Snapshot: long, Policy: long, PolicyFile: long, Paddock: audit.Build{Version: long, Revision: long, Digest: long}}}
	for range 2 * audit.MaxRows {
		e.Start.Controls = append(e.Start.Controls, audit.Strength{Control: long, Strength: long})
		e.Start.Kinds = append(e.Start.Kinds, long)
	}
	c := e.Clean()
	if len(c.Start.Controls) != audit.MaxRows || len(c.Start.Kinds) != audit.MaxRows {
		t.Errorf("%d controls, %d kinds", len(c.Start.Controls), len(c.Start.Kinds))
	}
	if !reflect.DeepEqual(c, c.Clean()) {
		t.Error("cleaning twice changes it")
	}
	e.Start.Controls[0].Control = "x"
	if c.Start.Controls[0].Control == "x" {
		t.Error("a clean event shares memory with the other")
	}
}
