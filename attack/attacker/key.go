//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// keyrings is P13: keys of the host that a process inherits through its keyrings.
func keyrings() []probe {
	read := func(id int) protocol.Try {
		buf := make([]byte, 256)
		n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, buf, 0)
		if err != nil {
			return refused(err)
		}
		return looted(buf[:min(n, len(buf))])
	}
	ps := []probe{
		{"read by number", func(b *protocol.Brief) protocol.Try {
			if b.Canary.Key == 0 {
				return absent("the host has no key for us")
			}
			return read(b.Canary.Key)
		}},
		{"read by listing", func(b *protocol.Brief) protocol.Try {
			data, err := os.ReadFile("/proc/keys")
			if err != nil {
				return refused(err)
			}
			last := refused(unix.ENOKEY)
			for line := range bytes.Lines(data) {
				if !bytes.Contains(line, []byte(b.Marker)) {
					continue
				}
				id, err := strconv.ParseUint(strings.Fields(string(line))[0], 16, 32)
				if err != nil {
					continue
				}
				if last = read(int(id)); last.Outcome == protocol.Reached {
					return last
				}
				last.Detail = fmt.Sprintf("key %x is listed: %s", id, last.Detail)
			}
			return last
		}},
	}
	rings := []struct {
		name string
		id   int
	}{{"session", unix.KEY_SPEC_SESSION_KEYRING}, {"user", unix.KEY_SPEC_USER_KEYRING}, {"user session", unix.KEY_SPEC_USER_SESSION_KEYRING}}
	for _, r := range rings {
		ps = append(ps,
			probe{"search the " + r.name + " keyring", func(b *protocol.Brief) protocol.Try {
				runtime.LockOSThread()
				id, err := unix.KeyctlSearch(r.id, "user", b.Canary.KeyName, 0)
				if err != nil {
					return refused(err)
				}
				return read(id)
			}},
			probe{"plant in the " + r.name + " keyring", func(b *protocol.Brief) protocol.Try {
				id, err := unix.AddKey("user", b.Marker+"-planted", []byte("planted"), r.id)
				if err != nil {
					return refused(err)
				}
				return inside("planted key %x", id)
			}})
	}
	return append(ps,
		probe{"request_key", func(b *protocol.Brief) protocol.Try {
			id, err := unix.RequestKey("user", b.Canary.KeyName, "", unix.KEY_SPEC_PROCESS_KEYRING)
			if err != nil {
				return refused(err)
			}
			return read(id)
		}},
		probe{"persistent keyring", func(*protocol.Brief) protocol.Try {
			const keyctlGetPersistent = 22
			_, err := unix.KeyctlInt(keyctlGetPersistent, -1, unix.KEY_SPEC_PROCESS_KEYRING, 0, 0)
			if err != nil {
				return refused(err)
			}
			return reached("got the keyring that lasts")
		}},
		probe{"int 0x80 add_key", func(b *protocol.Brief) protocol.Try {
			return foreignAddKey(b.Marker + "-planted80")
		}},
		probe{"big key through a pipe", func(*protocol.Brief) protocol.Try {
			p, _ := unix.BytePtrFromString("big_key")
			_, _, e := syscall.Syscall6(unix.SYS_ADD_KEY, uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(p)), uintptr(unsafe.Pointer(p)), 1, ^uintptr(1), 0)
			if e == unix.ENODEV {
				return absent("the kernel has no big keys")
			}
			if e != 0 {
				return refused(e)
			}
			return inside("made a key of our own")
		}},
	)
}
