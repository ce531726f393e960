package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

const (
	groupPattern  = `^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	sourcePattern = `^(env:[A-Za-z_][A-Za-z0-9_]*|file:(/|~/).*)$`

	hostHint   = `a name, "*.example.com", an address, a range such as 10.0.0.0/8, each with or without ":port"`
	sourceHint = `"env:VARIABLE" of your environment, or "file:/path": a policy never holds a value`
)

// A draft is one entry of network.rules as written. A group stands for its
// hosts, which may be defined further down.
type draft struct {
	paddock.NetworkRule
	group string
	key   string
	node  *yaml.Node
}

// A group is a list of hosts by a name.
type group struct {
	name  string
	hosts []groupHost
}

type groupHost struct {
	pattern decide.Pattern
	port    uint16 // zero is none
}

func networkShape() *shape {
	return &shape{kind: object, doc: "What can be reached. Without it, nothing.", read: readNetwork, fields: []field{
		{"mode", &shape{kind: text, doc: "none: no way out. list: the rules decide. host: the host's own network without any control.", oneOf: []string{"none", "list", "host"}, read: func(r *reader, n *yaml.Node, _ string) {
			if n.Value != "none" {
				r.f.Network.Mode = paddock.NetworkMode(n.Value)
			}
		}}},
		{"rules", &shape{kind: list, doc: "Destinations. A deny that matches wins; of the allows the first that matches counts; what no rule allows is denied.", elem: ruleShape()}},
		{"groups", &shape{kind: mapping, doc: "Hosts by a name, for rules.", keys: groupPattern, read: readGroups, elem: &shape{kind: list, doc: "Hosts of the group.", elem: hostShape("A host, with or without a port.")}}},
		{"secrets", &shape{kind: mapping, doc: "Values that stay outside: inside, the variable of that name holds a placeholder, and requests to the hosts get the value.", keys: namePattern, read: readSecrets, elem: secretShape()}},
	}}
}

func hostShape(doc string) *shape {
	return &shape{kind: text, doc: doc, read: readHost}
}

func readHost(r *reader, n *yaml.Node, key string) {
	if _, _, err := parseRuleHost(n.Value); err != nil {
		r.add(n, key, fmt.Sprintf("%q: %v", clip(n.Value), err), hostHint)
	}
}

// parseRuleHost reads the host of a rule with or without a port.
func parseRuleHost(s string) (decide.Pattern, uint16, error) {
	if strings.Contains(s, "://") {
		return decide.Pattern{}, 0, errors.New("a host, not a URL")
	}
	host, port, err := decide.SplitPort(s)
	if err != nil {
		return decide.Pattern{}, 0, reason(err, s)
	}
	if host == loopbackShort {
		host = paddock.LoopbackHost
	}
	p, err := decide.ParsePattern(host)
	if err != nil {
		return decide.Pattern{}, 0, reason(err, host)
	}
	return p, port, nil
}

// loopbackShort is what people may write for [paddock.LoopbackHost] in a rule.
const loopbackShort = "host"

// reason gives what an error about a host says, without the host and the kind,
// which a Problem tells in its own way.
func reason(err error, host string) error {
	text := strings.TrimSuffix(err.Error(), ": "+paddock.Invalid.Error())
	return errors.New(strings.TrimPrefix(text, fmt.Sprintf("host %q: ", clip(host))))
}

// part is the read function of one part of a rule, which is judged by itself,
// so that what is wrong with it is told at its place.
func part(put func(*paddock.NetworkRule, *yaml.Node), hint string) func(*reader, *yaml.Node, string) {
	return func(r *reader, n *yaml.Node, key string) {
		nr := paddock.NetworkRule{Host: "*"}
		put(&nr, n)
		if err := decide.CheckRule(nr); err != nil {
			r.add(n, key, err.Error(), hint)
		}
	}
}

func ruleShape() *shape {
	texts := func(doc string, put func(*paddock.NetworkRule, *yaml.Node)) *shape {
		return &shape{kind: list, doc: doc, elem: &shape{kind: text, read: part(put, "")}, read: notEmpty}
	}
	values := func(doc string, put func(*paddock.NetworkRule, *yaml.Node)) *shape {
		return &shape{kind: mapping, doc: doc, elem: &shape{kind: text}, read: part(put, "")}
	}
	to := func(doc string) *shape {
		named := &shape{kind: object, doc: "A group of hosts.", need: []string{"group"}, fields: []field{{"group", &shape{kind: text, doc: "Its name: one of network.groups, or of the groups that Paddock has.", pattern: groupPattern}}}}
		return &shape{kind: textOrObject, doc: doc, elem: named, read: func(r *reader, n *yaml.Node, key string) {
			if n.Kind == yaml.ScalarNode {
				readHost(r, n, key)
			}
		}}
	}
	return &shape{kind: object, doc: "One destination, or some requests to it.", one: []string{"allow", "deny"}, read: readRule, fields: []field{
		{"allow", to("A destination that can be reached: a host, or {group: NAME}.")},
		{"deny", to("A destination that cannot.")},
		{"ports", &shape{kind: list, doc: "Ports; without any, 443 and 80 (of udp 443), and for a deny all.", elem: &shape{kind: whole, min: 1, max: 65535}}},
		{"udp", &shape{kind: boolean, doc: "Datagrams, and not connections. A deny without it is about both."}},
		{"scheme", &shape{kind: text, doc: "Requests of HTTP with this scheme alone.", oneOf: []string{"https", "http"}}},
		{"methods", texts("Requests with one of these methods alone.", func(nr *paddock.NetworkRule, n *yaml.Node) { nr.Methods = []string{n.Value} })},
		{"paths", texts("Requests with one of these paths alone: * is for characters of one part, ** for any.", func(nr *paddock.NetworkRule, n *yaml.Node) { nr.Paths = []string{n.Value} })},
		{"query", values("Requests that have each of these in the query, with this value, or * for any.", func(nr *paddock.NetworkRule, n *yaml.Node) { nr.Query = textsOf(n) })},
		{"headers", values("Requests that have each of these headers, with this value, or * for any.", func(nr *paddock.NetworkRule, n *yaml.Node) { nr.Headers = textsOf(n) })},
		{"inspect", &shape{kind: boolean, doc: "Look into TLS though nothing else asks for it."}},
		{"limits", ruleLimitsShape()},
		{"set_headers", values("Headers that requests get, in place of their own.", func(nr *paddock.NetworkRule, n *yaml.Node) { nr.SetHeaders = textsOf(n) })},
		{"remove_headers", texts("Headers that requests lose.", func(nr *paddock.NetworkRule, n *yaml.Node) { nr.RemoveHeaders = []string{n.Value} })},
		{"proxy", &shape{kind: text, doc: "URL of an upstream proxy: http, https or socks5.", pattern: `^(http|https|socks5)://`, read: part(func(nr *paddock.NetworkRule, n *yaml.Node) { nr.Proxy = n.Value }, `"http://proxy.example.com:3128"`)}},
		{"answer", &shape{kind: object, doc: "A response in place of the destination's, which is never asked.", fields: []field{
			{"status", &shape{kind: whole, doc: "Its status; without it 200.", min: 200, max: 599}},
			{"headers", &shape{kind: mapping, doc: "Its headers.", elem: &shape{kind: text}}},
			{"body", &shape{kind: text, doc: "Its body."}},
		}, read: part(func(nr *paddock.NetworkRule, n *yaml.Node) { nr.Answer = answerOf(n) }, "")}},
	}}
}

