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
	const shown = "cgroups config.gz consoles cpuinfo crypto devices dma execdomains filesystems loadavg mdstat meminfo misc mounts partitions stat swaps uptime version version_signature vmstat"
	out := printed(t, `for f in /proc/[!0-9]*; do if [ -d $f ]; then ls $f; else head -c 1 $f; fi 2>/dev/null | grep -qa . && echo ${f#/proc/}; done; echo end`)
	got := strings.Fields(out)
	for _, must := range strings.Fields("cpuinfo meminfo stat loadavg uptime mounts filesystems self net sys end") {
		if !slices.Contains(got, must) {
			t.Errorf("%s is not shown: %q", must, got)
		}
	}
	may := append(strings.Fields(shown), "driver", "irq", "net", "pressure", "self", "sys", "sysvipc", "thread-self", "tty", "end")
	for _, name := range got {
		if !slices.Contains(may, name) {
			t.Errorf("/proc/%s can be read", name)
		}
	}
}
