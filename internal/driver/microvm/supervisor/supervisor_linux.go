package supervisor

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/packetrelay"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/qemu"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Argv0 is the first argument of a program that is started as the init process of a box
// with this kernel.
const Argv0 = "paddock-guest-microvm"

// Main must be the first call in the main function of a program that is linked with this
// package. If the program was started as a part of a box, Main runs that part and does not
// return. Otherwise it returns false.
func Main() bool {
	if len(os.Args) == 0 {
		return false
	}
	var err error
	switch os.Args[0] {
	case Argv0:
		boxinit.Main(&supervisor{})
	case argvStub:
		err = stub(os.Args[1:])
	case argvFiles:
		err = serveFiles()
	default:
		return false
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
	return true
}

// supervisor implements boxinit.GuestKernel.
type supervisor struct {
	spec    protocol.Machine
	vm      *qemu.VM
	files   *fileServer
	engine  engine
	console *tail
	control control
	link    link

	template *os.File           // memory that the machine was restored from; nil after a boot
	net      *os.File           // the other end of an unused network
	relay    *packetrelay.Relay // between the machine's network and the link; nil without one
	ended    chan struct{}      // closed when the machine cannot continue
	end      error              // the reason, after ended
	jobs     sync.WaitGroup     // goroutines with the machine's lifetime; Wait waits for them
}

// Names by which QEMU opens the files that it is given.
const (
	kernelPath = protocol.PathLinux
	initrdPath = protocol.PathInitrd
	memoryPath = protocol.PathMemory
	kvmPath    = "/dev/kvm"
)

// Bounds for operations that may take long in emulation on a busy host.
const (
	bootTime  = 120 * time.Second
	askTime   = 60 * time.Second // longer than any wait of the machine's init
	stateTime = 60 * time.Second

	archiveTime = 10 * time.Minute // of the largest archive
)

// linkBuffer is the bytes in transit over the link in each direction.
const linkBuffer = 4 << 20

// An index is the saved state besides devices and memory.
type index struct {
	Files []byte `json:"files"` // see fileserver.Server.State
}

// Start implements boxinit.GuestKernel.
func (m *supervisor) Start(c *boxinit.Config, f boxinit.GuestKernelFiles) error {
	if err := json.Unmarshal(c.GuestKernel.Machine, &m.spec); err != nil {
		return fmt.Errorf("decode the machine's configuration: %w", err)
	}
	again := c.GuestKernel.Memory
	spec, state, err := m.plan(c, &f)
	if err != nil {
		return err
	}
	ports, theirs, err := newPorts()
	defer func() {
		for _, p := range theirs {
			p.Listener.Close()
		}
	}()
	if err != nil {
		return err
	}
	spec.Ports = theirs
	m.link.port = ports[protocol.AgentPort]
	m.link.broken = func(what string) { m.vm.Condemn(what) }
	if spec.Net, err = m.newWay(c, &f); err != nil {
		return err
	}
	defer spec.Net.Close()
	console, w, err := newTail()
	if err != nil {
		return err
	}
	m.console, spec.Console = console, w
	defer w.Close()

	files := make(chan error, 1)
	go func() { // while QEMU starts
		var err error
		m.files, err = startFiles(fileOrder{UID: c.User.UID, GID: c.User.GID, Binds: c.GuestKernel.Binds}, state, m.jobs.Go)
		files <- err
	}()
	ctx, cancel := context.WithTimeout(context.Background(), bootTime)
	defer cancel()
	m.vm, err = qemu.Start(ctx, spec, m.engine.start)
	if err != nil {
		err = m.complain(err)
	}
	if err = errors.Join(err, <-files); err != nil {
		return err
	}
	m.ended = make(chan struct{})
	m.jobs.Go(m.watch)
	m.engine.policy.drop(m.template) // before anything hostile runs
	if err := f.Seal(); err != nil {
		return m.explain(err)
	}
	if err := m.begin(ctx, c, &f, ports, again); err != nil {
		return m.explain(err)
	}
	return nil
}

// plan returns the machine for QEMU, and the state of its former file server.
func (m *supervisor) plan(c *boxinit.Config, f *boxinit.GuestKernelFiles) (*qemu.Spec, []byte, error) {
	s := &qemu.Spec{Machine: m.spec}
	m.engine.program = m.spec.Engine
	give := func(path, name string) (*os.File, error) {
		file, err := m.supplied(f.Supplies, name)
		if err == nil {
			m.engine.policy.add(path, file)
		}
		return file, err
	}
	if m.spec.Accel == protocol.KVM {
		if _, err := give(kvmPath, protocol.FileKVM); err != nil {
			return nil, nil, err
		}
	}
	var state []byte
	var devices *os.File
	var err error
	switch {
	case c.GuestKernel.Memory:
		if len(f.Image) != savedFiles {
			return nil, nil, fmt.Errorf("a saved machine of %d files: %w", len(f.Image), paddock.Internal)
		}
		if state, err = readIndex(f.Image[1]); err != nil {
			return nil, nil, err
		}
		devices = f.Image[0]
		if m.template, err = sys.Duplicate(f.Image[2]); err == nil { // it is closed after the start
			m.engine.policy.add(memoryPath, m.template)
		}
	case f.Supplies.One(protocol.FileState) != nil:
		devices = f.Supplies.One(protocol.FileState)
		m.template, err = give(memoryPath, protocol.FileMemory)
	default:
		s.Kernel = kernelPath
		_, err = give(kernelPath, protocol.FileLinux)
		if _, there := m.spec.Stamps[protocol.FileInitrd]; err == nil && there {
			s.Initrd = initrdPath
			_, err = give(initrdPath, protocol.FileInitrd)
		}
		return s, nil, err
	}
	if err != nil {
		return nil, nil, err
	}
	s.Devices = io.NewSectionReader(devices, 0, 1<<62)
	s.RAM, s.Template = memoryPath, m.template
	return s, state, nil
}

// supplied returns a file of the machine, which the caller closes. It is a copy of the descriptor that came with the
// name, because those are closed after the start. If none came, the file is mounted at its place, and must be the one
// that the host has checked.
func (m *supervisor) supplied(came *boxinit.Files, name string) (*os.File, error) {
	if file := came.One(name); file != nil {
		return sys.Duplicate(file)
	}
	place := protocol.Place(name)
	if place == "" {
		return nil, fmt.Errorf("the machine was given no file %q: %w", name, paddock.Internal)
	}
	file, err := os.Open(boxinit.Engine + place)
	if err != nil {
		return nil, fmt.Errorf("the machine's file %q: %w", name, err)
	}
	if stamp, err := protocol.Stamp(file); err != nil || stamp != m.spec.Stamps[name] {
		return nil, errors.Join(fmt.Errorf("the machine's file %q changed while the sandbox was made; make it again: %w", name, paddock.Unavailable), err, file.Close())
	}
	return file, nil
}

// newWay makes the machine's network and returns the machine's end. A relay joins the other
// end with the link, if there is one.
func (m *supervisor) newWay(c *boxinit.Config, f *boxinit.GuestKernelFiles) (*os.File, error) {
	fd, theirs, err := sys.PacketPair(linkBuffer)
	if err != nil {
		return nil, err
	}
	ours := os.NewFile(uintptr(fd), "network")
	if !c.Link {
		m.net = ours // no one reads what the machine sends
		return theirs, nil
	}
	end, far, err := sys.PacketPair(linkBuffer)
	if err != nil {
		return theirs, errors.Join(err, ours.Close(), theirs.Close())
	}
	way := os.NewFile(uintptr(end), "way")
	defer way.Close()
	r, err := packetrelay.New(ours, far)
	if err == nil {
		err = f.Link(way)
	}
	if err != nil {
		return theirs, errors.Join(err, theirs.Close())
	}
	m.relay = r
	return theirs, nil
}

// watch notes the end of the machine, or of a process that it needs.
func (m *supervisor) watch() {
	machine := make(chan error, 1)
	m.jobs.Go(func() { machine <- m.vm.Wait() })
	var err error
	select {
	case err = <-machine:
		err = m.complain(err)
	case <-m.files.ended:
		// The server's connection also ends if QEMU ends, which is then the cause. On a
		// busy host QEMU's end is noticed some time later.
		select {
		case err = <-machine:
			err = m.complain(err)
		case <-time.After(causeTime):
			err = m.files.end
			m.vm.Kill() // wakes everything that waits for the machine
		}
	}
	m.end = err
	close(m.ended)
	m.files.kill() // without a machine it has nothing to do
	m.link.close()
	if m.relay != nil {
		m.relay.Close()
	}
}

// causeTime bounds the time until QEMU's end is noticed, if it has ended.
const causeTime = 5 * time.Second

// complain adds the last output of QEMU and of the machine to an error.
func (m *supervisor) complain(err error) error {
	if why := m.console.panic(); why != "" {
		err = fmt.Errorf("%w: its kernel gave up: %s", err, why)
	}
	if s := m.engine.said; s != nil {
		s.end()
		if text := s.lines(saidLines); text != "" {
			err = fmt.Errorf("%w: QEMU: %s", err, text)
		}
	}
	if text := m.console.lines(consoleLines); text != "" {
		err = fmt.Errorf("%w; its console: %s", err, text)
	}
	return err
}

// explain replaces an error by the reason of the machine's end, if it follows from that.
func (m *supervisor) explain(err error) error {
	select {
	case <-m.ended:
		return m.end
	case <-time.After(time.Second):
		return m.complain(err)
	}
}

// begin runs the machine until its agent can be reached.
func (m *supervisor) begin(ctx context.Context, c *boxinit.Config, f *boxinit.GuestKernelFiles, ports map[string]port, again bool) error {
	if err := m.vm.Cont(ctx); err != nil {
		return err
	}
	if f.Template != nil {
		if err := m.keep(ctx, f.Template); err != nil {
			return err
		}
		// Saving the template must not use up the box's own time.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.Background(), bootTime)
		defer cancel()
	}
	if m.relay != nil {
		m.jobs.Go(func() { _ = m.relay.Run() }) // until watch closes it
	}
	b := &protocol.Begin{
		Again: again, Entropy: make([]byte, 64), Hostname: c.Hostname, Machine: hex.EncodeToString(c.GuestKernel.Number),
		Link: c.Link, Binds: c.GuestKernel.Binds, Disk: c.GuestKernel.Disk, Memory: m.spec.Limit, UID: c.User.UID, GID: c.User.GID,
		Sudo: c.GuestKernel.Sudo,
	}
	_, _ = rand.Read(b.Entropy) // never fails
	if !again {
		// The machine mounts its tree before it answers.
		if err := m.share(ctx, ports[protocol.FilesPort]); err != nil {
			return err
		}
	}
	if err := m.control.open(ctx, ports[protocol.ControlPort]); err != nil {
		return err
	}
	var send func(io.Writer) error
	if c.GuestKernel.Layered && !again && len(f.Image) == 1 {
		b.Layer = true
		send = func(w io.Writer) error { return sendLayer(w, f.Image[0]) }
	}
	b.Time = time.Now().UnixNano()
	deadline, _ := ctx.Deadline()
	if _, err := m.control.ask(protocol.Request{Begin: b}, time.Until(deadline), send, nil); err != nil || !again {
		return err
	}
	// The restored machine sees its old ports closed, and it saw that before this port was
	// open.
	if err := m.share(ctx, ports[protocol.FilesPort]); err != nil {
		return err
	}
	_, err := m.control.ask(protocol.Request{Go: true}, askTime, nil, nil)
	return err
}

// share starts serving the machine's files.
func (m *supervisor) share(ctx context.Context, p port) error {
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	f, err := conn.File()
	conn.Close()
	if err != nil {
		return err
	}
	defer f.Close()
	return m.files.serve(f)
}

// sendLayer sends an archive of the private layer.
func sendLayer(w io.Writer, f *os.File) error {
	r := io.NewSectionReader(f, 0, 1<<62)
	buf := make([]byte, protocol.MaxChunk)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if err := protocol.WriteChunk(w, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return protocol.WriteChunk(w, nil)
		case err != nil:
			return err
		}
	}
}

