package guestpb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// Where the host can make further connections to a guest, the content of a large
// file goes over one of its own, past the calls: there each message, frame and window
// is copied and answered for, which in an emulated machine takes most of the time.
//
// Such a connection begins with Aside, where another one begins with HTTP/2's preface,
// and the number that the call gave, which is of the host's choice and of AsideNumber
// bytes. Then come blocks, each four bytes of length, the highest first, and as many
// bytes, at most AsideBlock; one of no bytes is the end. What is right and what went
// wrong is said by the call alone: a connection that ends without that block is one of
// a call that failed.
const (
	Aside       = 'A'
	AsideNumber = 16
	AsideBlock  = 256 << 10

	// AsideAfter is how much of a file goes by the call, in bytes: to make a connection
	// takes as long as that.
	AsideAfter = 1 << 20
)

const asideHead = 4

// ErrBlock is that of a block that is longer than one can be.
var ErrBlock = errors.New("a block is too long")

// ReadBlock reads a block into buf, of AsideBlock bytes, and says how long it is. The
// last one has no bytes. That nothing comes, or half a block, is io.ErrUnexpectedEOF.
func ReadBlock(r io.Reader, buf []byte) (int, error) {
	var head [asideHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, cutOff(err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if uint64(n) > uint64(len(buf)) {
		return 0, fmt.Errorf("%w: %d bytes", ErrBlock, n)
	}
	if _, err := io.ReadFull(r, buf[:n]); err != nil {
		return 0, cutOff(err)
	}
	return int(n), nil
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// WriteBlock writes a block of AsideBlock bytes at most.
func WriteBlock(conn net.Conn, data []byte) error {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	parts := net.Buffers{head, data}
	_, err := parts.WriteTo(conn)
	return err
}
