package shell

import (
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/quote"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/readline"
)

// A partial word is what stands before the cursor.
type partial struct {
	start   int    // where it begins in the line
	raw     string // as it was typed
	value   string // without quotes
	quote   byte   // that is open, or 0
	command bool   // it is the name of a command
	name    string // of the command that it is an argument of
}

// scanner splits a line that is being typed, up to the cursor.
type scanner struct {
	partial
	inWord, redirect, wasCommand bool
	text                         []byte
}

// split finds the word before the cursor.
func split(line string) partial {
	w := &scanner{partial: partial{command: true}}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case w.quote == '\'':
			if c == '\'' {
				w.quote = 0
			} else {
				w.text = append(w.text, c)
			}
		case c == '\\' && i+1 < len(line):
			i++
			w.inWord = true
			w.text = append(w.text, line[i])
		case c == '$' && i+1 < len(line) && line[i+1] == '(':
			i++
			w.quote = 0
			w.begin(i+1, true)
		case w.quote == '"':
			if c == '"' {
				w.quote = 0
			} else {
				w.text = append(w.text, c)
			}
		case c == '\'' || c == '"':
			w.inWord, w.quote = true, c
		case c == ' ' || c == '\t':
			w.space(i + 1)
		case c == '&' && i > 0 && (line[i-1] == '>' || line[i-1] == '<'):
		case strings.IndexByte("|&;(\n`{", c) >= 0 && (c != '{' || !w.inWord):
			w.begin(i+1, true)
		case c == ')':
			w.begin(i+1, false)
		case c == '<' || c == '>':
			w.space(i)
			w.wasCommand, w.redirect, w.command = w.command, true, false
			w.start = i + 1
		case c == '=' && w.inWord:
			w.command, w.wasCommand = false, w.command
			w.redirect = w.wasCommand // what follows an assignment is a command still
			w.start, w.text = i+1, w.text[:0]
		default:
			w.inWord = true
			w.text = append(w.text, c)
		}
	}
	w.raw, w.value = line[w.start:], string(w.text)
	return w.partial
}

// begin starts a command, or what follows one.
func (w *scanner) begin(at int, command bool) {
	w.start, w.text, w.inWord, w.redirect, w.command, w.name = at, w.text[:0], false, false, command, ""
}

// space ends a word.
func (w *scanner) space(at int) {
	switch {
	case !w.inWord:
	case w.redirect:
		w.redirect, w.command = false, w.wasCommand
	case w.command && !slices.Contains([]string{"if", "then", "else", "elif", "while", "until", "do", "!", "time", "exec", "command", "builtin", "env", "nohup", "xargs"}, string(w.text)):
		w.command, w.name = false, string(w.text)
	}
	w.start, w.text, w.inWord = at, w.text[:0], false
}

// complete gives what the word before the cursor can become: a variable, a
// command or a file.
func (s *Shell) complete(line string, at int) (start int, choices []readline.Choice) {
	w := split(line[:at])
	if i := strings.LastIndexByte(w.raw, '$'); i >= 0 && w.quote != '\'' {
		name, brace := strings.CutPrefix(w.raw[i+1:], "{")
		if name == "" || parse.Name(name) {
			return w.start + i, s.variableChoices(name, brace, w.quote)
		}
	}
	if w.command && strings.IndexByte(w.value, '/') < 0 && w.quote == 0 {
		names := s.commandNames()
		slices.Sort(names)
		for _, n := range slices.Compact(names) {
			if strings.HasPrefix(n, w.value) {
				choices = append(choices, readline.Choice{Text: quote.Backslash(n), Show: n, End: " "})
			}
		}
		return w.start, choices
	}
	return w.start, s.fileChoices(w)
}

func (s *Shell) variableChoices(prefix string, brace bool, open byte) []readline.Choice {
	names := s.vars.Names()
	slices.Sort(names)
	var choices []readline.Choice
	for _, n := range names {
		if !strings.HasPrefix(n, prefix) {
			continue
		}
		c := readline.Choice{Text: "$" + n, Show: n}
		if brace {
			c.Text, c.End = "${"+n, "}"
		}
		if open == 0 {
			c.End += " "
		}
		choices = append(choices, c)
	}
	return choices
}

func (s *Shell) fileChoices(w partial) []readline.Choice {
	value, tilde := w.value, ""
	if rest, ok := strings.CutPrefix(value, "~/"); ok && strings.HasPrefix(w.raw, "~/") {
		home, _ := s.vars.Get("HOME")
		value, tilde = home+"/"+rest, home
	}
	names := s.fileNames(value, w.name == "cd" || w.name == "rmdir" || w.name == "pushd")
	slices.Sort(names)
	choices := make([]readline.Choice, 0, len(names))
	for _, n := range names {
		c := readline.Choice{Show: n[strings.LastIndexByte(n, '/')+1:], End: " "}
		i, err := s.t.View.Stat(n)
		dir := err == nil && i.IsDir()
		if dir {
			c.Show += "/"
			c.End = "/"
		}
		text := n
		if tilde != "" {
			text = strings.TrimPrefix(n, tilde)
		}
		switch w.quote {
		case '\'':
			text = "'" + strings.ReplaceAll(text, "'", `'\''`)
		case '"':
			text = `"` + promptQuotes().Replace(text)
		default:
			text = quote.Backslash(text)
		}
		if w.quote != 0 && !dir {
			c.End = string(w.quote) + c.End
		}
		if tilde != "" {
			text = "~" + text
		}
		c.Text = text
		choices = append(choices, c)
	}
	return choices
}
