// Package program stores the executables that are embedded in a build of paddock and executes them.
// The user installs one file. Code that is large, or that runs confined, is in embedded programs.
//
// A program is unpacked once, into a cache directory of the caller, and executed from there. Cached
// files run with all rights of the caller, so the cache is trusted only where nobody else could have
// written it, and each file is checked before each use. The directory and the file must belong to the
// caller. Only the caller may have write permission on the directory, and nobody on the file. This
// package must have written the file, and nobody may have changed it since, which an extended
// attribute of the directory tells: a sandbox cannot set one. Every check uses open descriptors, and
// the checked descriptor is the one that is executed. Where the cache cannot be trusted or written, a
// program is executed from sealed memory. The cache is not a boundary against another process of the
// same user, unless that runs in a sandbox, because that process could replace paddock itself.
package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A Program is one that this build carries, or that the process was handed which
// executed this one. The zero Program is the calling program itself.
type Program struct {
	Name string // begins the name of its file in the cache

	data   []byte  // embedded
	gzip   bool    // data is compressed
	absent bool    // this build carries none of this name
	source *Source // of what was handed on, and checked by who did

	carrier string // leads to the file that carries what was handed on
}

// Carrier returns a path that leads to the file that contains the program. No sandbox may change that
// file.
func (p Program) Carrier() string {
	if p.carrier == "" {
		return "/proc/self/exe"
	}
	return p.carrier
}

// Embedded gives the program that a build has embedded, as it is or compressed by
// gzip. Nil is the calling program, and what is empty is not in this build: to open
// it is an error.
func Embedded(name string, data []byte) Program {
	return Program{Name: name, data: data, gzip: len(data) > 1 && data[0] == 0x1f && data[1] == 0x8b, absent: data != nil && len(data) == 0}
}

// Self reports whether the program is the calling program.
func (p Program) Self() bool { return p.data == nil && p.source == nil && !p.absent }

// missing says that a build lacks the program.
func (p Program) missing() error {
	return fmt.Errorf("this build of paddock does not carry its program %s: build it whole, with make build: %w", p.Name, paddock.Unsupported)
}

// Cache returns the cache directory of a caller with this environment, or an empty text if there is
// none.
func Cache(lookup func(name string) (string, bool)) string {
	if os.Geteuid() == 0 {
		return "/var/cache/paddock"
	}
	if dir, _ := lookup("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "paddock")
	}
	if home, _ := lookup("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "paddock")
	}
	return ""
}

// Builds returns the directory of the caches that sandboxes keep for build tools, beside Paddock's own cache.
func Builds(cache string) string {
	if cache == "" {
		return ""
	}
	return cache + "-build"
}

// handedVariable names the descriptors that a program is handed, as NAME:FD with
// commas.
const handedVariable = "PADDOCK_PROGRAMS"

// carrierName is the program that was installed, among those that are handed on.
const carrierName = "paddock"

// Handed holds the programs that this process received from the process that executed it.
type Handed map[string]Program

// Get returns a program. A program that was not handed on counts as missing from this build.
func (h Handed) Get(name string) Program {
	if p, ok := h[name]; ok {
		return p
	}
	return Program{Name: name, absent: true}
}

// Carrier returns a path that leads to the file of the program that was installed, and that carries what was handed on. It
// is empty if nothing was handed on.
func (h Handed) Carrier() string {
	for _, p := range h {
		return p.Carrier()
	}
	return ""
}

// errHanded says that the variable is not what [Program.Exec] writes.
var errHanded = errors.New(handedVariable + " is not what paddock sets for a program of its own")

// parseHanded reads the variable's names and descriptors.
func parseHanded(text string) (map[string]int, error) {
	list := map[string]int{}
	for _, part := range strings.Split(text, ",") {
		name, number, ok := strings.Cut(part, ":")
		var fd int
		if _, err := fmt.Sscanf(number, "%d", &fd); err != nil || !ok || name == "" || fd < 3 || fmt.Sprint(fd) != number {
			return nil, errHanded
		}
		list[name] = fd
	}
	return list, nil
}
