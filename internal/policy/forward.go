package policy

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
)

// ForwardHint says how the forwarding of an agent is written.
const ForwardHint = `write ssh or gpg, or one of its keys: "ssh=SHA256:…" or "ssh=COMMENT", and "gpg=KEYGRIP"`

// ForwardAgent adds to agents what text says: KIND for all keys of an agent, or KIND=KEY for one more of its keys. The
// host's socket is left open.
func ForwardAgent(agents []paddock.KeyAgent, text string) ([]paddock.KeyAgent, error) {
	kind, key, one := strings.Cut(text, "=")
	if k := paddock.KeyAgentKind(kind); k != paddock.KeyAgentSSH && k != paddock.KeyAgentGPG || one && key == "" || len(key) > 256 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, fmt.Errorf("%q is no agent that can be forwarded: %w", clip(text), paddock.Invalid)
	}
	i := slices.IndexFunc(agents, func(a paddock.KeyAgent) bool { return string(a.Kind) == kind })
	agents = slices.Clone(agents)
	switch {
	case i < 0 && !one:
		return append(agents, paddock.KeyAgent{Kind: paddock.KeyAgentKind(kind)}), nil
	case i < 0:
		return append(agents, paddock.KeyAgent{Kind: paddock.KeyAgentKind(kind), Keys: []string{key}}), nil
	case !one || len(agents[i].Keys) == 0 || slices.Contains(agents[i].Keys, key):
		return nil, fmt.Errorf("%q: the agent of %s is forwarded already, either whole or with this key: %w", clip(text), kind, paddock.Invalid)
	}
	agents[i].Keys = append(slices.Clip(agents[i].Keys), key)
	return agents, nil
}

// forwarded returns the texts that ForwardAgent reads back.
func forwarded(agents []paddock.KeyAgent) []string {
	var texts []string
	for _, a := range agents {
		if len(a.Keys) == 0 {
			texts = append(texts, string(a.Kind))
		}
		for _, key := range a.Keys {
			texts = append(texts, string(a.Kind)+"="+key)
		}
	}
	return texts
}

func forwardShape() *shape {
	return &shape{
		kind: list, doc: "Agents of the caller whose keys commands may use, by name: ssh or gpg, or KIND=KEY for one of its keys.",
		elem: &shape{kind: text, pattern: `^(ssh|gpg)(=.+)?$`, read: func(r *reader, n *yaml.Node, key string) {
			agents, err := ForwardAgent(r.f.KeyAgents, n.Value)
			if err != nil {
				r.add(n, key, strings.TrimSuffix(err.Error(), ": "+paddock.Invalid.Error()), ForwardHint)
				return
			}
			r.f.KeyAgents = agents
		}},
	}
}
