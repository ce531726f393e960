// Package mode reads and writes permissions as chmod, mkdir -m, find -perm and
// ls have them.
package mode

import (
	"strings"
	"syscall"
)

// All are the bits that can be changed.
const All = 0o7777

const anySet = 0o6000 // set-user-ID and set-group-ID

// A Change is what a mode in an argument does to the permissions of a file.
type Change struct{ steps []step }

// kind says where the bits of a step come from.
type kind uint8

const (
	given    kind = iota
	perhapsX      // X: executable if it is a directory or executable already
	copied        // u, g or o
)

type step struct {
	op        byte   // '=', '+' or '-'
	kind      kind   //
	affected  uint32 // 0 is all, less the umask
	value     uint32
	mentioned uint32 // bits of a directory that the mode speaks of
}

// Parse reads a mode, octal or symbolic.
func Parse(s string) (Change, bool) {
	if s != "" && s[0] >= '0' && s[0] <= '7' {
		v, ok := octal(s)
		if !ok {
			return Change{}, false
		}
		mentioned := uint32(All)
		if len(s) < 5 {
			mentioned = v&anySet | syscall.S_ISVTX | 0o777
		}
		return Change{[]step{{op: '=', affected: All, value: v, mentioned: mentioned}}}, true
	}
	return symbolic(s)
}

func octal(s string) (uint32, bool) {
	v := uint32(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '7' {
			return 0, false
		}
		if v = v*8 + uint32(s[i]-'0'); v > All {
			return 0, false
		}
	}
	return v, true
}

func symbolic(s string) (Change, bool) {
	var c Change
	for clause := range strings.SplitSeq(s, ",") {
		affected := uint32(0)
		i := 0
		for ; i < len(clause) && strings.IndexByte("ugoa", clause[i]) >= 0; i++ {
			affected |= whose(clause[i])
		}
		if i == len(clause) {
			return c, false
		}
		for i < len(clause) {
			st := step{op: clause[i], affected: affected}
			if strings.IndexByte("=+-", st.op) < 0 {
				return c, false
			}
			i++
			n, ok := st.bits(clause[i:])
			if !ok {
				return c, false
			}
			if i += n; st.value&All != 0 && st.mentioned == All && i < len(clause) {
				return c, false
			}
			c.steps = append(c.steps, st)
		}
	}
	return c, true
}

func whose(c byte) uint32 {
	switch c {
	case 'u':
		return syscall.S_ISUID | 0o700
	case 'g':
		return syscall.S_ISGID | 0o070
	case 'o':
		return syscall.S_ISVTX | 0o007
	}
	return All
}

// bits reads what follows an operator, and tells how much of it there was.
func (st *step) bits(s string) (n int, ok bool) {
	if s == "" {
		st.mention()
		return 0, true
	}
	switch c := s[0]; {
	case c >= '0' && c <= '7':
		for n < len(s) && s[n] >= '0' && s[n] <= '7' {
			n++
		}
		if st.affected != 0 {
			return 0, false
		}
		v, ok := octal(s[:n])
		if !ok {
			return 0, false
		}
		st.value, st.affected, st.mentioned = v, All, All
		return n, n == len(s)
	case c == 'u', c == 'g', c == 'o':
		st.kind = copied
		switch c {
		case 'u':
			st.value = 0o700
		case 'g':
			st.value = 0o070
		default:
			st.value = 0o007
		}
		st.mention()
		return 1, true
	}
loop:
	for ; n < len(s); n++ {
		switch s[n] {
		case 'r':
			st.value |= 0o444
		case 'w':
			st.value |= 0o222
		case 'x':
			st.value |= 0o111
		case 'X':
			st.kind = perhapsX
		case 's':
			st.value |= anySet
		case 't':
			st.value |= syscall.S_ISVTX
		default:
			break loop
		}
	}
	st.mention()
	return n, true
}

func (st *step) mention() {
	switch {
	case st.kind == copied && st.affected != 0:
		st.mentioned = st.affected & 0o777
	case st.kind == copied:
		st.mentioned = 0o777
	case st.op == '=' && st.affected != 0:
		st.mentioned = st.affected & 0o777
		if st.value&anySet != 0 {
			st.mentioned |= st.affected & anySet
		}
	case st.op == '=':
		st.mentioned = 0o777 | st.value
	case st.affected != 0:
		st.mentioned = st.affected & st.value
	default:
		st.mentioned = st.value
	}
}

// Apply gives the permissions of a file after the change, and the bits that
// the change speaks of. The umask counts where a clause does not say whose
// permissions it means.
func (c Change) Apply(old uint32, dir bool, umask uint32) (bits, spoken uint32) {
	m := old & All
	for i := range c.steps {
		st := &c.steps[i]
		omit := uint32(0)
		if dir {
			omit = anySet &^ st.mentioned
		}
		v := st.value
		switch st.kind {
		case copied:
			v &= m
			x := uint32(0)
			for _, b := range []uint32{0o444, 0o222, 0o111} {
				if v&b != 0 {
					x |= b
				}
			}
			v = x
		case perhapsX:
			if dir || m&0o111 != 0 {
				v |= 0o111
			}
		case given:
		}
		mask := All &^ umask
		if st.affected != 0 {
			mask = st.affected
		}
		v &= mask &^ omit
		switch st.op {
		case '=':
			keep := omit
			if st.affected != 0 {
				keep |= ^st.affected
			}
			spoken |= All &^ keep
			m = m&keep | v
		case '+':
			spoken |= v
			m |= v
		case '-':
			spoken |= v
			m &^= v
		}
	}
	return m & All, spoken & All
}

// String writes type and permissions as ls does: "drwxr-xr-x".
func String(m uint32) string {
	b := []byte("?rwxrwxrwx")
	b[0] = Letter(m)
	for i := range 9 {
		if m&(0o400>>i) == 0 {
			b[i+1] = '-'
		}
	}
	special := func(bit uint32, at int, with, without byte) {
		if m&bit == 0 {
			return
		}
		if b[at] == 'x' {
			b[at] = with
		} else {
			b[at] = without
		}
	}
	special(syscall.S_ISUID, 3, 's', 'S')
	special(syscall.S_ISGID, 6, 's', 'S')
	special(syscall.S_ISVTX, 9, 't', 'T')
	return string(b)
}

// Letter is how ls shows a file's type.
func Letter(m uint32) byte {
	switch m & syscall.S_IFMT {
	case syscall.S_IFREG:
		return '-'
	case syscall.S_IFDIR:
		return 'd'
	case syscall.S_IFLNK:
		return 'l'
	case syscall.S_IFCHR:
		return 'c'
	case syscall.S_IFBLK:
		return 'b'
	case syscall.S_IFIFO:
		return 'p'
	case syscall.S_IFSOCK:
		return 's'
	}
	return '?'
}

// Kind is how stat calls a file's type.
func Kind(m uint32, size int64) string {
	switch m & syscall.S_IFMT {
	case syscall.S_IFREG:
		if size == 0 {
			return "regular empty file"
		}
		return "regular file"
	case syscall.S_IFDIR:
		return "directory"
	case syscall.S_IFLNK:
		return "symbolic link"
	case syscall.S_IFCHR:
		return "character special file"
	case syscall.S_IFBLK:
		return "block special file"
	case syscall.S_IFIFO:
		return "fifo"
	case syscall.S_IFSOCK:
		return "socket"
	}
	return "weird file"
}
