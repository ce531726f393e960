package bootfiles

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

func TestAnEngineThatIsTooOldOrNoneIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		version, err string
	}{
		{"old enough", `echo "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)"; echo Copyright`, "7.2.22", ""},
		{"newer", `echo "QEMU emulator version 10.0.2"`, "10.0.2", ""},
		{"too old", `echo "QEMU emulator version 6.2.0"`, "", "is QEMU 6.2.0, which is too old; remedy: install QEMU 7.2"},
		{"nearly", `echo "QEMU emulator version 7.1.0"`, "", "too old"},
		{"something else", `echo hello`, "", "does not call itself QEMU"},
		{"one that fails", `echo "no such library" >&2; exit 1`, "", "does not tell its version: no such library (exit status 1)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "qemu")
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+tt.script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			e, err := FindEngine(path)
			switch {
			case tt.err != "":
				if err == nil || !strings.Contains(err.Error(), tt.err) || !errors.Is(err, paddock.Unsupported) {
					t.Errorf("got %v", err)
				}
			case err != nil || e.Version != tt.version || e.Path != path:
				t.Errorf("got %+v, %v", e, err)
			}
		})
	}
	if _, err := FindEngine("bin/qemu-system-x86_64"); err == nil || !errors.Is(err, paddock.Invalid) {
		t.Errorf("got %v of a path that is not absolute", err)
	}
}

func TestNoEngineOfTheCallersPathIsTaken(t *testing.T) {
	planted, own := t.TempDir(), t.TempDir()
	t.Setenv("PATH", ".:"+planted)
	t.Chdir(planted)
	for _, dir := range []string{planted, own} {
		if err := os.WriteFile(filepath.Join(dir, engine), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := locate("", []string{filepath.Join(own, "absent"), own}); err != nil || got != filepath.Join(own, engine) {
		t.Errorf("found %q, %v", got, err)
	}
	if got, err := locate("", []string{"/absent"}); err == nil || !errors.Is(err, paddock.Unsupported) || !strings.Contains(err.Error(), "there is no qemu-system-x86_64 in /absent; remedy: ") {
		t.Errorf("found %q, %v", got, err)
	}
}

func TestTheEngineOfThisMachineTellsWhereItsFilesAre(t *testing.T) {
	e, err := FindEngine("")
	if err != nil {
		t.Skip("no qemu-system-x86_64: ", err)
	}
	dirs, err := e.Firmware()
	if err != nil || len(dirs) == 0 {
		t.Errorf("got %v, %v", dirs, err)
	}
}

func TestWhatCannotRunMachinesIsToldFromWhatCan(t *testing.T) {
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"processor\t: 0\nflags\t\t: fpu vmx sse\n", true},
		{"flags\t\t: fpu svm\n", true},
		{"flags\t\t: fpu svm_lock\n", false},
		{"vmx flags\t: vnmi vmx\nflags\t\t: fpu\n", false},
		{"", false},
	} {
		if got := capable(tt.text); got != tt.want {
			t.Errorf("%q: %v", tt.text, got)
		}
	}
	if accel, reason := Probe(); (accel == protocol.KVM) != (reason == "") {
		t.Errorf("%s, because %q", accel, reason)
	}
}

func TestTheCounterIsReadFromTheMeasureOfLoops(t *testing.T) {
	if got, err := khz("processor : 0\nbogomips\t: 5192.20\nbogomips : 1.0\n"); got != 2596100 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	for _, text := range []string{"", "bogomips : ", "bogomips : x", "bogomips : NaN", "bogomips : 1e300", "bogomips : -5"} {
		if got, err := khz(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestProcessorsAreToldApart(t *testing.T) {
	text := "processor\t: 0\nvendor_id\t: V\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: X\nstepping\t: 7\nmicrocode\t: 0x1\ncpu MHz\t\t: 2000.1\nflags\t\t: fpu vme\n"
	one := processor(text)
	if again := processor(strings.Replace(text, "2000.1", "3000.2", 1)); again != one || one != "V|6|85|7|0x1|fpu vme" {
		t.Errorf("%q, %q", one, again)
	}
	for _, c := range [][2]string{{"vme", "vme avx"}, {"0x1", "0x2"}, {": 85", ": 86"}, {": V", ": W"}} {
		if processor(strings.Replace(text, c[0], c[1], 1)) == one {
			t.Errorf("%s is as %s", c[1], c[0])
		}
	}
}

func TestTheCounterIsToldWhereItIsEmulated(t *testing.T) {
	if got := Arguments(protocol.TCG, 2596100); !strings.Contains(got+" ", " tsc_early_khz=2596100 tsc=reliable ") || !strings.HasPrefix(got, "quiet ") {
		t.Errorf("got %q", got)
	}
	if got := Arguments(protocol.KVM, 2596100); strings.Contains(got, "tsc") {
		t.Errorf("got %q", got)
	}
}

func TestInstructionsThatRepeatAreLeftOutWhereTheyAreEmulated(t *testing.T) {
	for accel, want := range map[protocol.Accel]bool{protocol.TCG: true, protocol.KVM: false} {
		if got := slices.Contains(strings.Fields(Arguments(accel, 1)), "clearcpuid=rep_good"); got != want {
			t.Errorf("%s: %v", accel, got)
		}
	}
}

func TestAKernelDoesNotPrepareToBeTraced(t *testing.T) {
	for _, accel := range []protocol.Accel{protocol.TCG, protocol.KVM} {
		list := strings.Fields(Arguments(accel, 1))
		// The kernel uses only the last list.
		if i := slices.IndexFunc(list, func(a string) bool { return strings.HasPrefix(a, "initcall_blacklist=") }); i < 0 ||
			strings.Count(strings.Join(list, " "), "initcall_blacklist=") != 1 || !strings.Contains(list[i], "ftrace_check_for_weak_functions") {
			t.Errorf("%s: %q", accel, list)
		}
	}
}

func TestAddressesAreRandomUnlessEmulated(t *testing.T) {
	for accel, want := range map[protocol.Accel]bool{protocol.TCG: false, protocol.KVM: true} {
		for _, khz := range []int{0, 2596100} {
			if got := !slices.Contains(strings.Fields(Arguments(accel, khz)), "norandmaps"); got != want {
				t.Errorf("%s: programs at random addresses: %v", accel, got)
			}
		}
	}
}
