package drivertest

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func statusPromises() []group {
	return []group{{promises: []promise{
		{"Status tells state, tier, user, directory and labels", tellsStatus},
		{"every limit has a default, and none is 'no limit'", defaultLimits},
		{"asked limits are told as asked", askedLimits},
		{"every control is listed as enforced, none is absent unless that was accepted by name", listsEnforced},
		{"usage is measured, and grows", usageGrows},
		{"Info answers for the driver's own tier and for auto, and refuses a tier that does not exist", infoOfTier},
		{"Born is the status at creation, and a sandbox that was opened has none", bornAsCreated},
	}}}
}

func tellsStatus(t *testing.T, s *suite) {
	start := time.Now().Add(-time.Second)
	labels := map[string]string{"owner": "drivertest", "odd": "a b\nc"}
	b := s.own(t, func(spec *paddock.Spec) { spec.Labels = labels })
	st, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if st.ID != b.ID() || st.Tier != s.info.Tier || st.State != paddock.Ready || st.Reason != "" || st.User == "" ||
		st.Dir == "" || st.Dir[0] != '/' || st.Labels["owner"] != "drivertest" || st.Labels["odd"] != "a b\nc" || len(st.Labels) != 2 ||
		st.Created.Before(start) || st.Created.After(time.Now().Add(time.Second)) {
		t.Errorf("%+v", st)
	}
	labels["owner"] = "changed by the caller afterwards"
	if st, err := b.Status(bounded(t)); err != nil || st.Labels["owner"] != "drivertest" {
		t.Errorf("the caller's map is the sandbox's: %v, %v", st.Labels, err)
	}
}

func infoOfTier(t *testing.T, s *suite) {
	for _, tier := range []paddock.Tier{paddock.Auto, s.info.Tier} {
		info, err := s.driver.Info(bounded(t), tier)
		if err != nil || info.Tier != s.info.Tier || info.Available != s.info.Available {
			t.Errorf("Info of tier %q: tier %q, available %v, %v", tier, info.Tier, info.Available, err)
		}
	}
	info, err := s.driver.Info(bounded(t), "no-such-tier")
	wantKind(t, "Info of a tier that does not exist", err, paddock.Unsupported)
	if info.Available || len(info.Capabilities) > 0 {
		t.Errorf("Info of a tier that does not exist claims %+v", info)
	}
}

func bornAsCreated(t *testing.T, s *suite) {
	labels := map[string]string{"owner": "drivertest"}
	b := s.own(t, func(spec *paddock.Spec) { spec.Labels = labels })
	want, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := b.Born(); ok {
		if st.ID != want.ID || st.Tier != want.Tier || st.State != paddock.Ready || st.User != want.User || st.Dir != want.Dir ||
			st.Limits != want.Limits || !st.Created.Equal(want.Created) || !maps.Equal(st.Labels, labels) || len(st.Enforced) != len(want.Enforced) {
			t.Errorf("Born is %+v, and Status %+v", st, want)
		}
		st.Labels["owner"] = "changed by the caller"
		if again, _ := b.Born(); again.Labels["owner"] != "drivertest" {
			t.Error("Born gives its own map away")
		}
	}
	opened, err := s.driver.Open(bounded(t), b.ID())
	if err != nil {
		t.Fatal(err)
	}
	if st, ok := opened.Born(); ok {
		t.Errorf("a sandbox that was opened has a status at creation: %+v", st)
	}
}

func defaultLimits(t *testing.T, s *suite) {
	b := s.own(t)
	st, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	want := s.info.Defaults
	for _, l := range []struct {
		c             paddock.Control
		got, fallback float64
		asked         bool
	}{
		{paddock.ControlMemory, float64(st.Limits.Memory), float64(want.Memory), s.h.Base.Limits.Memory != 0},
		{paddock.ControlCPU, st.Limits.CPUs, want.CPUs, s.h.Base.Limits.CPUs != 0},
		{paddock.ControlPIDs, float64(st.Limits.PIDs), float64(want.PIDs), s.h.Base.Limits.PIDs != 0},
		{paddock.ControlDisk, float64(st.Limits.Disk), float64(want.Disk), s.h.Base.Limits.Disk != 0},
		{paddock.ControlFiles, float64(st.Limits.Files), float64(want.Files), s.h.Base.Limits.Files != 0},
	} {
		if !s.enforces(l.c) {
			continue // refused if it is asked for
		}
		if l.got <= 0 || !l.asked && l.got != l.fallback {
			t.Errorf("%s is %v, Info's default is %v", l.c, l.got, l.fallback)
		}
	}
}

