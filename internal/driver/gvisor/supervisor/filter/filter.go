//go:build linux

package filter

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	_ "unsafe" // for go:linkname

	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"
	bootfilter "gvisor.dev/gvisor/runsc/boot/filter"
	goferfilter "gvisor.dev/gvisor/runsc/fsgofer/filter"
)

// Data is the content of a file of programs.
type Data struct {
	Module string // the version of gVisor that compiled the programs
	Boot   []Program
	Gofer  []Program
}

// Program is one of gVisor's seccomp programs.
type Program struct {
	Name       string
	Bytecode   []byte // as instructions of this architecture, little endian
	VarOffsets map[string][]int

	// PIDOffsets are the positions, in words, of the process's own PID. gVisor's rules read
	// the PID during compilation and do not treat it as a variable, so a precompiled
	// program would contain the PID of its compiler.
	PIDOffsets []int
}

//go:linkname bootPrograms gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
var bootPrograms map[string]precompiledseccomp.Program

//go:linkname goferPrograms gvisor.dev/gvisor/runsc/fsgofer/filter.precompiledPrograms
var goferPrograms map[string]precompiledseccomp.Program

// InstallBoot installs the programs of the sentry that boots in this process. Call it once,
// before anything else runs in the process, because gVisor reads and fills the table
// without a lock.
func InstallBoot() error {
	data, err := decode(compressed)
	if err != nil {
		return err
	}
	bootfilter.ListPrecompiled() // gVisor sets the table at the first call
	bootPrograms = table(data.Boot)
	return nil
}

// InstallGofer is InstallBoot for a process that runs the gofer.
func InstallGofer() error {
	data, err := decode(compressed)
	if err != nil {
		return err
	}
	goferfilter.ListPrecompiled()
	goferPrograms = table(data.Gofer)
	return nil
}

// decode decodes a file of programs. An architecture without a file has no programs, which
// is not an error.
func decode(file []byte) (*Data, error) {
	data := &Data{}
	if len(file) == 0 {
		return data, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err == nil {
		err = json.NewDecoder(z).Decode(data)
	}
	if err != nil {
		return nil, fmt.Errorf("read seccomp programs: %w", err)
	}
	return data, nil
}

// table returns the programs with the PID of this process.
func table(programs []Program) map[string]precompiledseccomp.Program {
	m := make(map[string]precompiledseccomp.Program, len(programs))
	for _, p := range programs {
		words := make([]uint32, len(p.Bytecode)/4)
		for i := range words {
			words[i] = binary.LittleEndian.Uint32(p.Bytecode[4*i:])
		}
		for _, at := range p.PIDOffsets {
			words[at] = uint32(os.Getpid())
		}
		m[p.Name] = precompiledseccomp.Program{Name: p.Name, Bytecode32: words, VarOffsets: p.VarOffsets}
	}
	return m
}
