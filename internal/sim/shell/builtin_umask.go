package shell

import (
	"strconv"
	"strings"
)

func biUmask(s *Shell, args []string) int {
	symbolic, reuse := false, false
	o := getopt{s: s, args: args, spec: "pS"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'p':
			reuse = true
		case 'S':
			symbolic = true
		default:
			return o.usage("umask: usage: umask [-p] [-S] [mode]")
		}
	}
	rest := o.rest()
	view := &s.t.View
	if len(rest) == 0 {
		text := "00" + strconv.FormatUint(uint64(view.Umask), 8)
		text = "0" + "000"[:max(0, 3-len(text)+2)] + strconv.FormatUint(uint64(view.Umask), 8)
		if symbolic {
			text = symbolicMask(view.Umask)
		}
		if reuse {
			if symbolic {
				text = "-S " + text
			}
			text = "umask " + text
		}
		s.print(text + "\n")
		return 0
	}
	mode := rest[0]
	if mode != "" && mode[0] >= '0' && mode[0] <= '9' {
		n, err := strconv.ParseUint(mode, 8, 32)
		if err != nil || n > 0o777 {
			s.Warn("umask: %s: octal number out of range", mode)
			return 1
		}
		view.Umask = uint32(n)
		return 0
	}
	mask, why := parseMask(mode, view.Umask)
	if why != "" {
		s.Warn("umask: %s", why)
		return 1
	}
	view.Umask = mask
	if symbolic {
		s.print(symbolicMask(mask) + "\n")
	}
	return 0
}

func symbolicMask(mask uint32) string {
	var b []byte
	for i, who := range []byte("ugo") {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, who, '=')
		bits := ^mask >> (6 - 3*i)
		for k, c := range []byte("rwx") {
			if bits&(4>>k) != 0 {
				b = append(b, c)
			}
		}
	}
	return string(b)
}

// parseMask reads a symbolic mode: what it allows is not masked.
func parseMask(text string, mask uint32) (result uint32, why string) {
	allowed := ^mask & 0o777
	for i := 0; ; {
		who := uint32(0)
		for ; i < len(text); i++ {
			switch text[i] {
			case 'u':
				who |= 0o700
				continue
			case 'g':
				who |= 0o070
				continue
			case 'o':
				who |= 0o007
				continue
			case 'a':
				who |= 0o777
				continue
			}
			break
		}
		if who == 0 {
			who = 0o777
		}
		if i >= len(text) || strings.IndexByte("+-=", text[i]) < 0 {
			c := "\x00"
			if i < len(text) {
				c = text[i : i+1]
			}
			return mask, "`" + c + "': invalid symbolic mode operator"
		}
		op := text[i]
		i++
		bits := uint32(0)
		for ; i < len(text) && text[i] != ','; i++ {
			switch text[i] {
			case 'r':
				bits |= 0o444
			case 'w':
				bits |= 0o222
			case 'x':
				bits |= 0o111
			default:
				return mask, "`" + text[i:i+1] + "': invalid symbolic mode character"
			}
		}
		switch op {
		case '+':
			allowed |= bits & who
		case '-':
			allowed &^= bits & who
		default:
			allowed = allowed&^who | bits&who
		}
		if i >= len(text) {
			return ^allowed & 0o777, ""
		}
		i++
	}
}
