//go:build linux

package main

import (
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/seccomp"
	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	bootconfig "gvisor.dev/gvisor/runsc/boot/filter/config"
	goferconfig "gvisor.dev/gvisor/runsc/fsgofer/filter/config"

	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor/filter"
)

const module = "gvisor.dev/gvisor"

// result is the output of one process.
type result struct {
	PID  uint32
	Data filter.Data
}

// gVisor does not export the rules with variables. The exported PrecompiledPrograms compile
// them for every platform and device, which takes a minute. We need only a few.

//go:linkname bootRules gvisor.dev/gvisor/runsc/boot/filter/config.rules
func bootRules(opt bootconfig.Options, vars precompiledseccomp.Values) (allow, deny seccomp.SyscallRules)

//go:linkname goferRules gvisor.dev/gvisor/runsc/fsgofer/filter/config.rules
func goferRules(opt goferconfig.Options, vars precompiledseccomp.Values) (allow, deny seccomp.SyscallRules)

func compile(w io.Writer) error {
	r := result{PID: uint32(os.Getpid())}
	var err error
	if r.Data.Module, err = moduleVersion(); err != nil {
		return err
	}
	for _, opt := range filter.BootOptions() {
		p, err := precompile(opt.ConfigKey(), opt.Vars(), bootconfig.SeccompOptions(opt), func(vars precompiledseccomp.Values) (seccomp.SyscallRules, seccomp.SyscallRules) {
			return bootRules(opt, vars)
		})
		if err != nil {
			return err
		}
		r.Data.Boot = append(r.Data.Boot, p)
	}
	for _, opt := range filter.GoferOptions() {
		p, err := precompile(opt.ConfigKey(), opt.Vars(), seccomp.ProgramOptions{}, func(vars precompiledseccomp.Values) (seccomp.SyscallRules, seccomp.SyscallRules) {
			return goferRules(opt, vars)
		})
		if err != nil {
			return err
		}
		r.Data.Gofer = append(r.Data.Gofer, p)
	}
	return gob.NewEncoder(w).Encode(r)
}

// precompile compiles one program as gVisor's Install does at boot, with placeholders for
// the variables.
func precompile(key string, vars precompiledseccomp.Values, options seccomp.ProgramOptions,
	rules func(precompiledseccomp.Values) (allow, deny seccomp.SyscallRules),
) (filter.Program, error) {
	names := make([]string, 0, len(vars))
	for name := range vars {
		names = append(names, name)
	}
	// gVisor chooses these defaults on any kernel that we accept. It cannot ask under an
	// emulator.
	options.DefaultAction, options.BadArchAction = seccomp.KillProcess, seccomp.KillProcess
	p, err := precompiledseccomp.Precompile(key, names, func(vars precompiledseccomp.Values) *seccomp.Program {
		allow, deny := rules(vars)
		return &seccomp.Program{
			RuleSets: []seccomp.RuleSet{{Rules: deny.Copy()}, {Rules: allow.Copy(), Action: seccomp.Allow}},
			Options:  options,
		}
	})
	if err != nil {
		return filter.Program{}, fmt.Errorf("compile %s: %w", key, err)
	}
	var code []byte
	for _, word := range p.Bytecode32 {
		code = binary.LittleEndian.AppendUint32(code, word)
	}
	return filter.Program{Name: p.Name, Bytecode: code, VarOffsets: p.VarOffsets}, nil
}

func moduleVersion() (string, error) {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, dep := range info.Deps {
			if dep.Path == module {
				return dep.Version, nil
			}
		}
	}
	return "", fmt.Errorf("this program does not record the version of %s", module)
}
