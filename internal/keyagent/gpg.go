package keyagent

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
)

// Bounds of the Assuan protocol, in which gpg speaks to its agent.
const (
	gpgMaxLine = 1002     // bytes, with the end of the line; libassuan's own
	gpgMaxData = 64 << 10 // what the sandbox sends for one inquiry; gpg-agent takes 4 KiB of a ciphertext
)

// gpgForbidden is how gpg-agent itself answers a request that is not for a restricted client.
const gpgForbidden = "ERR 67109115 Forbidden <GPG Agent>\n"

var errLine = errors.New("a line that is too long, or has no end")

// gpgWords has the words for commands that are refused, or that name a use of a key.
func gpgWords() map[string]string {
	return map[string]string{
		"PKSIGN": "sign", "PKDECRYPT": "decrypt", "SIGKEY": "choose a key", "SETKEY": "choose a key", "KEYINFO": "ask about a key", "READKEY": "read a public key", "HAVEKEY": "ask for keys",
		"GETINFO": "ask about the agent", "GENKEY": "make a key", "IMPORT_KEY": "add a key", "EXPORT_KEY": "read a private key", "DELETE_KEY": "remove a key",
		"KEYTOCARD": "move a key to a card", "LEARN": "learn a card", "SCD": "speak to a card", "PASSWD": "change a passphrase", "PRESET_PASSPHRASE": "set a passphrase",
		"CLEAR_PASSPHRASE": "forget a passphrase", "GET_PASSPHRASE": "ask for a passphrase", "GET_CONFIRMATION": "ask for a confirmation", "KEYWRAP_KEY": "get a key for transport",
		"MARKTRUSTED": "trust a certificate", "KILLAGENT": "end the agent", "RELOADAGENT": "reload the agent", "UPDATESTARTUPTTY": "move the agent to a terminal",
		"GETVAL": "read a stored value", "PUTVAL": "store a value", "KEYATTR": "read or set an attribute of a key",
	}
}

// judge decides about a command. It returns the words for the request, and why it is refused; empty if it is passed on.
//
// gpg-agent refuses most others itself on its extra socket. The filter is here because a restricted client may still
// open dialogs with texts of its own there, make keys, and empty the cache of passphrases. It is certain because client
// and agent take turns by lines, and a command is the first word of a line.
func (s *gpgSession) judge(verb, args string) (request, why string) {
	request = gpgWords()[verb]
	if request == "" {
		request = "a command of another kind"
	}
	if strings.ContainsFunc(args, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return request, malformed
	}
	words := strings.Fields(args)
	switch verb {
	case "RESET", "NOP", "BYE":
		if args == "" {
			return request, ""
		}
		return request, malformed
	case "SETKEYDESC", "SETHASH":
		return request, ""
	case "PKSIGN", "PKDECRYPT":
		if s.key == "" {
			return request, "no key was chosen"
		}
		return request, ""
	case "OPTION":
		if strings.HasPrefix(strings.ReplaceAll(args, " ", ""), "agent-awareness=") {
			return request, ""
		}
		return request, unremarkable
	case "GETINFO":
		if slices.Contains([]string{"version", "restricted", "s2k_count", "s2k_count_cal", "s2k_time"}, args) {
			return request, ""
		}
	case "SIGKEY", "SETKEY", "KEYINFO", "READKEY":
		if len(words) == 1 && isKeygrip(words[0]) {
			if !s.may(words[0]) {
				return request, notThisKey
			}
			return request, ""
		}
	case "HAVEKEY":
		for _, key := range words {
			if !isKeygrip(key) {
				return request, notForwarded
			}
			if !s.may(key) {
				return request, unremarkable // clients ask for all that they know
			}
		}
		return request, ""
	}
	return request, notForwarded
}

// unremarkable is the reason of a refusal that is not reported: clients cause it in normal use.
const unremarkable = "unremarkable"

// may reports whether the sandbox may use a key.
func (s *gpgSession) may(key string) bool {
	allowed := s.f.Agent.Keys
	return len(allowed) == 0 || slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, key) })
}

