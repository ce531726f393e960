package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
)

func TestDoctorTellsEachControlAndARemedyOnce(t *testing.T) {
	sick := &fake.Fake{About: paddock.Info{Tier: paddock.Jail, Version: "Linux 0", Controls: []paddock.Finding{
		{Control: paddock.ControlUserNS, Strength: paddock.Absent, Cause: "forbidden\x1b[2J", Remedy: "allow it"},
		{Control: paddock.ControlMountNS, Strength: paddock.Absent, Cause: "forbidden\x1b[2J", Remedy: "allow it"},
		{Control: paddock.ControlSeccomp, Strength: paddock.Full, How: "a filter"},
		{Control: paddock.ControlIO, Strength: paddock.Weak, How: "half", Cause: "old"},
	}}}
	v := invoke("/", nil, []Tier{{Name: paddock.GVisor, About: "a second kernel"}, AsTier(sick, paddock.Jail)}, "doctor")
	if code := v.Run(t.Context()); code != 1 {
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
	if v.Stdout.String() != want {
		t.Errorf("said:\n%s\nwant:\n%s", v.Stdout.String(), want)
	}
}

func TestDoctorAnswersMachines(t *testing.T) {
	f := &fake.Fake{About: fake.GoodInfo()}
	v := invoke("/", nil, []Tier{{Name: paddock.GVisor}, AsTier(f, paddock.Jail)}, "doctor", "--json")
	if code := v.Run(t.Context()); code != 0 {
		t.Errorf("exit status %d", code)
	}
	var got checkup
	if err := json.Unmarshal([]byte(v.Stdout.String()), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != 1 || got.Strongest != paddock.Jail || len(got.Tiers) != 2 || got.Tiers[0].Available || !got.Tiers[1].Available || got.Tiers[1].Info == nil {
		t.Errorf("got %s", v.Stdout.String())
	}
	if !strings.Contains(v.Stdout.String(), `"cause": "not in this version"`) {
		t.Errorf("does not say why gvisor is not there: %s", v.Stdout.String())
	}
}
