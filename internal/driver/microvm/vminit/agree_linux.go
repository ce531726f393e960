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

// agree answers the requests of a kernel that come before any request for a file, so that
// the tree can be mounted without a host or a box. The answers are the same for all boxes.
// It reports whether it answered. Any other request without a host would be for an unknown
// file, and fails.
func (p *pump) agree(request []byte) (done bool, err error) {
	reply := make([]byte, outHeader, 128)
	switch op := binary.NativeEndian.Uint32(request[4:]); {
	case op == opInit:
		if reply, err = protocol.AppendInit(reply, request[inHeader:]); err != nil {
			return false, fmt.Errorf("begin to serve files: %w", err)
		}
	case op == opStatfs && p.alone.Load():
		reply = appendStatfs(reply)
	case op == opGetxattr && p.alone.Load(): // for the root, asked by an overlay since Linux 6.8
		binary.NativeEndian.PutUint32(reply[4:], ^uint32(syscall.ENOSYS)+1) // as the host answers for every file
	case p.alone.Load() && silent(op):
		return true, nil
	case p.alone.Load(): // an unexpected request fails, and so does the mount
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

// longest is the maximum length of a name.
const longest = 255

// appendStatfs appends a struct fuse_kstatfs of which only the length of names is known. An
// overlay needs that.
func appendStatfs(b []byte) []byte {
	b = append(b, make([]byte, 5*8)...)
	for _, n := range []uint32{pageSize, longest, pageSize} {
		b = binary.NativeEndian.AppendUint32(b, n)
	}
	return append(b, make([]byte, 4+6*4)...)
}
