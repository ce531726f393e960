//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// setIDProgram is P19.
func setIDProgram() []probe {
	return []probe{
		{"programs of the system", func(*protocol.Brief) protocol.Try {
			progs := setIDPrograms()
			if len(progs) == 0 {
				return refused(unix.ENOENT)
			}
			return each(progs, func(p string) protocol.Try {
				r, w, err := os.Pipe()
				if err != nil {
					return refused(err)
				}
				defer w.Close()
				cmd := exec.Command(p)
				cmd.Stdin = r
				err = cmd.Start()
				r.Close()
				if err != nil {
					return refused(err)
				}
				status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				for line := range strings.Lines(string(status)) {
					// real, effective, saved, file system
					if f := strings.Fields(line); len(f) == 5 && f[0] == "Uid:" && f[2] == "0" && os.Geteuid() != 0 {
						return reached("runs as root")
					}
				}
				return protocol.Try{Outcome: protocol.Denied, Errno: "ignored", Detail: "the bit had no effect"}
			})
		}},
		{"copy in the workspace", func(b *protocol.Brief) protocol.Try {
			if b.SUID == "" {
				return absent("only root can leave one there")
			}
			out, err := exec.Command(b.SUID, "whoami").Output()
			if err != nil {
				return refused(err)
			}
			if bytes.Contains(out, []byte("euid 0")) && os.Geteuid() != 0 {
				return reached("%s", out)
			}
			return protocol.Try{Outcome: protocol.Denied, Errno: "ignored", Detail: "the bit had no effect"}
		}},
		{"no new privileges", func(*protocol.Brief) protocol.Try {
			data, err := os.ReadFile("/proc/self/status")
			if err != nil {
				return refused(err)
			}
			if strings.Contains(string(data), "NoNewPrivs:\t1") {
				return protocol.Try{Outcome: protocol.Denied, Errno: "set", Detail: "privileges cannot be gained"}
			}
			return reached("privileges can be gained")
		}},
	}
}

// environment is P23.
func environment() []probe {
	return []probe{
		{"own", func(*protocol.Brief) protocol.Try {
			return withLoot(inside("looked"), strings.Join(os.Environ(), "\n"))
		}},
		{"of every process", func(*protocol.Brief) protocol.Try {
			var all strings.Builder
			for _, pid := range processes() {
				data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
				if err == nil {
					all.Write(bytes.ReplaceAll(data, []byte{0}, []byte("\n")))
				}
			}
			return withLoot(inside("looked"), all.String())
		}},
		{"command lines of every process", func(*protocol.Brief) protocol.Try {
			var all strings.Builder
			for _, pid := range processes() {
				data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
				if err == nil {
					all.Write(bytes.ReplaceAll(data, []byte{0}, []byte(" ")))
				}
			}
			return withLoot(inside("looked"), all.String())
		}},
	}
}

// memfd returns an unnamed file with this program.
func memfd() (int, error) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return -1, err
	}
	fd, err := unix.MemfdCreate("fileless", 0)
	if err != nil {
		return -1, err
	}
	f := os.NewFile(uintptr(fd), "fileless")
	defer f.Close()
	if _, err := f.Write(self); err != nil {
		return -1, err
	}
	return unix.Dup(fd) // without close-on-exec
}

// fromMemory executes this program again from an unnamed file.
func fromMemory(args []string) error {
	fd, err := memfd()
	if err != nil {
		return err
	}
	return execveat(fd, append([]string{"attacker"}, args...))
}

// fileless is P25: running without a file is permitted if it changes nothing.
func fileless() []probe {
	// confined runs the same attacks from there.
	confined := func(b *protocol.Brief, run func(args ...string) ([]byte, error)) protocol.Try {
		for _, c := range [][]string{{"A08", "key in the home: direct"}, {"A01", "/etc"}, {"P10", "unshare uts"}, {"C01", "open O_CREAT"}} {
			out, err := run(c...)
			if err != nil {
				return refused(err)
			}
			if bytes.Contains(out, []byte(`"`+protocol.Reached+`"`)) {
				return protocol.Try{Outcome: protocol.Reached, Detail: "not confined from there", Loot: string(out)}
			}
		}
		return inside("ran, and was as confined as before")
	}
	return []probe{
		{"memfd", func(b *protocol.Brief) protocol.Try {
			fd, err := memfd()
			if err != nil {
				return refused(err)
			}
			return confined(b, func(args ...string) ([]byte, error) {
				return exec.Command(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), args...).Output()
			})
		}},
		{"execveat", func(b *protocol.Brief) protocol.Try {
			return confined(b, func(args ...string) ([]byte, error) {
				return exec.Command("/proc/self/exe", append([]string{"execveat"}, args...)...).Output()
			})
		}},
		{"copy in /tmp", func(b *protocol.Brief) protocol.Try {
			self, err := os.ReadFile("/proc/self/exe")
			if err != nil {
				return refused(err)
			}
			p := filepath.Join("/tmp", b.Marker+"-a13-copy")
			if err := os.WriteFile(p, self, 0o755); err != nil {
				return refused(err)
			}
			defer os.Remove(p)
			return confined(b, func(args ...string) ([]byte, error) { return exec.Command(p, args...).Output() })
		}},
		{"through the loader", func(b *protocol.Brief) protocol.Try {
			for _, l := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"} {
				if _, err := os.Stat(l); err != nil {
					continue
				}
				for _, p := range setIDPrograms() {
					err := exec.Command(l, p, "--version").Run()
					if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
						return refused(err)
					}
				}
				return inside("the loader runs programs without more rights")
			}
			return absent("no loader")
		}},
		{"personality of another system", func(*protocol.Brief) protocol.Try {
			_, _, e := syscall.Syscall(unix.SYS_PERSONALITY, 0xffffffff, 0, 0)
			if e != 0 {
				return refused(e)
			}
			return inside("looked")
		}},
	}
}
