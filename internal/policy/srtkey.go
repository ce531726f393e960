package policy

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The keys of sandbox-runtime 0.0.83 and what becomes of each. A shape without
// a read function of its own stands below one that refuses or notes the whole.

const (
	useRules  = "take the key away, and say what is meant in a policy file: network.rules (docs/reference/policy.md)"
	useSecret = "take it away, and keep the value outside with --secret NAME=env:VAR@HOST, or network.secrets of a policy file"
)

// noted has no effect; the note says why.
func noted(sh shape, why string) *shape {
	sh.read = func(r *reader, n *yaml.Node, key string) { r.note(n, key, "no effect: "+why, "") }
	return &sh
}

// refusedIf is refused where it asks for something: true, or not empty.
func refusedIf(sh shape, why, instead string) *shape {
	sh.read = func(r *reader, n *yaml.Node, key string) {
		if n.Kind == yaml.ScalarNode && n.Value == "false" || n.Kind != yaml.ScalarNode && len(n.Content) == 0 {
			return
		}
		r.refuse(n, key, why, instead)
	}
	return &sh
}

func texts() shape { return shape{kind: list, elem: &shape{kind: text}} }
func word() *shape { return &shape{kind: text} }
func words() *shape {
	sh := texts()
	return &sh
}

func wholes(low, high float64) *shape { return &shape{kind: whole, min: low, max: high} }

func (s *srt) shape() *shape {
	onMac := func(k shapeKind) *shape {
		return noted(shape{kind: k}, "it is read on macOS only")
	}
	return &shape{kind: object, need: []string{"network", "filesystem"}, fields: []field{
		{"network", s.network()},
		{"filesystem", s.filesystem()},
		{"credentials", s.credentials()},
		{"ignoreViolations", noted(shape{kind: mapping, elem: words()}, "it only hides reports, and Paddock reports all that was refused")},
		{"enableWeakerNestedSandbox", refusedIf(shape{kind: boolean}, "Paddock never continues with less isolation unasked", "name the control that the host lacks in allow_missing; paddock doctor lists them")},
		{"allowNestedUserNamespaces", refusedIf(shape{kind: boolean}, "user namespaces inside would undo the write denials", "run what needs them on the tier gvisor or microvm")},
		{"enableWeakerNetworkIsolation", onMac(boolean)},
		{"allowAppleEvents", onMac(boolean)},
		{"ripgrep", noted(shape{kind: object, need: []string{"command"}, fields: []field{{"command", word()}, {"args", words()}, {"argv0", word()}}}, "no search program is used; protected names hold at any depth without one")},
		{"mandatoryDenySearchDepth", noted(shape{kind: whole, min: 1, max: 10}, "protected names hold at any depth")},
		{"allowPty", onMac(boolean)},
		{"seccomp", noted(shape{kind: object, fields: []field{{"applyPath", word()}, {"argv0", word()}}}, "Paddock has its own filter and needs no program for it")},
		{"bwrapPath", noted(shape{kind: text}, "bubblewrap is not used")},
		{"socatPath", noted(shape{kind: text}, "socat is not used")},
		{"javaAgentJarPath", noted(shape{kind: text}, "no program has to be told of the way out")},
		{"windows", noted(shape{kind: object, fields: []field{
			{"backend", &shape{kind: text, oneOf: []string{"mxc", "srt-win"}}}, {"sandboxUser", word()}, {"sublayerGuid", word()}, {"wfpSublayerGuid", word()},
			{"proxyPortRange", &shape{kind: list, elem: wholes(1, 65535)}},
			{"srtWin", &shape{kind: object, need: []string{"path"}, fields: []field{{"path", word()}}}},
		}}, "it is read on Windows only")},
		{"git", &shape{kind: object, fields: []field{{"safeDirectories", &shape{kind: list, elem: word(), read: safeDirectories}}}}},
	}}
}

