package command

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// ModeBits are the permission bits that chmod can change.
const ModeBits = 0o7777

const setIDBits = 0o6000 // set-user-ID and set-group-ID

// A ModeChange is a parsed mode argument: a change of a file's permissions.
type ModeChange struct{ steps []modeStep }

// modeSource says where the bits of a step come from.
type modeSource uint8

const (
	modeGiven      modeSource = iota
	modeExecutable            // X: executable if it is a directory or executable already
	modeCopied                // u, g or o
)

type modeStep struct {
	op        byte       // '=', '+' or '-'
	kind      modeSource //
	affected  uint32     // 0 is all, less the umask
	value     uint32
	mentioned uint32 // bits of a directory that the mode speaks of
}

// ParseMode parses a mode, octal or symbolic.
func ParseMode(s string) (ModeChange, bool) {
	if s != "" && s[0] >= '0' && s[0] <= '7' {
		v, ok := octalMode(s)
		if !ok {
			return ModeChange{}, false
		}
		mentioned := uint32(ModeBits)
		if len(s) < 5 {
			mentioned = v&setIDBits | linux.S_ISVTX | 0o777
		}
		return ModeChange{[]modeStep{{op: '=', affected: ModeBits, value: v, mentioned: mentioned}}}, true
	}
	return symbolicMode(s)
}

func octalMode(s string) (uint32, bool) {
	v := uint32(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '7' {
			return 0, false
		}
		if v = v*8 + uint32(s[i]-'0'); v > ModeBits {
			return 0, false
		}
	}
	return v, true
}

func symbolicMode(s string) (ModeChange, bool) {
	var c ModeChange
	for clause := range strings.SplitSeq(s, ",") {
		affected := uint32(0)
		i := 0
		for ; i < len(clause) && strings.IndexByte("ugoa", clause[i]) >= 0; i++ {
			affected |= modeClass(clause[i])
		}
		if i == len(clause) {
			return c, false
		}
		for i < len(clause) {
			st := modeStep{op: clause[i], affected: affected}
			if strings.IndexByte("=+-", st.op) < 0 {
				return c, false
			}
			i++
			n, ok := st.bits(clause[i:])
			if !ok {
				return c, false
			}
			if i += n; st.value&ModeBits != 0 && st.mentioned == ModeBits && i < len(clause) {
				return c, false
			}
			c.steps = append(c.steps, st)
		}
	}
	return c, true
}

func modeClass(c byte) uint32 {
	switch c {
	case 'u':
		return linux.S_ISUID | 0o700
	case 'g':
		return linux.S_ISGID | 0o070
	case 'o':
		return linux.S_ISVTX | 0o007
	}
	return ModeBits
}

// bits reads what follows an operator, and tells how much of it there was.
func (st *modeStep) bits(s string) (n int, ok bool) {
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
		v, ok := octalMode(s[:n])
		if !ok {
			return 0, false
		}
		st.value, st.affected, st.mentioned = v, ModeBits, ModeBits
		return n, n == len(s)
	case c == 'u', c == 'g', c == 'o':
		st.kind = modeCopied
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
			st.kind = modeExecutable
		case 's':
			st.value |= setIDBits
		case 't':
			st.value |= linux.S_ISVTX
		default:
			break loop
		}
	}
	st.mention()
	return n, true
}

func (st *modeStep) mention() {
	switch {
	case st.kind == modeCopied && st.affected != 0:
		st.mentioned = st.affected & 0o777
	case st.kind == modeCopied:
		st.mentioned = 0o777
	case st.op == '=' && st.affected != 0:
		st.mentioned = st.affected & 0o777
		if st.value&setIDBits != 0 {
			st.mentioned |= st.affected & setIDBits
		}
	case st.op == '=':
		st.mentioned = 0o777 | st.value
	case st.affected != 0:
		st.mentioned = st.affected & st.value
	default:
		st.mentioned = st.value
	}
}

// Apply returns the permissions of a file after the change, and the bits that
// the change speaks of. The umask counts where a clause does not say whose
// permissions it means.
func (c ModeChange) Apply(old uint32, dir bool, umask uint32) (bits, spoken uint32) {
	m := old & ModeBits
	for i := range c.steps {
		st := &c.steps[i]
		omit := uint32(0)
		if dir {
			omit = setIDBits &^ st.mentioned
		}
		v := st.value
		switch st.kind {
		case modeCopied:
			v &= m
			x := uint32(0)
			for _, b := range []uint32{0o444, 0o222, 0o111} {
				if v&b != 0 {
					x |= b
				}
			}
			v = x
		case modeExecutable:
			if dir || m&0o111 != 0 {
				v |= 0o111
			}
		case modeGiven:
		}
		mask := ModeBits &^ umask
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
			spoken |= ModeBits &^ keep
			m = m&keep | v
		case '+':
			spoken |= v
			m |= v
		case '-':
			spoken |= v
			m &^= v
		}
	}
	return m & ModeBits, spoken & ModeBits
}

// ModeString formats type and permissions as ls does: "drwxr-xr-x".
func ModeString(m uint32) string {
	b := []byte("?rwxrwxrwx")
	b[0] = TypeLetter(m)
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
	special(linux.S_ISUID, 3, 's', 'S')
	special(linux.S_ISGID, 6, 's', 'S')
	special(linux.S_ISVTX, 9, 't', 'T')
	return string(b)
}

// TypeLetter returns the letter with which ls shows a file's type.
func TypeLetter(m uint32) byte {
	switch m & linux.S_IFMT {
	case linux.S_IFREG:
		return '-'
	case linux.S_IFDIR:
		return 'd'
	case linux.S_IFLNK:
		return 'l'
	case linux.S_IFCHR:
		return 'c'
	case linux.S_IFBLK:
		return 'b'
	case linux.S_IFIFO:
		return 'p'
	case linux.S_IFSOCK:
		return 's'
	}
	return '?'
}

// TypeName returns the name that stat has for a file's type.
func TypeName(m uint32, size int64) string {
	switch m & linux.S_IFMT {
	case linux.S_IFREG:
		if size == 0 {
			return "regular empty file"
		}
		return "regular file"
	case linux.S_IFDIR:
		return "directory"
	case linux.S_IFLNK:
		return "symbolic link"
	case linux.S_IFCHR:
		return "character special file"
	case linux.S_IFBLK:
		return "block special file"
	case linux.S_IFIFO:
		return "fifo"
	case linux.S_IFSOCK:
		return "socket"
	}
	return "weird file"
}
