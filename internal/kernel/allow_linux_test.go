package kernel

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

func TestADialerMakesNoSocketThatReachesAPath(t *testing.T) {
	var raw []bpf.RawInstruction
	for _, i := range dialerFilter() {
		raw = append(raw, bpf.RawInstruction{Op: i.Code, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the filter is no program")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		call uint32
		args [2]uint32
		want bool
	}{
		{"a socket of IPv4", unix.SYS_SOCKET, [2]uint32{unix.AF_INET, unix.SOCK_STREAM}, true},
		{"a socket of Unix", unix.SYS_SOCKET, [2]uint32{unix.AF_UNIX, unix.SOCK_STREAM}, false},
		{"a pair of streams", unix.SYS_SOCKETPAIR, [2]uint32{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, true},
		{"a pair of datagrams", unix.SYS_SOCKETPAIR, [2]uint32{unix.AF_UNIX, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, false},
		{"a pair of another family", unix.SYS_SOCKETPAIR, [2]uint32{unix.AF_TIPC, unix.SOCK_STREAM}, false},
		{"a call without conditions", unix.SYS_READ, [2]uint32{}, true},
		{"a call that it does not need", unix.SYS_EXECVE, [2]uint32{}, false},
	} {
		// The interpreter reads big-endian words, and each argument has its low one first.
		data := make([]byte, 64)
		binary.BigEndian.PutUint32(data[dataNumber:], tc.call)
		binary.BigEndian.PutUint32(data[dataArch:], Arch)
		for i, a := range tc.args {
			binary.BigEndian.PutUint32(data[dataArgs+8*i:], a)
		}
		if got, err := vm.Run(data); err != nil || (uint32(got) == unix.SECCOMP_RET_ALLOW) != tc.want {
			t.Errorf("%s: %#x, %v", tc.name, got, err)
		}
	}
}
