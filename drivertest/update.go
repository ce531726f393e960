package drivertest

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func updatePromises() []group {
	return []group{{promises: []promise{
		{"labels are replaced, or kept where none are given", updateLabels},
		{"an update that is wrong changes nothing", updateInvalid},
	}}, {can: []paddock.Capability{paddock.CanUpdateLimits}, limits: []paddock.Control{paddock.ControlPIDs}, promises: []promise{
		{"limits are changed in the living sandbox", updateLimits},
	}}, {can: []paddock.Capability{paddock.CanUpdatePolicy, paddock.CanMount}, promises: []promise{
		{"a rule about files is changed in the living sandbox, or refused with all that comes with it", updatePolicy},
	}}}
}

func (b box) update(t testing.TB, u paddock.Update) {
	t.Helper()
	if err := b.Update(bounded(t), u); err != nil {
		t.Fatalf("update %+v: %v", u, err)
	}
}

func updateLabels(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Labels = map[string]string{"a": "1", "b": "2"} })
	b.update(t, paddock.Update{})
	labels := func() map[string]string {
		st, err := b.Status(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		return st.Labels
	}
	if got := labels(); len(got) != 2 || got["a"] != "1" {
		t.Errorf("an update of nothing left %v", got)
	}
	b.update(t, paddock.Update{Labels: map[string]string{"c": "3"}})
	if got := labels(); len(got) != 1 || got["c"] != "3" {
		t.Errorf("%v", got)
	}
	if s.info.Can(paddock.CanOutlive) {
		sb, err := s.fresh(t).Open(bounded(t), b.ID())
		if err != nil {
			t.Fatal(err)
		}
		if st, err := sb.Status(bounded(t)); err != nil || len(st.Labels) != 1 || st.Labels["c"] != "3" {
			t.Errorf("another driver sees %v, %v", st.Labels, err)
		}
	}
	b.update(t, paddock.Update{Labels: map[string]string{}})
	if got := labels(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func updateInvalid(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Labels = map[string]string{"a": "1"} })
	before, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	changed := map[string]string{"a": "changed"}
	for what, u := range map[string]paddock.Update{
		"negative memory":  {Limits: &paddock.Limits{Memory: -1}, Labels: changed},
		"negative PIDs":    {Limits: &paddock.Limits{PIDs: -1}, Labels: changed},
		"relative pattern": {Policy: &paddock.Policy{Files: paddock.FilePolicy{DenyRead: []string{"x"}}}, Labels: changed},
		"unknown network":  {Policy: &paddock.Policy{Network: paddock.NetworkPolicy{Mode: "nonsense"}}, Labels: changed},
	} {
		wantKind(t, what, b.Update(bounded(t), u), paddock.Invalid, paddock.Unsupported)
	}
	after, err := b.Status(bounded(t))
	if err != nil || after.Labels["a"] != "1" || after.Limits != before.Limits {
		t.Errorf("before %+v, after %+v, %v", before, after, err)
	}
}

func updateLimits(t *testing.T, s *suite) {
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits.PIDs = 200 })
	before, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	want := before.Limits
	want.PIDs = 60
	b.update(t, paddock.Update{Limits: &want})
	st, err := b.Status(bounded(t))
	if err != nil || st.Limits != want {
		t.Errorf("%+v, %v", st.Limits, err)
	}
	want.PIDs = 70
	b.update(t, paddock.Update{Limits: &paddock.Limits{PIDs: 70}})
	if st, err := b.Status(bounded(t)); err != nil || st.Limits != want {
		t.Errorf("limits of zero changed: %+v, %v, and it should be %+v", st.Limits, err, want)
	}
	r := b.sh(t, "i=0; while [ $i -lt 150 ]; do sleep 1000 & i=$((i+1)); done; kill $(jobs -p)")
	if r.exit.Code == 0 {
		t.Errorf("150 processes were made under the new limit: %+v", r.exit)
	}
}

func updatePolicy(t *testing.T, s *suite) {
	dir := hostTree(t, map[string]string{"secret": "TOPSECRET"})
	b := s.mounted(t, paddock.Mount{Source: dir, Target: "/mnt/desk"})
	b.must(t, "cat secret")
	err := b.Update(bounded(t), paddock.Update{
		Policy: &paddock.Policy{Files: paddock.FilePolicy{DenyRead: []string{"/mnt/desk/secret"}}}, Labels: map[string]string{"changed": "yes"},
	})
	if err != nil {
		wantKind(t, "a rule about files", err, paddock.Unsupported)
		b.must(t, "cat secret")
		if st, err := b.Status(bounded(t)); err != nil || len(st.Labels) > 0 {
			t.Errorf("a part of it was done: %v, %v", st.Labels, err)
		}
		return
	}
	if r := b.sh(t, "cat secret"); r.exit.Code == 0 || strings.Contains(r.out, "TOPSECRET") {
		t.Errorf("%+v", r)
	}
}
