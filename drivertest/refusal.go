package drivertest

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func refusalPromises() []group {
	return []group{{promises: []promise{
		{"what Info does not claim is refused as unsupported, and Create refuses a spec that asks for it", refusesUnclaimed},
		{"a control that is absent is refused until the caller accepts it by name, with cause and remedy", refusesAbsent},
		{"a limit whose control the tier does not have is refused", refusesLimits},
		{"Info claims nothing that it does not know", infoSane},
	}}}
}

// refusals has, for each capability, a call that uses it.
func refusals(t *testing.T, s *suite) map[paddock.Capability]func(ctx context.Context, b box) error {
	create := func(change func(*paddock.Spec)) func(context.Context, box) error {
		return func(ctx context.Context, _ box) error {
			sb, err := s.driver.Create(ctx, s.spec(change))
			if err == nil {
				s.removeAfter(t, sb)
			}
			return err
		}
	}
	return map[paddock.Capability]func(ctx context.Context, b box) error{
		paddock.CanTerminal: func(ctx context.Context, b box) error {
			p, err := b.Start(ctx, paddock.Cmd{Args: []string{"true"}, Terminal: &paddock.Size{Rows: 24, Cols: 80}})
			if err == nil {
				p.Release()
			}
			return err
		},
		paddock.CanAttach: func(ctx context.Context, b box) error {
			p, err := b.Start(ctx, b.shell("exec sleep 1000"))
			if err != nil {
				return err
			}
			defer func() { _ = p.Signal(ctx, syscall.SIGKILL); p.Release() }()
			again, err := b.Attach(ctx, p.ID(), paddock.Output{})
			if err == nil {
				again.Release()
			}
			return err
		},
		paddock.CanWatch: func(ctx context.Context, b box) error {
			w, err := b.FS().Watch(ctx, b.dir, paddock.WatchOptions{})
			if err == nil {
				err = w.Close()
			}
			return err
		},
		paddock.CanDial: func(ctx context.Context, b box) error {
			conn, err := b.Dial(ctx, 80)
			if err == nil {
				err = conn.Close()
			}
			return err
		},
		paddock.CanPause: func(ctx context.Context, b box) error { return b.Pause(ctx) },
		paddock.CanSnapshotFiles: func(ctx context.Context, b box) error {
			_, err := b.Snapshot(ctx, paddock.SnapshotOptions{})
			return err
		},
		paddock.CanSnapshotMemory: func(ctx context.Context, b box) error {
			_, err := b.Snapshot(ctx, paddock.SnapshotOptions{Memory: true})
			return err
		},
		paddock.CanUpdateLimits: func(ctx context.Context, b box) error {
			return b.Update(ctx, paddock.Update{
				Limits: &paddock.Limits{PIDs: 77}, Labels: map[string]string{"unsupported": "must not stick"},
			})
		},
		paddock.CanUpdatePolicy: func(ctx context.Context, b box) error {
			return b.Update(ctx, paddock.Update{
				Policy: &paddock.Policy{Files: paddock.FilePolicy{DenyRead: []string{"/etc/hostname"}}},
				Labels: map[string]string{"unsupported": "must not stick"},
			})
		},
		paddock.CanUsers: func(ctx context.Context, b box) error {
			_, err := b.try(ctx, paddock.Cmd{Args: []string{"true"}, User: b.stranger(t)})
			return err
		},
		paddock.CanUndo:        create(func(spec *paddock.Spec) { spec.Undo = paddock.UndoOn }),
		paddock.CanMonitor:     create(func(spec *paddock.Spec) { spec.Monitor = &paddock.Monitor{} }),
		paddock.CanSudo:        create(func(spec *paddock.Spec) { spec.Sudo = true }),
		paddock.CanNetworkHost: create(func(spec *paddock.Spec) { spec.Policy.Network.Mode = paddock.NetworkHost }),
		paddock.CanNetworkList: create(func(spec *paddock.Spec) {
			spec.Policy.Network = paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "example.com"}}}
		}),
		paddock.CanAudit: create(func(spec *paddock.Spec) { spec.Policy.Audit = paddock.AuditKinds() }),
		paddock.CanForwardAgent: create(func(spec *paddock.Spec) {
			spec.Policy.KeyAgents = []paddock.KeyAgent{{Kind: paddock.KeyAgentSSH, Socket: "/nonexistent/agent"}}
		}),
		paddock.CanRootHost: create(func(spec *paddock.Spec) { spec.Root = paddock.Root{} }),
		paddock.CanRootDir: create(func(spec *paddock.Spec) {
			spec.Root = paddock.Root{Kind: paddock.RootDir, Path: t.TempDir()}
		}),
		paddock.CanRootImage: create(func(spec *paddock.Spec) {
			spec.Root = paddock.Root{Kind: paddock.RootImage, Image: "sha256:" + strings.Repeat("0123456789abcdef", 4)}
		}),
		paddock.CanMount: create(func(spec *paddock.Spec) {
			spec.Mounts = append(spec.Mounts, paddock.Mount{Source: t.TempDir(), Target: "/mnt/dt"})
		}),
		paddock.CanMountWrite: create(func(spec *paddock.Spec) {
			spec.Mounts = append(spec.Mounts, paddock.Mount{Source: t.TempDir(), Target: "/mnt/dt", Write: true})
		}),
		paddock.CanMountOverlay: create(func(spec *paddock.Spec) {
			spec.Mounts = append(spec.Mounts, paddock.Mount{Source: t.TempDir(), Target: "/mnt/dt", Overlay: true})
		}),
		paddock.CanRootSnapshot: create(func(spec *paddock.Spec) {
			spec.Root = paddock.Root{Kind: paddock.RootSnapshot, Snapshot: "none-of-that-name"}
		}),
		paddock.CanPrograms: func(ctx context.Context, b box) error {
			name := b.in("program")
			b.put(t, name, []byte("\x7fELF\x02\x01\x01\x00\x00\x00"), 0o755)
			_, err := b.try(ctx, paddock.Cmd{Args: []string{name}})
			return err
		},
	}
}

