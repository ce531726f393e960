package netstack

import (
	"io/fs"
	"os"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// keep has a TUN device's interface outlive its descriptors. A socket has none.
func keep(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeSocket != 0 {
		return err
	}
	return kernel.KeepTUN(f)
}

// newEndpoint reads and writes packets of f. Checksums of what comes in are not
// looked at: a kernel made them right, or left them out because nothing is lost on
// the way.
func newEndpoint(f *os.File, mtu uint32, gone func()) (stack.LinkEndpoint, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	socket := info.Mode()&fs.ModeSocket != 0
	return fdbased.New(&fdbased.Options{
		FDs: []int{int(f.Fd())}, MTU: mtu, RXChecksumOffload: true,
		// The other end of a socket is such a stack, the one of a TUN device the
		// kernel's, which wants them.
		TXChecksumOffload:  socket,
		PacketDispatchMode: fdbased.Readv, ProcessorsPerChannel: 1,
		PreConfigured: true, IsPacketSocket: []bool{false},
		ClosedFunc: func(tcpip.Error) { gone() },
	})
}
