package qemu

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

func coldSpec() *Spec {
	return &Spec{
		Machine: protocol.Machine{
			Accel: protocol.TCG, CPU: "max", CPUs: 1, Memory: 256 << 20, Arguments: "quiet panic=-1",
			Firmware: []string{"/usr/share/qemu"},
		},
		Kernel: "/kernel", Initrd: "/initrd",
		Ports: []Port{{Name: "a", Listener: os.Stdin}, {Name: "b", Listener: os.Stdout}},
	}
}

func TestArgumentsOfAColdMachine(t *testing.T) {
	s := coldSpec()
	s.Net, s.Console = os.Stderr, os.Stdout
	args, files := s.plan(nil, os.Stdin)
	want(t, args, `
-nodefaults -no-user-config -display none -no-reboot -S
-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny
-M microvm,acpi=on,x-option-roms=off,auto-kernel-cmdline=off,dump-guest-core=off,mem-merge=off,suppress-vmdesc=on,memory-backend=ram
-global virtio-mmio.force-legacy=false
-global migration.send-configuration=off
-rtc base=utc,clock=vm -cpu max -smp 1,maxcpus=2 -m 262144k -L /usr/share/qemu
-accel tcg,tb-size=128
-object memory-backend-ram,id=ram,share=off,size=268435456
-kernel /kernel -initrd /initrd -append quiet·panic=-1
-chardev socket,id=qmp,fd=3 -mon chardev=qmp,mode=control
-add-fd fd=4,set=1 -chardev file,id=console,append=on,path=/dev/fdset/1 -serial chardev:console
-device virtio-serial-device,max_ports=3
-chardev socket,id=port1,fd=5,server=on,wait=off -device virtserialport,id=a,nr=1,chardev=port1,name=a
-chardev socket,id=port2,fd=6,server=on,wait=off -device virtserialport,id=b,nr=2,chardev=port2,name=b
-netdev dgram,id=net,local.type=fd,local.str=7 -device virtio-net-device,netdev=net,host_mtu=65520,guest_announce=off
-device virtio-balloon-device,id=balloon,deflate-on-oom=on,free-page-reporting=on,page-poison=off`)
	if len(files) != 5 || files[1] != os.Stdout || files[2] != os.Stdin || files[4] != os.Stderr {
		t.Error(files)
	}
}

func TestArgumentsOfOneThatGoesOn(t *testing.T) {
	s := coldSpec()
	s.Kernel, s.Initrd, s.RAM, s.Firmware, s.Ports = "", "", "/ram", nil, nil
	s.Accel, s.CPU, s.CPUs = protocol.KVM, "host", 2
	args, files := s.plan(nil, os.Stdin)
	want(t, args, `
-nodefaults -no-user-config -display none -no-reboot -S
-sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny
-M microvm,acpi=on,x-option-roms=off,auto-kernel-cmdline=off,dump-guest-core=off,mem-merge=off,suppress-vmdesc=on,memory-backend=ram
-global virtio-mmio.force-legacy=false
-global migration.send-configuration=off
-rtc base=utc,clock=vm -cpu host -smp 2 -m 262144k
-accel kvm
-object memory-backend-file,id=ram,share=off,size=268435456,mem-path=/ram -incoming defer
-chardev socket,id=qmp,fd=3 -mon chardev=qmp,mode=control
-chardev null,id=console -serial chardev:console
-device virtio-balloon-device,id=balloon,deflate-on-oom=on,free-page-reporting=on,page-poison=off`)
	if len(files) != 2 || files[1] != os.Stdin {
		t.Error(files)
	}
}

// want compares arguments. In text, spaces and newlines separate them, and · is a space.
func want(t *testing.T, args []string, text string) {
	t.Helper()
	words := strings.Fields(text)
	for i := range max(len(words), len(args)) {
		var word, arg string
		if i < len(words) {
			word = strings.ReplaceAll(words[i], "·", " ")
		}
		if i < len(args) {
			arg = args[i]
		}
		if arg != word {
			t.Fatalf("argument %d: %q, not %q", i, arg, word)
		}
	}
}

func TestSpecsThatAreNotOne(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Spec)
	}{
		{"no kernel", func(s *Spec) { s.Kernel = "" }},
		{"kernel and memory", func(s *Spec) { s.RAM, s.Template, s.Devices = "/ram", os.Stdin, os.Stdin }},
		{"memory alone", func(s *Spec) { s.Kernel, s.RAM = "", "/ram" }},
		{"no accelerator", func(s *Spec) { s.Accel = "" }},
		{"no processor", func(s *Spec) { s.CPUs = 0 }},
		{"no memory", func(s *Spec) { s.Memory = 0 }},
		{"half a page", func(s *Spec) { s.Memory = 2048 }},
		{"two processors' names", func(s *Spec) { s.CPU = "max,kvm=off" }},
		{"a processor that lacks something", func(s *Spec) { s.CPU = "max,-avx" }},
		{"a processor with a value", func(s *Spec) { s.CPU = "max,+level=1" }},
		{"two names of a port", func(s *Spec) { s.Ports[0].Name = "a,b" }},
	} {
		s := coldSpec()
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		c.change(s)
		if err := s.check(); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
