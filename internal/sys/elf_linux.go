package sys

import "encoding/binary"

// elf gives a complete program for this machine: an ELF header, one program header
// that loads the whole file, and code. See elf(5).
func elf(code []byte) []byte {
	const base, header, segment = 0x400000, 64, 56
	le := binary.LittleEndian
	b := append(make([]byte, 0, header+segment+len(code)), 0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = le.AppendUint16(b, 2) // executable
	b = le.AppendUint16(b, elfMachine)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, base+header+segment) // entry
	b = le.AppendUint64(b, header)              // program headers
	b = le.AppendUint64(b, 0)                   // no sections
	b = le.AppendUint32(b, 0)
	for _, n := range []uint16{header, segment, 1, 64, 0, 0} {
		b = le.AppendUint16(b, n)
	}
	b = le.AppendUint32(b, 1) // load
	b = le.AppendUint32(b, 5) // readable and executable
	size := uint64(header + segment + len(code))
	for _, n := range []uint64{0, base, base, size, size, 0x10000} {
		b = le.AppendUint64(b, n)
	}
	return append(b, code...)
}
