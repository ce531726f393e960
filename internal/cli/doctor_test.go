package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
          cause of the last 2: forbidden\x1b[2J
          remedy: allow it
  full    seccomp                a filter
  weak    io-limit               half
          cause: old
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

// Every command that chooses a tier chooses the one that run would take.
func TestEveryCommandChoosesTheTierThatRunTakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte("version: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	strong := AsTier(&fake.Fake{About: fake.GoodInfo()}, paddock.MicroVM)
	strong.Weak = func() string { return "never tried" }
	tiers := []Tier{strong, {Name: paddock.GVisor}, AsTier(&fake.Fake{About: fake.GoodInfo()}, paddock.Jail)}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"doctor"}, "--tier auto is jail\n"},
		{[]string{"policy", "check", file}, "good, for tier jail\n"},
		{[]string{"policy", "check", "--tier", "microvm", file}, "good, for tier microvm\n"},
		{[]string{"run", "-v", "--", "sh", "-c", "true"}, "tier jail (microvm: never tried; gvisor: not in this version)"},
	} {
		v := invoke(dir, nil, tiers, row.args...)
		if code := v.Run(t.Context()); code != 0 || !strings.Contains(v.Stdout.String()+v.Stderr.String(), row.want) {
			t.Errorf("%v: exit status %d, %s%s", row.args, code, v.Stdout.String(), v.Stderr.String())
		}
	}
}

func TestDoctorOfOneTierDoesNotSayWhatAutoIs(t *testing.T) {
	tiers := []Tier{AsTier(&fake.Fake{About: fake.GoodInfo()}, paddock.GVisor), AsTier(&fake.Fake{About: fake.GoodInfo()}, paddock.Jail)}
	v := invoke("/", nil, tiers, "doctor", "--tier", "jail")
	if code := v.Run(t.Context()); code != 0 || strings.Contains(v.Stdout.String(), "auto") || !strings.HasSuffix(v.Stdout.String(), "\na sandbox can be made here with --tier jail\n") {
		t.Errorf("exit status %d, %s", code, v.Stdout.String())
	}
	v = invoke("/", nil, tiers, "doctor", "--tier", "jail", "--json")
	if code := v.Run(t.Context()); code != 0 || !strings.Contains(v.Stdout.String(), `"auto": ""`) {
		t.Errorf("exit status %d, %s", code, v.Stdout.String())
	}
}

func TestDoctorDoesNotTakeALateTrialForALackOfTheMachine(t *testing.T) {
	late := &fake.Fake{Unable: fmt.Errorf("a sandbox for trial was not ready in time: %w", paddock.Timeout)}
	for _, args := range [][]string{{"doctor"}, {"doctor", "--tier", "gvisor"}} {
		v := invoke("/", nil, []Tier{AsTier(late, paddock.GVisor), AsTier(&fake.Fake{About: fake.GoodInfo()}, paddock.Jail)}, args...)
		said := ""
		code := v.Run(t.Context())
		if said = v.Stdout.String(); code != 125 || strings.Contains(said, "no sandbox can be made") || strings.Contains(said, "auto is jail") {
			t.Errorf("%v: exit status %d, %s", args, code, said)
		}
		last := "\na sandbox can be made here with --tier jail; what --tier auto is, is not known: the trial of gvisor was not ready in time"
		if len(args) > 1 {
			last = "\nit is not known whether a sandbox can be made here"
		}
		for _, want := range []string{"gvisor: a sandbox for trial was not ready in time", last} {
			if !strings.Contains(strings.Join(strings.Fields(said), " "), strings.TrimSpace(want)) {
				t.Errorf("%v: does not say %q: %s", args, want, said)
			}
		}
	}
	// A stronger tier that can make one does not need the others.
	v := invoke("/", nil, []Tier{AsTier(&fake.Fake{About: fake.GoodInfo()}, paddock.GVisor), AsTier(late, paddock.Jail)}, "doctor")
	if code := v.Run(t.Context()); code != 0 || !strings.Contains(v.Stdout.String(), "--tier auto is gvisor") {
		t.Errorf("exit status %d, %s", code, v.Stdout.String())
	}
}

// The server has another jail than this machine, and no other tier.
type oneTier struct{ paddock.Driver }

func (o oneTier) Info(ctx context.Context, tier paddock.Tier) (paddock.Info, error) {
	if tier != paddock.Jail {
		return paddock.Info{}, fmt.Errorf("there is no tier %s: %w", tier, paddock.Unsupported)
	}
	info := fake.GoodInfo()
	info.Controls = append(info.Controls, paddock.Finding{Control: paddock.ControlIO, Strength: paddock.Weak, How: "of the server"})
	return info, nil
}

func TestDoctorLooksAtAServer(t *testing.T) {
	v := invoke("/", nil, []Tier{AsTier(&fake.Fake{About: fake.GoodInfo()}, paddock.GVisor), AsTier(&fake.Fake{About: fake.GoodInfo()}, paddock.Jail)}, "doctor", "--server", "unix:/x")
	v.App.Dial = func(_ context.Context, s Site) (paddock.Driver, error) {
		if s.Address != "unix:/x" {
			t.Errorf("dialled %+v", s)
		}
		return oneTier{lent{&fake.Fake{}}}, nil
	}
	if code := v.Run(t.Context()); code != 0 {
		t.Errorf("exit status %d, %s", code, v.Stderr.String())
	}
	for _, want := range []string{"gvisor: there is no tier gvisor", "of the server", "--tier auto is jail"} {
		if !strings.Contains(v.Stdout.String(), want) {
			t.Errorf("does not say %q: %s", want, v.Stdout.String())
		}
	}
}

func TestDoctorTellsWhereReviewAndMonitorCanBeHad(t *testing.T) {
	for want, c := range map[string]struct {
		tier paddock.Tier
		can  []paddock.Capability
	}{
		"  --review: refused\n  --monitor: refused\n": {paddock.Jail, nil}, // as a server tells it
		"  --review: can be had\n  --monitor: sees the command, connections, uses of secrets, changes of writable\n             directories; a pause about a connection stops every process\n": {
			paddock.Jail, []paddock.Capability{paddock.CanReview, paddock.CanMonitorNetwork, paddock.CanMonitorFiles, paddock.CanMonitorFreeze}},
		"  --review: can be had\n  --monitor: sees the command, changes of writable directories; a pause holds\n             changes and new connections\n": {
			paddock.GVisor, []paddock.Capability{paddock.CanReview, paddock.CanMonitorFiles}},
		"  --review: refused, because nothing of this machine changes\n  --monitor: sees the command, connections, uses of secrets; a pause holds new\n             connections\n": {
			paddock.Sim, []paddock.Capability{paddock.CanMonitorNetwork}},
	} {
		info := fake.GoodInfo()
		info.Tier, info.Capabilities = c.tier, c.can
		v := invoke("/", nil, []Tier{AsTier(&fake.Fake{About: info}, c.tier)}, "doctor", "--tier", string(c.tier))
		if v.Run(t.Context()); !strings.Contains(v.Stdout.String(), want) {
			t.Errorf("does not say:\n%s\nbut:\n%s", want, v.Stdout.String())
		}
	}
}
