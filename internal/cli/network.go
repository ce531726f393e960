package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// network adds --allow, --deny and --secret to the rules of the file, and
// checks that all of them make sense together.
func (f *specFlags) network(p *plan) error {
	n := &p.spec.Policy.Network
	if len(f.allow)+len(f.deny)+len(f.secret) == 0 {
		return nil
	}
	if err := f.wholeNetwork(n.Mode); err != nil {
		return err
	}
	n.Mode = paddock.NetworkList
	n.Rules, n.Secrets = slices.Clone(n.Rules), slices.Clone(n.Secrets)
	for _, list := range []struct {
		flag   string
		values []string
		deny   bool
	}{{"allow", f.allow, false}, {"deny", f.deny, true}} {
		for _, text := range list.values {
			rules, err := destinations(text, list.deny, p.file)
			if err != nil {
				return WithHint(fmt.Errorf("--%s %s: %w", list.flag, text, err),
					"write a name, \"*.example.com\", an address, a range, or group:NAME, each with or without :PORT, or host:PORT for a port of this machine's loopback; rules about requests stand in a policy file")
			}
			n.Rules = append(n.Rules, rules...)
		}
	}
	given := map[string]bool{}
	for _, text := range f.secret {
		s, err := f.parseSecret(text, p.host)
		if err != nil {
			return err
		}
		if given[s.Name] {
			return WithHint(fmt.Errorf("--secret %s is given twice: %w", OneLine(s.Name), paddock.Invalid), "name all its hosts at once, with commas between them")
		}
		given[s.Name] = true
		if i := slices.IndexFunc(n.Secrets, func(other paddock.Secret) bool { return other.Name == s.Name }); i >= 0 {
			n.Secrets = slices.Delete(n.Secrets, i, i+1) // the flag wins over the file
		}
		n.Secrets = append(n.Secrets, s)
	}
	return checkNetwork(*n, f.look)
}

// wholeNetwork refuses flags that narrow what a mode or a file leaves open.
func (f *specFlags) wholeNetwork(mode paddock.NetworkMode) error {
	if mode != paddock.NetworkHost {
		return nil
	}
	flag := "--secret"
	switch {
	case len(f.allow) > 0:
		flag = "--allow"
	case len(f.deny) > 0:
		flag = "--deny"
	}
	source := "--mode " + f.mode
	if f.mode == "" {
		source = "the policy file's network mode host"
	}
	return WithHint(fmt.Errorf("%s beside %s, which is the whole network of this machine without any control: %w", flag, source, paddock.Invalid),
		"leave one of the two out; for all hosts, and a deny or a secret that counts: --allow '*'")
}

// destinations reads the value of --allow or --deny: several have commas
// between them.
func destinations(text string, deny bool, file *policy.File) ([]paddock.NetworkRule, error) {
	var all []paddock.NetworkRule
	for one := range strings.SplitSeq(text, ",") {
		rules, err := policy.Rules(strings.TrimSpace(one), deny, file)
		if err != nil {
			return nil, err
		}
		all = append(all, rules...)
	}
	return all, nil
}

const secretForm = "NAME=env:VAR@HOST[,HOST…] or NAME=file:/path@HOST[,HOST…]"

// parseSecret reads the value of --secret. What it refuses it does not repeat
// but for the name, because it may hold the secret itself.
func (f *specFlags) parseSecret(text string, o policy.Host) (paddock.Secret, error) {
	name, rest, ok := strings.Cut(text, "=")
	if !ok {
		return paddock.Secret{}, WithHint(fmt.Errorf("--secret: there is no \"=\" in it: %w", paddock.Invalid), "write "+secretForm)
	}
	s := paddock.Secret{Name: name}
	if !strings.HasPrefix(rest, "env:") && !strings.HasPrefix(rest, "file:") {
		return s, WithHint(fmt.Errorf("--secret %s: a value cannot be given here: everybody on this machine can read command lines: %w", OneLine(name), paddock.Invalid),
			"put it into a variable or a file, and write "+secretForm)
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 || at == len(rest)-1 {
		return s, WithHint(fmt.Errorf("--secret %s: it says no host that gets it: %w", OneLine(name), paddock.Invalid), "write "+secretForm)
	}
	for host := range strings.SplitSeq(rest[at+1:], ",") {
		s.Hosts = append(s.Hosts, strings.TrimSpace(host))
	}
	from := rest[:at]
	if path, ok := strings.CutPrefix(from, "file:"); ok && path != "" && !strings.HasPrefix(path, "~") {
		from = "file:" + Absolute(path, o.Dir)
	}
	if f.look {
		if err := policy.CheckSource(from); err != nil {
			return s, WithHint(fmt.Errorf("--secret %s: %w", OneLine(name), err), "write "+secretForm)
		}
		return s, nil
	}
	value, err := policy.Value(from, o)
	if errors.Is(err, paddock.NotFound) {
		return s, WithHint(fmt.Errorf("--secret %s: %w", OneLine(name), err), "what follows env: is a variable that is exported here, and what follows file: a path")
	}
	if err != nil {
		return s, WithHint(fmt.Errorf("--secret %s: %w", OneLine(name), err), "write "+secretForm)
	}
	s.Value = value
	return s, nil
}

// checkNetwork tells what is wrong with flags and file together.
func checkNetwork(n paddock.NetworkPolicy, look bool) error {
	if look {
		n.Secrets = slices.Clone(n.Secrets)
		for i := range n.Secrets {
			n.Secrets[i].Value = "unknown"
		}
	}
	if _, err := decide.Compile(n); err != nil {
		return WithHint(fmt.Errorf("network: %w", err), "see docs/reference/policy.md")
	}
	return nil
}
