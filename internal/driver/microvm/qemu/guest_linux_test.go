package qemu

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// TestMain runs this program as the init of a machine if it is process 1.
func TestMain(m *testing.M) {
	if os.Getpid() == 1 {
		fmt.Println("guest:", guest())
		_ = syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
	}
	os.Exit(m.Run())
}

// guest answers requests on the control port.
func guest() error {
	for _, m := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}} {
		if err := syscall.Mount(m[0], m[1], m[0], 0, ""); err != nil {
			return err
		}
	}
	modules, err := filepath.Glob("/modules/*.ko")
	if err != nil {
		return err
	}
	for _, path := range modules {
		if err := sys.LoadModule(path); err != nil {
			return err
		}
	}
	control, err := openPort("control")
	if err != nil {
		return err
	}
	other, err := openPort("other")
	if err != nil {
		return err
	}
	go echo(other)
	g := &inmate{in: bufio.NewReader(control), other: other}
	for {
		line, err := g.in.ReadString('\n')
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(control, g.answer(strings.Fields(line))); err != nil {
			return err
		}
	}
}

// echo writes back what it reads. It keeps reading if it cannot write, because a write to a
// port without a connection waits.
func echo(p *port) {
	parts := make(chan []byte, 1<<10)
	go func() {
		for part := range parts {
			_, _ = p.Write(part)
		}
	}()
	for {
		part := make([]byte, 32<<10)
		n, err := p.Read(part)
		if err != nil {
			return
		}
		parts <- part[:n]
	}
}

// A port is a port inside the guest. It continues to read after a disconnection.
type port struct {
	fd     int
	open   bool         // the last observed state
	closed atomic.Int64 // number of transitions from open to closed
}

func openPort(name string) (*port, error) {
	for {
		names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
		if err != nil {
			return nil, err
		}
		for _, path := range names {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			if strings.TrimSpace(string(data)) != name {
				continue
			}
			fd, err := syscall.Open("/dev/"+filepath.Base(filepath.Dir(path)), syscall.O_RDWR, 0)
			return &port{fd: fd}, err
		}
		<-time.After(time.Millisecond)
	}
}

func (p *port) Read(b []byte) (int, error) {
	for {
		n, err := syscall.Read(p.fd, b)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, err
		case n > 0:
			p.open = true
			return n, nil
		default:
			if p.open {
				p.closed.Add(1)
			}
			p.open = false
			<-time.After(time.Millisecond)
		}
	}
}

func (p *port) Write(b []byte) (int, error) { return syscall.Write(p.fd, b) }

// An inmate is the state of the guest.
type inmate struct {
	in    *bufio.Reader
	other *port
	pings int
	kept  []byte
}

func (g *inmate) answer(words []string) string {
	arg := 0
	if len(words) > 1 {
		arg, _ = strconv.Atoi(words[1])
	}
	switch words[0] {
	case "ping":
		g.pings++
		return fmt.Sprint("pong ", g.pings)
	case "closed": // waits until the other port was closed so often
		for g.other.closed.Load() < int64(arg) {
			<-time.After(time.Millisecond)
		}
		return fmt.Sprint(g.other.closed.Load())
	case "keep": // so many MiB
		g.kept = make([]byte, arg<<20)
		r := rand.NewChaCha8([32]byte{1})
		_, _ = r.Read(g.kept)
		return g.sum()
	case "change": // a byte in every so many pages
		for i := 0; i < len(g.kept); i += arg * pageSize {
			g.kept[i]++
		}
		return g.sum()
	case "sum":
		return g.sum()
	case "spew": // so many bytes
		return strings.Repeat("x", arg)
	case "read":
		data, err := os.ReadFile(words[1])
		if err != nil {
			return err.Error()
		}
		return strings.Join(strings.Fields(string(data)), " ")
	case "write":
		return fmt.Sprint(os.WriteFile(words[1], []byte(words[2]), 0))
	case "frame": // a broadcast of so many bytes; returns the answer
		return g.frame(arg)
	case "panic":
		return fmt.Sprint(os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0))
	case "off":
		return fmt.Sprint(syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF))
	case "reboot":
		return fmt.Sprint(syscall.Reboot(syscall.LINUX_REBOOT_CMD_RESTART))
	}
	return "what?"
}

func (g *inmate) sum() string { return fmt.Sprintf("%x", sha256.Sum256(g.kept)) }

const ethernet = 0xB588 // Ethernet type for experiments, 0x88B5, in network order

// frame sends a frame, and waits for one of the same size.
func (g *inmate) frame(size int) string {
	fd, err := syscall.Socket(syscall.AF_PACKET, syscall.SOCK_RAW, ethernet)
	if err != nil {
		return err.Error()
	}
	defer syscall.Close(fd)
	text, err := os.ReadFile("/sys/class/net/eth0/ifindex")
	if err != nil {
		return err.Error()
	}
	index, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	to := &syscall.SockaddrLinklayer{Protocol: ethernet, Ifindex: index}
	if err := syscall.Bind(fd, to); err != nil {
		return err.Error()
	}
	data := make([]byte, size)
	copy(data, "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x01\x88\xb5")
	if _, err := syscall.Write(fd, data); err != nil {
		return err.Error()
	}
	n, err := syscall.Read(fd, make([]byte, 1<<17))
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint("frame ", n)
}
