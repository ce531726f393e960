// Package machine is QEMU as an engine: a machine that is started, stopped,
// saved, and goes on from memory in another process.
//
// QEMU is trusted until its guest runs. From then on whatever it says may be
// the guest's: answers are bounded, and no number in them is believed.
package machine

import (
	"os"

	"github.com/paddock-sandbox/paddock/internal/driver/microvm/wire"
)

// A Spec says which machine is to run. A cold one has a kernel; one that goes on
// has memory and devices of a machine that was saved, and is otherwise equal to
// it.
//
// Files stay the caller's, who may close them when Start has returned. Only
// Template has to stay open for as long as the machine runs.
type Spec struct {
	// Accel, CPU, CPUs, Memory, Arguments and Firmware count.
	wire.Machine

	// Paths as QEMU opens them, for reading. QEMU opens a path several times and
	// reads each descriptor from where it stands: whoever answers its system
	// calls gives it a file whose offset is 0.
	Kernel string
	Initrd string

	// RAM is the path of a file with the memory to go on from, as long as
	// Memory. It is mapped privately. QEMU 7.2 asks to open it for writing.
	RAM      string
	Template *os.File // the same memory, for SaveMemory; open for reading
	Devices  *os.File // what SaveDevices gave, from its offset on; open only for reading

	Ports []Port

	// Net is the machine's end of its network; nil is none.
	Net *os.File

	// Console takes what the machine writes to its serial console.
	Console *os.File
}

// A Port is a virtio-serial port.
type Port struct {
	Name     string
	Listener *os.File // a Unix stream socket that listens; one connection at a time is served
}

// A Starter starts QEMU with these arguments, the first of which is not the
// program but its first argument, and with these files as descriptors 3, 4, ….
// The process is waited for here, by nobody else.
type Starter func(arguments []string, files []*os.File) (*os.Process, error)
