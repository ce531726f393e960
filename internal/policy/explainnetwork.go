package policy

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// asked is what a question about the network is about.
type asked struct {
	flow    decide.Flow
	request *decide.Request // nil: no URL of HTTP was given
}

// parseAsked reads a destination or a URL.
func parseAsked(q Question) (asked, error) {
	host, port, err := decide.ParseDestination(q.Object)
	if err != nil {
		return asked{}, err
	}
	a := asked{flow: decide.Flow{Host: host, Port: port}}
	if !strings.Contains(q.Object, "://") {
		return a, nil
	}
	u, err := url.Parse(q.Object)
	if err != nil {
		return asked{}, fmt.Errorf("%q is no URL: %w", clip(q.Object), paddock.Invalid)
	}
	switch u.Scheme {
	case "udp":
		a.flow.UDP = true
	case "http", "https":
		a.request = &decide.Request{Scheme: u.Scheme, Method: q.Method, Path: u.EscapedPath(), RawQuery: u.RawQuery}
		if a.request.Method == "" {
			a.request.Method = "GET"
		}
		if a.request.Path == "" {
			a.request.Path = "/"
		}
		if err := decide.CheckRule(paddock.NetworkRule{Host: "*", Methods: []string{a.request.Method}}); err != nil {
			return asked{}, err
		}
	}
	return a, nil
}

func (e *explainer) connect(q Question) (Answer, error) {
	a, err := parseAsked(q)
	if err != nil {
		return Answer{}, err
	}
	n := e.spec.Policy.Network
	answer := Answer{Change: allowing(a.flow)}
	if addr, ok := a.flow.Host.Addr(); a.flow.Host.String() == "localhost" || (ok && addr.IsLoopback()) {
		answer.Notes = append(answer.Notes, "inside, this is the sandbox itself, which can always be reached; ports of this machine's loopback are asked about by "+paddock.LoopbackHost)
	}
	if a.flow.Host.Loopback() {
		answer.Notes = append(answer.Notes, "inside, this name stands for the loopback of this machine, 127.0.0.1 and ::1; only a rule that names it and the port allows it")
		if a.flow.UDP {
			answer.Change = "nothing: datagrams do not reach the loopback of this machine"
		}
	}
	switch n.Mode {
	case paddock.NetworkNone:
		answer.Rule, answer.Where = "the network mode is none: there is no way out", e.whereIs("network.mode")
		return answer, nil
	case paddock.NetworkHost:
		answer.Allowed, answer.Rule, answer.Where, answer.Change = true, "the network mode is host: no control at all", e.whereIs("network.mode"), "leave out the mode host"
		return answer, nil
	}
	rules, err := decide.Compile(unknown(n))
	if err != nil {
		return Answer{}, err
	}
	v := rules.Flow(a.flow)
	if v.Allow && v.Look {
		e.look(rules, a, &answer)
		if a.request != nil {
			v = rules.Request(a.flow, *a.request)
		}
	} else if v.Allow && !a.flow.UDP {
		answer.Notes = append(answer.Notes, fmt.Sprintf("TLS is carried as it is: nothing looks into it, and the name that it asks for has to be %s", a.flow.Host))
	}
	e.decide(v, &answer)
	return answer, nil
}

// look tells what is done in a flow that is looked into.
func (e *explainer) look(rules *decide.Rules, a asked, answer *Answer) {
	answer.Inspected = true
	if a.request == nil {
		answer.Notes = append(answer.Notes, "which requests may pass depends on what they are: ask about a URL, with --method where it is not GET")
		return
	}
	secrets := rules.SecretsFor(a.flow.Host, a.flow.Port)
	if len(secrets) > 0 && a.request.Scheme == "http" {
		answer.Notes = append(answer.Notes, "no secret is put into what is sent without TLS")
		return
	}
	for _, s := range secrets {
		answer.Secrets = append(answer.Secrets, s.Name)
	}
}

// decide says which rule decided.
func (e *explainer) decide(v decide.Verdict, answer *Answer) {
	answer.Allowed = v.Allow
	if v.Rule < 0 {
		answer.Rule, answer.Where = v.Reason, e.whereIs("network.rules")
		answer.Secrets = nil
		if answer.Inspected && v.Hint != "" { // about a request
			answer.Change = v.Hint
		}
		return
	}
	key, where := e.ruleAt(v.Rule, v.Allow)
	answer.Rule, answer.Where = key+strings.TrimPrefix(v.Reason, index("rules", v.Rule)), where
	answer.Change = "take the rule away"
	if !v.Allow {
		answer.Secrets = nil
		answer.Change += "; a deny wins over every allow"
	}
}

// ruleAt names a rule, and gives its place. The file's come first; flags add
// theirs behind.
func (e *explainer) ruleAt(i int, allow bool) (name, where string) {
	all := e.spec.Policy.Network.Rules
	if e.file != nil {
		own := e.file.Network.Rules
		if i < len(own) && len(own) <= len(all) && reflect.DeepEqual(own, all[:len(own)]) {
			return e.file.ruleKey(i), e.file.Where(e.file.ruleKey(i))
		}
	}
	if allow {
		return "--allow", ""
	}
	return "--deny", ""
}

// allowing says how a destination is allowed.
func allowing(f decide.Flow) string {
	to := f
	to.UDP = false
	if f.UDP {
		return fmt.Sprintf("in the policy file: network: {mode: list, rules: [{allow: %q, udp: true}]}", to)
	}
	return fmt.Sprintf("--allow %s, or in the policy file: network: {mode: list, rules: [{allow: %q}]}", to, to)
}