func refusesUnclaimed(t *testing.T, s *suite) {
	b := s.own(t)
	for c, use := range refusals(t, s) {
		if !s.info.Can(c) {
			wantKind(t, string(c), use(bounded(t), b), paddock.Unsupported)
		}
	}
	st, err := b.Status(bounded(t))
	if err != nil || st.State != paddock.Ready || st.Labels["unsupported"] != "" {
		t.Errorf("a refused call changed something: %+v, %v", st, err)
	}
	b.must(t, "echo usable")
}

func refusesLimits(t *testing.T, s *suite) {
	for c, ask := range limitless(s.info) {
		sb, err := s.driver.Create(bounded(t), s.spec(func(spec *paddock.Spec) { ask(&spec.Limits) }))
		if err == nil {
			s.removeAfter(t, sb)
		}
		wantKind(t, "a spec that asks for "+string(c), err, paddock.Unsupported)
	}
}

func infoSane(t *testing.T, s *suite) {
	info := s.info
	if info.Tier == paddock.Auto || info.Version == "" {
		t.Errorf("tier %q, version %q", info.Tier, info.Version)
	}
	known := []paddock.Capability{
		paddock.CanOutlive, paddock.CanWatchHost,
		paddock.CanReview, paddock.CanMonitorFiles, paddock.CanMonitorNetwork, paddock.CanMonitorFreeze, // of options of the driver
	}
	for c := range refusals(t, s) {
		known = append(known, c)
	}
	for i, c := range info.Capabilities {
		if !slices.Contains(known, c) {
			t.Errorf("the capability %q is none", c)
		}
		if slices.Contains(info.Capabilities[:i], c) {
			t.Errorf("the capability %q is there twice", c)
		}
	}
	for i, f := range info.Controls {
		checkFinding(t, f)
		if slices.ContainsFunc(info.Controls[:i], func(g paddock.Finding) bool { return g.Control == f.Control }) {
			t.Errorf("the control %q is there twice", f.Control)
		}
		if _, limit := limits()[f.Control]; f.Strength == paddock.Absent && info.Available && !limit {
			t.Errorf("%q is absent, so a zero spec is refused, and yet the tier is called available", f.Control)
		}
	}
}

// checkFinding fails on an incomplete finding.
func checkFinding(t testing.TB, f paddock.Finding) {
	t.Helper()
	switch f.Strength {
	case paddock.Full:
		if f.How == "" {
			t.Errorf("%s is full, but not how", f.Control)
		}
	case paddock.Weak:
		if f.How == "" || f.Cause == "" {
			t.Errorf("%s is weak, but not how or not why: %+v", f.Control, f)
		}
	case paddock.Absent:
		if f.Cause == "" {
			t.Errorf("%s is absent, but not why", f.Control)
		}
	default:
		t.Errorf("%s has the strength %q", f.Control, f.Strength)
	}
}
