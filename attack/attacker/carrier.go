//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// Where the agent of a sandbox with its own kernel is.
const (
	agentPort  = "198.18.0.15:1"
	linkEnd    = "198.18.0.14"
	ownAddress = "198.18.0.15/32" // the only interface, with a route only to linkEnd
	agentDir   = "/.paddock"
)

// ownCarrier is P33: the connection between a sandbox's own kernel and the host. Without
// such a kernel there is nothing to attack.
func ownCarrier() []probe {
	dial := func(network, to string) protocol.Try {
		c, err := net.DialTimeout(network, to, 2*time.Second)
		if err != nil {
			return refused(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		// The start of a call, with a token of zeros. A connection alone is no success.
		if _, err := c.Write(append([]byte("C"), make([]byte, 32)...)); err != nil {
			return refused(err)
		}
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
			return refused(unix.ECONNRESET)
		} else if err != nil {
			return refused(err)
		}
		return reached("%s answered", to)
	}
	ps := []probe{
		{"agent's port", func(*protocol.Brief) protocol.Try { return dial("tcp4", agentPort) }},
		{"link's other end", func(*protocol.Brief) protocol.Try {
			return each([]string{"1", "22", "80", "8080"}, func(p string) protocol.Try { return dial("tcp4", linkEnd+":"+p) })
		}},
		{"link's other end, datagrams", func(*protocol.Brief) protocol.Try { return dial("udp4", linkEnd+":53") }},
		{"another interface", func(*protocol.Brief) protocol.Try {
			list, err := net.Interfaces()
			if err != nil {
				return refused(err)
			}
			for _, i := range list {
				if addrs, _ := i.Addrs(); len(addrs) > 0 && i.Flags&net.FlagLoopback == 0 {
					if addrs[0].String() != ownAddress {
						return reached("%s has the address %v", i.Name, addrs)
					}
				}
			}
			return refused(unix.ENODEV)
		}},
		{"namespaces of the agent", func(*protocol.Brief) protocol.Try {
			return each([]string{"net", "mnt"}, func(ns string) protocol.Try {
				fd, err := unix.Open("/proc/1/ns/"+ns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					return refused(err)
				}
				defer unix.Close(fd)
				if err := unix.Setns(fd, 0); err != nil {
					return refused(err)
				}
				return dial("tcp4", agentPort)
			})
		}},
		{"agent's directory", func(*protocol.Brief) protocol.Try {
			if found := names(agentDir); len(found) > 0 {
				return reached("%q is in it", found)
			}
			return refused(unix.ENOENT)
		}},
		{"agent's program", func(*protocol.Brief) protocol.Try {
			fd, err := unix.Open(agentDir+"/agent", unix.O_WRONLY|unix.O_CLOEXEC, 0)
			return closeTry(fd, err, "opened it for writing")
		}},
		{"cover of the agent's directory", func(*protocol.Brief) protocol.Try {
			return done(unix.Unmount(agentDir, unix.MNT_DETACH), "unmounted it")
		}},
		{"cover of the agent's directory, in a user namespace", func(*protocol.Brief) protocol.Try { return carrierIn("uncover") }},
		{"control groups, mounted anew", func(*protocol.Brief) protocol.Try { return carrierIn("groups") }},
		{"agent's descriptors", func(*protocol.Brief) protocol.Try {
			return each(names("/proc/1/fd"), func(fd string) protocol.Try { return readName("/proc/1/fd/" + fd) })
		}},
		{"signals to the agent", toAgent(func() protocol.Try {
			fd, err := unix.PidfdOpen(1, 0)
			if err == nil {
				defer unix.Close(fd)
				err = unix.PidfdSendSignal(fd, 0, nil, 0)
			}
			// This would end the sandbox, and the report with it.
			return mildest(unix.Kill(1, 0), err)
		})},
		{"signals to the agent's threads", toAgent(func() protocol.Try {
			return each(names("/proc/1/task"), func(name string) protocol.Try {
				tid, err := strconv.Atoi(name)
				if err != nil {
					return refused(err)
				}
				if _, _, errno := unix.Syscall(unix.SYS_TKILL, uintptr(tid), 0, 0); errno != 0 {
					return mildest(errno, unix.Kill(tid, 0), unix.Tgkill(1, tid, 0))
				}
				return mildest(nil)
			})
		})},
		{"a signal to the agent when a file is ready", toAgent(func() protocol.Try {
			var p [2]int
			if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
				return refused(err)
			}
			defer unix.Close(p[0])
			defer unix.Close(p[1])
			// The kernel checks the permission when the signal is sent, and reports no
			// error.
			_, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETOWN, 1)
			if err == nil {
				_, err = unix.FcntlInt(uintptr(p[0]), unix.F_SETSIG, int(unix.SIGWINCH))
			}
			return mildest(err)
		})},
		{"the agent's process group", toAgent(func() protocol.Try { return mildest(unix.Setpgid(0, 1)) })},
	}
	return ps
}

// toAgent tries something if there is an agent.
func toAgent(run func() protocol.Try) func(*protocol.Brief) protocol.Try {
	return func(*protocol.Brief) protocol.Try {
		if comm, _ := os.ReadFile("/proc/1/cmdline"); !strings.HasPrefix(string(comm), agentDir) {
			return refused(unix.ESRCH)
		}
		return run()
	}
}

// mildest combines several ways to the same goal: one success is enough.
func mildest(errs ...error) protocol.Try {
	for _, err := range errs {
		if err == nil {
			return inside("a command may end its own sandbox")
		}
	}
	return refused(errs[0])
}

// carrierIn runs this program in a user namespace, as whoami.
func carrierIn(what string) protocol.Try {
	out, err := inNamespace(unix.CLONE_NEWUSER|unix.CLONE_NEWNS, true, "whoami", what)
	if err != nil {
		return refused(err)
	}
	if strings.HasPrefix(out, "+") {
		return reached("%s", out[1:])
	}
	return protocol.Try{Outcome: protocol.Denied, Errno: strings.TrimPrefix(out, "-")}
}

// uncover looks below the mount over the agent's directory.
func uncover() protocol.Try {
	if err := unix.Unmount(agentDir, unix.MNT_DETACH); err != nil {
		return refused(err)
	}
	for _, name := range names(agentDir) {
		if strings.HasPrefix(name, "commands") {
			return reached("%s has %q", agentDir, names(agentDir))
		}
	}
	return refused(unix.ENOENT)
}

// raiseGroups raises the process limit of the commands' group.
func raiseGroups() protocol.Try {
	for _, kind := range []string{"cgroup", "cgroup2"} {
		if err := unix.Mount("none", "/mnt", kind, 0, ""); err != nil {
			continue
		}
		var found []string
		_ = filepath.WalkDir("/mnt", func(p string, _ os.DirEntry, err error) error {
			if err == nil && filepath.Base(p) == "pids.max" {
				found = append(found, p)
			}
			return nil
		})
		for _, p := range found {
			f, err := os.OpenFile(p, os.O_WRONLY, 0)
			if err != nil {
				continue
			}
			_, err = f.WriteString("max")
			if err := errors.Join(err, f.Close()); err == nil {
				return reached("%s", fmt.Sprintf("wrote %s of a %s", p, kind))
			}
		}
	}
	return refused(unix.EPERM)
}
