package qemu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// mapChunk is the number of page entries read at once.
const mapChunk = 8 << 10

// SaveMemory writes the memory of a stopped machine to an empty file. It writes pages that
// are not zero, at their addresses, and sets the file's size to that of the memory. For
// more than limit bytes of such pages it returns [paddock.Exhausted] and stops writing.
//
// Pages that the machine has not changed are read from the template, and not from QEMU.
func (v *VM) SaveMemory(ctx context.Context, w *os.File, limit int64) error {
	if err := w.Truncate(v.size); err != nil {
		return err
	}
	pages, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", v.PID()))
	if err != nil {
		return err
	}
	defer pages.Close()
	s := newSheet(w, limit)
	entries := make([]byte, mapChunk*entrySize)
	for off := int64(0); off < v.size; off += mapChunk * pageSize {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		part := entries[:min(mapChunk, (v.size-off)/pageSize)*entrySize]
		if _, err := pages.ReadAt(part, int64(v.base/pageSize)*entrySize+off/pageSize*entrySize); err != nil {
			return fmt.Errorf("read the page map: %w", err)
		}
		for r := range runs(part) {
			start, end := off+r.first*pageSize, off+(r.first+r.count)*pageSize
			if r.own {
				err = s.copy(v.read, start, end)
			} else {
				err = v.copyTemplate(s, start, end)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads QEMU's memory.
func (v *VM) read(b []byte, off int64) error {
	for addr := v.base + uint64(off); len(b) > 0; {
		n, err := sys.ReadMemory(v.PID(), addr, b)
		if err == nil && n <= 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("read the machine's memory: %w", err)
		}
		addr, b = addr+uint64(n), b[n:]
	}
	return nil
}

// copyTemplate copies a range from the template. A machine that booted has none.
func (v *VM) copyTemplate(s *sheet, off, end int64) error {
	if v.template == nil {
		return nil
	}
	for off < end {
		start, stop := nextData(v.template, off, end)
		if err := s.copy(v.readTemplate, start, stop); err != nil {
			return err
		}
		off = stop
	}
	return nil
}

// nextData returns the next range of a file with data between off and end, in whole pages.
// If the file system does not report holes, everything is data.
func nextData(f *os.File, off, end int64) (start, stop int64) {
	const seekData, seekHole = 3, 4
	start, err := f.Seek(off, seekData)
	if errors.Is(err, syscall.ENXIO) || err == nil && start >= end {
		return end, end
	}
	if err != nil {
		return off, end
	}
	stop, err = f.Seek(start, seekHole)
	if err != nil || stop > end {
		stop = end
	}
	start = max(start/pageSize*pageSize, off)
	return start, max((stop+pageSize-1)/pageSize*pageSize, start+pageSize)
}

// readTemplate reads a part of the template.
func (v *VM) readTemplate(b []byte, off int64) error {
	_, err := v.template.ReadAt(b, off)
	return err
}
