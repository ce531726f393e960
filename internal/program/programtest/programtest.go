// Package programtest gives tests the programs that paddock embeds, without linking them into each
// test. It uses the programs that make has just built, or else builds them once for all test programs
// of a user.
package programtest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/program"
)

const (
	// BuiltVariable names a directory into which make has built the programs, of this tree and a moment ago.
	BuiltVariable = "PADDOCK_TEST_PROGRAMS"

	// readyVariable lists the files, with colons between, that this process and those that it starts take.
	readyVariable = "PADDOCK_TEST_PROGRAMS_READY"
)

const module = "github.com/paddock-sandbox/paddock/cmd/"

// Build has programs of cmd ready for this process and for those that it starts, whoever they run as. A process
// whose maker called Build does nothing.
func Build(names ...string) error {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return ready(name) != "" })
	if len(names) == 0 {
		return nil
	}
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("paddock-test-programs-%d", os.Geteuid()))
	if err := private(dir); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("wait for other tests that build programs: %w", err)
	}
	if err := sweep(dir); err != nil {
		return err
	}
	for _, name := range names {
		file, err := provide(dir, name)
		if err != nil {
			return err
		}
		list, _ := os.LookupEnv(readyVariable)
		if err := os.Setenv(readyVariable, file+string(os.PathListSeparator)+list); err != nil {
			return err
		}
	}
	return nil
}

// Program returns a program that Build has made ready. Where it has not, it is the calling program.
func Program(name string) (program.Program, error) {
	file := ready(name)
	if file == "" {
		return program.Embedded(name, nil), nil
	}
	data, err := os.ReadFile(file)
	return program.Embedded(name, data), err
}

// ready returns the file of a program, or nothing.
func ready(name string) string {
	list, _ := os.LookupEnv(readyVariable)
	for _, file := range filepath.SplitList(list) {
		if filepath.Base(file) == name {
			return filepath.Clean(file)
		}
	}
	return ""
}

// private makes a directory that nobody else can write to. Its name can be foreseen, and what is in it is executed.
func private(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !st.IsDir() || st.Mode().Perm()&0o022 != 0 || !ok || int(sys.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is not this user's alone; remove it", dir)
	}
	return nil
}

// provide puts a program into the directory and returns its file. The file is named after what is in it, so that
// tests of another tree, which run meanwhile, have another one.
func provide(dir, name string) (string, error) {
	built := filepath.Join(dir, name+".built")
	if from, _ := os.LookupEnv(BuiltVariable); from != "" {
		built = filepath.Join(filepath.Clean(from), name)
	} else {
		// The command links nothing where the file is of this source already.
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", built, module+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	data, err := os.ReadFile(built)
	if err != nil {
		return "", err
	}
	own := filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256(data)))
	file := filepath.Join(own, name)
	if _, err := os.Stat(file); err == nil { //nolint:gosec // the build's own directory
		return file, nil
	}
	fresh := filepath.Join(dir, name+".new")
	if err := os.WriteFile(fresh, data, 0o755); err != nil { //nolint:gosec // a program for every user
		return "", err
	}
	if err := os.Mkdir(own, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // likewise
		return "", err
	}
	return file, os.Rename(fresh, file) //nolint:gosec // likewise
}

// sweep removes programs of an earlier day.
func sweep(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if info, err := e.Info(); err == nil && e.IsDir() && time.Since(info.ModTime()) > 24*time.Hour {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
