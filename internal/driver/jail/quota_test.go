//go:build linux

package jail

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
)

// printed makes a jail, and returns what a script of the shell prints in it.
func printed(t *testing.T, script string) string {
	t.Helper()
	d, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{ID: "quota", AllowMissing: drivertest.Weak(t, open)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sb.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"/bin/sh", "-c", script}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The system-call filter refuses namespaces as well. This is what holds if it does not.
func TestTheKernelGivesAJailNoNamespace(t *testing.T) {
	out := printed(t, "cat /proc/sys/user/max_*_namespaces /proc/sys/user/max_fanotify_*")
	got := strings.Fields(out)
	if len(got) < 10 || slices.ContainsFunc(got, func(s string) bool { return s != "0" }) {
		t.Errorf("%q", out)
	}
}

func TestTheKernelGivesAJailOfAUserNoNamespace(t *testing.T) {
	drivertest.SomeAsUser(t, "^TestTheKernelGivesAJailNoNamespace$", 1)
}

// What /proc tells of the host's work can be read nowhere, also not in files that a later kernel has.
func TestAJailShowsOfProcWhatProgramsNeed(t *testing.T) {
	const (
		shown = "cgroups config.gz cpuinfo crypto devices filesystems loadavg meminfo mounts net partitions pressure self stat swaps sys sysvipc thread-self tty uptime version version_signature vmstat"
		empty = "buddyinfo cmdline diskstats interrupts locks schedstat softirqs zoneinfo"
	)
	out := printed(t, `cd /proc; for f in [!0-9]*; do if [ -d $f ]; then ls $f; else head -c 1 $f; fi 2>/dev/null | grep -qa . && echo $f; done
for f in `+empty+`; do [ ! -e $f ] || [ "$(cat $f; echo $?)" = 0 ] || echo "$f is not empty"; done
grep -E "^(intr|softirq) " stat; echo end`)
	if !strings.HasSuffix(out, "\nintr 0\nsoftirq 0\nend\n") {
		t.Errorf("it prints %q", out)
	}
	got := strings.Fields(strings.TrimSuffix(out, "intr 0\nsoftirq 0\nend\n"))
	for _, must := range strings.Fields("cpuinfo meminfo stat loadavg uptime mounts filesystems self net sys") {
		if !slices.Contains(got, must) {
			t.Errorf("%s is not shown: %q", must, got)
		}
	}
	may := strings.Fields(shown)
	for _, name := range got {
		if !slices.Contains(may, name) {
			t.Errorf("/proc/%s can be read", name)
		}
	}
}
