package attestation

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
)

const (
	// StatementType is the type of an in-toto Statement.
	StatementType = "https://in-toto.io/Statement/v1"

	// PredicateType is the type of the predicate. Another meaning of a field is another type.
	PredicateType = "https://github.com/paddock-sandbox/paddock/docs/security/attestation/v2"

	// FirstPredicateType is that of earlier versions. It lacks the fields that a Predicate calls new in version 2.
	FirstPredicateType = "https://github.com/paddock-sandbox/paddock/docs/security/attestation/v1"
)

// A Statement is an in-toto Statement about a run.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// A Subject is what the run left: a workspace, a commit, or an image.
type Subject struct {
	Name   string `json:"name"` // "workspace", or "commit:" or "image:" and the digest
	Digest Digest `json:"digest"`
}

// A Digest has digests in hexadecimal digits, by the names of in-toto.
type Digest struct {
	SHA256    string `json:"sha256,omitempty"`
	GitCommit string `json:"gitCommit,omitempty"`
}

// A Predicate says where and how the subjects were made, as far as a record has it.
type Predicate struct {
	Sandbox  Sandbox          `json:"sandbox"`
	Controls []Control        `json:"controls"` // as verified when the sandbox was made
	Policy   Policy           `json:"policy"`
	Paddock  Build            `json:"paddock"`
	Record   Record           `json:"record"`
	Counts   Counts           `json:"counts"`
	Secrets  map[string]int64 `json:"secrets,omitempty"` // how often the gateway put in each secret, by its name
	Started  time.Time        `json:"started"`
	Ended    time.Time        `json:"ended,omitzero"` // left out if the record does not have the end

	Quote *Quote `json:"quote,omitempty"` // of the machine that signed; new in version 2
}

// A Quote is a signed report of the hardware of a confidential machine. It is not in the record.
type Quote struct {
	Provider    string `json:"provider"`              // as Linux names it: "sev_guest" or "tdx_guest"
	Nonce       string `json:"nonce"`                 // of whoever asked for the quote, in hexadecimal; may be empty
	Report      []byte `json:"report"`                // binds QuoteData
	Certificate []byte `json:"certificate,omitempty"` // table of certificates of SEV-SNP
}

// MaxNonce bounds a nonce, in bytes.
const MaxNonce = 64

// QuoteData returns the bytes that a quote binds: the SHA-512 of a nonce, of the last head that counts, and of the ID of
// the key that signs the attestation, after words of its own.
func QuoteData(nonce []byte, r Record, keyID string) [sha512.Size]byte {
	return sha512.Sum512(fmt.Appendf(nil, "paddock audit quote 1\n%x\n%s\n%d\n%s\n%s\n", nonce, r.Log, r.Head.Seq, r.Head.Hash, keyID))
}

// A Sandbox is the sandbox of a run.
type Sandbox struct {
	ID       string `json:"id"`
	Tenant   string `json:"tenant,omitempty"` // of a server
	Tier     string `json:"tier"`
	Root     string `json:"root"`
	Snapshot string `json:"snapshot,omitempty"`

	Image *Digest `json:"image,omitempty"` // of the image that is its root, as its registry names it; new in version 2
}

// A Control says how well the sandbox enforced a control.
type Control struct {
	Name     string `json:"name"`
	Strength string `json:"strength"`
}

// A Policy identifies the rules of the sandbox.
type Policy struct {
	Digest Digest  `json:"digest"`
	File   *Digest `json:"file,omitempty"` // of the policy file, if there was one
}

// A Build identifies the program that made the sandbox.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Digest   Digest `json:"digest"`
}

// A Record identifies the record, up to the head that vouches for what is said here.
type Record struct {
	Log         string      `json:"log"` // of the file that has the head
	Fingerprint string      `json:"fingerprint"`
	Head        chain.Point `json:"head"`
	Signed      time.Time   `json:"signed"`
	Closed      bool        `json:"closed"`
	Lines       uint64      `json:"lines"`              // of all segments up to the head
	Segments    int         `json:"segments,omitempty"` // zero for a record in one file
	Kinds       []string    `json:"kinds"`              // kinds of events that the policy asked for
}

// Counts are numbers of events of the sandbox.
type Counts struct {
	Exec           *int64 `json:"exec,omitempty"`           // programs that its kernel started; left out if they were not recorded
	Commands       int64  `json:"commands"`                 // that callers of a server started
	Refusals       *int64 `json:"refusals,omitempty"`       // of the network and of key agents; left out of a server's record, which has none
	RefusedActions *int64 `json:"refusedActions,omitempty"` // of callers of a server; left out of other records
	KeyUses        *int64 `json:"keyUses,omitempty"`        // of key agents; left out of a server's record
	Updates        int64  `json:"updates"`                  // changes of policy, limits or labels after the start
	Lost           uint64 `json:"lost"`                     // events that the record says it lost

	Steps  *StepCounts      `json:"steps,omitempty"`  // left out if none were recorded; new in version 2
	Events map[string]int64 `json:"events,omitempty"` // lines of the record, by the kind of their event; new in version 2
}

// StepCounts are sums over the recorded steps of the sandbox.
type StepCounts struct {
	Number  int64 `json:"number"`
	Changed int64 `json:"changed"` // paths
	Removed int64 `json:"removed"` // of these, paths that are gone
	Left    int64 `json:"left"`    // places that cannot be undone
}

// New returns a statement.
func New(subjects []Subject, p Predicate) Statement {
	return Statement{Type: StatementType, Subject: subjects, PredicateType: PredicateType, Predicate: p}
}

// new reports whether a predicate has fields that are new in version 2.
func (p *Predicate) new() bool {
	return p.Sandbox.Image != nil || p.Counts.Steps != nil || p.Counts.Events != nil || p.Quote != nil ||
		p.Sandbox.Tenant != "" || p.Counts.RefusedActions != nil
}

func (s Statement) encode() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode a statement: %w", err)
	}
	return text, nil
}

// decode reads a statement that was signed.
func decode(payload []byte) (Statement, error) {
	var kind struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
	}
	if json.Unmarshal(payload, &kind) != nil || kind.Type != StatementType {
		return Statement{}, fmt.Errorf("its payload is no in-toto Statement of version 1: %w", paddock.Invalid)
	}
	if kind.PredicateType != PredicateType && kind.PredicateType != FirstPredicateType {
		return Statement{}, fmt.Errorf("its predicate is of the type %q, and this version reads %s: %w", kind.PredicateType, PredicateType, paddock.Unsupported)
	}
	var s Statement
	in := json.NewDecoder(bytes.NewReader(payload))
	in.DisallowUnknownFields()
	if err := in.Decode(&s); err != nil {
		return Statement{}, fmt.Errorf("its statement: %w: %w", err, paddock.Invalid)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return Statement{}, fmt.Errorf("its statement has something behind it: %w", paddock.Invalid)
	}
	if again, err := s.encode(); err != nil || !bytes.Equal(again, payload) {
		return Statement{}, fmt.Errorf("its statement is not written as `paddock audit attest` writes it: %w", paddock.Invalid)
	}
	if s.PredicateType == FirstPredicateType && s.Predicate.new() {
		return Statement{}, fmt.Errorf("its predicate is of version 1, and has fields of version 2: %w", paddock.Invalid)
	}
	if len(s.Subject) == 0 {
		return Statement{}, fmt.Errorf("its statement is about nothing: %w", paddock.Invalid)
	}
	return s, nil
}
