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

// A Spec says which machine is to run. A cold one has a kernel; one that goes on
// has memory and devices of a machine that was saved, and is otherwise equal to
// it: as many ports by the same names, a network or none.
//
// Files stay the caller's, who may close them when Start has returned. Only
// Template has to stay open for as long as the machine is to be saved.
type Spec struct {
	// Accel, CPU, CPUs, Memory, Arguments and Firmware count.
	protocol.Machine

	// Paths as QEMU opens them, for reading. QEMU opens a path several times and
	// reads each descriptor from where it stands: whoever answers its system
	// calls gives it a file whose offset is 0.
	Kernel string
	Initrd string

	// RAM is the path of a file with the memory to go on from, as long as
	// Memory. It is mapped privately, though QEMU 7.2 asks to open it for
	// writing.
	RAM      string
	Template *os.File  // the same memory, for SaveMemory; open for reading
	Devices  io.Reader // what SaveDevices gave

	Ports []Port

	// Net is the machine's end of its network, one of a connected pair of Unix
	// sockets: each packet is an Ethernet frame. Both SOCK_SEQPACKET and
	// SOCK_DGRAM do. Nil is none.
	Net *os.File

	// Console takes what the machine writes to its serial console. It is open
	// only for writing, and made non-blocking; what finds no room is lost. Nil
	// is none.
	Console *os.File
}

// A Port is a virtio-serial port. Its listener is a Unix stream socket, and one
// connection at a time is served. QEMU discards what the guest writes to a port
// that nobody is connected to.
type Port struct {
	Name     string
	Listener *os.File
}

// A Starter starts QEMU with these arguments, the first of which is not the
// program but its first argument, and with these files as descriptors 3, 4, ….
// QEMU writes why it cannot run to descriptor 2. The process is waited for
// here, and by nobody else.
type Starter func(arguments []string, files []*os.File) (*os.Process, error)

// MTU is the largest that the machine's interface can have.
const MTU = 65520

// Descriptors that QEMU has, from the first that a Starter passes.
const (
	firstFD   = 3
	qmpFD     = firstFD
	devicesFD = firstFD + 1 // if the machine goes on
)

// A set of descriptors of QEMU's, /dev/fdset/N, is for one use.
const (
	consoleSet = 1 + iota
	devicesSet
)

func fdset(n int) string { return "/dev/fdset/" + strconv.Itoa(n) }

// again is whether the machine goes on from memory.
func (s *Spec) again() bool { return s.RAM != "" }

// check refuses what QEMU would understand in another way than it was meant:
// a comma ends a value in its arguments.
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
	for i, part := range strings.Split(s.CPU, ",") { // a model, and what it has besides
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

// processors says how many there are. Where QEMU emulates a machine that can have
// one only, it leaves memory barriers out (before 8.1). But its devices run beside
// the processor: without barriers it happens that one does not see that the other
// waits for it, and both wait for ever.
func (s *Spec) processors() string {
	if s.Accel == protocol.TCG && s.CPUs == 1 {
		return "1,maxcpus=2"
	}
	return strconv.Itoa(s.CPUs)
}

// plan gives QEMU's arguments, and the files that belong to them: qmp is for the
// conversation with it, and one that goes on reads its devices' state from
// devices.
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
		// Without option ROMs, which are for bootloaders. Devices are found by
		// ACPI. Memory is in no core dump, and equal pages stay apart. The state of
		// devices has no description.
		"-M", "microvm,acpi=on,x-option-roms=off,auto-kernel-cmdline=off,dump-guest-core=off,mem-merge=off,suppress-vmdesc=on,memory-backend=ram",
		"-global", "virtio-mmio.force-legacy=false",
		// Nor does it say what it is of, for what saves it does not.
		"-global", "migration.send-configuration=off",
		// The battery clock is the machine's too: it stands when the machine does.
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
		// Number 0 is for a console.
		args = append(args, "-device", fmt.Sprintf("virtio-serial-device,max_ports=%d", len(s.Ports)+1))
	}
	for i, p := range s.Ports {
		args = append(args, "-chardev", fmt.Sprintf("socket,id=port%d,fd=%d,server=on,wait=off", i+1, give(p.Listener)),
			"-device", fmt.Sprintf("virtserialport,id=%[2]s,nr=%[1]d,chardev=port%[1]d,name=%[2]s", i+1, p.Name))
	}
	if s.Net != nil {
		// A machine that goes on is not told that it has moved, five times within half a
		// second: each time its kernel would tell of its interface whoever might want to
		// know. It is alone in its network.
		args = append(args, "-netdev", fmt.Sprintf("dgram,id=net,local.type=fd,local.str=%d", give(s.Net)),
			"-device", fmt.Sprintf("virtio-net-device,netdev=net,host_mtu=%d,guest_announce=off", MTU))
	}
	// What the guest reports as free, and what it is asked for, QEMU gives back to the
	// host. Where pages have to be empty when they are free, it reports none: of a
	// machine that goes on they are as they were saved. The guest takes back what it
	// gave where it has nothing else left.
	args = append(args, "-device", "virtio-balloon-device,id=balloon,deflate-on-oom=on,free-page-reporting=on,page-poison=off")
	return args, files
}
