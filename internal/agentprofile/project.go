package agentprofile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// ProjectFile is the name of a project's file, in the workspace.
const ProjectFile = ".paddock.yaml"

// A Project is what a project adds to profiles, in its file.
type Project struct {
	Version int                 `yaml:"version"` // of the format: 1
	Agents  map[string]Addition `yaml:"agents"`  // by name; "all" is for each agent
}

// An Addition is all that a project may add. It can name no program, state, key or login.
type Addition struct {
	Args   []Args   `yaml:"args"`
	Env    []Env    `yaml:"env"`
	Allow  []string `yaml:"allow"`
	Memory string   `yaml:"memory"`
}

// ReadProject parses a project's file. An error is an [*Error] with the line of the fault.
func ReadProject(name string, data []byte) (*Project, error) {
	p := &Project{}
	d, err := decode(name, data, p)
	if err != nil {
		return nil, err
	}
	if p.Version != 1 {
		return nil, d.fault([]any{"version"}, `the version is missing or not known; it begins with "version: 1"`)
	}
	for agent, add := range p.Agents {
		if !agentName.MatchString(agent) {
			return nil, d.fault([]any{"agents"}, "%q is no name of an agent", agent)
		}
		at := []any{"agents", agent}
		below := *d
		if below.top = child(child(d.top, at[0]), at[1]); below.top == nil {
			below.top = d.top
		}
		for _, check := range []func() error{
			func() error { return below.args(add.Args) },
			func() error { return below.env(add.Env) },
			func() error { return below.hosts([]any{"allow"}, add.Allow) },
			func() error { return below.memory(add.Memory) },
		} {
			if err := check(); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// Add returns a profile with what a project adds to it.
func (p *Profile) Add(project *Project) *Profile {
	sum := *p
	for _, name := range []string{"all", p.Name} {
		add, ok := project.Agents[name]
		if !ok {
			continue
		}
		sum.Args = slices.Concat(sum.Args, add.Args)
		sum.Env = slices.Concat(sum.Env, add.Env)
		sum.Allow = slices.Concat(sum.Allow, add.Allow)
		if add.Memory != "" {
			sum.Memory = add.Memory
		}
	}
	return &sum
}

// digest names the contents of a project's file in a workspace.
func digest(workspace string, data []byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s", workspace, data))
	return hex.EncodeToString(sum[:])
}
