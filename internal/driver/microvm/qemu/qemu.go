// Package qemu starts, stops, saves and restores a QEMU virtual machine; a saved machine goes on from
// memory in another process.
//
// QEMU is trusted until its guest runs. From then on its answers may be the guest's: their size is
// bounded, and no number in them is trusted.
package qemu

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

// A Spec describes the machine to run. A machine that boots has a kernel. A restored
// machine has the memory and devices of a saved one, and must otherwise be equal to it: the
// same number and names of ports, and a network or none.
//
// The caller may close the files after Start has returned. Only Template must stay open
// until the last SaveMemory.
type Spec struct {
	// Accel, CPU, CPUs, Memory, Arguments and Firmware are used.
	protocol.Machine

	// Paths as QEMU opens them for reading. QEMU opens a path several times and reads each
	// descriptor from its offset. So whoever handles its system calls must give it a file
	// with offset 0.
	Kernel string
	Initrd string

	// RAM is the path of a file with the memory to restore, of size Memory. QEMU maps it
	// privately, although QEMU 7.2 opens it for writing.
	RAM      string
	Template *os.File  // the same memory, open for reading, for SaveMemory
	Devices  io.Reader // output of SaveDevices

	Ports []Port

	// Net is the machine's end of its network: one end of a connected pair of Unix sockets
	// of type SOCK_SEQPACKET or SOCK_DGRAM. Each packet is an Ethernet frame. Nil means no
	// network.
	Net *os.File

	// Console receives the output of the machine's serial console. It is open only for
	// writing and made non-blocking, and output without room is lost. Nil discards the
	// output.
	Console *os.File
}

// A Port is a virtio-serial port. Its listener is a Unix stream socket that serves one
// connection at a time. QEMU discards the guest's output to a port without a connection.
type Port struct {
	Name     string
	Listener *os.File
}

// A Starter starts QEMU with these arguments, without the program's name, and with these
// files as descriptors 3, 4, …. On descriptor 2 QEMU writes why it cannot run. This package
// waits for the process, and no one else may.
type Starter func(arguments []string, files []*os.File) (*os.Process, error)

// MTU is the maximum of the machine's interface.
const MTU = 65520

// QEMU's descriptors, starting with the first that a Starter passes.
const (
	firstFD   = 3
	qmpFD     = firstFD
	devicesFD = firstFD + 1 // if the machine is restored
)

// Sets of descriptors of QEMU (/dev/fdset/N), each for one use.
const (
	consoleSet = 1 + iota
	devicesSet
)

func fdset(n int) string { return "/dev/fdset/" + strconv.Itoa(n) }

// again reports whether the machine is restored.
func (s *Spec) again() bool { return s.RAM != "" }

// check refuses values with a comma, which ends a value in QEMU's arguments.
func (s *Spec) check() error {
	if s.again() == (s.Kernel != "") || s.again() != (s.Devices != nil) || s.again() != (s.Template != nil) {
		return fmt.Errorf("a machine has a kernel, or memory and devices: %w", paddock.Invalid)
	}
	if s.Accel != protocol.KVM && s.Accel != protocol.TCG {
		return fmt.Errorf("accelerator %q: %w", s.Accel, paddock.Invalid)
	}
	if s.CPUs < 1 || s.Memory <= 0 || s.Memory%pageSize != 0 {
		return fmt.Errorf("%d processors and %d bytes: %w", s.CPUs, s.Memory, paddock.Invalid)
	}
	values := []string{s.RAM}
	for i, part := range strings.Split(s.CPU, ",") { // a model, and its additional features
		if i > 0 && !strings.HasPrefix(part, "+") || strings.ContainsAny(part, "=\x00") {
			return fmt.Errorf("processor %q: %w", s.CPU, paddock.Invalid)
		}
	}
	for _, p := range s.Ports {
		values = append(values, p.Name)
	}
	for _, v := range values {
		if strings.ContainsAny(v, ",\x00") {
			return fmt.Errorf("%q as a value: %w", v, paddock.Invalid)
		}
	}
	return nil
}

// processors returns the argument for the number of processors. Before 8.1, QEMU leaves out
// memory barriers if it emulates a machine with at most one processor. But its devices run
// in another thread. Without barriers, the processor and a device may each miss that the
// other waits for it, and both wait forever.
func (s *Spec) processors() string {
	if s.Accel == protocol.TCG && s.CPUs == 1 {
		return "1,maxcpus=2"
	}
	return strconv.Itoa(s.CPUs)
}

