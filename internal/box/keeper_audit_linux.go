package box

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

// The events of a kept sandbox are in its state directory. A full file replaces the
// previous older one.
const (
	auditName  = "audit.jsonl"
	auditOlder = ".1"
	auditMax   = 16 << 20 // bytes of each of the two
)

// keepAudit records the events of the box's kernel, of its gateway, of its key agents and of its monitor in the file at path, until
// done is called. done may be called more than once. A box whose events
// cannot be written any more ends.
func keepAudit(s *Plan, path string, monitored bool) (done func() error, err error) {
	if s.Runtime.Receive == nil && s.Gateway == nil && len(s.Policy.KeyAgents) == 0 && !monitored {
		return func() error { return nil }, nil
	}
	log, err := openAuditLog(path, s.Name)
	if err != nil {
		return nil, err
	}
	lines := audit.NewLines(log)
	done = sync.OnceValue(func() error { return errors.Join(lines.Close(), log.close()) })
	if s.Gateway != nil {
		s.Gateway.Record(lines)
	}
	if s.Runtime.Receive == nil {
		s.Audit, s.unrecorded = lines, lines.Failed()
		return done, nil
	}
	k := *s.Runtime
	receive := k.Receive
	k.Receive = func(events *os.File, sandbox string, sink audit.Sink) error {
		over := make(chan struct{})
		go func() {
			select {
			case <-lines.Failed():
				_ = events.Close() // its events are not recorded any more: the box ends
			case <-over:
			}
		}()
		err := receive(events, sandbox, sink)
		close(over)
		select {
		case <-lines.Failed():
			err = lines.Close() // because the error of receive says less
		default:
		}
		return err
	}
	s.Runtime, s.Audit = &k, lines
	return done, nil
}

// An auditLog is a file of lines that is rotated when it is full.
type auditLog struct {
	path    string
	sandbox string
	file    *os.File
	max     int64
	size    int64
	lines   uint64 // in the file
	older   uint64 // lines in the older file
	gone    uint64 // lines in files that were removed
}

func openAuditLog(path, sandbox string) (*auditLog, error) {
	l := &auditLog{path: path, sandbox: sandbox, max: auditMax}
	// A sandbox that was paused continues its file.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return l, l.open()
	}
	if err != nil {
		return nil, fmt.Errorf("record events: %w", err)
	}
	if l.size, err = f.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(fmt.Errorf("record events: %w", err), f.Close())
	}
	l.file = f
	return l, nil
}

func (l *auditLog) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	l.file, l.size, l.lines = f, 0, 0
	return nil
}

// Write takes whole lines, and never more than fit into one file.
func (l *auditLog) Write(p []byte) (int, error) {
	if l.size+int64(len(p)) > l.max && l.size > 0 {
		if err := l.turn(); err != nil {
			return 0, err
		}
	}
	if err := l.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (l *auditLog) write(p []byte) error {
	n, err := l.file.Write(p)
	l.size += int64(n)
	l.lines += uint64(bytes.Count(p[:n], []byte{'\n'}))
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return err
}

// turn begins a new file. Its first line has the number of lines that were removed in all.
func (l *auditLog) turn() error {
	if err := l.file.Close(); err != nil {
		return err
	}
	l.gone += l.older
	l.older = l.lines
	if err := os.Rename(l.path, l.path+auditOlder); err != nil {
		return err
	}
	if err := l.open(); err != nil {
		return err
	}
	if l.gone == 0 {
		return nil
	}
	line, err := audit.Line(audit.Event{Time: time.Now(), Sandbox: l.sandbox, Kind: audit.Lost, Dropped: l.gone})
	if err != nil {
		return err
	}
	return l.write(line)
}

func (l *auditLog) close() error { return l.file.Close() }
