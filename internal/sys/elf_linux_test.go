package sys

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestABoundedProgramCannotHaveMore(t *testing.T) {
	const keep, marked = 1<<unix.CAP_CHOWN | 1<<unix.CAP_SYS_CHROOT, 1 << unix.CAP_FOWNER
	_, had, err := Capabilities()
	if err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0
	for name, want := range map[string]uint64{"begin-other": keep, "begin-marked": marked} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath("cat")
			if err != nil {
				t.Fatal(err)
			}
			f, err := SealedFile("bounded", Bounded(path, keep, 'm', marked))
			if err != nil {
				t.Fatal(err)
			}
			if f, err = HighFile(f); err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			cmd := exec.CommandContext(t.Context(), fmt.Sprintf("/proc/self/fd/%d", f.Fd()), "/proc/self/status")
			cmd.Args[0] = name
			cmd.Env = []string{"A=b"}
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if !root {
				want = had // which nobody else may make smaller
			}
			if line := fmt.Sprintf("\nCapBnd:\t%016x\n", want&had); !strings.Contains(string(out), line) {
				t.Errorf("there is no %q in %s", line, out)
			}
		})
	}
}
