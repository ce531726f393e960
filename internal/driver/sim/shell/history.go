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
			s.addHistory(strings.Join(o.rest(), " "))
			return 0
		case 'p':
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

func biFc(s *Shell, args []string) int {
	list, noNumbers, reverse := false, false, false
	o := getopt{s: s, args: args, spec: "e:lnrs"}
	for c := o.next(); c != 0; c = o.next() {
		switch c {
		case 'l':
			list = true
		case 'n':
			noNumbers = true
		case 'r':
			reverse = true
		case 's', 'e':
		default:
			return o.usage("fc: usage: fc [-e ename] [-lnr] [first] [last] or fc -s [pat=rep] [command]")
		}
	}
	if !list {
		if len(s.history) == 0 {
			s.Warn("fc: no command found")
			return 1
		}
		text := s.history[len(s.history)-1]
		s.line0(text)
		return s.runText(text, s.line)
	}
	from, to := max(0, len(s.history)-16), len(s.history)
	rest := o.rest()
	if len(rest) > 0 {
		if n, ok := number(rest[0]); ok && n > 0 {
			from = min(n-1, len(s.history))
		} else if ok {
			from = max(0, len(s.history)+n)
		}
	}
	if len(rest) > 1 {
		if n, ok := number(rest[1]); ok && n > 0 {
			to = min(n, len(s.history))
		}
	}
	line := func(i int) {
		if noNumbers {
			s.print("\t " + s.history[i] + "\n")
		} else {
			s.printf("%d\t %s\n", i+1, s.history[i])
		}
	}
	for i := from; i < to; i++ {
		if reverse {
			line(to - 1 - (i - from))
		} else {
			line(i)
		}
	}
	return 0
}
