package protocol

import (
	"encoding/binary"
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

// Constants of FUSE, the protocol of the files' port; see linux/fuse.h.
const (
	FUSEMajor  = 7
	FUSEMinor  = 38
	FUSEOldest = 31 // oldest minor version of the other side

	MaxData = 1 << 20 // bytes of one read or write
)

// Features that both sides of INIT offer.
const (
	initAsyncRead       = 1 << 0
	initAtomicTruncate  = 1 << 3
	initBigWrites       = 1 << 5
	initAutoInvalData   = 1 << 12
	initReaddirplus     = 1 << 13
	initReaddirplusAuto = 1 << 14
	initAsyncDirect     = 1 << 15
	initParallelDirOps  = 1 << 18
	initHandleKillpriv  = 1 << 19
	initMaxPages        = 1 << 22
	initCacheLinks      = 1 << 23

	initWanted = initAsyncRead | initAtomicTruncate | initBigWrites | initAutoInvalData | initReaddirplus | initReaddirplusAuto |
		initAsyncDirect | initParallelDirOps | initHandleKillpriv | initMaxPages | initCacheLinks
)

// AppendInit appends the answer to an INIT request: the features of the file server that
// the machine's kernel may use. The machine's init answers it, because the tree is mounted
// before a host is connected.
func AppendInit(b, request []byte) ([]byte, error) {
	if len(request) < 16 {
		return nil, fmt.Errorf("INIT of %d bytes: %w", len(request), paddock.Invalid)
	}
	field := func(i int) uint32 { return binary.NativeEndian.Uint32(request[4*i:]) }
	theirs, version := field(0), field(1)
	switch {
	case theirs > FUSEMajor: // it asks again with our version
		version = FUSEMinor
	case theirs < FUSEMajor || version < FUSEOldest:
		return nil, fmt.Errorf("FUSE %d.%d is too old, at least %d.%d is needed: %w", theirs, version, FUSEMajor, FUSEOldest, paddock.Unsupported)
	}
	u32 := binary.NativeEndian.AppendUint32
	b = u32(b, FUSEMajor)
	b = u32(b, min(version, FUSEMinor))
	b = u32(b, min(field(2), MaxData)) // readahead
	b = u32(b, field(3)&initWanted)
	b = binary.NativeEndian.AppendUint16(b, 64) // maximum of background requests
	b = binary.NativeEndian.AppendUint16(b, 48) // number at which it is congested
	b = u32(b, MaxData)
	b = u32(b, 1) // time granularity in ns
	b = binary.NativeEndian.AppendUint16(b, MaxData/4096)
	return append(b, make([]byte, 2+4+7*4)...), nil
}
