package cli

import (
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestRulesGoThroughTheProxyOfTheEnvironment(t *testing.T) {
	const proxy = "http://user:word@proxy.corp.test:3128"
	for what, tc := range map[string]struct {
		env  map[string]string
		rule paddock.NetworkRule
		want string
	}{
		"a host":                       {map[string]string{"HTTPS_PROXY": proxy}, paddock.NetworkRule{Host: "example.com"}, proxy},
		"in lower case, with a path":   {map[string]string{"https_proxy": proxy + "/"}, paddock.NetworkRule{Host: "example.com"}, proxy},
		"without a scheme":             {map[string]string{"HTTPS_PROXY": "proxy.corp.test:3128"}, paddock.NetworkRule{Host: "example.com"}, "http://proxy.corp.test:3128"},
		"of all schemes":               {map[string]string{"ALL_PROXY": "socks5h://proxy.corp.test:1080"}, paddock.NetworkRule{Host: "*"}, "socks5://proxy.corp.test:1080"},
		"of HTTP only":                 {map[string]string{"HTTP_PROXY": proxy}, paddock.NetworkRule{Host: "example.com"}, ""},
		"of a scheme that rules lack":  {map[string]string{"HTTPS_PROXY": "quic://proxy.corp.test"}, paddock.NetworkRule{Host: "example.com"}, ""},
		"none":                         {nil, paddock.NetworkRule{Host: "example.com"}, ""},
		"another in the rule":          {map[string]string{"HTTPS_PROXY": proxy}, paddock.NetworkRule{Host: "example.com", Proxy: "http://other.test:1"}, "http://other.test:1"},
		"a denied host":                {map[string]string{"HTTPS_PROXY": proxy}, paddock.NetworkRule{Host: "example.com", Deny: true}, ""},
		"datagrams":                    {map[string]string{"HTTPS_PROXY": proxy}, paddock.NetworkRule{Host: "example.com", UDP: true}, ""},
		"this machine":                 {map[string]string{"HTTPS_PROXY": proxy}, paddock.NetworkRule{Host: "127.0.0.0/8"}, ""},
		"this machine by name":         {map[string]string{"HTTPS_PROXY": proxy}, paddock.NetworkRule{Host: "localhost"}, ""},
		"a direct host":                {map[string]string{"HTTPS_PROXY": proxy, "NO_PROXY": "other.test, Example.com"}, paddock.NetworkRule{Host: "example.com"}, ""},
		"below a direct host":          {map[string]string{"HTTPS_PROXY": proxy, "no_proxy": ".example.com"}, paddock.NetworkRule{Host: "*.a.example.com"}, ""},
		"beside a direct host":         {map[string]string{"HTTPS_PROXY": proxy, "NO_PROXY": "example.com"}, paddock.NetworkRule{Host: "anexample.com"}, proxy},
		"in a direct range":            {map[string]string{"HTTPS_PROXY": proxy, "NO_PROXY": "10.0.0.0/8"}, paddock.NetworkRule{Host: "10.1.2.0/24"}, ""},
		"wider than a direct range":    {map[string]string{"HTTPS_PROXY": proxy, "NO_PROXY": "10.1.0.0/16"}, paddock.NetworkRule{Host: "10.0.0.0/8"}, proxy},
		"a direct address":             {map[string]string{"HTTPS_PROXY": proxy, "NO_PROXY": "10.1.2.3"}, paddock.NetworkRule{Host: "10.1.2.3"}, ""},
		"everything is reached direct": {map[string]string{"HTTPS_PROXY": proxy, "NO_PROXY": "*"}, paddock.NetworkRule{Host: "example.com"}, ""},
	} {
		p := &plan{spec: paddock.Spec{Policy: paddock.Policy{Network: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{tc.rule}}}}}
		told := p.throughProxy(func(name string) (string, bool) { v, ok := tc.env[name]; return v, ok })
		if got := p.spec.Policy.Network.Rules[0].Proxy; got != tc.want {
			t.Errorf("%s: %q, and not %q", what, got, tc.want)
		}
		if changed := tc.want != tc.rule.Proxy; (told != "") != changed || told == proxy {
			t.Errorf("%s: it tells %q", what, told)
		}
	}
	p := &plan{}
	if told := p.throughProxy(func(string) (string, bool) { return proxy, true }); told != "" || p.spec.Policy.Network.Rules != nil {
		t.Errorf("without a network: %q", told)
	}
}
