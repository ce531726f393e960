package box

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/step"
)

func TestAStepHasWhatWasSeenWhileItWentOn(t *testing.T) {
	var s sightings
	flow := func(protocol, host string, port uint16, verdict, reason string, secrets ...string) {
		s.Record(audit.Event{Kind: audit.Network, Network: &audit.Flow{Protocol: protocol, Host: host, Port: port, Verdict: verdict, Reason: reason, Secrets: secrets}})
	}
	flow("tcp", "before.example", 443, "allow", "")
	was := []paddock.Refusal{{What: "write", Target: "/w/early", Rule: "r"}}
	first := s.begin(was)
	flow("dns", "one.example", 0, "allow", "")
	flow("tcp", "one.example", 443, "allow", "", "TOKEN")
	flow("http", "one.example", 443, "allow", "", "TOKEN")
	second := s.begin(slices.Concat(was, []paddock.Refusal{{What: "write", Target: "/w/first", Rule: "r"}}))
	flow("tcp", "two.example", 22, "deny", "no rule allows it")
	s.Record(audit.Event{Kind: audit.KeyAgent, KeyUse: &audit.KeyUse{Agent: "ssh", Request: "sign", Key: "SHA256:x", Verdict: "deny", Reason: "not listed"}})
	s.Record(audit.Event{Kind: audit.KeyAgent, KeyUse: &audit.KeyUse{Agent: "ssh", Request: "sign", Key: "SHA256:y", Verdict: "allow"}})
	all := slices.Concat(was, []paddock.Refusal{{What: "write", Target: "/w/first", Rule: "r"}, {What: "rename", Target: "/w/second", Rule: "r"}})
	network := []step.Refusal{{Path: "two.example:22", Operation: "tcp", Why: "no rule allows it"}, {Path: "SHA256:x", Operation: "ssh-agent sign", Why: "not listed"}}
	inBox := []step.Refusal{{Path: "/w/first", Operation: "write", Why: "r"}, {Path: "/w/second", Operation: "rename", Why: "r"}}

	var out step.Outcome
	s.end(first, all, &out)
	if want := (step.Outcome{Hosts: []string{"one.example:443"}, Secrets: []string{"TOKEN"}, Refused: slices.Concat(network, inBox)}); !reflect.DeepEqual(out, want) {
		t.Errorf("the first step: %+v", out)
	}
	flow("udp", "three.example", 53, "allow", "")
	s.end(second, all, &out)
	if want := (step.Outcome{Hosts: []string{"three.example:53"}, Refused: slices.Concat(network, inBox[1:])}); !reflect.DeepEqual(out, want) {
		t.Errorf("the second step: %+v", out)
	}
	third := s.begin(all)
	s.end(third, was, &out) // of the box that was resumed
	if !reflect.DeepEqual(out, step.Outcome{Refused: []step.Refusal{{Path: "/w/early", Operation: "write", Why: "r"}}}) {
		t.Errorf("the third step: %+v", out)
	}
}

func TestWhatIsSeenOfAStepIsBounded(t *testing.T) {
	var s sightings
	x := s.begin(nil)
	for i := range 3 * maxSighted {
		s.Record(audit.Event{Kind: audit.Network, Network: &audit.Flow{Protocol: "tcp", Host: fmt.Sprint("h", i), Verdict: "allow"}})
	}
	var out step.Outcome
	s.end(x, nil, &out)
	if len(out.Hosts) != maxSighted {
		t.Errorf("%d hosts", len(out.Hosts))
	}
}