func ruleLimitsShape() *shape {
	size := func(doc string) *shape {
		return &shape{kind: textOrWhole, doc: doc, pattern: sizePattern, min: 1, read: func(r *reader, n *yaml.Node, key string) {
			if _, err := parseSize(n.Value); err != nil {
				r.add(n, key, fmt.Sprintf("%q: %v", clip(n.Value), err), sizeHint)
			}
		}}
	}
	return &shape{kind: object, doc: "Bounds on what the rule allows in the life of a sandbox; of a group, for each of its hosts.", fields: []field{
		{"requests", &shape{kind: whole, doc: "Requests, or connections that are not looked into.", min: 1, max: 1 << 53}},
		{"bytes", size("Both directions together.")},
		{"rate", size("Per second, each direction, of all connections together.")},
	}}
}

func secretShape() *shape {
	return &shape{kind: object, doc: "One secret.", need: []string{"from", "hosts"}, fields: []field{
		{"from", &shape{kind: text, doc: "Where the value comes from: env:VARIABLE of the caller, or file:/path.", pattern: sourcePattern, read: func(r *reader, n *yaml.Node, key string) {
			if err := checkSource(n.Value); err != nil {
				// What stands there may be the value itself.
				r.add(n, key, err.Error(), sourceHint)
			}
		}}},
		{"hosts", &shape{kind: list, doc: "The hosts that get it: names, *. and a name, or addresses, each with a port or at 443.", read: notEmpty, elem: &shape{kind: text, read: func(r *reader, n *yaml.Node, key string) {
			if err := decide.CheckSecretHost(n.Value); err != nil {
				r.add(n, key, err.Error(), `a name, "*.example.com" or an address, each with or without ":port"`)
			}
		}}}},
		{"places", &shape{kind: list, doc: "Where in a request; without it header and query.", read: notEmpty, elem: &shape{kind: text, oneOf: []string{string(paddock.SecretHeader), string(paddock.SecretQuery), string(paddock.SecretBody)}}}},
		{"sigv4", &shape{kind: text, doc: "Of a secret key of AWS: the secret that holds the access key's identifier.", pattern: namePattern}},
	}}
}

