package boxinit

import "testing"

func TestWhatIsSharedIsLockedAndWatchedOnlyWhereItIsMounted(t *testing.T) {
	b, err := newBroker(&Config{
		Hosts:    []string{"/usr", "/etc", "/home/me/.tool/bin", "/work", "/work/inner", "/read"},
		Named:    []string{"/work", "/work/inner", "/read"},
		Writable: []string{"/dev", "/tmp", "/home/me", "/work"},
		Trees:    []Tree{{Path: "/work", Protected: true, Source: "/host/work"}, {Path: "/home/me"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path         string
		lock, follow bool
	}{
		{"/tmp/x", true, true},
		{"/tmp/x (deleted)", true, true},
		{"/home/me/x", true, true},
		{"/home/me/.tool/bin/x", false, false},
		{"/home/me/.tool", true, true},
		{"/work", true, true},
		{"/work/x", true, true},
		{"/work/inner/x", false, true},
		{"/read/x", false, true},
		{"/readable", true, true},
		{"/usr", false, false},
		{"/usr/bin/env", false, false},
		{"/usr/bin/env (deleted)", false, false},
		{"/etc/hosts", false, false},
		{"/", true, true},
		{"/proc/1/status", true, true},
		{"(unreachable)/x", false, false},
	} {
		if got := b.locks(c.path); got != c.lock {
			t.Errorf("lock %s: %v", c.path, got)
		}
		if got := b.watchable(c.path); got != c.follow {
			t.Errorf("watch %s: %v", c.path, got)
		}
	}
}
