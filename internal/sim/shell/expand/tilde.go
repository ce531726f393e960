package expand

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
)

// tildes finds the prefixes that stand for home directories: at the start of a
// word, and in assignments after colons too. A word that looks like an
// assignment is one in this.
func tildes(parts []part, assigned, field bool) []part {
	if !hasTilde(parts) {
		return parts
	}
	skip := 0
	if field && parts[0].kind == text && !parts[0].quoted {
		if i := strings.IndexByte(parts[0].text, '='); i > 0 && variable.Valid(strings.TrimSuffix(parts[0].text[:i], "+")) {
			assigned, skip = true, i+1
		}
	}
	out := make([]part, 0, len(parts)+2)
	for n, p := range parts {
		if p.kind != text || p.quoted {
			out = append(out, p)
			continue
		}
		s := p.text
		from := 0
		last := n == len(parts)-1
		for i := 0; i < len(s); i++ {
			if s[i] != '~' {
				continue
			}
			switch {
			case i == 0 && n == 0 && skip == 0:
			case assigned && i > 0 && (s[i-1] == ':' || n == 0 && i == skip):
			default:
				continue
			}
			end := i + 1
			for end < len(s) && s[end] != '/' && s[end] != ':' {
				end++
			}
			if end == len(s) && !last {
				continue // something quoted or expanded belongs to the name
			}
			if i > from {
				out = append(out, part{text: s[from:i]})
			}
			out = append(out, part{kind: tilde, quoted: true, escaped: skip > 0, text: s[i:end]})
			from = end
			i = end - 1
		}
		if from < len(s) {
			out = append(out, part{text: s[from:]})
		}
	}
	return out
}

func hasTilde(parts []part) bool {
	for i := range parts {
		if p := &parts[i]; p.kind == text && !p.quoted && strings.IndexByte(p.text, '~') >= 0 {
			return true
		}
	}
	return false
}

// tilde gives the directory for a prefix, or the prefix.
func (x *Expander) tilde(prefix string) string {
	name := ""
	switch prefix {
	case "~":
		if home, ok := x.vars.Get("HOME"); ok {
			return home
		}
		if home, ok := x.home(""); ok {
			return home
		}
		return prefix
	case "~+":
		name = "PWD"
	case "~-":
		name = "OLDPWD"
	default:
		if dir, ok := x.stacked(prefix[1:]); ok {
			return dir
		}
		if home, ok := x.home(prefix[1:]); ok {
			return home
		}
		return prefix
	}
	if dir, ok := x.vars.Get(name); ok {
		return dir
	}
	return prefix
}

// stacked gives a directory of the stack: N, +N or -N.
func (x *Expander) stacked(text string) (string, bool) {
	back := strings.HasPrefix(text, "-")
	n, ok := number(strings.TrimLeft(text, "+-"))
	v, _ := x.vars.Var("DIRSTACK")
	if !ok || v == nil || v.Array() == nil {
		return "", false
	}
	list := v.Array().Values()
	if back {
		n = int64(len(list)) - 1 - n
	}
	if n < 0 || n >= int64(len(list)) {
		return "", false
	}
	dir := list[n]
	if home, ok := x.vars.Get("HOME"); ok && (dir == "~" || strings.HasPrefix(dir, "~/")) {
		dir = home + dir[1:]
	}
	return dir, true
}

// home finds a user's directory in /etc/passwd; the empty name is the user
// that the shell runs as.
func (x *Expander) home(user string) (string, bool) {
	f, err := x.task.View.Open("/etc/passwd", 0, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	b := make([]byte, 64<<10)
	n, _ := f.ReadAt(b, 0) // what cannot be read names nobody
	uid := itoa(int64(x.task.View.UID))
	for line := range strings.SplitSeq(string(b[:n]), "\n") {
		x.task.Step(1)
		f := strings.Split(line, ":")
		if len(f) < 6 {
			continue
		}
		if user == "" && f[2] == uid || user != "" && f[0] == user {
			return f[5], true
		}
	}
	return "", false
}
