package readline

// A key is a byte that was typed, or one of those below.
type key int

// Keys that terminals send as sequences.
const (
	none key = -1 - iota
	up
	down
	left
	right
	home
	end
	del
	first
	last
	wordLeft
	wordRight
	wordBack
	wordDel
	lastWord
	pasteBegin
	pasteEnd
)

func ctrl(c byte) key { return key(c & 0x1f) }

// byte reads one byte, so that what follows the line is left to others.
func (e *Editor) byte() (byte, error) {
	var b [1]byte
	for {
		n, err := e.o.Read(b[:])
		if n > 0 {
			return b[0], nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// key reads one key.
func (e *Editor) key() (key, error) {
	b, err := e.byte()
	if err != nil || b != 0x1b {
		return key(b), err
	}
	if b, err = e.byte(); err != nil {
		return none, err
	}
	switch b {
	case '[':
		return e.sequence()
	case 'O':
		if b, err = e.byte(); err != nil {
			return none, err
		}
		return arrow(b), nil
	case 'b', 'B':
		return wordLeft, nil
	case 'f', 'F':
		return wordRight, nil
	case 'd', 'D':
		return wordDel, nil
	case 127, 8:
		return wordBack, nil
	case '.', '_':
		return lastWord, nil
	case '<':
		return first, nil
	case '>':
		return last, nil
	}
	return none, nil
}

// sequence reads what follows ESC [: numbers and one final byte.
func (e *Editor) sequence() (key, error) {
	n, modifier := 0, 0
	now := &n
	for range 32 { // a longer one is none
		b, err := e.byte()
		if err != nil {
			return none, err
		}
		switch {
		case b >= '0' && b <= '9':
			*now = min(*now*10+int(b-'0'), 9999)
		case b == ';':
			modifier = 0
			now = &modifier
		case b == '~':
			return numbered(n), nil
		case b >= 0x40:
			k := arrow(b)
			if modifier > 1 {
				switch k {
				case left:
					k = wordLeft
				case right:
					k = wordRight
				}
			}
			return k, nil
		}
	}
	return none, nil
}

func arrow(b byte) key {
	switch b {
	case 'A':
		return up
	case 'B':
		return down
	case 'C':
		return right
	case 'D':
		return left
	case 'H':
		return home
	case 'F':
		return end
	}
	return none
}

func numbered(n int) key {
	switch n {
	case 1, 7:
		return home
	case 4, 8:
		return end
	case 3:
		return del
	case 5:
		return first
	case 6:
		return last
	case 200:
		return pasteBegin
	case 201:
		return pasteEnd
	}
	return none
}
