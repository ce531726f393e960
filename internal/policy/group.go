package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// Groups lists the names of the built-in groups.
func Groups() []string {
	var names []string
	for _, g := range groupTable() {
		names = append(names, g.name)
	}
	return names
}

// A namedHosts is a group as it is listed here.
type namedHosts struct {
	name  string
	hosts []string
}

// groupTable is the groups that Paddock has: hosts that many people mean by one
// word, and whose names are known to be theirs. Registries of packages are
// none: which ones are used is a matter of each machine's own configuration.
// The API alone is listed, and not where people upload what anybody can read.
func groupTable() []namedHosts {
	return []namedHosts{
		{"model-providers", []string{
			"api.anthropic.com",
			"api.openai.com",
			"generativelanguage.googleapis.com",
			"api.mistral.ai",
			"codestral.mistral.ai",
			"api.cohere.com",
			"api.deepseek.com",
			"api.groq.com",
			"api.cerebras.ai",
			"api.together.xyz",
			"api.fireworks.ai",
			"api.perplexity.ai",
			"api.x.ai",
			"api.moonshot.ai",
			"api.z.ai",
			"openrouter.ai",
		}},
		{"code-hosts", []string{
			"github.com",
			"api.github.com",
			"codeload.github.com",
			"raw.githubusercontent.com",
			"objects.githubusercontent.com",
			"release-assets.githubusercontent.com",
			"github-cloud.githubusercontent.com", // large files
			"gitlab.com",
			"bitbucket.org",
			"api.bitbucket.org",
			"codeberg.org",
			"git.sr.ht",
		}},
	}
}

// productGroups gives the groups that Paddock has. Their hosts are tested to be
// right.
func productGroups() []group {
	var groups []group
	for _, t := range groupTable() {
		g := group{name: t.name}
		for _, h := range t.hosts {
			if p, port, err := parseRuleHost(h); err == nil {
				g.hosts = append(g.hosts, groupHost{p, port})
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// Rules returns the rules for the value of a flag such as --allow: "HOST", "HOST:PORT", "group:NAME" or
// "group:NAME:PORT". Groups are those of f, which may be nil, and the built-in ones. All else is Invalid.
func Rules(text string, deny bool, f *File) ([]paddock.NetworkRule, error) {
	named, ok := strings.CutPrefix(text, "group:")
	if !ok {
		p, port, err := parseRuleHost(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
		}
		nr := paddock.NetworkRule{Deny: deny, Host: p.String()}
		if port != 0 {
			nr.Ports = []uint16{port}
		}
		if err := decide.CheckRule(nr); err != nil {
			return nil, err
		}
		return []paddock.NetworkRule{nr}, nil
	}
	name, port, err := decide.SplitPort(named)
	if err != nil {
		return nil, err
	}
	groups := productGroups()
	if f != nil {
		groups = slices.Concat(f.groups, groups)
	}
	i := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
	if i < 0 {
		names := make([]string, len(groups))
		for i, g := range groups {
			names[i] = g.name
		}
		return nil, fmt.Errorf("there is no group %q (%s): %w", clip(name), hintFor(name, names), paddock.Invalid)
	}
	nr := paddock.NetworkRule{Deny: deny}
	if port != 0 {
		nr.Ports = []uint16{port}
	}
	rules, err := groups[i].rules(nr)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	return rules, nil
}
