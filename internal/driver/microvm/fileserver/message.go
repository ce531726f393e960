package fileserver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

// The protocol; see linux/fuse.h.
const (
	headIn  = 40
	headOut = 16

	rootID  = 1
	nameMax = 255
	pathMax = 4096

	maxData    = protocol.MaxData // of one read or write
	maxMessage = maxData + 4096   // of a request
)

type op uint32

const (
	opLookup        op = 1
	opForget        op = 2
	opGetattr       op = 3
	opSetattr       op = 4
	opReadlink      op = 5
	opSymlink       op = 6
	opMknod         op = 8
	opMkdir         op = 9
	opUnlink        op = 10
	opRmdir         op = 11
	opRename        op = 12
	opLink          op = 13
	opOpen          op = 14
	opRead          op = 15
	opWrite         op = 16
	opStatfs        op = 17
	opRelease       op = 18
	opFsync         op = 20
	opInit          op = 26
	opOpendir       op = 27
	opReaddir       op = 28
	opReleasedir    op = 29
	opFsyncdir      op = 30
	opAccess        op = 34
	opCreate        op = 35
	opInterrupt     op = 36
	opDestroy       op = 38
	opNotifyReply   op = 41
	opBatchForget   op = 42
	opFallocate     op = 43
	opReaddirplus   op = 44
	opRename2       op = 45
	opLseek         op = 46
	opCopyFileRange op = 47
)

// Flags in the answer to OPEN.
const (
	openKeepCache = 1 << 1
	openCacheDir  = 1 << 3
	openNoFlush   = 1 << 5 // with openKeepCache: the content may be cached, but is asked for at each open
)

// openExec is the flag of OPEN for a program that is to be executed.
const openExec = 0x20

// Fields that SETATTR changes.
const (
	setMode     = 1 << 0
	setUID      = 1 << 1
	setGID      = 1 << 2
	setSize     = 1 << 3
	setAtime    = 1 << 4
	setMtime    = 1 << 5
	setHandle   = 1 << 6
	setAtimeNow = 1 << 7
	setMtimeNow = 1 << 8
)

const (
	getattrHandle = 1 << 0
	writeCache    = 1 << 0 // of WRITE: pages of a mapping, through any handle of the file
	fsyncData     = 1 << 0
)

// A head is the header of a request.
type head struct {
	length uint32
	op     op
	unique uint64
	node   uint64
}

// readHead parses a header and reports whether it is valid.
func readHead(data []byte) (head, error) {
	e := binary.LittleEndian
	h := head{length: e.Uint32(data), op: op(e.Uint32(data[4:])), unique: e.Uint64(data[8:]), node: e.Uint64(data[16:])}
	if h.length < headIn || h.length > maxMessage {
		return head{}, fmt.Errorf("a request of %d bytes: %w", h.length, paddock.Invalid)
	}
	return h, nil
}

// A body is the rest of a request. Reading past its end returns 0, which end reports.
type body struct {
	data  []byte
	short bool
}

func (b *body) take(n int) []byte {
	if n > len(b.data) {
		b.short, b.data = true, nil
		return make([]byte, min(n, 8))
	}
	data := b.data[:n]
	b.data = b.data[n:]
	return data
}

func (b *body) u16() uint16 { return binary.LittleEndian.Uint16(b.take(2)) }
func (b *body) u32() uint32 { return binary.LittleEndian.Uint32(b.take(4)) }
func (b *body) u64() uint64 { return binary.LittleEndian.Uint64(b.take(8)) }
func (b *body) skip(n int)  { b.take(n) }

// text reads a text up to NUL.
func (b *body) text() string {
	i := bytes.IndexByte(b.data, 0)
	if i < 0 {
		b.short, b.data = true, nil
		return ""
	}
	text := string(b.data[:i])
	b.data = b.data[i+1:]
	return text
}

// name reads a name in a directory.
func (b *body) name() (string, error) {
	name := b.text()
	if b.short {
		return "", syscall.EINVAL
	}
	return name, checkName(name)
}

// end returns an error unless exactly the whole body was read.
func (b *body) end() error {
	if b.short || len(b.data) != 0 {
		return syscall.EINVAL
	}
	return nil
}

// checkName refuses every name that is not an entry of one directory.
func checkName(name string) error {
	switch {
	case len(name) > nameMax:
		return syscall.ENAMETOOLONG
	case name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00"):
		return syscall.EINVAL
	}
	return nil
}

// errnoOf returns the error number to send to the machine.
func errnoOf(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	var e syscall.Errno
	if errors.As(err, &e) && e > 0 && e < 512 { // higher numbers are internal to the kernel
		return e
	}
	return syscall.EIO
}

// putHead writes the header of a reply.
func putHead(reply []byte, unique uint64, err syscall.Errno) {
	e := binary.LittleEndian
	e.PutUint32(reply, uint32(len(reply)))
	e.PutUint32(reply[4:], uint32(-int32(err)))
	e.PutUint64(reply[8:], unique)
}

// A writer appends numbers to a reply.
type writer struct{ data []byte }

func (w *writer) u16(v uint16) { w.data = binary.LittleEndian.AppendUint16(w.data, v) }
func (w *writer) u32(v uint32) { w.data = binary.LittleEndian.AppendUint32(w.data, v) }
func (w *writer) u64(v uint64) { w.data = binary.LittleEndian.AppendUint64(w.data, v) }
func (w *writer) zero(n int)   { w.data = append(w.data, make([]byte, n)...) }
