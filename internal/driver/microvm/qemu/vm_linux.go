package qemu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A VM is a started machine. Its methods may be called concurrently, except for those that
// need a stopped machine.
type VM struct {
	process  *os.Process
	protocol *qmp
	size     int64
	base     uint64   // address of its memory in QEMU's process
	template *os.File // see Spec

	loaded chan string // receives the result of loading the state of devices

	ended chan struct{} // closed when QEMU has ended
	end   error         // the reason, after ended

	mu     sync.Mutex
	stops  bool   // guarded by mu; we stopped the machine
	lent   bool   // guarded by mu; QEMU may still have the file of SaveDevices
	reason string // guarded by mu; why the machine ended

	opened map[string]chan struct{} // by port; fixed; closed when the machine has opened the port
}

// Start starts QEMU. The machine does not run until Cont. A restored machine has its
// devices' state. If ctx ends before Start returns, or on any error, QEMU is killed and
// waited for.
func Start(ctx context.Context, s *Spec, start Starter) (*VM, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	ours, theirs, err := sys.Pair()
	if err != nil {
		return nil, err
	}
	conn, err := unixConn(ours)
	if err != nil {
		theirs.Close()
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		conn.Close()
		theirs.Close()
		return nil, err
	}
	args, files := s.plan(theirs, r)
	process, err := start(args, files)
	theirs.Close()
	r.Close()
	if err != nil {
		conn.Close()
		w.Close()
		return nil, fmt.Errorf("start QEMU: %w", err)
	}
	v := &VM{
		process: process, size: s.Memory, template: s.Template,
		loaded: make(chan string, 1), ended: make(chan struct{}), stops: true,
		opened: map[string]chan struct{}{},
	}
	for _, p := range s.Ports {
		v.opened[p.Name] = make(chan struct{})
	}
	v.protocol = newQMP(conn, sender(conn), v.see)
	go v.reap()
	if err := v.prepare(ctx, s.Devices, w); err != nil {
		v.Kill()
		return nil, errors.Join(err, v.Wait())
	}
	return v, nil
}

// unixConn converts a socket to a connection, and takes it over.
func unixConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("a connection by %T: %w", c, paddock.Internal)
	}
	return conn, nil
}

// sender returns a function that sends a command with a descriptor.
func sender(conn *net.UnixConn) func([]byte, int) error {
	return func(data []byte, fd int) error {
		if fd < 0 {
			_, err := conn.Write(data)
			return err
		}
		n, _, err := conn.WriteMsgUnix(data, syscall.UnixRights(fd), nil)
		if err == nil && n < len(data) {
			_, err = conn.Write(data[n:])
		}
		return err
	}
}

// prepare does everything that needs a trusted QEMU. The state of devices is loaded last,
// because it comes from a machine. It is written to w, which is then closed.
func (v *VM) prepare(ctx context.Context, devices io.Reader, w *os.File) error {
	var copied sync.WaitGroup
	defer copied.Wait()
	defer w.Close()
	if err := v.protocol.begin(ctx); err != nil {
		return err
	}
	var text string
	err := v.protocol.ask(ctx, "human-monitor-command", map[string]any{"command-line": "gpa2hva 0"}, &text)
	if err != nil {
		return err
	}
	if v.base, err = addressOf(text); err != nil || devices == nil {
		return err
	}
	first := make([]byte, 1) // QEMU waits forever for the first byte
	if _, err := io.ReadFull(devices, first); err != nil {
		return fmt.Errorf("state of devices: %w", err)
	}
	copied.Go(func() {
		_, _ = io.Copy(w, io.MultiReader(bytes.NewReader(first), devices)) // QEMU detects missing bytes
		w.Close()
	})
	return v.load(ctx)
}

