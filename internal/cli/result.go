package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/wrap/auto"
)

// kept bounds each captured stream of a result, in bytes.
const kept = 1 << 20

// A result is what `paddock run --json` answers; docs/reference/run.schema.json
// describes it. Times are nanoseconds, sizes bytes.
type result struct {
	Version   int               `json:"version"` // of this format: 1
	Status    int               `json:"status"`  // paddock's own exit status
	Tier      paddock.Tier      `json:"tier,omitempty"`
	Passed    []auto.PassedOver `json:"passed_over,omitempty"` // stronger tiers, and why not
	ID        paddock.ID        `json:"id,omitempty"`
	Args      []string          `json:"args"`
	Exit      *paddock.Exit     `json:"exit"` // null if the command was not started or its end is not known
	Error     *failure          `json:"error,omitempty"`
	Stdout    *captured         `json:"stdout,omitempty"` // only without a file to write the result to
	Stderr    *captured         `json:"stderr,omitempty"`
	Limits    *paddock.Limits   `json:"limits,omitempty"`
	Usage     *paddock.Usage    `json:"usage,omitempty"` // of the sandbox as a whole
	Control   []paddock.Finding `json:"enforced,omitempty"`
	Refused   []paddock.Refusal `json:"refused,omitempty"`
	Asked     []asked           `json:"asked,omitempty"`              // what was decided at the terminal, but for what was allowed once
	Changed   []changedFile     `json:"changed,omitempty"`            // files in writable mounts that programs of this machine obey
	Partial   bool              `json:"changed_incomplete,omitempty"` // there was more than could be looked at
	Monitor   *monitored        `json:"monitor,omitempty"`            // what the monitor decided, if there was one
	Steps     []int64           `json:"steps,omitempty"`              // numbers of the steps in the journal that changed something; see paddock undo
	Proposal  int64             `json:"proposal,omitempty"`           // number of the proposal, of a run that is reviewed; see paddock apply
	Artifacts []string          `json:"artifacts,omitempty"`          // paths of what --artifacts copied
	Notes     []policy.Problem  `json:"notes,omitempty"`              // on the policy file: what is probably not meant, or has no effect
}

// A failure is an error of Paddock's own.
type failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func failureOf(err error) *failure {
	message, hint := words(err)
	return &failure{Kind: paddock.KindOf(err).Error(), Message: message, Hint: hint}
}

// A captured stream is kept from its beginning up to a bound.
type captured struct {
	data  []byte
	total int64
}

func (c *captured) Write(p []byte) (int, error) {
	c.total += int64(len(p))
	c.data = append(c.data, p[:min(len(p), kept-len(c.data))]...)
	return len(p), nil
}

// MarshalJSON encodes output as a string if it is valid text, and as base64 otherwise.
func (c *captured) MarshalJSON() ([]byte, error) {
	out := struct {
		Text   *string `json:"text,omitempty"`
		Base64 *string `json:"base64,omitempty"`
		Bytes  int64   `json:"bytes"`             // that the command wrote
		Cut    int64   `json:"dropped,omitempty"` // of them, those that are not here
	}{Bytes: c.total, Cut: c.total - int64(len(c.data))}
	data := c.data
	if out.Cut > 0 { // the bound may have split a character
		for i := 1; i < utf8.UTFMax && i <= len(data); i++ {
			if tail := data[len(data)-i:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRune(tail) {
					data = data[:len(data)-i]
					out.Cut += int64(i)
				}
				break
			}
		}
	}
	if utf8.Valid(data) {
		s := string(data)
		out.Text = &s
	} else {
		s := base64.StdEncoding.EncodeToString(data)
		out.Base64 = &s
	}
	return json.Marshal(out)
}

// A resultFile is where a result goes. It is opened before anything runs, so
// that a command never runs whose result cannot be written.
type resultFile struct {
	to    io.Writer
	close func() error
}

// openResult opens FILE of --json=FILE, or standard output for "-".
func openResult(name string, stdout io.Writer) (*resultFile, error) {
	if name == "-" {
		return &resultFile{to: stdout, close: func() error { return nil }}, nil
	}
	// In its directory and nowhere else: where that is a workspace, a command
	// of an earlier run may have left a link that leads to a file of yours.
	f, err := openIn(filepath.Dir(name), filepath.Base(name), os.O_TRUNC)
	if err != nil {
		return nil, WithHint(fmt.Errorf("--json: %w: %w", err, paddock.Denied), "is the directory there, and writable?")
	}
	return &resultFile{to: f, close: f.Close}, nil
}

// openIn makes a file to be written in dir, and never beyond it by a link.
func openIn(dir, base string, flags int) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(base, os.O_WRONLY|os.O_CREATE|flags, 0o600)
}

// write writes the result as one object, indented for people who look.
func (f *resultFile) write(r *result) error {
	err := PrintJSON(f.to, r)
	if c := f.close(); err == nil {
		err = c
	}
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// jsonLine writes a value on one line.
func jsonLine(v any) ([]byte, error) { return jsonText(v, "") }
