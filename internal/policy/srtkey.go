package policy

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The keys of sandbox-runtime 0.0.83 and what becomes of each. A shape without
// a read function of its own stands below one that refuses or notes the whole.

const (
	noNetwork = "there is no network here, so there is nothing that it could change"
	noPolicy  = "this version of Paddock has no allow-list of destinations for it"
	useNone   = "take the key away for no network, or ask for the host's whole network with --mode full"
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
		{"javaAgentJarPath", noted(shape{kind: text}, noNetwork)},
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
	proxy := "a proxy on the host cannot be reached from inside"
	return &shape{kind: object, need: []string{"allowedDomains", "deniedDomains"}, fields: []field{
		{"allowedDomains", refusedIf(domains, noPolicy, "write [] for no network, or ask for the host's whole network with --mode full")},
		// Honoured: with nothing allowed, everything is denied.
		{"deniedDomains", &domains},
		{"deniedDomainReasons", noted(shape{kind: mapping, elem: word()}, "nothing can be reached, and the report says so in its own words")},
		// Honoured either way: there is nobody to ask, so what is not listed is denied.
		{"strictAllowlist", &shape{kind: boolean}},
		{"deniedResolvedAddresses", &domains},
		{"allowUnixSockets", noted(domains, "it is read on macOS only; no socket of the host can be reached")},
		{"allowAllUnixSockets", refusedIf(shape{kind: boolean}, "sockets of the host are never reachable from inside", "sockets made inside work; to reach one of the host, run the program outside")},
		{"allowLocalBinding", noted(shape{kind: boolean}, "the sandbox has a loopback of its own, where ports can always be used")},
		{"allowMachLookup", noted(domains, "it is read on macOS only")},
		{"httpProxyPort", refusedIf(port, proxy, useNone)},
		{"socksProxyPort", refusedIf(port, proxy, useNone)},
		{"mitmProxy", refusedIf(shape{kind: object, need: []string{"socketPath", "domains"}, fields: []field{{"socketPath", word()}, {"domains", words()}}}, proxy, useNone)},
		{"filterRequest", &shape{kind: textOrObject, elem: &shape{kind: mapping, elem: word()}, read: func(r *reader, n *yaml.Node, key string) {
			r.add(n, key, "a function, which a file cannot hold", "")
		}}},
		{"allowPlaintextHeaderSet", noted(shape{kind: boolean}, noNetwork)},
		{"stripResponseHeaders", noted(domains, noNetwork)},
		{"refuseOpaqueTunnels", noted(shape{kind: boolean}, noNetwork)},
		{"requireHostMatch", noted(shape{kind: boolean}, noNetwork)},
		{"ambiguousRequestTarget", noted(shape{kind: text, oneOf: []string{"refuse", "asSpelled", "normalize"}}, noNetwork)},
		{"tlsTerminate", &shape{kind: object, fields: []field{
			{"caCertPath", word()}, {"caKeyPath", word()}, {"excludeDomains", words()}, {"extraCaCertPaths", words()},
			{"maxTunnels", wholes(1, 65536)}, {"handshakeTimeoutMs", wholes(100, 600000)},
		}, read: func(r *reader, n *yaml.Node, key string) {
			r.refuse(n, key, "TLS is not looked into: "+noPolicy, useNone)
		}}},
		{"parentProxy", &shape{kind: object, fields: []field{{"http", word()}, {"https", word()}, {"noProxy", word()}}, read: func(r *reader, n *yaml.Node, key string) {
			r.refuse(n, key, proxy, useNone)
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
			r.refuse(n, key, "this version of Paddock cannot put placeholders in the place of credentials", `use the mode "deny"`)
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
	resign := "this version of Paddock cannot sign requests again"
	policy := func() *shape { return &shape{kind: text, oneOf: []string{"deny", "passthrough"}} }
	return &shape{kind: object, fields: []field{
		{"files", &shape{kind: list, elem: file}},
		{"envVars", &shape{kind: list, elem: variable}},
		{"allowPlaintextInject", refusedIf(shape{kind: boolean}, "this version of Paddock cannot put credentials into requests", "take the key away")},
		{"awsPairs", refusedIf(shape{kind: list, elem: &shape{kind: object, need: []string{"accessKeyIdVar", "secretAccessKeyVar"}, fields: []field{
			{"accessKeyIdVar", word()}, {"secretAccessKeyVar", word()}, {"sessionTokenVar", word()},
		}}}, resign, "take the key away")},
		{"sigv4", refusedIf(shape{kind: object, fields: []field{{"streaming", policy()}, {"presigned", policy()}, {"sigv4a", policy()}}}, resign, "take the key away")},
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
