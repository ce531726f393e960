package cli

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// version is set by the linker in a release; otherwise the Go tool chain knows.
var version string

// A Provenance says what this program was built from.
type Provenance struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`     // of the revision
	Modified bool   `json:"modified,omitempty"` // built from more than the revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Guest    string `json:"guest"` // "embedded", or "self": the program starts itself as the agent
}

func (a *App) versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Tell what this program was built from",
		Long: `Tell what this program was built from, and whether it carries the small agent
that runs inside a sandbox ("guest: embedded"), or starts itself as one ("self").

Exit status: 0, or 125 if the answer cannot be written.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := Build()
			v.Guest = cmp.Or(a.Guest, "self")
			if asJSON {
				return PrintJSON(a.Stdout, v)
			}
			_, err := fmt.Fprint(a.Stdout, v.String())
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "answer with one JSON object")
	return c
}

// Build returns what the Go tool chain recorded in this program.
func Build() Provenance {
	v := Provenance{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		if v.Version == "" {
			v.Version = "unknown"
		}
		return v
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Time = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

// BuildOf returns what identifies the installed program in a record. Its Digest is empty if the file cannot be read.
func (a *App) BuildOf() audit.Build {
	p := Build()
	b := audit.Build{Version: p.Version, Revision: p.Revision, Modified: p.Modified}
	path := a.Installed
	if path == "" {
		path = "/proc/self/exe" // also where the file was replaced meanwhile
		if _, err := os.Stat(path); err != nil {
			if path, err = os.Executable(); err != nil {
				return b
			}
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return b
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err == nil {
		b.Digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
	}
	return b
}

func (v Provenance) String() string {
	s := fmt.Sprintf("paddock %s (%s, %s)\nguest: %s\n", v.Version, v.Platform, v.Go, v.Guest)
	if v.Revision != "" {
		s += "revision: " + v.Revision
		if v.Time != "" {
			s += " of " + v.Time
		}
		if v.Modified {
			s += ", with changes"
		}
		s += "\n"
	}
	return s
}
