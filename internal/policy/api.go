package policy

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

var errTemporary = fmt.Errorf("policy: not built yet: %w", paddock.Unsupported)

// Read reads a policy file, version 1, in YAML. name is for messages. An
// error is an [*Error] of kind Invalid with every problem found.
func Read(name string, data []byte) (*File, error) { return nil, errTemporary }

// ReadSRT reads the settings file of npm @anthropic-ai/sandbox-runtime, as of
// version 0.0.83.
//
// Every key of that version is honoured, or has a note in File.Notes why it
// has no effect here, or is refused by name; the error is then of kind
// Unsupported. A key that is not of that version is Invalid.
//
// There the whole host is readable by default: the File has Root open, whose
// files can be read but for denyRead and written only below allowWrite.
func ReadSRT(name string, data []byte, o Host) (*File, error) { return nil, errTemporary }

// Apply puts the file into spec: what the file says replaces what spec says,
// mounts and variables are added, and what the file leaves out stays. The
// workspace becomes the first mount, writable, and the working directory if
// spec names none. A spec with a mount of the same target keeps its own mount
// (flags win over files).
//
// After an error spec is unchanged.
func (f *File) Apply(spec *paddock.Spec, o Host) error { return errTemporary }

// Check tells what the file asks for that the tier described by info cannot
// enforce on this host: each a Problem with the line. None means that it can.
// AllowMissing is taken into account. Turn them into an error with Refuse.
func Check(f *File, info paddock.Info) []Problem { return nil }

// Refuse gives an [*Error] of kind Unsupported with the problems, or nil for none.
func Refuse(name string, problems []Problem) error { return errTemporary }

// Modes lists the names that Mode knows, weakest permission first.
func Modes() []string { return []string{"read-only", "workspace-write", "full"} }

// Mode applies one of the modes known from Codex to spec:
//
//   - read-only: this machine's system, and o.Dir read-only; no network.
//   - workspace-write: the same, with o.Dir writable but for protected names,
//     and a private /tmp.
//   - full: everything that the caller can read and write, and the host's
//     network. It is less isolation, asked by name.
//
// A name that is not known is Invalid.
func Mode(spec *paddock.Spec, name string, o Host) error { return errTemporary }

// A Question is what Explain answers.
type Question struct {
	Verb   string // "read", "write", "connect" or "env"
	Object string // a path inside, "host:port" or a URL, or a variable's name
}

// ParseQuestion reads a question as a person types it: "read PATH", "write
// PATH", "connect HOST:PORT|URL", "env NAME". Relative paths and "~" are
// resolved with o. What is not understood is Invalid.
func ParseQuestion(args []string, o Host) (Question, error) { return Question{}, errTemporary }

// An Answer says whether something is allowed, and why.
type Answer struct {
	Allowed bool     `json:"allowed"`
	Rule    string   `json:"rule"`            // what decided, in words
	Where   string   `json:"where,omitempty"` // "file:line:column" of the rule where it was written
	Change  string   `json:"change"`          // how to change it
	Notes   []string `json:"notes,omitempty"` // limits of the answer
}

// Explain answers q for spec, the complete one after Apply, flags and mode.
// f is the file that was applied, for places; nil is none.
func Explain(spec paddock.Spec, f *File, o Host, q Question) (Answer, error) {
	return Answer{}, errTemporary
}

// ParseSize reads a number of bytes: "512m", "2GiB", "1.5g", "1048576".
// k, m, g, t and KiB, MiB, GiB, TiB are powers of 1024; kB, MB, GB, TB are
// powers of 1000; letters may have either case.
func ParseSize(s string) (int64, error) { return 0, errTemporary }

// Schema gives the JSON Schema (draft 2020-12) of policy files, as in
// docs/policy.schema.json.
func Schema() []byte { return nil }

func (f *File) position(key string) Position { return Position{} }
