// Package supervisor runs gVisor as the guest kernel of a box: it starts gVisor's processes from the box's
// init process and maintains the link to the agent in it.
//
// gVisor is used as a library, in a process of the box, because its code may panic, holds global
// state, and re-executes the program that it is linked into. Only a program made for it imports this
// package, because initialising gVisor's packages takes milliseconds that no other tier should pay.
package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"gvisor.dev/gvisor/pkg/control/client"
	"gvisor.dev/gvisor/pkg/log"
	_ "gvisor.dev/gvisor/pkg/sentry/platform/systrap" // the platform that needs no device of the host
	"gvisor.dev/gvisor/pkg/urpc"
	"gvisor.dev/gvisor/runsc/boot"
	"gvisor.dev/gvisor/runsc/config"
	"gvisor.dev/gvisor/runsc/container"
	"gvisor.dev/gvisor/runsc/flag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
)

// Argv0 is the first argument of a program that is started as the init process of a box
// with this kernel.
const Argv0 = "paddock-guest-gvisor"

// Main must be the first call in the main function of a program that is linked with this
// package. If the program was started as a part of a box, Main runs that part and does not
// return. Otherwise it returns false.
func Main() bool {
	if len(os.Args) == 0 {
		return false
	}
	switch a := os.Args[0]; {
	case a == Argv0:
		boxinit.Main(&supervisor{})
	case isChild(a):
		os.Exit(child())
	default:
		return false
	}
	return true
}

// supervisor implements boxinit.GuestKernel.
type supervisor struct {
	conf *config.Config
	box  *container.Container
	link *link

	watch *boxinit.HostWatch // nil if nothing is mounted

	child *os.File // program that gVisor's processes start with; nil is this program
	layer *os.File // archive with which the private layer begins, or nil

	stopped bool // saved, and must not run again
}

// name is the name of the only container in a box.
const name = "box"

// Start implements boxinit.GuestKernel.
func (s *supervisor) Start(c *boxinit.Config, f boxinit.GuestKernelFiles) error {
	if withC {
		// Without boundChildren, gVisor's processes would have to execute themselves again
		// to drop capabilities, which the broker's filter does not permit.
		return fmt.Errorf("this program was built with cgo, with which gVisor cannot run; build it with CGO_ENABLED=0: %w", paddock.Unsupported)
	}
	log.SetTarget(&log.GoogleEmitter{Writer: &log.Writer{Next: os.Stderr}}) // /dev/null, except in debugging
	var err error
	if s.conf, err = configuration(c.GuestKernel); err != nil {
		return err
	}
	spec := specification(c)
	if spec.Annotations, err = s.beginning(c.GuestKernel, f.Image); err != nil {
		return err
	}
	bundle := filepath.Join(boxinit.State, "bundle")
	data, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(bundle, 0o700), os.WriteFile(filepath.Join(bundle, "config.json"), data, 0o600)); err != nil {
		return err
	}
	if err := leaveSizes(c.GuestKernel.Sizes); err != nil {
		return err
	}
	if s.child, err = boundChildren(); err != nil {
		return err
	}
	restore, err := alike()
	if err != nil {
		return err
	}
	s.box, err = container.New(s.conf, container.Args{ID: name, Spec: spec, BundleDir: bundle})
	restore()
	if err != nil {
		return reason(fmt.Errorf("create gVisor's processes: %w", err))
	}
	if s.link, err = newLink(); err != nil {
		return err
	}
	defer s.link.closeTheirs()
	if c.Link {
		if err := s.link.newWay(f.Link); err != nil {
			return err
		}
	}
	args := s.link.arguments()
	conn, err := client.ConnectTo(s.box.Sandbox.GetControlSocketPath())
	if err != nil {
		return fmt.Errorf("connect to gVisor: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.Call(boot.ContMgrSetNetworkArgs, args, nil); err != nil {
		return fmt.Errorf("give gVisor its link: %w", err)
	}
	if s.watch, err = f.Watch(); err != nil {
		return err
	}
	var had []string
	if c.GuestKernel.Memory {
		for _, b := range c.GuestKernel.Binds {
			had = append(had, b.Target)
		}
	}
	if err := begin(conn, f.Events, c.GuestKernel.Audit, s.watch, had); err != nil {
		return err
	}
	if err := f.Seal(); err != nil {
		return err
	}
	if c.GuestKernel.Memory {
		err := conn.Call(boot.ContMgrRestore, &boot.RestoreOpts{FilePayload: urpc.FilePayload{Files: f.Image}, HavePagesFile: true}, nil)
		return said("go on from memory", err)
	}
	if err := s.link.expect(); err != nil {
		return fmt.Errorf("expect the agent: %w", err)
	}
	// The link exists. With this configuration Start makes no other.
	linked := *s.conf
	linked.Network = config.NetworkHost
	if err := s.box.Start(&linked); err != nil {
		return said("start", err)
	}
	return nil
}

// Processes implements boxinit.GuestKernel. They are the sentry and its gofer.
func (s *supervisor) Processes() int { return 2 }

// Connect implements boxinit.GuestKernel. The agent makes the first connection itself after
// its start. A restored agent does not, and listens shortly after the kernel runs.
func (s *supervisor) Connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if s.link.first != nil {
		return s.link.accept(ctx)
	}
	for {
		conn, err := s.link.dial(ctx)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		select {
		case <-time.After(300 * time.Microsecond):
		case <-ctx.Done():
		}
	}
}

