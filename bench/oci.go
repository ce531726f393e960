//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/paddock-sandbox/paddock"
)

// runscDo is gVisor's own command for a program in a sandbox. It is built of
// the module that Paddock is built with.
func runscDo(program, home string, uid int) contender {
	c := contender{name: "runsc --network=none do true", every: 2, beside: paddock.GVisor, may: true}
	c.args = []string{program, "--root", filepath.Join(home, "runsc"), "--network=none", "do", "true"}
	if uid > 0 || uid < 0 && os.Geteuid() != 0 {
		c.name = "runsc --rootless --network=none do true"
		c.args = append([]string{program, "--rootless"}, c.args[1:]...)
	}
	return c
}

// hybrid is where a host of two versions of control groups has the second.
// crun does not run on such a host, not even without control groups.
const hybrid = "/sys/fs/cgroup/unified"

// crunRun is an OCI runtime in C, with as little as makes a container: the
// system read-only, namespaces, no control group, no system-call filter.
func crunRun(home string, uid int) (contender, error) {
	program, err := exec.LookPath("crun")
	if err != nil {
		return contender{}, fmt.Errorf("peers.sh installs it: %w", err)
	}
	bundle := filepath.Join(home, "crun")
	data, err := json.Marshal(bundleSpec(uid))
	if err != nil {
		return contender{}, err
	}
	root := filepath.Join(bundle, "rootfs")
	for _, dir := range []string{"usr", "etc", "proc", "dev", "tmp"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		err = errors.Join(err, os.Symlink("usr/"+dir, filepath.Join(root, dir)))
	}
	state := filepath.Join(bundle, "state")
	if err := errors.Join(err, os.WriteFile(filepath.Join(bundle, "config.json"), data, 0o644), os.Mkdir(state, 0o700)); err != nil {
		return contender{}, err
	}
	if uid >= 0 {
		if err := os.Chown(state, uid, uid); err != nil {
			return contender{}, err
		}
	}
	c := contender{name: "crun run … true", every: 1, may: true}
	c.args = []string{program, "--root", state, "--cgroup-manager=disabled", "run", "--bundle", bundle, "bench"}
	if _, err := os.Stat(hybrid); err == nil {
		c.hide = hybrid
	}
	return c, nil
}

func bundleSpec(uid int) *specs.Spec {
	s := &specs.Spec{
		Version: "1.0.0", Root: &specs.Root{Path: "rootfs", Readonly: true}, Hostname: "paddock",
		Process: &specs.Process{Args: []string{"true"}, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, Cwd: "/", NoNewPrivileges: true},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs"},
			{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs"},
			{Destination: "/usr", Type: "bind", Source: "/usr", Options: []string{"rbind", "ro"}},
			{Destination: "/etc", Type: "bind", Source: "/etc", Options: []string{"rbind", "ro"}},
		},
		Linux: &specs.Linux{Namespaces: []specs.LinuxNamespace{
			{Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace},
		}},
	}
	gid := uid
	if uid < 0 {
		uid, gid = os.Geteuid(), os.Getegid()
	}
	if uid != 0 {
		s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
		s.Linux.UIDMappings = []specs.LinuxIDMapping{{HostID: uint32(uid), Size: 1}}
		s.Linux.GIDMappings = []specs.LinuxIDMapping{{HostID: uint32(gid), Size: 1}}
	}
	return s
}