// plan returns QEMU's arguments and their files. qmp is the connection for control. A
// restored machine reads the state of its devices from devices.
func (s *Spec) plan(qmp, devices *os.File) ([]string, []*os.File) {
	files := []*os.File{qmp}
	if s.again() {
		files = append(files, devices)
	}
	give := func(f *os.File) int {
		files = append(files, f)
		return firstFD + len(files) - 1
	}
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-S",
		"-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
		// x-option-roms=off: option ROMs are for boot loaders. acpi=on: the kernel finds
		// devices by ACPI. dump-guest-core=off: no memory in core dumps. mem-merge=off:
		// equal pages are not shared. suppress-vmdesc=on: no description of the devices'
		// state.
		"-M", "microvm,acpi=on,x-option-roms=off,auto-kernel-cmdline=off,dump-guest-core=off,mem-merge=off,suppress-vmdesc=on,memory-backend=ram",
		"-global", "virtio-mmio.force-legacy=false",
		// The state does not name its machine type either.
		"-global", "migration.send-configuration=off",
		// The real-time clock belongs to the machine too: it stops with the machine.
		"-rtc", "base=utc,clock=vm",
		"-cpu", s.CPU, "-smp", s.processors(),
		"-m", strconv.FormatInt(s.Memory>>10, 10) + "k",
	}
	for _, dir := range s.Firmware {
		args = append(args, "-L", dir)
	}
	if s.Accel == protocol.KVM {
		args = append(args, "-accel", "kvm")
	} else {
		args = append(args, "-accel", "tcg,tb-size=128") // MiB of translated code; the default takes up to 1 GiB
	}
	size := strconv.FormatInt(s.Memory, 10)
	if s.again() {
		args = append(args, "-object", "memory-backend-file,id=ram,share=off,size="+size+",mem-path="+s.RAM,
			"-incoming", "defer")
	} else {
		args = append(args, "-object", "memory-backend-ram,id=ram,share=off,size="+size, "-kernel", s.Kernel)
		if s.Initrd != "" {
			args = append(args, "-initrd", s.Initrd)
		}
		args = append(args, "-append", s.Arguments)
	}
	args = append(args, "-chardev", fmt.Sprintf("socket,id=qmp,fd=%d", qmpFD), "-mon", "chardev=qmp,mode=control")
	if s.Console == nil {
		args = append(args, "-chardev", "null,id=console")
	} else {
		args = append(args, "-add-fd", fmt.Sprintf("fd=%d,set=%d", give(s.Console), consoleSet),
			"-chardev", "file,id=console,append=on,path="+fdset(consoleSet))
	}
	args = append(args, "-serial", "chardev:console")
	if len(s.Ports) > 0 {
		// Number 0 is reserved for a console.
		args = append(args, "-device", fmt.Sprintf("virtio-serial-device,max_ports=%d", len(s.Ports)+1))
	}
	for i, p := range s.Ports {
		args = append(args, "-chardev", fmt.Sprintf("socket,id=port%d,fd=%d,server=on,wait=off", i+1, give(p.Listener)),
			"-device", fmt.Sprintf("virtserialport,id=%[2]s,nr=%[1]d,chardev=port%[1]d,name=%[2]s", i+1, p.Name))
	}
	if s.Net != nil {
		// Do not announce a restored machine on its network. Otherwise QEMU would notify it
		// five times within half a second, and each time its kernel would announce its
		// interface, although it is alone in its network.
		args = append(args, "-netdev", fmt.Sprintf("dgram,id=net,local.type=fd,local.str=%d", give(s.Net)),
			"-device", fmt.Sprintf("virtio-net-device,netdev=net,host_mtu=%d,guest_announce=off", MTU))
	}
	// QEMU returns memory to the host that the guest reports as free, or that the balloon
	// takes. With page-poison the guest would report none, because a restored page would
	// not be empty. The guest takes memory back from the balloon when it has no other left.
	args = append(args, "-device", "virtio-balloon-device,id=balloon,deflate-on-oom=on,free-page-reporting=on,page-poison=off")
	return args, files
}