// serveGPG serves one connection. Client and agent take turns, so one goroutine does.
func (f *Forwarder) serveGPG(ctx context.Context, guest net.Conn) {
	agent, err := f.connect(ctx)
	if err != nil {
		return
	}
	defer agent.Close()
	s := &gpgSession{
		f: f, guest: guest, agent: agent,
		requests: bufio.NewReaderSize(guest, gpgMaxLine), answers: bufio.NewReaderSize(agent, gpgMaxLine),
	}
	greeting, end, err := s.pass()
	if err != nil || end != "OK" {
		return
	}
	if _, err := io.WriteString(guest, greeting); err != nil {
		return
	}
	for err == nil {
		err = s.turn()
	}
}

type gpgSession struct {
	f                 *Forwarder
	guest, agent      net.Conn
	requests, answers *bufio.Reader

	key string // keygrip that was chosen; empty before
}

// readLine reads a line without its end.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", errLine
	case err != nil:
		return "", err
	}
	return strings.TrimSuffix(string(line[:len(line)-1]), "\r"), nil
}

// readRequest reads a line of the sandbox.
func (s *gpgSession) readRequest() (string, error) {
	line, err := readLine(s.requests)
	if errors.Is(err, errLine) {
		s.f.refuse("a line of the wrong length", malformed)
	}
	return line, err
}

// turn carries one request out. An error ends the connection.
func (s *gpgSession) turn() error {
	line, err := s.readRequest()
	if err != nil {
		return err
	}
	verb, args, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
	verb, args = strings.ToUpper(verb), strings.Trim(args, " ")
	if verb == "" || strings.HasPrefix(verb, "#") {
		return nil
	}
	request, why := s.judge(verb, args)
	if why != "" {
		if why != unremarkable {
			s.f.refuse(request, why)
		}
		_, err := io.WriteString(s.guest, gpgForbidden)
		return err
	}
	command := verb
	if args != "" {
		command += " " + args
	}
	if _, err := io.WriteString(s.agent, command+"\n"); err != nil {
		return err
	}
	for {
		answer, end, err := s.pass()
		if err != nil {
			return err
		}
		if end == "INQUIRE" {
			if err := s.inquiry(answer); err != nil {
				return err
			}
			continue
		}
		s.done(verb, args, request, end == "OK")
		_, err = io.WriteString(s.guest, answer)
		return err
	}
}

// done notes what a command has changed, and reports the use of a key.
func (s *gpgSession) done(verb, args, request string, ok bool) {
	switch verb {
	case "RESET":
		s.key = ""
	case "SIGKEY", "SETKEY":
		if ok {
			s.key = strings.ToUpper(args)
		}
	case "PKSIGN", "PKDECRYPT":
		if ok {
			s.f.used(request, s.key, "")
		} else {
			s.f.refuse(request, agentRefuses)
		}
	}
}

// pass passes on what the agent says, up to the line that ends its turn. It returns that line, and its first word: OK,
// ERR or INQUIRE.
func (s *gpgSession) pass() (line, end string, err error) {
	for {
		line, err := readLine(s.answers)
		if err != nil {
			return "", "", err
		}
		switch word, _, _ := strings.Cut(line, " "); word {
		case "OK", "ERR", "INQUIRE":
			return line + "\n", word, nil
		}
		if _, err := io.WriteString(s.guest, line+"\n"); err != nil {
			return "", "", err
		}
	}
}

// inquiry passes on a question of the agent, and what the sandbox answers.
func (s *gpgSession) inquiry(question string) error {
	if _, err := io.WriteString(s.guest, question); err != nil {
		return err
	}
	for left := gpgMaxData; left > 0; {
		line, err := s.readRequest()
		if err != nil {
			return err
		}
		word, _, _ := strings.Cut(line, " ")
		switch word = strings.ToUpper(word); word {
		case "D":
			left -= len(line)
		case "END", "CAN":
			line = word
		default:
			s.f.refuse("an answer to a question of the agent", malformed)
			return errLine
		}
		if _, err := io.WriteString(s.agent, line+"\n"); err != nil {
			return err
		}
		if word != "D" {
			return nil
		}
	}
	s.f.refuse("an answer to a question of the agent", malformed)
	return errLine
}
