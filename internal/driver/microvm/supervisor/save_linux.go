package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

// savedFiles is the number of files of a saved machine: the state of its devices, the
// index, and its memory, in this order.
const savedFiles = 3

// readIndex returns the state of the file server.
func readIndex(f *os.File) ([]byte, error) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, stateMax+stateMax/2))
	if err != nil {
		return nil, err
	}
	var i index
	if err := json.Unmarshal(data, &i); err != nil {
		return nil, fmt.Errorf("the index of a saved machine: %w: %w", err, paddock.Conflict)
	}
	return i.Files, nil
}

// Save implements boxinit.GuestKernel.
func (m *supervisor) Save(files []*os.File, stop bool, room boxinit.Room) error {
	if len(files) != savedFiles {
		return fmt.Errorf("save a machine to %d files: %w", len(files), paddock.Internal)
	}
	m.control.mu.Lock() // exclude other requests meanwhile
	defer m.control.mu.Unlock()
	if m.control.rest {
		return fmt.Errorf("the machine is saved already: %w", paddock.Conflict)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stateTime)
	defer cancel()
	if _, err := m.control.locked(protocol.Request{Hold: true}, askTime, nil, nil); err != nil {
		return fmt.Errorf("bring the machine to rest: %w", err)
	}
	err := m.link.gate.take(ctx)
	if err == nil {
		err = m.save(ctx, files, room, true)
		if err != nil || !stop {
			again, cancel := context.WithTimeout(context.Background(), stateTime)
			err = errors.Join(err, m.vm.Cont(again))
			cancel()
			if m.vm.Stands() { // Go tries again
				m.control.rest = true
				return err
			}
		} else {
			m.control.rest = true
			return nil // and no one writes to it until Go
		}
		m.link.gate.leave()
	}
	_, e := m.control.locked(protocol.Request{Go: true}, askTime, nil, nil)
	return errors.Join(err, e)
}

// keep saves the machine as a template while its init waits for the first request, and
// continues it.
//
// The machine does not depend on the box yet. It was started from its shape alone
// (protocol.Machine). Its devices are the same with and without a gateway, its interface is
// down, and nothing is connected to its network or ports. Everything specific to a box
// comes with Begin or later: name, entropy, number, mounts and user, then environment and
// token. The files of the template are closed before that.
//
// If the template cannot be written, the machine continues without it.
func (m *supervisor) keep(ctx context.Context, t *boxinit.Template) error {
	if err := m.vm.Opened(ctx, protocol.ControlPort); err != nil {
		t.Close(false)
		return err
	}
	saving, cancel := context.WithTimeout(ctx, stateTime)
	err := errors.New("wrong number of files for a template")
	if len(t.Files) == savedFiles {
		err = m.save(saving, t.Files, t.Room, false)
	}
	cancel()
	t.Close(err == nil)
	again, cancel := context.WithTimeout(context.Background(), stateTime) // ctx may have ended
	defer cancel()
	return m.vm.Cont(again)
}

// save stops and writes an idle machine.
func (m *supervisor) save(ctx context.Context, files []*os.File, room boxinit.Room, began bool) error {
	if err := m.vm.Stop(ctx); err != nil {
		return err
	}
	left := room.All
	var i index
	if began {
		state, err := m.files.keep()
		if err != nil {
			return err
		}
		i.Files = state
	}
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	if left -= int64(len(data)); left < 0 {
		return fmt.Errorf("the state of the box's files takes %d bytes: %w", len(data), paddock.Exhausted)
	}
	if _, err := files[1].Write(data); err != nil {
		return err
	}
	if err := m.vm.SaveDevices(ctx, files[0], left); err != nil {
		return err
	}
	if st, err := files[0].Stat(); err != nil {
		return err
	} else if left -= st.Size(); left < 0 {
		return fmt.Errorf("the state of the machine's devices takes %d bytes: %w", st.Size(), paddock.Exhausted)
	}
	return m.vm.SaveMemory(ctx, files[2], left)
}

// Go implements boxinit.GuestKernel.
func (m *supervisor) Go() error {
	m.control.mu.Lock()
	defer m.control.mu.Unlock()
	if !m.control.rest {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stateTime)
	defer cancel()
	err := m.vm.Cont(ctx)
	if err != nil && m.vm.Stands() {
		return err
	}
	m.control.rest = false
	m.link.gate.leave()
	_, e := m.control.locked(protocol.Request{Go: true}, askTime, nil, nil)
	return errors.Join(err, e)
}

// Archive implements boxinit.GuestKernel. The machine's init checks that there is room.
// This side enforces the bound.
func (m *supervisor) Archive(file *os.File, room boxinit.Room) error {
	request := protocol.Request{Archive: &protocol.Archive{All: room.All, Content: room.Content, File: room.File}}
	var failed error // error of the file; the rest is read all the same
	_, err := m.control.ask(request, archiveTime, nil, func(r io.Reader) error {
		var sum int64
		for {
			data, err := protocol.ReadChunk(r)
			if err != nil || len(data) == 0 {
				return err
			}
			if sum += int64(len(data)); sum > room.All {
				return fmt.Errorf("files and their names take more than %d MiB: %w", room.All>>20, paddock.Exhausted)
			}
			if failed == nil {
				_, failed = file.Write(data)
			}
		}
	})
	return errors.Join(err, failed)
}
