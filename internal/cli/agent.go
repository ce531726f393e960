package cli

import (
	"fmt"
	"io"
	"strings"
)

// A listedAgent is what is known of an agent on this machine.
type listedAgent struct {
	Name    string   `json:"name"`
	Title   string   `json:"title,omitempty"`
	Program string   `json:"program,omitempty"` // path on this machine; empty is not installed
	Version string   `json:"version,omitempty"`
	Tested  string   `json:"tested,omitempty"`  // the version that Paddock's tests ran
	Profile string   `json:"profile,omitempty"` // file of the user; empty is that of this version
	Lacks   []string `json:"lacks,omitempty"`   // what it needs here, in words with what to do
	Fault   string   `json:"fault,omitempty"`   // of the profile

	install string
}

// printAgents tells what each installed agent lacks, and which are not installed.
func printAgents(w io.Writer, list []listedAgent) {
	var missing []string
	for _, g := range list {
		switch {
		case g.Fault != "":
			fold(w, g.Name+": ", OneLineOf("the profile is not valid: "+g.Fault, Paragraph))
		case g.Program == "":
			missing = append(missing, g.Name)
		case len(g.Lacks) == 0:
			fold(w, fmt.Sprintf("paddock %s: ", g.Name), "has what it needs")
		default:
			fold(w, fmt.Sprintf("paddock %s: ", g.Name), OneLineOf(strings.Join(g.Lacks, "; "), Paragraph))
		}
	}
	if len(missing) > 0 {
		fold(w, "agents that are not installed: ", Join(missing)+" (`paddock agent ls` tells how)")
	}
}
