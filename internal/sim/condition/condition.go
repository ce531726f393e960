// Package condition evaluates the conditions of test, [ and [[ about strings,
// numbers and files.
package condition

import (
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A Host answers what the operators ask. Nil functions answer no.
type Host struct {
	View     *vfs.View
	Terminal func(fd int) bool
	Stat     func(path string) (vfs.Info, error) // nil is View's; for /dev/fd and its like
	Var      func(name string) bool              // -v
	Ref      func(name string) bool              // -R
	Option   func(name string) bool              // -o

	NoOrder bool // < and > are no operators
	Bash    bool // the shell's own

	// Number reads an operand of an arithmetic comparison; nil is [Integer].
	Number func(s string) (int64, error)
}

// IsUnary reports whether "-c" is an operator with one operand.
func IsUnary(op string) bool {
	return len(op) == 2 && op[0] == '-' && strings.IndexByte("abcdefghknoprstuvwxzGLNORS", op[1]) >= 0
}

// IsBinary reports whether op is an operator with two operands.
func IsBinary(op string) bool {
	switch op {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef":
		return true
	}
	return false
}

func (h *Host) isBinary(op string) bool {
	return IsBinary(op) && !(h.NoOrder && (op == "<" || op == ">"))
}

func (h *Host) stat(path string) (vfs.Info, error) {
	if h.Stat != nil {
		return h.Stat(path)
	}
	return h.View.Stat(path)
}

// Unary decides "-c operand". The error is a number that is none, for -t of
// the tool: to bash that is no terminal.
func (h *Host) Unary(op byte, s string) (bool, error) {
	switch op {
	case 'n':
		return s != "", nil
	case 'z':
		return s == "", nil
	case 't':
		fd, err := h.number(s)
		if err != nil {
			if h.Bash {
				err = nil
			}
			return false, err
		}
		return h.Terminal != nil && fd >= 0 && fd < 1<<30 && h.Terminal(int(fd)), nil
	case 'v':
		return h.Var != nil && h.Var(s), nil
	case 'R':
		return h.Ref != nil && h.Ref(s), nil
	case 'o':
		return h.Option != nil && h.Option(s), nil
	case 'r', 'w', 'x':
		if s == "" {
			return false, nil
		}
		return h.access(s, map[byte]uint32{'r': 4, 'w': 2, 'x': 1}[op]), nil
	case 'h', 'L':
		i, err := h.View.Lstat(s)
		return err == nil && i.IsLink(), nil
	}
	i, err := h.stat(s)
	if err != nil {
		return false, nil //nolint:nilerr // what is not there has no property
	}
	switch op {
	case 'b':
		return i.Mode&linux.S_IFMT == linux.S_IFBLK, nil
	case 'c':
		return i.Mode&linux.S_IFMT == linux.S_IFCHR, nil
	case 'd':
		return i.IsDir(), nil
	case 'a', 'e':
		return true, nil
	case 'f':
		return i.IsRegular(), nil
	case 'g':
		return i.Mode&linux.S_ISGID != 0, nil
	case 'G':
		return i.GID == h.View.GID, nil
	case 'k':
		return i.Mode&linux.S_ISVTX != 0, nil
	case 'N':
		return i.Mtime.After(i.Atime), nil
	case 'O':
		return i.UID == h.View.UID, nil
	case 'p':
		return i.Mode&linux.S_IFMT == linux.S_IFIFO, nil
	case 's':
		return i.Size > 0, nil
	case 'S':
		return i.Mode&linux.S_IFMT == linux.S_IFSOCK, nil
	case 'u':
		return i.Mode&linux.S_ISUID != 0, nil
	}
	return false, nil
}

func (h *Host) access(path string, mode uint32) bool {
	if err := h.View.Access(path, mode); err == nil || h.Stat == nil {
		return err == nil
	}
	// A descriptor's name is no file of the FS.
	if _, err := h.View.Stat(path); err == nil {
		return false
	}
	i, err := h.Stat(path)
	return err == nil && (mode != 1 || i.Mode&0o111 != 0)
}

// Binary decides "a op b" without patterns.
func (h *Host) Binary(a, op, b string) (bool, error) {
	switch op {
	case "=", "==":
		return a == b, nil
	case "!=":
		return a != b, nil
	case "<":
		return a < b, nil
	case ">":
		return a > b, nil
	case "-nt", "-ot", "-ef":
		return h.compareFiles(a, op, b), nil
	}
	x, err := h.number(a)
	if err != nil {
		return false, err
	}
	y, err := h.number(b)
	if err != nil {
		return false, err
	}
	switch op {
	case "-eq":
		return x == y, nil
	case "-ne":
		return x != y, nil
	case "-lt":
		return x < y, nil
	case "-le":
		return x <= y, nil
	case "-gt":
		return x > y, nil
	case "-ge":
		return x >= y, nil
	}
	return false, &Error{NotBinary, op}
}

func (h *Host) compareFiles(a, op, b string) bool {
	x, errX := h.stat(a)
	y, errY := h.stat(b)
	switch op {
	case "-ef":
		return errX == nil && errY == nil && x.Dev == y.Dev && x.Ino == y.Ino
	case "-ot":
		x, errX, y, errY = y, errY, x, errX
	}
	if errX != nil || errY != nil {
		return errX == nil
	}
	return x.Mtime.After(y.Mtime)
}

func (h *Host) number(s string) (int64, error) {
	if h.Number != nil {
		return h.Number(s)
	}
	return Integer(s)
}

// Integer reads a decimal number with blanks around it.
func Integer(s string) (int64, error) {
	trimmed := strings.Trim(s, " \t\n\v\f\r")
	digits, negative := strings.CutPrefix(trimmed, "-")
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	if digits == "" {
		return 0, &Error{NotInteger, s}
	}
	var n uint64
	for i := range len(digits) {
		d := uint64(digits[i] - '0')
		if d > 9 || n > (1<<63-d+9)/10 {
			return 0, &Error{NotInteger, s}
		}
		n = n*10 + d
	}
	switch {
	case negative && n <= 1<<63:
		return -int64(n), nil
	case !negative && n < 1<<63:
		return int64(n), nil
	}
	return 0, &Error{NotInteger, s}
}

// A Kind is what can be wrong with a condition.
type Kind uint8

// What can be wrong.
const (
	NotInteger   Kind = iota
	NotUnary          // where an operator with one operand must stand
	NotBinary         // where one with two must
	TooMany           // operands
	Missing           // an operand, after What
	MissingParen      // What stands where ) should; empty is the end
)

// An Error is a condition that cannot be decided. Its text is bash's.
type Error struct {
	Kind Kind
	What string
}

func (e *Error) Error() string {
	switch e.Kind {
	case NotInteger:
		return e.What + ": integer expression expected"
	case NotUnary:
		return e.What + ": unary operator expected"
	case NotBinary:
		return e.What + ": binary operator expected"
	case TooMany:
		return "too many arguments"
	case Missing:
		return "argument expected"
	case MissingParen:
		if e.What == "" {
			return "`)' expected"
		}
		return fmt.Sprintf("`)' expected, found %s", e.What)
	}
	return "syntax error"
}
