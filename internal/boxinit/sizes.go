package boxinit

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/paddock-sandbox/paddock"
)

// Sizes are what commands see as the memory and the processors of the machine: the present limits.
type Sizes struct {
	Memory     int64 // bytes; 0 for the host's
	Processors int   // 0 for the host's
	PIDs       int   // not shown, but told when it is reached
}

// SizesLen is the length of FileSizes in bytes.
const SizesLen = 24

// SizesOf returns what shows limits. A part of a processor is shown as one.
func SizesOf(l paddock.Limits) Sizes {
	return Sizes{Memory: l.Memory, Processors: int(min(math.Ceil(l.CPUs), math.MaxInt32)), PIDs: l.PIDs}
}

// Write writes the sizes to FileSizes.
func (s Sizes) Write(f io.WriterAt) error {
	var b []byte
	for _, n := range []int64{s.Memory, int64(s.Processors), int64(s.PIDs)} {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	_, err := f.WriteAt(b, 0)
	return err
}