func (s *srt) network() *shape {
	domains := texts()
	port := shape{kind: whole, min: 1, max: 65535}
	proxy := "the way out is a gateway of each sandbox's own, and no proxy on the host takes its place"
	return &shape{kind: object, need: []string{"allowedDomains", "deniedDomains"}, fields: []field{
		{"allowedDomains", s.destinations(&s.allowed)},
		{"deniedDomains", s.destinations(&s.denied)},
		{"deniedDomainReasons", noted(shape{kind: mapping, elem: word()}, "the report says in its own words what was refused")},
		// Honoured either way: there is nobody to ask, so what is not listed is denied.
		{"strictAllowlist", &shape{kind: boolean}},
		{"deniedResolvedAddresses", s.destinations(&s.denied)},
		{"allowUnixSockets", noted(domains, "it is read on macOS only; no socket of the host can be reached")},
		{"allowAllUnixSockets", refusedIf(shape{kind: boolean}, "sockets of the host are never reachable from inside", "sockets made inside work; to reach one of the host, run the program outside")},
		{"allowLocalBinding", noted(shape{kind: boolean}, "the sandbox has a loopback of its own, where ports can always be used")},
		{"allowMachLookup", noted(domains, "it is read on macOS only")},
		{"httpProxyPort", refusedIf(port, proxy, useRules)},
		{"socksProxyPort", refusedIf(port, proxy, useRules)},
		{"mitmProxy", refusedIf(shape{kind: object, need: []string{"socketPath", "domains"}, fields: []field{{"socketPath", word()}, {"domains", words()}}}, proxy, useRules)},
		{"filterRequest", &shape{kind: textOrObject, elem: &shape{kind: mapping, elem: word()}, read: func(r *reader, n *yaml.Node, key string) {
			r.add(n, key, "a function, which a file cannot hold", "")
		}}},
		{"allowPlaintextHeaderSet", noted(shape{kind: boolean}, "no header is set by these settings")},
		{"stripResponseHeaders", s.onlyWithout(domains, "answers of servers are passed on with their headers")},
		{"refuseOpaqueTunnels", s.onlyWithout(shape{kind: boolean}, "what is neither TLS nor HTTP passes to a host that is allowed")},
		{"requireHostMatch", noted(shape{kind: boolean}, "the names that TLS and HTTP ask for always have to be the one that was allowed")},
		{"ambiguousRequestTarget", noted(shape{kind: text, oneOf: []string{"refuse", "asSpelled", "normalize"}}, "no setting here is about requests, and one whose host is ambiguous is always refused")},
		{"tlsTerminate", &shape{kind: object, fields: []field{
			{"caCertPath", word()}, {"caKeyPath", word()}, {"excludeDomains", words()}, {"extraCaCertPaths", words()},
			{"maxTunnels", wholes(1, 65536)}, {"handshakeTimeoutMs", wholes(100, 600000)},
		}, read: func(r *reader, n *yaml.Node, key string) {
			r.refuse(n, key, "TLS is looked into by a certificate of each sandbox's own, where a rule or a secret needs it", useRules)
		}}},
		{"parentProxy", &shape{kind: object, fields: []field{{"http", word()}, {"https", word()}, {"noProxy", word()}}, read: func(r *reader, n *yaml.Node, key string) {
			r.refuse(n, key, "upstream proxies are named by rules", useRules)
		}}},
	}}
}

func (s *srt) filesystem() *shape {
	return &shape{kind: object, need: []string{"denyRead", "allowWrite", "denyWrite"}, fields: []field{
		{"disabled", refusedIf(shape{kind: boolean}, "the files of the host are never left without any rule", "ask for less isolation by name: --mode full")},
		{"denyRead", s.paths(&s.denyRead, true)},
		{"allowRead", s.paths(&s.allowRead, true)},
		{"allowWrite", s.paths(&s.allowWrite, false)},
		{"denyWrite", s.paths(&s.denyWrite, false)},
		{"allowGitConfig", &shape{kind: boolean, read: func(r *reader, n *yaml.Node, _ string) {
			if n.Value == "true" {
				r.f.Files.Unprotect = append(r.f.Files.Unprotect, ".git/config")
				r.f.at["files.unprotect"] = Position{n.Line, n.Column}
			}
		}}},
	}}
}

