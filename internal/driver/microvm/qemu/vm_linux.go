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
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A VM is a machine that was started. Its methods may be called at the same
// time, but for those that need a stopped machine.
type VM struct {
	process  *os.Process
	protocol *qmp
	size     int64
	base     uint64   // where its memory is in QEMU's process
	template *os.File // see Spec

	loaded chan string // takes how the state of devices was loaded

	ended chan struct{} // closed when QEMU has ended
	end   error         // then: why

	mu     sync.Mutex
	stops  bool   // guarded by mu: a stop is ours
	lent   bool   // guarded by mu: QEMU may still have the file that SaveDevices gave it
	reason string // guarded by mu: why the machine ended, in its own words

	opened map[string]chan struct{} // by port, of which there are no more; closed when the machine has opened it
}

// Start starts QEMU. The machine does not run yet: see Cont. One that goes on
// has its devices' state. When ctx ends before Start returns, or anything fails,
// QEMU is killed and waited for.
func Start(ctx context.Context, s *Spec, start Starter) (*VM, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	ours, theirs, err := kernel.Pair()
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

// unixConn makes a connection of a socket, which it takes.
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

// sender gives what sends a command, and a descriptor with it.
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

// prepare is what there is to do while QEMU can still be trusted. The state of
// devices comes last: that came out of a machine. It is written to w, which is
// closed.
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
	first := make([]byte, 1) // QEMU waits for ever for the first
	if _, err := io.ReadFull(devices, first); err != nil {
		return fmt.Errorf("state of devices: %w", err)
	}
	copied.Go(func() {
		_, _ = io.Copy(w, io.MultiReader(bytes.NewReader(first), devices)) // QEMU misses what is missing
		w.Close()
	})
	return v.load(ctx)
}

// load has QEMU read the state of devices.
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

// addressOf finds the address in what QEMU says of where the machine's first
// byte is: "Host virtual address for 0x0 (ram) is 0x7f0000000000".
func addressOf(text string) (uint64, error) {
	_, last, ok := strings.Cut(strings.TrimSpace(text), " (ram) is 0x")
	var addr uint64
	if ok {
		_, err := fmt.Sscanf(last, "%x", &addr)
		ok = err == nil
	}
	if !ok || addr == 0 || addr%pageSize != 0 || addr > 1<<62 {
		return 0, fmt.Errorf("where memory is: QEMU: %s: %w", brief(text), paddock.Internal)
	}
	return addr, nil
}

// see takes note of an event. A machine that stops though nobody asked for that
// will not go on: its processor failed.
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

// note keeps the first reason, with v.mu held.
func (v *VM) note(reason string) {
	if v.reason == "" {
		v.reason = reason
	}
}

// reap waits for QEMU.
func (v *VM) reap() {
	defer close(v.ended)
	state, err := v.process.Wait()
	// Its end of the conversation may have been given to others.
	_ = v.protocol.conn.SetReadDeadline(time.Now().Add(time.Second))
	<-v.protocol.done // all events were told
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

// PID is QEMU's.
func (v *VM) PID() int { return v.process.Pid }

// Wait waits for QEMU's end and says why it came, which is never nil. Who calls
// it again gets the same.
func (v *VM) Wait() error {
	<-v.ended
	return v.end
}

// Opened waits until something in the machine has opened a port, in a machine that
// was started.
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

// Kill ends QEMU. Killing one that ended is fine.
func (v *VM) Kill() { v.Condemn("QEMU was killed") }

// Condemn is Kill with a reason for it, of one that has not ended.
func (v *VM) Condemn(reason string) {
	v.mu.Lock()
	v.note(reason)
	v.mu.Unlock()
	_ = v.process.Kill()
}

// expect says whether the machine may stop.
func (v *VM) expect(stop bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stops = stop
}

// Cont lets the machine run, or go on. In one that goes on from memory, the
// guest is told that its ports are closed. Connections are to be made only when
// Cont has returned, or it is not told.
//
// When it is told, is the guest's: where a connection was there when it was
// saved, and one is made soon, the guest may see both at once, and so neither.
// So one port has to be such that this does not matter, and over that the guest
// is asked whether it has seen the others closed.
func (v *VM) Cont(ctx context.Context) error {
	v.expect(false)
	if err := v.protocol.run(ctx, "cont", nil); err != nil {
		v.expect(true)
		return err
	}
	v.mu.Lock()
	lent := v.lent
	v.mu.Unlock()
	if lent && v.takeBack(ctx) == nil { // else the next time: the machine runs
		v.mu.Lock()
		v.lent = false
		v.mu.Unlock()
	}
	return v.settle(ctx, 2)
}

// Stands tells whether the machine was stopped, and has not gone on since.
func (v *VM) Stands() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stops
}

// takeBack has QEMU close the file that it writes the state of devices to, if it has it
// still. Before version 9.1 it only notes that while the machine is stopped, and closes
// the file when it is told again.
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
// QEMU goes on to move bytes between ports and memory. So nobody may write to a
// port from before Stop until after Cont, and what is there to be read has to be
// read: then nothing moves any more when Stop has returned, and the machine can
// be saved.
func (v *VM) Stop(ctx context.Context) error {
	v.expect(true)
	if err := v.protocol.run(ctx, "stop", nil); err != nil {
		return err
	}
	return v.settle(ctx, settling)
}

// Balloon asks the machine to do with so many bytes, and does not wait for that: it
// may take a while, or do nothing at all.
func (v *VM) Balloon(ctx context.Context, bytes int64) error {
	return v.protocol.run(ctx, "balloon", map[string]any{"value": bytes})
}

// settling is how often QEMU looks at its ports until it has moved all that a
// socket can hold: it takes 4 KiB of each at a time, of some 200 KiB.
const settling = 64

// settle has QEMU look at all that it waits for, so many times: once before it
// answers each question.
func (v *VM) settle(ctx context.Context, times int) error {
	for range times {
		if err := v.protocol.run(ctx, "query-status", nil); err != nil {
			return err
		}
	}
	return nil
}

// SaveDevices writes the state of a stopped machine's devices. More than limit
// bytes is [paddock.Exhausted], and nothing is written.
//
// QEMU writes to a file in memory, for it wants one that can be made empty. What
// that may take is bounded by what QEMU may take.
func (v *VM) SaveDevices(ctx context.Context, w io.Writer, limit int64) error {
	state, theirs, err := kernel.MemoryFile("devices")
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
