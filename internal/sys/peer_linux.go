package sys

import (
	"errors"
	"fmt"
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// PeerUID returns the user of the process at the other end of a Unix socket, as it was when it
// connected.
func PeerUID(conn syscall.Conn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, fmt.Errorf("peer: %w", err)
	}
	var cred *unix.Ucred
	var errno error
	if err = raw.Control(func(fd uintptr) { cred, errno = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err == nil {
		err = errno
	}
	if err == nil && cred.Uid == math.MaxUint32 { // of a socket that no user is known of
		err = errors.New("the socket tells no user")
	}
	if err != nil {
		return -1, fmt.Errorf("peer: %w", err)
	}
	return int(cred.Uid), nil
}
