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

// Data is what a file of programs holds.
type Data struct {
	Module string // the version of gVisor that compiled the programs
	Boot   []Program
	Gofer  []Program
}

// Program is one program of gVisor.
type Program struct {
	Name       string
	Bytecode   []byte // as instructions of this architecture, little endian
	VarOffsets map[string][]int

	// PIDOffsets are the places, in words, of the process's own id that gVisor
	// does not know as a variable: its rules read it while they are compiled, so
	// that a precompiled program would hold the id of what compiled it.
	PIDOffsets []int
}

//go:linkname bootPrograms gvisor.dev/gvisor/runsc/boot/filter.precompiledPrograms
var bootPrograms map[string]precompiledseccomp.Program

//go:linkname goferPrograms gvisor.dev/gvisor/runsc/fsgofer/filter.precompiledPrograms
var goferPrograms map[string]precompiledseccomp.Program

// InstallBoot lets the sentry that boots in this process find its programs.
// It is to be called once, before anything else runs in the process: gVisor
// reads the table without a lock, and fills it in as it does so.
func InstallBoot() error {
	data, err := decode(compressed)
	if err != nil {
		return err
	}
	bootfilter.ListPrecompiled() // gVisor sets the table once, at the first look
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

// decode reads a file of programs. An architecture without a file has none,
// and that is not an error.
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

// table gives programs for this very process.
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