// limits has, for each control of a limit, a function that sets the limit.
func limits() map[paddock.Control]func(l *paddock.Limits, ask bool) {
	return map[paddock.Control]func(l *paddock.Limits, ask bool){
		paddock.ControlMemory: func(l *paddock.Limits, ask bool) { l.Memory = pick(ask, int64(300<<20)) },
		paddock.ControlCPU:    func(l *paddock.Limits, ask bool) { l.CPUs = pick(ask, 0.5) },
		paddock.ControlPIDs:   func(l *paddock.Limits, ask bool) { l.PIDs = pick(ask, 99) },
		paddock.ControlDisk:   func(l *paddock.Limits, ask bool) { l.Disk = pick(ask, int64(99<<20)) },
		paddock.ControlFiles:  func(l *paddock.Limits, ask bool) { l.Files = pick(ask, 299) },
		paddock.ControlIO:     func(l *paddock.Limits, ask bool) { l.IO = pick(ask, int64(99<<20)) },
	}
}

func askedLimits(t *testing.T, s *suite) {
	full := limits()
	want := paddock.Limits{Lifetime: time.Hour}
	for c, set := range full {
		set(&want, s.askable(c))
	}
	b := s.own(t, func(spec *paddock.Spec) { spec.Limits = want })
	st, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	got := st.Limits
	for c, set := range full {
		if !s.askable(c) {
			set(&got, false) // ignore the default
		}
	}
	if got != want {
		t.Errorf("told %+v, asked %+v", got, want)
	}
}

// askable reports whether a spec may set a limit without AllowMissing.
func (s *suite) askable(c paddock.Control) bool {
	f, ok := s.info.Finding(c)
	return ok && (f.Strength == paddock.Full || f.Strength == paddock.Weak && slices.Contains(s.h.Base.AllowMissing, c))
}

func pick[T any](ask bool, value T) T {
	if ask {
		return value
	}
	var none T
	return none
}

func listsEnforced(t *testing.T, s *suite) {
	b := s.own(t)
	st, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.info.Controls {
		if !slices.ContainsFunc(st.Enforced, func(g paddock.Finding) bool { return g.Control == f.Control }) {
			t.Errorf("%s is a control of the tier, and Status does not tell of it", f.Control)
		}
	}
	for i, f := range st.Enforced {
		checkFinding(t, f)
		if f.Strength == paddock.Absent && !slices.Contains(s.h.Base.AllowMissing, f.Control) {
			t.Errorf("%s is absent, and nobody accepted that", f.Control)
		}
		if slices.ContainsFunc(st.Enforced[:i], func(g paddock.Finding) bool { return g.Control == f.Control }) {
			t.Errorf("%s is there twice", f.Control)
		}
	}
}

func usageGrows(t *testing.T, s *suite) {
	b := s.own(t)
	first, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	b.must(t, "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
	p := b.start(t, b.shell("x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo ${#x} > made; exec sleep 1000 \"${x%${x#?}}\""))
	_ = p
	until(t, "usage grows", func() bool {
		st, err := b.Status(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		u, v := first.Usage, st.Usage
		grown := v.Wall > u.Wall && (v.CPU > u.CPU || v.CPU == -1) &&
			(v.MemoryPeak > u.MemoryPeak || v.MemoryPeak == -1) && (v.PIDs > 0 || v.PIDs == -1) && (v.Memory > 0 || v.Memory == -1)
		if !grown {
			t.Logf("%+v, at first %+v", v, u)
		}
		return grown
	})
	u, err := b.Status(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	for c, measured := range map[paddock.Control]bool{
		paddock.ControlMemory: u.Usage.Memory >= 0 && u.Usage.MemoryPeak >= 0,
		paddock.ControlCPU:    u.Usage.CPU >= 0,
		paddock.ControlPIDs:   u.Usage.PIDs >= 0,
	} {
		if s.enforces(c) && !measured {
			t.Errorf("%s is enforced and not measured: %+v", c, u.Usage)
		}
	}
	kill(t, p)
}
