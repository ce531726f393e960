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

// savedFiles are, in this order, the state of the machine's devices, the index, and
// its memory.
const savedFiles = 3

// readIndex gives the state of the server of files.
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
	m.control.mu.Lock() // nobody else asks meanwhile
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
			if m.vm.Stands() { // Go is to try again
				m.control.rest = true
				return err
			}
		} else {
			m.control.rest = true
			return nil // and nobody writes to it any more, until Go
		}
		m.link.gate.leave()
	}
	_, e := m.control.locked(protocol.Request{Go: true}, askTime, nil, nil)
	return errors.Join(err, e)
}

// keep saves the machine as a template while its init waits for the first request,
// and has it go on.
//
// It is the same then whosever box this is. What a machine is started with comes of its
// shape alone (protocol.Machine): its devices are the same with a way out and without,
// its interface is down, and nobody is at the other end of its network or of a port yet.
// All that is a box's own comes with Begin or later: name, entropy, number, mounts,
// user; environment and token after that. The files of the template are closed before.
//
// One that cannot be written is none, and the machine is no worse for it.
func (m *supervisor) keep(ctx context.Context, t *boxinit.Template) error {
	if err := m.vm.Opened(ctx, protocol.ControlPort); err != nil {
		t.Close(false)
		return err
	}
	saving, cancel := context.WithTimeout(ctx, stateTime)
	err := errors.New("a template is not of so many files")
	if len(t.Files) == savedFiles {
		err = m.save(saving, t.Files, t.Room, false)
	}
	cancel()
	t.Close(err == nil)
	again, cancel := context.WithTimeout(context.Background(), stateTime) // ctx may be used up
	defer cancel()
	return m.vm.Cont(again)
}

// save writes a machine that is at rest. It is stopped then.
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

// Archive implements boxinit.GuestKernel. The machine's init sees to it that there is
// room; that no more is written than there is, is for here.
func (m *supervisor) Archive(file *os.File, room boxinit.Room) error {
	request := protocol.Request{Archive: &protocol.Archive{All: room.All, Content: room.Content, File: room.File}}
	var failed error // of the file: what follows is read all the same
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