// load makes QEMU read the state of devices.
func (v *VM) load(ctx context.Context) error {
	events := []any{map[string]any{"capability": "events", "state": true}}
	if err := v.protocol.run(ctx, "migrate-set-capabilities", map[string]any{"capabilities": events}); err != nil {
		return err
	}
	if err := v.protocol.run(ctx, "migrate-incoming", map[string]any{"uri": fmt.Sprintf("fd:%d", devicesFD)}); err != nil {
		return err
	}
	select {
	case status := <-v.loaded:
		if status != "completed" {
			return fmt.Errorf("go on from devices: QEMU: %s: %w", brief(status), paddock.Internal)
		}
		return nil
	case <-v.ended:
		return fmt.Errorf("go on from devices: %w", v.end)
	case <-ctx.Done():
		return fmt.Errorf("go on from devices: %w", context.Cause(ctx))
	}
}

// addressOf parses the address from QEMU's answer about the first byte of the machine:
// "Host virtual address for 0x0 (ram) is 0x7f0000000000".
func addressOf(text string) (uint64, error) {
	_, last, ok := strings.Cut(strings.TrimSpace(text), " (ram) is 0x")
	var addr uint64
	if ok {
		_, err := fmt.Sscanf(last, "%x", &addr)
		ok = err == nil
	}
	if !ok || addr == 0 || addr%pageSize != 0 || addr > 1<<62 {
		return 0, fmt.Errorf("find the memory: QEMU: %s: %w", brief(text), paddock.Internal)
	}
	return addr, nil
}

// see handles an event. A machine that stops without a command has failed and will not
// continue.
func (v *VM) see(m message) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch m.Event {
	case "SHUTDOWN":
		v.note("the machine ended: " + brief(m.Data.Reason))
	case "MIGRATION":
		if s := m.Data.Status; s == "completed" || s == "failed" {
			select {
			case v.loaded <- s:
			default: // once is enough
			}
		}
	case "GUEST_PANICKED", "GUEST_CRASHLOADED":
		v.note("the machine's kernel panicked")
	case "VSERPORT_CHANGE":
		if c := v.opened[m.Data.ID]; c != nil && m.Data.Open {
			select {
			case <-c:
			default:
				close(c)
			}
		}
	case "STOP":
		if !v.stops {
			v.note("the machine's processor failed")
			_ = v.process.Kill()
		}
	}
}

// note keeps the first reason. v.mu is held.
func (v *VM) note(reason string) {
	if v.reason == "" {
		v.reason = reason
	}
}

// reap waits for QEMU.
func (v *VM) reap() {
	defer close(v.ended)
	state, err := v.process.Wait()
	// Other processes may hold QEMU's end of the connection.
	_ = v.protocol.conn.SetReadDeadline(time.Now().Add(time.Second))
	<-v.protocol.done // after all events
	v.protocol.close()
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.end = fmt.Errorf("wait for QEMU: %w", err)
		return
	}
	v.note("QEMU ended")
	v.end = fmt.Errorf("%s (%v): %w", v.reason, state, paddock.Unavailable)
}

// PID returns QEMU's PID.
func (v *VM) PID() int { return v.process.Pid }

// Wait waits for QEMU's end and returns the reason, which is never nil. Every call returns
// the same.
func (v *VM) Wait() error {
	<-v.ended
	return v.end
}

