package shell

import "strings"

// maxHistory is how many commands history keeps.
const maxHistory = 500

func (s *Shell) addHistory(text string) {
	list := append(s.history[:len(s.history):len(s.history)], text)
	if len(list) > maxHistory {
		list = list[len(list)-maxHistory:]
	}
	s.history = list
}

// forgetCommand takes the command that runs out of the history, where it is
// kept before it runs.
func (s *Shell) forgetCommand() {
	if n := len(s.history); s.recording() && n > 0 {
		s.history = s.history[: n-1 : n-1]
	}
}

// recording reports whether the command that runs is in the history already.
func (s *Shell) recording() bool { return s.interactive && s.opt[oHistory] }

func biHistory(s *Shell, args []string) int {
	o := getopt{s: s, args: args, spec: "acd:nrwps"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'c':
			s.history = nil
		case 'd':
			n, ok := number(o.arg)
			if n < 0 {
				n += len(s.history) + 1
			}
			if !ok || n < 1 || n > len(s.history) {
				s.Warn("history: %s: history position out of range", o.arg)
				return 1
			}
			s.history = append(s.history[:n-1:n-1], s.history[n:]...)
			return 0
		case 's':
			s.forgetCommand()
			s.addHistory(strings.Join(o.rest(), " "))
			return 0
		case 'p':
			s.forgetCommand()
			for _, a := range o.rest() {
				s.print(a + "\n")
			}
			return 0
		case 'a', 'n', 'r', 'w':
			return s.historyFile(c, o.rest())
		default:
			return o.usage("history: usage: history [-c] [-d offset] [n] or history -anrw [filename] or history -ps arg [arg...]")
		}
	}
	rest := o.rest()
	from := 0
	if len(rest) > 0 {
		n, ok := number(rest[0])
		if !ok {
			s.Warn("history: %s: numeric argument required", rest[0])
			return 1
		}
		if len(rest) > 1 {
			s.Warn("history: too many arguments")
			return 1
		}
		from = max(0, len(s.history)-max(n, 0))
	}
	for i := from; i < len(s.history); i++ {
		s.printf("%5d  %s\n", i+1, s.history[i])
	}
	return 0
}

// historyFile reads or writes the file of commands.
func (s *Shell) historyFile(how byte, rest []string) int {
	file := ""
	if len(rest) > 0 {
		file = rest[0]
	} else {
		file, _ = s.vars.Get("HISTFILE")
	}
	if file == "" {
		return 0
	}
	switch how {
	case 'r', 'n':
		text, err := s.readFile(file)
		if err != nil {
			s.Warn("history: %s: %s", file, message(err))
			return 1
		}
		for _, l := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
			if l != "" {
				s.addHistory(l)
			}
		}
	default:
		if err := s.writeFile(file, strings.Join(s.history, "\n")+"\n", how == 'a'); err != nil {
			s.Warn("history: %s: %s", file, message(err))
			return 1
		}
	}
	return 0
}
