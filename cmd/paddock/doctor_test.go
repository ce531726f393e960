package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestDoctorTellsEachControlAndARemedyOnce(t *testing.T) {
	sick := &fake{info: paddock.Info{Tier: paddock.Jail, Version: "Linux 0", Controls: []paddock.Finding{
		{Control: paddock.ControlUserNS, Strength: paddock.Absent, Cause: "forbidden\x1b[2J", Remedy: "allow it"},
		{Control: paddock.ControlMountNS, Strength: paddock.Absent, Cause: "forbidden\x1b[2J", Remedy: "allow it"},
		{Control: paddock.ControlSeccomp, Strength: paddock.Full, How: "a filter"},
		{Control: paddock.ControlIO, Strength: paddock.Weak, How: "half", Cause: "old"},
	}}}
	v := invoke("/", nil, []tier{{name: paddock.GVisor, about: "a second kernel"}, sick.tier(paddock.Jail)}, "doctor")
	if code := v.run(t.Context()); code != 1 {
		t.Errorf("exit status %d, want 1 where no sandbox can be made", code)
	}
	want := `gvisor: not in this version
  a second kernel

jail: not available
  a fake (Linux 0)
  absent  user-namespace
  absent  mount-namespace
          cause:  forbidden\x1b[2J
          remedy: allow it
  full    seccomp                a filter
  weak    io-limit               half
          cause:  old
  default limits: none

no sandbox can be made here
`
	if v.stdout.String() != want {
		t.Errorf("said:\n%s\nwant:\n%s", v.stdout.String(), want)
	}
}

func TestDoctorAnswersMachines(t *testing.T) {
	f := &fake{info: goodInfo()}
	v := invoke("/", nil, []tier{{name: paddock.GVisor}, f.tier(paddock.Jail)}, "doctor", "--json")
	if code := v.run(t.Context()); code != 0 {
		t.Errorf("exit status %d", code)
	}
	var got checkup
	if err := json.Unmarshal([]byte(v.stdout.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != 1 || got.Strongest != paddock.Jail || len(got.Tiers) != 2 || got.Tiers[0].Available || !got.Tiers[1].Available || got.Tiers[1].Info == nil {
		t.Errorf("got %s", v.stdout.String())
	}
	if !strings.Contains(v.stdout.String(), `"cause": "not in this version"`) {
		t.Errorf("does not say why gvisor is not there: %s", v.stdout.String())
	}
}
