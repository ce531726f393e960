package policy

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestForwardedAgentsAreReadAndWrittenBack(t *testing.T) {
	f, err := Read("p", []byte("version: 1\nforward_agent: [ssh=SHA256:abc, \"ssh=me@work place\", gpg]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var spec paddock.Spec
	if err := f.Apply(&spec, Host{}); err != nil {
		t.Fatal(err)
	}
	want := []paddock.KeyAgent{{Kind: paddock.KeyAgentSSH, Keys: []string{"SHA256:abc", "me@work place"}}, {Kind: paddock.KeyAgentGPG}}
	if got := spec.Policy.KeyAgents; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	spec.Policy.KeyAgents = slices.Clone(spec.Policy.KeyAgents)
	spec.Policy.KeyAgents[0].Socket = "/tmp/agent" // which is the caller's, and in no file
	data, err := Format(spec)
	if err != nil || !strings.Contains(string(data), "forward_agent: ['ssh=SHA256:abc', ssh=me@work place, gpg]") {
		t.Errorf("%s, %v", data, err)
	}
	for _, list := range []string{"[ssh, ssh]", "[ssh, ssh=a]", "[ssh=a, ssh]", "[ssh=a, ssh=a]", "[ssh=]", "[docker]", "[\"ssh=a\\x01\"]", "ssh"} {
		if _, err := Read("p", []byte("version: 1\nforward_agent: "+list+"\n")); err == nil {
			t.Errorf("%s was accepted", list)
		}
	}
}
