package vminit

import (
	"encoding/binary"
	"fmt"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

// Requests that the machine answers itself.
const (
	opStatfs   = 17
	opGetxattr = 22
	opInit     = 26
)

// agree answers what a kernel asks of a file system's server before it asks for any
// file, so that the tree can be mounted while there is no host to ask, nor a box: what
// is answered is the same for all. It says whether the request was such a one. Another
// one, while there is no host, would be about a file of nobody's, and fails.
func (p *pump) agree(request []byte) (done bool, err error) {
	reply := make([]byte, outHeader, 128)
	switch op := binary.NativeEndian.Uint32(request[4:]); {
	case op == opInit:
		if reply, err = protocol.AppendInit(reply, request[inHeader:]); err != nil {
			return false, fmt.Errorf("begin to serve files: %w", err)
		}
	case op == opStatfs && p.alone.Load():
		reply = appendStatfs(reply)
	case op == opGetxattr && p.alone.Load(): // of the root, asked by an overlay since Linux 6.8
		binary.NativeEndian.PutUint32(reply[4:], ^uint32(syscall.ENOSYS)+1) // as from the host, for every file
	case p.alone.Load() && silent(op):
		return true, nil
	case p.alone.Load(): // of a kernel that asks more: it is told so, and who mounts tells of it
		binary.NativeEndian.PutUint32(reply[4:], ^uint32(syscall.EIO)+1)
	default:
		return false, nil
	}
	binary.NativeEndian.PutUint32(reply, uint32(len(reply)))
	copy(reply[8:outHeader], request[8:16])
	if _, err := p.device.Write(reply); err != nil {
		return false, fmt.Errorf("begin to serve files: %w", err)
	}
	return true, nil
}

// longest is how long a name may be, wherever it is.
const longest = 255

// appendStatfs appends struct fuse_kstatfs of a file system of which nothing is known
// but how long names are: an overlay asks for that.
func appendStatfs(b []byte) []byte {
	b = append(b, make([]byte, 5*8)...)
	for _, n := range []uint32{pageSize, longest, pageSize} {
		b = binary.NativeEndian.AppendUint32(b, n)
	}
	return append(b, make([]byte, 4+6*4)...)
}