// notEmpty refuses a list that would mean nothing where it seems to narrow.
func notEmpty(r *reader, n *yaml.Node, key string) {
	if len(n.Content) == 0 {
		r.add(n, key, "an empty list", "leave the key out, or say what is meant")
	}
}

// readRule reads an entry of network.rules, whose parts are right by themselves.
func readRule(r *reader, n *yaml.Node, key string) {
	d := draft{key: key, node: n}
	var listed []uint16
	for name, v := range pairs(n) {
		switch name {
		case "allow", "deny":
			d.Deny = name == "deny"
			if v.Kind == yaml.MappingNode {
				for _, g := range pairs(v) {
					d.group = g.Value
				}
				continue
			}
			p, port, err := parseRuleHost(v.Value)
			if err != nil {
				r.add(v, below(key, name), err.Error(), hostHint)
				return
			}
			d.Host = p.String()
			if port != 0 {
				d.Ports = []uint16{port}
			}
		case "ports":
			if len(v.Content) == 0 {
				r.add(v, below(key, name), "an empty list", "leave the key out for 443 and 80")
				return
			}
			for _, p := range v.Content {
				if port, err := decide.ParsePort(p.Value); err == nil {
					listed = append(listed, port)
				}
			}
		default:
			d.put(name, v)
		}
	}
	if len(d.Ports) > 0 && len(listed) > 0 {
		r.add(n, below(key, "ports"), "the host has a port already", "write ports in one place")
		return
	}
	d.Ports = append(d.Ports, listed...)
	checked := d.NetworkRule
	if d.group != "" {
		checked.Host = "*"
	}
	if err := decide.CheckRule(checked); err != nil {
		r.add(n, key, err.Error(), "")
		return
	}
	r.f.rules = append(r.f.rules, d)
}

// put reads one part of a rule.
func (d *draft) put(name string, v *yaml.Node) {
	switch name {
	case "udp":
		d.UDP = isTrue(v)
	case "scheme":
		d.Scheme = v.Value
	case "methods":
		d.Methods = listOf(v)
	case "paths":
		d.Paths = listOf(v)
	case "query":
		d.Query = textsOf(v)
	case "headers":
		d.Headers = textsOf(v)
	case "inspect":
		d.Inspect = isTrue(v)
	case "limits":
		d.Limits = limitsOf(v)
	case "set_headers":
		d.SetHeaders = textsOf(v)
	case "remove_headers":
		d.RemoveHeaders = listOf(v)
	case "proxy":
		d.Proxy = v.Value
	case "answer":
		d.Answer = answerOf(v)
	}
}

func isTrue(n *yaml.Node) bool { return strings.EqualFold(n.Value, "true") }

func listOf(n *yaml.Node) []string {
	var all []string
	for _, v := range n.Content {
		all = append(all, v.Value)
	}
	return all
}

func textsOf(n *yaml.Node) map[string]string {
	var all map[string]string
	for name, v := range pairs(n) {
		if all == nil {
			all = map[string]string{}
		}
		all[name] = v.Value
	}
	return all
}

