package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"github.com/paddock-sandbox/paddock"
)

// maxName is the limit of a name of Paddock's own, in bytes.
const maxName = 64

// A Start describes a sandbox as it was when its first command could run.
type Start struct {
	Tier       string     `json:"tier"`
	Tenant     string     `json:"tenant,omitempty"`      // of a server; a later sandbox with the same ID may be another tenant's
	Root       string     `json:"root"`                  // "host", or a [paddock.RootKind]
	Snapshot   string     `json:"snapshot,omitempty"`    // of the root
	Image      string     `json:"image,omitempty"`       // "sha256:" and the digest of the image that is the root, as its registry names it
	Controls   []Strength `json:"controls,omitempty"`    // as verified, not as asked for
	Policy     string     `json:"policy"`                // see [PolicyDigest]
	PolicyFile string     `json:"policy_file,omitempty"` // "sha256:" and the digest of the file that the policy is from
	Kinds      []string   `json:"kinds,omitempty"`       // kinds of events that the policy records
	Paddock    Build      `json:"paddock"`
}

// A Strength says how well a sandbox enforces a control.
type Strength struct {
	Control  string `json:"control"`
	Strength string `json:"strength"`
}

// A Build identifies the program that made a sandbox.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // it was built from more than the revision
	Digest   string `json:"digest,omitempty"`   // "sha256:" and the digest of its file; empty if the file could not be read
}

// StartOf returns the event of a new sandbox. It does not set PolicyFile, nor Image where the root is a
// directory that was made of one: only the caller knows them.
func StartOf(st paddock.Status, spec paddock.Spec, b Build) Event {
	s := Start{Tier: string(st.Tier), Root: string(spec.Root.Kind), Snapshot: string(spec.Root.Snapshot), Policy: PolicyDigest(spec.Policy), Paddock: b}
	if spec.Root.Kind == paddock.RootHost {
		s.Root = "host"
	}
	if spec.Root.Kind == paddock.RootImage {
		s.Image = spec.Root.Image // drivers take digests alone
	}
	for _, f := range st.Enforced {
		s.Controls = append(s.Controls, Strength{string(f.Control), string(f.Strength)})
	}
	for _, k := range spec.Policy.Audit {
		s.Kinds = append(s.Kinds, string(k))
	}
	return Event{Sandbox: string(st.ID), Kind: Started, Start: &s}
}

// PolicyDigest returns "sha256:" and the SHA-256 of a policy in hexadecimal digits: of its JSON, as encoding/json writes
// it, in which the value of each secret is empty.
func PolicyDigest(p paddock.Policy) string {
	p.Network.Secrets = slices.Clone(p.Network.Secrets)
	for i := range p.Network.Secrets {
		p.Network.Secrets[i].Value = ""
	}
	text, err := json.Marshal(p)
	if err != nil {
		return "" // it has neither channels nor functions
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (s *Start) clean() Start {
	c := Start{
		Tenant: Text(s.Tenant, MaxWord), Tier: Text(s.Tier, maxName), Root: Text(s.Root, maxName), Snapshot: Text(s.Snapshot, MaxWord), Image: Text(s.Image, MaxWord),
		Policy: Text(s.Policy, MaxWord), PolicyFile: Text(s.PolicyFile, MaxWord),
		Paddock: Build{
			Version: Text(s.Paddock.Version, MaxWord), Revision: Text(s.Paddock.Revision, MaxWord),
			Modified: s.Paddock.Modified, Digest: Text(s.Paddock.Digest, MaxWord),
		},
	}
	for _, r := range s.Controls[:min(len(s.Controls), MaxRows)] {
		c.Controls = append(c.Controls, Strength{Text(r.Control, maxName), Text(r.Strength, maxName)})
	}
	for _, k := range s.Kinds[:min(len(s.Kinds), MaxRows)] {
		c.Kinds = append(c.Kinds, Text(k, maxName))
	}
	return c
}
