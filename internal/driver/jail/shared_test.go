//go:build linux

package jail

import (
	"errors"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
)

// both returns two drivers with one state, like two servers, or a server and its successor.
func both(t *testing.T) (a, b paddock.Driver) {
	t.Helper()
	state := t.TempDir()
	for _, d := range []*paddock.Driver{&a, &b} {
		var err error
		if *d, err = open(state); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = (*d).Close() })
	}
	return a, b
}

// starts returns the error of starting a command.
func starts(t *testing.T, sb paddock.Sandbox) error {
	t.Helper()
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"true"}})
	if err == nil {
		_, err = p.Wait(t.Context())
	}
	return err
}

func TestWhatOneDriverDoesTheOtherKnowsAtOnce(t *testing.T) {
	a, b := both(t)
	weak := drivertest.Weak(t, open)
	made, err := a.Create(t.Context(), paddock.Spec{ID: "shared", AllowMissing: weak})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := b.Open(t.Context(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := a.Open(t.Context(), "shared")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = theirs.Remove(t.Context()) }()
	all := map[string]paddock.Sandbox{"made": made, "opened again": ours, "opened by another driver": theirs}
	for range 3 {
		for name, sb := range all {
			if err := starts(t, sb); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := theirs.Pause(t.Context()); errors.Is(err, paddock.Unsupported) {
			break // without control groups
		} else if err != nil {
			t.Fatal(err)
		}
		for name, sb := range all {
			if err := starts(t, sb); !errors.Is(err, paddock.Conflict) {
				t.Errorf("%s, paused: %v", name, err)
			}
			if _, err := sb.FS().Stat(t.Context(), "/"); !errors.Is(err, paddock.Conflict) {
				t.Errorf("%s, a file while it is paused: %v", name, err)
			}
		}
		if err := theirs.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := theirs.Update(t.Context(), paddock.Update{Labels: map[string]string{"who": "the other"}}); err != nil {
		t.Fatal(err)
	}
	for name, sb := range all {
		if st, err := sb.Status(t.Context()); err != nil || st.Labels["who"] != "the other" {
			t.Errorf("%s: labels %v, %v", name, st.Labels, err)
		}
	}
	if err := theirs.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, sb := range all {
		if err := starts(t, sb); !errors.Is(err, paddock.Unavailable) && !errors.Is(err, paddock.NotFound) {
			t.Errorf("%s, removed: %v", name, err)
		}
	}
	if _, err := a.Open(t.Context(), "shared"); !errors.Is(err, paddock.NotFound) {
		t.Errorf("opened after the other driver has removed it: %v", err)
	}
}

func TestANameOfBeforeIsNotOpenedForTheNextOne(t *testing.T) {
	a, b := both(t)
	weak := drivertest.Weak(t, open)
	for n := range 3 {
		made, err := a.Create(t.Context(), paddock.Spec{ID: "again", AllowMissing: weak})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []paddock.Driver{a, b} {
			sb, err := d.Open(t.Context(), "again")
			if err != nil {
				t.Fatal(err)
			}
			st, err := sb.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			was, err := made.Status(t.Context())
			if err != nil || !st.Created.Equal(was.Created) {
				t.Errorf("%d: opened one of %s, made at %s (%v)", n, st.Created, was.Created, err)
			}
			if err := starts(t, sb); err != nil {
				t.Errorf("%d: %v", n, err)
			}
		}
		gone, err := b.Open(t.Context(), "again")
		if err != nil {
			t.Fatal(err)
		}
		if err := gone.Remove(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
