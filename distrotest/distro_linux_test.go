package distrotest_test

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// disks names the directory that holds what image.sh made.
const disks = "PADDOCK_TEST_DISTRO"

// only is a regular expression of the rows to try, for work on one of them.
const only = "PADDOCK_TEST_ROWS"

// patience is for a machine whose processor is emulated on one that has other work.
const patience = 150 * time.Minute

func TestADistribution(t *testing.T) {
	dir := os.Getenv(disks)
	if dir == "" {
		t.Skip("make distro makes the disks of the machines and tries them: " + disks + " is not set")
	}
	for _, suite := range []string{"trixie", "bookworm"} {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			found, err := filepath.Glob(filepath.Join(dir, suite+"-*.ext4"))
			if err != nil || len(found) != 1 {
				t.Skipf("there is no disk of %s in %s: %v", suite, dir, found)
			}
			try(t, strings.TrimSuffix(found[0], ".ext4"))
		})
	}
}

// try boots a machine and takes its rows.
func try(t *testing.T, prefix string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	dir := t.TempDir()
	second, console := filepath.Join(dir, "second.tar"), filepath.Join(dir, "console")
	if err := os.WriteFile(second, archive(t), 0o600); err != nil {
		t.Fatal(err)
	}
	port, err := net.Listen("unix", filepath.Join(dir, "rows"))
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	// One processor: with two in one thread the machine is slower, and with a thread each QEMU 7.2 now and then
	// runs an instruction that the kernel is just replacing, which is a panic (int3). The kernel does not
	// measure the timer, because a busy host looks like a broken one. Guards against leaks of real processors
	// only cost time here.
	machine := exec.CommandContext(ctx, "qemu-system-x86_64",
		"-nodefaults", "-no-user-config", "-display", "none", "-M", "pc", "-accel", "tcg,thread=single", "-cpu", "max,la57=off", "-smp", "1", "-m", "1500",
		"-kernel", prefix+".kernel", "-initrd", prefix+".initrd", "-append", "root=/dev/vda rw console=ttyS0 quiet no_timer_check mitigations=off nowatchdog panic=-1 systemd.mask=serial-getty@ttyS0.service",
		// What the machine writes is forgotten with it, and not when it reboots.
		"-drive", "file="+prefix+".ext4,format=raw,if=virtio,snapshot=on,cache=unsafe", "-drive", "file="+second+",format=raw,if=virtio,readonly=on",
		"-device", "virtio-rng-pci", "-serial", "file:"+console,
		"-device", "virtio-serial", "-chardev", "socket,id=rows,path="+port.Addr().String(), "-device", "virtserialport,chardev=rows,name=rows")
	var said bytes.Buffer
	machine.Stdout, machine.Stderr = &said, &said
	machine.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // go test kills a test that took too long
	if err := machine.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = machine.Wait()
		port.Close()
		close(ended)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	conn, err := port.Accept()
	if err != nil {
		t.Fatalf("the machine did not start: %v: %s", err, said.String())
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if !rows(t, conn) {
		data, _ := os.ReadFile(console)
		t.Fatalf("the machine ended before its last row: %s\n%s", said.String(), data[max(0, len(data)-8000):])
	}
}

// rows reports the machine's rows as tests of their own, and whether the last one came.
func rows(t *testing.T, from io.Reader) bool {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		result, rest, _ := strings.Cut(lines.Text(), " ")
		name, text, _ := strings.Cut(rest, "\t")
		switch result {
		case "end":
			return true
		case "ok":
			t.Run(name, func(*testing.T) {})
		case "fail":
			t.Run(name, func(t *testing.T) { t.Error(text) })
		case "skip":
			t.Run(name, func(t *testing.T) { t.Skip(text) })
		default:
			t.Errorf("not a row: %q", lines.Text())
		}
	}
	return false
}

// archive is the second disk: the program, what is deployed with it, and the rows.
func archive(t *testing.T) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(name string, data []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(data))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"../bin/paddock", "../deploy/paddock.service", "../deploy/paddock-sandboxes.service", "../deploy/paddock-sandboxes.conf", "testdata/run.sh", "testdata/rows.sh"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		add(filepath.Base(path), data)
	}
	add("only", []byte(os.Getenv(only)))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