// Opened waits until the booted machine has opened a port.
func (v *VM) Opened(ctx context.Context, port string) error {
	select {
	case <-v.opened[port]:
		return nil
	case <-v.ended:
		return v.end
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Kill kills QEMU. It does nothing if QEMU has ended.
func (v *VM) Kill() { v.Condemn("QEMU was killed") }

// Condemn is Kill with a reason.
func (v *VM) Condemn(reason string) {
	v.mu.Lock()
	v.note(reason)
	v.mu.Unlock()
	_ = v.process.Kill()
}

// expect sets whether the machine may stop.
func (v *VM) expect(stop bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stops = stop
}

// Cont starts or continues the machine. In a restored machine, the guest is told that its
// ports are closed. Connect to them only after Cont has returned, otherwise the guest is
// not told.
//
// The guest decides when it handles that event. If a port was connected when the machine
// was saved, and is connected again soon, the guest may see both changes at once and so
// neither. So one port must tolerate that. On it, ask the guest whether it has seen the
// others closed.
func (v *VM) Cont(ctx context.Context) error {
	v.expect(false)
	if err := v.protocol.run(ctx, "cont", nil); err != nil {
		v.expect(true)
		return err
	}
	v.mu.Lock()
	lent := v.lent
	v.mu.Unlock()
	if lent && v.takeBack(ctx) == nil { // otherwise the next call tries again, because the machine runs
		v.mu.Lock()
		v.lent = false
		v.mu.Unlock()
	}
	return v.settle(ctx, 2)
}

// Stands reports whether the machine was stopped and has not continued since.
func (v *VM) Stands() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stops
}

// takeBack makes QEMU close the file for the state of devices, if QEMU still has it. Before
// version 9.1, QEMU ignores the close while the machine is stopped, so it must be asked
// again.
func (v *VM) takeBack(ctx context.Context) error {
	var sets []struct {
		ID int `json:"fdset-id"`
	}
	if err := v.protocol.ask(ctx, "query-fdsets", nil, &sets); err != nil {
		return err
	}
	for _, s := range sets {
		if s.ID == devicesSet {
			return v.protocol.run(ctx, "remove-fd", map[string]any{"fdset-id": devicesSet})
		}
	}
	return nil
}

// Stop stops the machine's processors.
//
// QEMU continues to move bytes between ports and memory. So from before Stop until after
// Cont nothing may be written to a port, and all output of ports must be read. Then nothing
// moves after Stop has returned, and the machine can be saved.
func (v *VM) Stop(ctx context.Context) error {
	v.expect(true)
	if err := v.protocol.run(ctx, "stop", nil); err != nil {
		return err
	}
	return v.settle(ctx, settling)
}

// Balloon asks the machine to give up so many bytes, and does not wait. The machine may
// take time or ignore it.
func (v *VM) Balloon(ctx context.Context, bytes int64) error {
	return v.protocol.run(ctx, "balloon", map[string]any{"value": bytes})
}

// settling is the number of QEMU's polls until it has moved all bytes of a socket. It moves
// 4 KiB of each socket at a time, of about 200 KiB.
const settling = 64

// settle makes QEMU poll that many times, once for each question.
func (v *VM) settle(ctx context.Context, times int) error {
	for range times {
		if err := v.protocol.run(ctx, "query-status", nil); err != nil {
			return err
		}
	}
	return nil
}

// SaveDevices writes the state of a stopped machine's devices. For more than limit bytes it
// returns [paddock.Exhausted] and writes nothing.
//
// QEMU writes to a file in memory, because it needs one that can be truncated. QEMU's own
// memory limit bounds its size.
func (v *VM) SaveDevices(ctx context.Context, w io.Writer, limit int64) error {
	state, theirs, err := sys.MemoryFile("devices")
	if err != nil {
		return err
	}
	defer state.Close()
	err = v.protocol.askWith(ctx, int(theirs.Fd()), "add-fd", map[string]any{"fdset-id": devicesSet}, nil)
	theirs.Close()
	if err != nil {
		return err
	}
	err = v.protocol.run(ctx, "xen-save-devices-state", map[string]any{"filename": fdset(devicesSet), "live": false})
	if e := v.takeBack(ctx); err == nil {
		err = e
	}
	v.mu.Lock()
	v.lent = true
	v.mu.Unlock()
	if err != nil {
		return err
	}
	size, err := state.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size > limit {
		return fmt.Errorf("devices of %d bytes: %w", size, paddock.Exhausted)
	}
	_, err = io.Copy(w, io.NewSectionReader(state, 0, size))
	return err
}
