package encode

import (
	"hash/crc32"
	"math/bits"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// posixCRC is the checksum of POSIX cksum: CRC-32 from the highest bit on,
// with the length behind the data. It is the usual CRC-32 of the bytes with
// their bits turned round.
type posixCRC struct {
	crc    uint32
	begun  bool
	turned []byte
}

func (c *posixCRC) write(b []byte) {
	if !c.begun {
		c.begun, c.crc = true, 1<<32-1
	}
	c.turned = append(c.turned[:0], b...)
	for i, x := range c.turned {
		c.turned[i] = bits.Reverse8(x)
	}
	c.crc = crc32.Update(c.crc, crc32.IEEETable, c.turned)
}

func (c *posixCRC) sum(n uint64) uint32 {
	c.write(nil)
	for ; n > 0; n >>= 8 {
		c.write([]byte{byte(n)})
	}
	return ^bits.Reverse32(^c.crc)
}

var crc32Spec = command.Spec{Name: "crc32", Synopsis: "[FILE]...", About: "Print the CRC-32 of each FILE."}

func runCRC32(t *kernel.Task) int {
	a, status, ok := crc32Spec.Parse(t)
	if !ok {
		return status
	}
	w := command.Stdout(t)
	return command.EachFile(t, command.InputNames(a.Operands), func(name string, r *command.Reader) {
		h := crc32.NewIEEE()
		if !feed(h, r) {
			return
		}
		w.Printf("%08x", h.Sum32())
		if len(a.Operands) > 1 {
			w.String("\t" + name)
		}
		w.Byte('\n')
	})
}