const connectTime = 30 * time.Second

// Wait implements boxinit.GuestKernel.
func (s *supervisor) Wait() error {
	_, err := s.box.Wait()
	return err
}

// configuration returns gVisor's configuration.
func configuration(k *boxinit.GuestKernelConfig) (*config.Config, error) {
	flags := flag.NewFlagSet("gvisor", flag.ContinueOnError)
	config.RegisterFlags(flags)
	if err := flags.Parse([]string{
		"--root=" + filepath.Join(boxinit.State, "run"),
		"--platform=systrap",
		"--network=sandbox",
		"--gofer-network-namespace=host", // the box's own, which is empty
		fmt.Sprintf("--overlay2=root:memory,size=%d", k.Disk),
		"--ignore-cgroups", // the box is in a control group
		"--host-settings=ignore",
		"--host-uds=none",
		"--allow-rootfs-tar-annotation",
		"--in-sandbox-cgroup=v2",
		fmt.Sprintf("--allow-suid=%t", k.ImageFile), // of the image: no host's file is in such a tree but below mounts
	}); err != nil {
		return nil, fmt.Errorf("gVisor's configuration: %w", err)
	}
	conf, err := config.NewFromFlags(flags)
	if err != nil {
		return nil, fmt.Errorf("gVisor's configuration: %w", err)
	}
	return conf, nil
}

// agentCaps are the capabilities that the agent needs in gVisor: to make process groups, to
// protect itself from commands, to start commands as their user, and to drop the rest.
var agentCaps = []string{"CAP_SYS_ADMIN", "CAP_SETPCAP", "CAP_DAC_OVERRIDE", "CAP_CHOWN", "CAP_FOWNER", "CAP_SETUID", "CAP_SETGID"}

// rootCaps are the capabilities of root's commands in the tree of an image, over this kernel: those that Docker gives
// by default. There is no CAP_SYS_ADMIN, by which root could reach the control group that bounds processes, and what
// covers it.
var rootCaps = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP",
	"CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE", "CAP_SETFCAP", "CAP_MKNOD", "CAP_NET_RAW"}

// ownNetwork keeps the sentry in the box's network namespace, which is empty. Making and
// removing another one would cost the host time.
const ownNetwork = "/proc/self/ns/net"

// agentEnv is the agent's own environment, which no command sees. One processor is enough
// for the agent. With several, the Go runtime would make hundreds of system calls at its
// start and to count processors, which are slow on a kernel in user space.
var agentEnv = []string{"GOMAXPROCS=1", "GODEBUG=containermaxprocs=0,updatemaxprocs=0,decoratemappings=0"}

// specification describes the box as an OCI spec for gVisor.
func specification(c *boxinit.Config) *specs.Spec {
	uid, gid := uint32(c.User.UID), uint32(c.User.GID)
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc"},
		{Destination: "/sys", Type: "sysfs", Options: []string{"ro"}},
		{Destination: guestinit.Argv0, Source: boxinit.Root + guestinit.Argv0, Type: "bind", Options: []string{"rbind", "ro"}},
		{Destination: "/dev/shm", Type: "tmpfs", Options: []string{"mode=1777", fmt.Sprintf("size=%d", c.GuestKernel.Disk)}},
	}
	if c.GuestKernel.ImageFile {
		mounts = append(mounts, specs.Mount{Destination: guestinit.Furniture, Source: boxinit.Root + guestinit.Furniture, Type: "bind", Options: []string{"rbind", "ro"}})
	}
	for _, b := range c.GuestKernel.Binds {
		options := []string{"rbind", "ro"}
		if b.Write {
			options[1] = "rw"
		}
		if c.GuestKernel.ImageFile {
			options = append(options, "nosuid", "nodev")
		}
		mounts = append(mounts, specs.Mount{Destination: b.Target, Source: boxinit.Root + b.Target, Type: "bind", Options: options})
	}
	files := uint64(max(c.Files, 4096))
	args := []string{guestinit.Argv0}
	bounding := agentCaps
	if c.GuestKernel.ImageFile {
		args = append(args, guestinit.Furnish, guestinit.RootIsRoot)
		bounding = append(slices.Clone(rootCaps), "CAP_SYS_ADMIN") // the agent gives that one up
	}
	if c.GuestKernel.Sudo {
		args = append(args, guestinit.WithSudo)
	}
	return &specs.Spec{
		Version: "1.0.0", Hostname: c.Hostname, Root: &specs.Root{Path: boxinit.Root}, Mounts: mounts,
		Process: &specs.Process{
			User: specs.User{UID: uid, GID: gid}, Args: args, Cwd: "/", Env: agentEnv,
			Capabilities: &specs.LinuxCapabilities{Bounding: bounding, Effective: agentCaps, Permitted: agentCaps, Inheritable: agentCaps, Ambient: agentCaps},
			Rlimits:      []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Hard: files, Soft: files}},
		},
		Linux: &specs.Linux{
			Namespaces:  []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace, Path: ownNetwork}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.MountNamespace}, {Type: specs.UserNamespace}},
			UIDMappings: []specs.LinuxIDMapping{{ContainerID: uid, HostID: uid, Size: 1}},
			GIDMappings: []specs.LinuxIDMapping{{ContainerID: gid, HostID: gid, Size: 1}},
		},
	}
}
