package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// outOfReach refuses what a box of these flags could exchange and what decides about the next one, which nobody is asked about:
// the program, a policy, a secret's file, and what is mounted. Given tells which flags were given.
func (f *boxFlags) outOfReach(a *App, given func(string) bool, program string, projects []hookedProject) error {
	for _, project := range projects {
		flags := f.specFlags
		flags.workspace, flags.look = project.dir, true
		p, err := flags.plan(a, func(name string) bool { return name == "workspace" || given(name) })
		if err != nil {
			return err
		}
		// The agent's own tools write in the project, also where the box does not.
		mounts := append(slices.Clone(p.spec.Mounts), paddock.Mount{Source: project.dir, Write: true})
		list, err := flags.deciding(p)
		if err != nil {
			return err
		}
		for _, d := range append(list, decidingFile{"the program paddock", program}) {
			if m, inside := inReach(d.path, mounts, true); inside {
				return WithHint(fmt.Errorf("%s, %s, is or leads over what a box may write, so a step could exchange it: %w", d.what, d.path, paddock.Denied), "move it out of %s", m.Source)
			}
		}
		for _, m := range p.spec.Mounts {
			if outer, inside := inReach(m.Source, mounts, false); inside {
				return WithHint(fmt.Errorf("%s, which is mounted, is in or leads over what a box may write, so a step could put a link to something else there: %w", m.Source, paddock.Denied),
					"leave the mount out, since %s is shown; --deny-write and --deny-read are for parts of it", outer.Source)
			}
		}
	}
	return nil
}

// A decidingFile decides about the boxes that come.
type decidingFile struct{ what, path string }

// deciding lists the files that a plan was made of, and those that its secrets come from.
func (f *specFlags) deciding(p *plan) ([]decidingFile, error) {
	var list []decidingFile
	if f.policy != "" {
		list = append(list, decidingFile{"the policy", Absolute(f.policy, p.host.Dir)})
	}
	if f.srt != "" {
		list = append(list, decidingFile{"the file of --srt-settings", Absolute(f.srt, p.host.Dir)})
	}
	var sources []string
	if p.file != nil {
		sources = p.file.SecretSources()
	}
	for _, text := range f.secret {
		_, rest, _ := strings.Cut(text, "=")
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			rest = rest[:at]
		}
		sources = append(sources, rest)
	}
	for _, from := range sources {
		path, err := policy.SourceFile(from, p.host)
		if err != nil {
			return nil, fmt.Errorf("a secret's file: %w", err)
		}
		if path != "" {
			list = append(list, decidingFile{"a secret's file", Absolute(path, p.host.Dir)})
		}
	}
	return list, nil
}
