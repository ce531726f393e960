package file

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// palette reads LS_COLORS over the built-in colours.
func palette(spec string) map[string]string {
	p := map[string]string{
		"lc": "\x1b[", "rc": "m", "rs": "0", "di": "01;34", "ln": "01;36", "pi": "33", "so": "01;35", "bd": "01;33", "cd": "01;33",
		"ex": "01;32", "do": "01;35", "su": "37;41", "sg": "30;43", "st": "37;44", "ow": "34;42", "tw": "30;42",
	}
	for e := range strings.SplitSeq(spec, ":") {
		if k, v, ok := strings.Cut(e, "="); ok && k != "" {
			p[k] = v
		}
	}
	return p
}

// coloured tells the kinds of terminals that show colours.
func coloured(term string) bool {
	switch term {
	case "Eterm", "ansi", "cons25", "console", "cygwin", "dtterm", "gnome", "hurd", "jfbterm", "konsole", "kterm", "linux",
		"linux-c", "mlterm", "putty", "st", "terminator", "vt100":
		return true
	}
	for _, prefix := range []string{"rxvt", "screen", "tmux", "xterm"} {
		if strings.HasPrefix(term, prefix) {
			return true
		}
	}
	return strings.Contains(term, "color") || strings.Contains(term, "direct")
}

// kindColour gives the key of a file's colour.
func (l *lister) kindColour(name string, i vfs.Info, broken bool) string {
	has := func(k string) bool { c := l.colours[k]; return c != "" && c != "0" && c != "00" }
	switch i.Mode & linux.S_IFMT {
	case linux.S_IFREG:
		switch {
		case i.Mode&linux.S_ISUID != 0 && has("su"):
			return "su"
		case i.Mode&linux.S_ISGID != 0 && has("sg"):
			return "sg"
		case i.Mode&0o111 != 0 && has("ex"):
			return "ex"
		case i.Nlink > 1 && has("mh"):
			return "mh"
		}
		longest := ""
		for k := range l.colours {
			if k[0] == '*' && strings.HasSuffix(name, k[1:]) && len(k) > len(longest) {
				longest = k
			}
		}
		if longest != "" {
			return longest
		}
		return "fi"
	case linux.S_IFDIR:
		sticky, other := i.Mode&linux.S_ISVTX != 0, i.Mode&0o002 != 0
		switch {
		case sticky && other && has("tw"):
			return "tw"
		case other && has("ow"):
			return "ow"
		case sticky && has("st"):
			return "st"
		}
		return "di"
	case linux.S_IFLNK:
		if broken && has("or") {
			return "or"
		}
		return "ln"
	case linux.S_IFIFO:
		return "pi"
	case linux.S_IFSOCK:
		return "so"
	case linux.S_IFBLK:
		return "bd"
	case linux.S_IFCHR:
		return "cd"
	}
	return "or"
}

// paint puts a name's colour around its text. The first one of all is
// preceded by a reset.
func (l *lister) paint(text string, i vfs.Info, broken bool) string {
	if !l.colour {
		return text
	}
	return l.wrap(text, l.colours[l.kindColour(strings.TrimSpace(text), i, broken)])
}

func (l *lister) paintTarget(it *item) string {
	text := l.quote(it.target)
	if !l.colour {
		return text
	}
	if it.broken {
		c := l.colours["mi"]
		if c == "" {
			c = l.colours["or"]
		}
		return l.wrap(text, c)
	}
	return l.wrap(text, l.colours[l.kindColour(it.target, it.to, false)])
}

func (l *lister) wrap(text, colour string) string {
	if colour == "" {
		return text
	}
	lc, rc := l.colours["lc"], l.colours["rc"]
	reset := lc + l.colours["rs"] + rc
	pad := text[:len(text)-len(strings.TrimLeft(text, " "))]
	first := ""
	if !l.painted {
		l.painted = true
		first = reset
	}
	return pad + first + lc + colour + rc + text[len(pad):] + reset
}
