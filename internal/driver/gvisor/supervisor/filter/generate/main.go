//go:build linux

// Command generate compiles the seccomp programs that package filter embeds and writes
// programs-GOARCH.gz into that package's directory:
//
//	go run ./internal/driver/gvisor/supervisor/filter/generate
//	go run ./internal/driver/gvisor/supervisor/filter/generate -arch arm64 -emulator qemu-aarch64-static
//
// Run it whenever the version of gVisor in go.mod changes; a test of package filter fails otherwise. A
// program depends on the numbers of system calls, so a process of its own architecture compiles it,
// emulated if necessary.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor/filter"
)

const here = "./internal/driver/gvisor/supervisor/filter"

func main() {
	arch := flag.String("arch", runtime.GOARCH, "architecture to make the file of")
	emulator := flag.String("emulator", "", "program that runs programs of that architecture")
	inner := flag.Bool("compile", false, "write what this process compiles to standard output (the command runs itself so)")
	flag.Parse()
	run := func() error { return write(*arch, strings.Fields(*emulator)) }
	if *inner {
		run = func() error { return compile(os.Stdout) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// write compiles in two processes. The programs differ in the PID; see filter.Program.
func write(arch string, emulator []string) error {
	dir, err := os.MkdirTemp("", "generate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "generate")
	build := exec.Command("go", "build", "-o", program, here+"/generate")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+arch)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build for %s: %w", arch, err)
	}
	command := slices.Concat(emulator, []string{program, "-compile"})
	a, err := compiled(command)
	if err != nil {
		return err
	}
	b, err := compiled(command)
	if err != nil {
		return err
	}
	if err := markAll(a, b); err != nil {
		return err
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(z).Encode(a.Data); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(here, "programs-"+arch+".gz"), out.Bytes(), 0o644)
}

func compiled(command []string) (*result, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	r := &result{}
	return r, gob.NewDecoder(bytes.NewReader(out)).Decode(r)
}

func markAll(a, b *result) error {
	if a.PID == b.PID || len(a.Data.Boot) != len(b.Data.Boot) || len(a.Data.Gofer) != len(b.Data.Gofer) {
		return fmt.Errorf("two runs cannot be compared")
	}
	for _, list := range []struct{ a, b []filter.Program }{{a.Data.Boot, b.Data.Boot}, {a.Data.Gofer, b.Data.Gofer}} {
		for i := range list.a {
			if err := mark(&list.a[i], list.b[i].Bytecode, a.PID, b.PID); err != nil {
				return fmt.Errorf("%s: %w", list.a[i].Name, err)
			}
		}
	}
	return nil
}

// mark finds the positions of the compiling process's PID in a program, and clears them.
func mark(p *filter.Program, other []byte, pid, otherPID uint32) error {
	if len(p.Bytecode) != len(other) {
		return fmt.Errorf("its length depends on the process")
	}
	for i := 0; i < len(other); i += 4 {
		a, b := binary.LittleEndian.Uint32(p.Bytecode[i:]), binary.LittleEndian.Uint32(other[i:])
		if a == b {
			continue
		}
		if a != pid || b != otherPID {
			return fmt.Errorf("word %d depends on more than the PID", i/4)
		}
		p.PIDOffsets = append(p.PIDOffsets, i/4)
		binary.LittleEndian.PutUint32(p.Bytecode[i:], 0)
	}
	return nil
}
