//go:build linux

package filter

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"gvisor.dev/gvisor/pkg/bpf"
	"gvisor.dev/gvisor/pkg/seccomp"
	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	bootfilter "gvisor.dev/gvisor/runsc/boot/filter"
	bootconfig "gvisor.dev/gvisor/runsc/boot/filter/config"
	goferfilter "gvisor.dev/gvisor/runsc/fsgofer/filter"
	goferconfig "gvisor.dev/gvisor/runsc/fsgofer/filter/config"
)

// remake says what to do when a test of this file fails.
const remake = "run the command in generate, see the package's comment"

func TestProgramsAreOfTheVersionThatGoModNames(t *testing.T) {
	mod, err := os.ReadFile("../../../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		data, err := os.ReadFile("programs-" + arch + ".gz")
		if err != nil {
			t.Fatal(err)
		}
		programs, err := decode(data)
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		if !strings.Contains(string(mod), "\tgvisor.dev/gvisor "+programs.Module+"\n") {
			t.Errorf("%s: programs of gVisor %q, which is not the version in go.mod; %s", arch, programs.Module, remake)
		}
		if !strings.Contains(string(mod), "gvisor.dev/gvisor v") {
			t.Error("go.mod names no gVisor")
		}
		for _, p := range slices.Concat(programs.Boot, programs.Gofer) {
			if !strings.HasPrefix(p.Name, `GOARCH="`+arch+`"`) {
				t.Errorf("%s holds the program %s", arch, p.Name)
			}
		}
	}
}

// A boot must load exactly the programs that it would have compiled, to the last
// instruction, because they are the sentry's second boundary.
func TestABootFindsWhatItWouldHaveCompiled(t *testing.T) {
	if err := InstallBoot(); err != nil {
		t.Fatal(err)
	}
	for _, opt := range BootOptions() {
		opt.ControllerFD = 8
		p, ok := bootfilter.GetPrecompiled(opt.ConfigKey())
		if !ok {
			t.Errorf("no program for %s; %s", opt.ConfigKey(), remake)
			continue
		}
		allow, deny := bootconfig.Rules(opt)
		same(t, p, opt.Vars(), allow, deny, bootconfig.SeccompOptions(opt))
	}
}

func TestAGoferFindsWhatItWouldHaveCompiled(t *testing.T) {
	if err := InstallGofer(); err != nil {
		t.Fatal(err)
	}
	for _, opt := range GoferOptions() {
		p, ok := goferfilter.GetPrecompiled(opt.ConfigKey())
		if !ok {
			t.Errorf("no program for %s; %s", opt.ConfigKey(), remake)
			continue
		}
		allow, deny := goferconfig.Rules(opt)
		same(t, p, opt.Vars(), allow, deny, seccomp.ProgramOptions{})
	}
}

func same(t *testing.T, p precompiledseccomp.Program, vars precompiledseccomp.Values, allow, deny seccomp.SyscallRules, options seccomp.ProgramOptions) {
	t.Helper()
	loaded, err := p.RenderInstructions(vars)
	if err != nil {
		t.Errorf("%s: %v; %s", p.Name, err, remake)
		return
	}
	program := &seccomp.Program{
		RuleSets: []seccomp.RuleSet{{Rules: deny}, {Rules: allow, Action: seccomp.Allow}},
		Options:  options,
	}
	built, _, err := program.Build()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(bpf.ToBytecode(loaded), bpf.ToBytecode(built)) {
		t.Errorf("%s: %d instructions, not the %d that gVisor compiles; %s", p.Name, len(loaded), len(built), remake)
	}
}

// The rules contain the PID of the process that compiled them; see Program.
func TestProgramsHoldTheIDOfTheirOwnProcess(t *testing.T) {
	data, err := decode(compressed)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range data.Boot {
		if len(p.PIDOffsets) == 0 {
			t.Errorf("%s: no place for the process's id", p.Name)
		}
	}
	for name, p := range table(data.Boot) {
		if !slices.Contains(p.Bytecode32, uint32(os.Getpid())) {
			t.Errorf("%s: does not hold this process's id", name)
		}
	}
}

func TestADamagedFileIsAnError(t *testing.T) {
	if _, err := decode(compressed[:len(compressed)/2]); err == nil {
		t.Error("half a file was decoded")
	}
	if data, err := decode(nil); err != nil || len(data.Boot) != 0 {
		t.Errorf("no file gave %v, %v", data, err)
	}
}

func BenchmarkInstallBoot(b *testing.B) {
	for b.Loop() {
		if err := InstallBoot(); err != nil {
			b.Fatal(err)
		}
	}
}