// limitsOf reads limits whose sizes are right already; none of them is none.
func limitsOf(n *yaml.Node) *paddock.NetworkLimits {
	var l paddock.NetworkLimits
	for name, v := range pairs(n) {
		switch name {
		case "requests":
			if count, err := strconv.ParseInt(v.Value, 10, 64); err == nil {
				l.Requests = count
			}
		case "bytes":
			l.Bytes = sizeOf(v)
		case "rate":
			l.Rate = sizeOf(v)
		}
	}
	if l == (paddock.NetworkLimits{}) {
		return nil
	}
	return &l
}

func sizeOf(n *yaml.Node) int64 {
	size, err := parseSize(n.Value)
	if err != nil {
		return 0 // told by the shape of the size
	}
	return size
}

func answerOf(n *yaml.Node) *paddock.NetworkAnswer {
	var a paddock.NetworkAnswer
	for name, v := range pairs(n) {
		switch name {
		case "status":
			if status, err := strconv.Atoi(v.Value); err == nil {
				a.Status = status
			}
		case "headers":
			a.Headers = textsOf(v)
		case "body":
			a.Body = v.Value
		}
	}
	return &a
}

func readGroups(r *reader, n *yaml.Node, key string) {
	for name, v := range pairs(n) {
		g := group{name: name}
		for _, h := range v.Content {
			if p, port, err := parseRuleHost(h.Value); err == nil {
				g.hosts = append(g.hosts, groupHost{p, port})
			}
		}
		if len(g.hosts) == 0 {
			r.add(v, below(key, name), "a group without hosts", "")
		}
		if slices.ContainsFunc(productGroups(), func(p group) bool { return p.name == name }) {
			r.note(v, below(key, name), fmt.Sprintf("it takes the place of the group %s that Paddock has", name), "")
		}
		r.f.groups = append(r.f.groups, g)
	}
}

func isGroup(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c != '-' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return s != ""
}

// readNetwork puts the hosts of groups in their places.
func readNetwork(r *reader, _ *yaml.Node, _ string) {
	groups := slices.Concat(r.f.groups, productGroups())
	for i, d := range r.f.rules {
		rules := []paddock.NetworkRule{d.NetworkRule}
		if d.group != "" {
			j := slices.IndexFunc(groups, func(g group) bool { return g.name == d.group })
			if j < 0 {
				names := make([]string, len(groups))
				for k, g := range groups {
					names[k] = g.name
				}
				r.add(d.node, d.key, fmt.Sprintf("there is no group %q", clip(d.group)), hintFor(d.group, names))
				continue
			}
			var err error
			if rules, err = groups[j].rules(d.NetworkRule); err != nil {
				r.add(d.node, d.key, err.Error(), "")
				continue
			}
		}
		for _, nr := range rules {
			r.f.Network.Rules = append(r.f.Network.Rules, nr)
			r.f.origins = append(r.f.origins, i)
		}
	}
	if n := len(r.f.Network.Rules); n > 2*MaxRules {
		r.add(r.f.rules[0].node, "network.rules", fmt.Sprintf("%d rules with the hosts of groups; at most %d are allowed", n, 2*MaxRules), "")
		r.f.Network.Rules = nil
	}
}

// rules gives a rule for each host of the group, which is what nr says.
func (g group) rules(nr paddock.NetworkRule) ([]paddock.NetworkRule, error) {
	var all []paddock.NetworkRule
	for _, h := range g.hosts {
		one := nr
		one.Host = h.pattern.String()
		if h.port != 0 {
			if len(nr.Ports) > 0 {
				return nil, fmt.Errorf("the host %s of the group %s has a port already", one.Host, g.name)
			}
			one.Ports = []uint16{h.port}
		}
		all = append(all, one)
	}
	return all, nil
}

func readSecrets(r *reader, n *yaml.Node, key string) {
	for name, v := range pairs(n) {
		s := paddock.Secret{Name: name}
		source := ""
		for k, w := range pairs(v) {
			switch k {
			case "from":
				source = w.Value
			case "hosts":
				s.Hosts = listOf(w)
			case "places":
				for _, place := range listOf(w) {
					s.Places = append(s.Places, paddock.SecretPlace(place))
				}
			case "sigv4":
				s.SigV4 = w.Value
			}
		}
		if err := checkName(name); err != nil {
			r.add(v, key, fmt.Sprintf("%q: %v", clip(name), err), "")
			continue
		}
		r.f.Network.Secrets = append(r.f.Network.Secrets, s)
		r.f.sources = append(r.f.sources, source)
	}
}
