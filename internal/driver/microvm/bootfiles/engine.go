package bootfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

// An Engine is a QEMU program.
type Engine struct {
	Path    string // the file itself, after links
	Version string // such as 7.2.22
}

// The program's name, and the oldest supported version.
const (
	engine      = "qemu-system-x86_64"
	oldestMajor = 7
	oldestMinor = 2
)

// answer bounds the time of a query to QEMU. On an idle host it takes a tenth of a second.
const answer = 30 * time.Second

const howToGetQEMU = "install QEMU 7.2 or later: sudo apt-get install qemu-system-x86, or your system's package of it, or name one by PADDOCK_QEMU=/path"

// FindEngine returns the QEMU at path, or the system's if path is empty. It refuses a
// version that is too old.
func FindEngine(path string) (Engine, error) {
	found, err := locate(path, engineDirs())
	if err != nil {
		return Engine{}, err
	}
	text, err := ask(found, "--version")
	if err != nil {
		return Engine{}, absent(fmt.Sprintf("%s does not tell its version: %s", found, err), howToGetQEMU)
	}
	version, major, minor, err := engineVersion(text)
	if err != nil {
		return Engine{}, absent(fmt.Sprintf("%s: %s", found, err), howToGetQEMU)
	}
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return Engine{}, absent(fmt.Sprintf("%s is QEMU %s, which is too old", found, version), howToGetQEMU)
	}
	return Engine{Path: found, Version: version}, nil
}

// engineDirs returns the directories in which QEMU is searched. PATH is not used, because
// it may include a workspace, whose content is the guest's.
func engineDirs() []string {
	return []string{"/usr/local/bin", "/usr/bin", "/bin", "/run/current-system/sw/bin"}
}

// locate returns the program's file: path, or the first one in dirs.
func locate(path string, dirs []string) (string, error) {
	if path != "" {
		if !filepath.IsAbs(path) {
			return "", fmt.Errorf("QEMU %q: an absolute path is needed: %w", path, paddock.Invalid)
		}
		found, err := executable(path)
		if err != nil {
			return "", absent(fmt.Sprintf("%s cannot be executed: %s", path, err), howToGetQEMU)
		}
		return found, nil
	}
	for _, dir := range dirs {
		if found, err := executable(filepath.Join(dir, engine)); err == nil {
			return found, nil
		}
	}
	return "", absent("there is no "+engine+" in "+strings.Join(dirs, ", "), howToGetQEMU)
}

// executable returns the file that path leads to, if it is executable.
func executable(path string) (string, error) {
	found, err := exec.LookPath(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(found)
}

// Firmware returns the directories in which QEMU looks for its own files.
func (e Engine) Firmware() ([]string, error) {
	text, err := ask(e.Path, "-L", "help")
	if err != nil {
		return nil, err
	}
	var dirs []string
	for line := range strings.Lines(text) {
		if dir := filepath.Clean(strings.TrimSpace(line)); filepath.IsAbs(dir) && isDir(dir) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%s names no directory of its own files: %w", e.Path, paddock.Unsupported)
	}
	return dirs, nil
}

// ask runs QEMU with a query and returns its output.
func ask(path string, args ...string) (string, error) {
	ctx, stop := context.WithTimeout(context.Background(), answer)
	defer stop()
	c := exec.CommandContext(ctx, path, args...)
	c.WaitDelay = time.Second
	var out, fault limited
	c.Stdout, c.Stderr = &out, &fault
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("no answer within %s: %w", answer, paddock.Timeout)
		}
		return "", fault.join(err)
	}
	return out.String(), nil
}

// limited keeps the beginning of a program's output.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), max(0, 64<<10-l.Len()))])
	return len(p), nil
}

// join adds the last line of the output to an error.
func (l *limited) join(err error) error {
	lines := strings.Split(strings.TrimSpace(l.String()), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return fmt.Errorf("%s (%w)", last, err)
	}
	return err
}

func engineVersion(text string) (version string, major, minor int, err error) {
	m := regexp.MustCompile(`(?m)^QEMU emulator version (([0-9]{1,4})\.([0-9]{1,4})[0-9.]*)`).FindStringSubmatch(text)
	if m == nil {
		return "", 0, 0, fmt.Errorf("it does not call itself QEMU: %w", paddock.Invalid)
	}
	major, err = strconv.Atoi(m[2])
	if err == nil {
		minor, err = strconv.Atoi(m[3])
	}
	return m[1], major, minor, err
}

const kvm = "/dev/kvm"

// Probe returns how processors of machines run on this host, and the reason if it is not
// KVM.
func Probe() (accel protocol.Accel, reason string) {
	text, err := os.ReadFile(cpuinfo)
	if err != nil {
		return protocol.TCG, err.Error()
	}
	if !capable(string(text)) {
		return protocol.TCG, "the processor does not say that it can run machines (neither vmx nor svm in " + cpuinfo + "): virtualization is off in the firmware, or this is itself a virtual machine"
	}
	f, err := os.OpenFile(kvm, os.O_RDWR, 0)
	if err == nil {
		err = f.Close()
	}
	switch {
	case err == nil:
		return protocol.KVM, ""
	case errors.Is(err, fs.ErrNotExist):
		return protocol.TCG, "there is no " + kvm + ": load its module (sudo modprobe kvm_intel, or kvm_amd); in a container: --device " + kvm
	case errors.Is(err, fs.ErrPermission):
		return protocol.TCG, kvm + " may not be opened: become a member of the group kvm (sudo usermod -aG kvm $USER, and log in again)"
	}
	return protocol.TCG, err.Error()
}

// capable checks the processor in the text of /proc/cpuinfo. A processor without
// virtualization may have a /dev/kvm in software, which runs a small guest but not a whole
// kernel.
func capable(text string) bool {
	flags, _ := cpuField(text, "flags")
	return slices.ContainsFunc(strings.Fields(flags), func(flag string) bool { return flag == "vmx" || flag == "svm" })
}