func (s *srt) credentials() *shape {
	// With the mode deny these are accepted there and have no effect; with
	// mask the entry is refused, and they with it.
	idle := "it belongs to the mode mask"
	masking := []field{
		{"extract", noted(shape{kind: text}, idle)},
		{"onExtractNoMatch", noted(shape{kind: text, oneOf: []string{"warn", "deny", "error"}}, idle)},
		{"decode", noted(shape{kind: text, oneOf: []string{"jwt"}}, idle)},
		{"maskClaims", noted(texts(), idle)},
		{"injectHosts", noted(texts(), idle)},
	}
	mode := &shape{kind: text, oneOf: []string{"deny", "mask"}, read: func(r *reader, n *yaml.Node, key string) {
		if n.Value == "mask" {
			r.refuse(n, key, "these settings do not put placeholders in the place of credentials here", useSecret)
		}
	}}
	file := &shape{kind: object, need: []string{"path", "mode"}, fields: append([]field{
		{"path", word()}, {"mode", mode}, {"maskDuplicates", noted(shape{kind: boolean}, idle)},
	}, masking...), read: s.credentialFile}
	variable := &shape{kind: object, need: []string{"name", "mode"}, fields: append([]field{
		{"name", &shape{kind: text, read: func(r *reader, n *yaml.Node, key string) {
			if err := checkName(n.Value); err != nil {
				r.add(n, key, fmt.Sprintf("%q: %v", clip(n.Value), err), "")
			}
		}}},
		// Honoured: nothing of the caller's environment enters by itself.
		{"mode", mode},
	}, masking...)}
	resign := "these settings do not sign requests again here"
	policy := func() *shape { return &shape{kind: text, oneOf: []string{"deny", "passthrough"}} }
	return &shape{kind: object, fields: []field{
		{"files", &shape{kind: list, elem: file}},
		{"envVars", &shape{kind: list, elem: variable}},
		{"allowPlaintextInject", refusedIf(shape{kind: boolean}, "nothing puts credentials into what is sent without TLS", "take the key away")},
		{"awsPairs", refusedIf(shape{kind: list, elem: &shape{kind: object, need: []string{"accessKeyIdVar", "secretAccessKeyVar"}, fields: []field{
			{"accessKeyIdVar", word()}, {"secretAccessKeyVar", word()}, {"sessionTokenVar", word()},
		}}}, resign, useSecret+" (sigv4)")},
		{"sigv4", refusedIf(shape{kind: object, fields: []field{{"streaming", policy()}, {"presigned", policy()}, {"sigv4a", policy()}}}, resign, useSecret+" (sigv4)")},
	}}
}

// credentialFile denies the file for reading.
func (s *srt) credentialFile(r *reader, n *yaml.Node, key string) {
	var node *yaml.Node
	deny := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch n.Content[i].Value {
		case "path":
			node = n.Content[i+1]
		case "mode":
			deny = n.Content[i+1].Value == "deny"
		}
	}
	if deny && node != nil {
		s.denyRead = append(s.denyRead, srtResolve(r, node, strings.TrimSuffix(key, ".")+".path", srtSpelling{node.Value, false, true})...)
	}
}

// destinations is the shape of a list of hosts.
func (s *srt) destinations(to *[]srtHost) *shape {
	return &shape{kind: list, elem: &shape{kind: text, read: func(r *reader, n *yaml.Node, key string) {
		p, port, err := parseRuleHost(n.Value)
		if err != nil {
			r.add(n, key, fmt.Sprintf("%q: %v", clip(n.Value), err), hostHint)
			return
		}
		*to = append(*to, srtHost{p.String(), port, n, key})
	}}}
}

// onlyWithout has no effect where nothing can be reached, and is refused where
// something can and it asks for something.
func (s *srt) onlyWithout(sh shape, why string) *shape {
	sh.read = func(_ *reader, n *yaml.Node, key string) {
		if n.Kind == yaml.ScalarNode && n.Value == "false" || n.Kind != yaml.ScalarNode && len(n.Content) == 0 {
			return
		}
		s.narrowing = append(s.narrowing, srtNarrowing{n, key, why})
	}
	return &sh
}
