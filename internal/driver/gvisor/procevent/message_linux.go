package procevent

import (
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

func readExec(message []byte, e *audit.Event) error {
	e.Kind = audit.Exec
	left := audit.MaxArgs
	return each(message, func(f field) error {
		switch f.id {
		case 1:
			return readContext(f.data, e)
		case 2:
			e.Path = text(f.data, audit.MaxPath)
		case 3:
			// One more than an event holds, so that the event reports that there were more.
			if len(e.Args) <= audit.MaxCount && left >= 0 {
				e.Args = append(e.Args, text(f.data, left))
				left -= len(f.data)
			}
		}
		// Field 4 is the environment, which gVisor's own sink sends; see package audit.
		return nil
	})
}

func readClone(message []byte, e *audit.Event) error {
	e.Kind = audit.Clone
	return each(message, func(f field) error {
		switch f.id {
		case 1:
			return readContext(f.data, e)
		case 4:
			e.Child = pid(f.number)
		}
		return nil
	})
}

func readExit(message []byte, e *audit.Event) error {
	e.Kind, e.Exit = audit.Exited, &audit.Exit{}
	return each(message, func(f field) error {
		switch f.id {
		case 1:
			return readContext(f.data, e)
		case 2:
			e.Exit = exit(uint32(f.number))
		}
		return nil
	})
}

// exit decodes a status of wait(2).
func exit(status uint32) *audit.Exit {
	if signal := int(status & 0x7f); signal != 0 {
		return &audit.Exit{Code: 128 + signal, Signal: signal}
	}
	return &audit.Exit{Code: int(status >> 8 & 0xff)}
}

// readOpen decodes what package emitter sends: the path of an opened file, or the requested
// path and its directory after an error.
func readOpen(message []byte, e *audit.Event) error {
	e.Kind, e.Flags = audit.Open, flags(0) // a zero value is not sent
	var real, asked string
	var failure uint64
	err := each(message, func(f field) error {
		switch f.id {
		case 1:
			return readContext(f.data, e)
		case 2:
			return each(f.data, func(f field) error {
				if f.id == 2 {
					failure = f.number
				}
				return nil
			})
		case 5:
			real = text(f.data, audit.MaxPath)
		case 6:
			asked = text(f.data, audit.MaxPath)
		case 7:
			e.Flags = flags(int(uint32(f.number)))
		}
		return nil
	})
	e.Path, e.Dir = real, ""
	if failure != 0 {
		e.Path, e.Dir, e.Error = asked, real, reason(failure)
	}
	return err
}

// reason returns the message of a system call's error.
func reason(errno uint64) string {
	if errno >= 4096 {
		return "unknown error"
	}
	return syscall.Errno(errno).Error()
}

func readConnect(message []byte, e *audit.Event) error {
	e.Kind, e.Address = audit.Connect, "nothing"
	return each(message, func(f field) error {
		switch f.id {
		case 1:
			return readContext(f.data, e)
		case 6:
			e.Address = address(f.data)
		}
		return nil
	})
}
