package shell

import (
	"path"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
)

// Prompt expands the backslashes of a prompt, and then what is in it.
func (s *Shell) Prompt(text string) string {
	if strings.IndexByte(text, '\\') >= 0 {
		text = s.promptEscapes(text)
	}
	if !s.opt[oPromptvars] || !strings.ContainsAny(text, "$`\\") {
		return text
	}
	status := s.status
	out, err := s.Expander().Text(text)
	s.status = status
	if err != nil {
		return text
	}
	return out
}

func (s *Shell) promptEscapes(text string) string {
	b := kernel.NewText(s.t)
	now := s.t.K.Now()
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' || i+1 == len(text) {
			b.Byte(c)
			continue
		}
		i++
		switch c := text[i]; c {
		case 'a':
			b.Byte(7)
		case 'd':
			b.WriteString(now.Format("Mon Jan 02"))
		case 'D':
			if end := strings.IndexByte(text[i:], '}'); end > 1 && text[i+1] == '{' {
				b.WriteString(s.strftime(text[i+2:i+end], now))
				i += end
			}
		case 'e':
			b.Byte(27)
		case 'h':
			host, _, _ := strings.Cut(s.t.K.Hostname, ".")
			b.WriteString(host)
		case 'H':
			b.WriteString(s.t.K.Hostname)
		case 'j':
			n := 0
			for _, j := range s.jobs.list {
				if j.id != 0 {
					n++
				}
			}
			b.WriteString(strconv.Itoa(n))
		case 'l':
			b.WriteString("tty")
		case 'n':
			b.Byte('\n')
		case 'r':
			b.Byte('\r')
		case 's':
			b.WriteString(path.Base(s.name))
		case 't':
			b.WriteString(now.Format("15:04:05"))
		case 'T':
			b.WriteString(now.Format("03:04:05"))
		case '@':
			b.WriteString(now.Format("03:04 PM"))
		case 'A':
			b.WriteString(now.Format("15:04"))
		case 'u':
			user := "root"
			if s.t.View.UID != 0 {
				user = "user"
			}
			if v, ok := s.vars.Get("USER"); ok {
				user = v
			}
			b.WriteString(user)
		case 'v':
			b.WriteString("5.2")
		case 'V':
			b.WriteString("5.2.37")
		case 'w', 'W':
			dir := s.tildeDir(s.workdir(), false)
			if c == 'W' && dir != "~" && dir != "/" {
				dir = path.Base(dir)
			}
			b.WriteString(inert(dir))
		case '!', '#':
			b.WriteString(strconv.Itoa(len(s.history) + 1))
		case '$':
			if s.t.View.UID == 0 {
				b.Byte('#')
			} else {
				b.WriteString("\\$")
			}
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n, k := 0, 0
			for ; k < 3 && i+k < len(text) && text[i+k] >= '0' && text[i+k] <= '7'; k++ {
				n = n*8 + int(text[i+k]-'0')
			}
			b.Byte(byte(n))
			i += k - 1
		case '\\':
			b.WriteString("\\\\")
		case '[', ']':
		default:
			b.Byte('\\')
			b.Byte(c)
		}
	}
	return b.Text()
}

// inert writes what is put into a prompt so that its expansion gives it back.
func inert(text string) string {
	if !strings.ContainsAny(text, "$`\\\"") {
		return text
	}
	return promptQuotes().Replace(text)
}

func promptQuotes() *strings.Replacer {
	return strings.NewReplacer("$", `\$`, "`", "\\`", `\`, `\\`, `"`, `\"`)
}

// formatTime is strftime for prompts.
func formatTime(format string, now time.Time) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		layout := ""
		switch format[i] {
		case 'Y':
			layout = "2006"
		case 'y':
			layout = "06"
		case 'm':
			layout = "01"
		case 'd':
			layout = "02"
		case 'e':
			layout = "_2"
		case 'H':
			layout = "15"
		case 'I':
			layout = "03"
		case 'M':
			layout = "04"
		case 'S':
			layout = "05"
		case 'p':
			layout = "PM"
		case 'a':
			layout = "Mon"
		case 'A':
			layout = "Monday"
		case 'b', 'h':
			layout = "Jan"
		case 'B':
			layout = "January"
		case 'F':
			layout = "2006-01-02"
		case 'T', 'X':
			layout = "15:04:05"
		case 'R':
			layout = "15:04"
		case 'D', 'x':
			layout = "01/02/06"
		case 'Z':
			layout = "MST"
		case 'z':
			layout = "-0700"
		case 's':
			b.WriteString(strconv.FormatInt(now.Unix(), 10))
			continue
		case 'j':
			n := strconv.Itoa(now.YearDay())
			b.WriteString("000"[len(n):] + n)
			continue
		case 'n':
			b.WriteByte('\n')
			continue
		case 't':
			b.WriteByte('\t')
			continue
		default:
			b.WriteByte(format[i])
			continue
		}
		b.WriteString(now.Format(layout))
	}
	return b.String()
}

// Word parses a text that is one word, or gives nil.
func (s *Shell) Word(text string) *syntax.Word {
	return parse.OneWord(text, s.reading(s.line))
}