// Connect implements boxinit.GuestKernel.
func (m *supervisor) Connect(ctx context.Context) (net.Conn, error) { return m.link.connect(ctx) }

// Wait implements boxinit.GuestKernel.
func (m *supervisor) Wait() error {
	<-m.ended
	m.jobs.Wait()
	return m.end
}

// Processes implements boxinit.GuestKernel. It is the file server. QEMU has no directory in
// which it could change anything.
func (m *supervisor) Processes() int { return 1 }

// Bound implements boxinit.Bounder. It asks the machine to return memory that commands may
// no longer use. The machine may refuse, but the host sees its memory.
func (m *supervisor) Bound(memory int64) error {
	if memory < 1 || memory > m.spec.Limit {
		return fmt.Errorf("%d bytes of memory, in a machine that was made for %d: %w", memory, m.spec.Limit, paddock.Invalid)
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	_, err := m.control.ask(protocol.Request{Memory: memory}, askTime, nil, nil)
	if err != nil {
		return err
	}
	return m.vm.Balloon(ctx, m.spec.Memory-(m.spec.Limit-memory)/pageSize*pageSize)
}

// pageSize is the page size of the machine.
const pageSize = 4096

// Measure implements boxinit.Bounder. While the machine is being saved or is stopped, it
// returns the last measurement.
func (m *supervisor) Measure() (kills, memory, peak int64, err error) {
	a, err := m.control.measure()
	return a.Kills, a.Memory, a.Peak, err
}
