package netstack

import (
	"io/fs"
	"os"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// keep makes the interface of a TUN device outlive its descriptors. It does nothing for a
// socket.
func keep(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Mode()&fs.ModeSocket != 0 {
		return err
	}
	return sys.KeepTUN(f)
}

// newEndpoint reads and writes packets of f. It does not verify checksums of incoming
// packets: a kernel computed them, or left them out because nothing is lost on this path.
func newEndpoint(f *os.File, mtu uint32, gone func()) (stack.LinkEndpoint, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	socket := info.Mode()&fs.ModeSocket != 0
	return fdbased.New(&fdbased.Options{
		FDs: []int{int(f.Fd())}, MTU: mtu, RXChecksumOffload: true,
		// The other end of a socket is another such stack. The other end of a TUN device is
		// the kernel, which needs checksums.
		TXChecksumOffload:  socket,
		PacketDispatchMode: fdbased.Readv, ProcessorsPerChannel: 1,
		PreConfigured: true, IsPacketSocket: []bool{false},
		ClosedFunc: func(tcpip.Error) { gone() },
	})
}
