package keyagent

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
)

// Bounds of the Assuan protocol, in which gpg speaks to its agent.
const (
	gpgMaxLine   = 1002      // bytes, with the end of the line; libassuan's own
	gpgMaxData   = 4096      // that the sandbox gives to be decrypted; gpg-agent's own
	gpgMaxAnswer = 256 << 10 // of the agent
)

// Lines to the sandbox.
const (
	gpgOK = "OK\n"
	// gpgForbidden is how gpg-agent itself answers a request that is not for a restricted client.
	gpgForbidden = "ERR 67109115 Forbidden <GPG Agent>\n"
	// gpgGreeting does not have the number of a process of the host, as that of the agent does.
	gpgGreeting = "OK Pleased to meet you\n"
)

var (
	errLine   = errors.New("a line that is too long, or has no end")
	errAnswer = errors.New("an answer of the agent that was not to be expected")
)

// gpgWords has the words for commands that are refused, or that name a use of a key.
func gpgWords() map[string]string {
	return map[string]string{
		"PKSIGN": "sign", "PKDECRYPT": "decrypt", "SIGKEY": "choose a key", "SETKEY": "choose a key", "KEYINFO": "ask about a key", "READKEY": "read a public key", "HAVEKEY": "ask for keys",
		"GETINFO": "ask about the agent", "OPTION": "set an option", "SETHASH": "choose what to sign", "GENKEY": "make a key", "IMPORT_KEY": "add a key", "EXPORT_KEY": "read a private key", "DELETE_KEY": "remove a key",
		"KEYTOCARD": "move a key to a card", "KEYTOTPM": "move a key to a chip", "LEARN": "learn a card", "SCD": "speak to a card", "PASSWD": "change a passphrase", "PRESET_PASSPHRASE": "set a passphrase",
		"CLEAR_PASSPHRASE": "forget a passphrase", "GET_PASSPHRASE": "ask for a passphrase", "GET_CONFIRMATION": "ask for a confirmation", "KEYWRAP_KEY": "get a key for transport",
		"MARKTRUSTED": "trust a certificate", "LISTTRUSTED": "list trusted certificates", "ISTRUSTED": "ask for a trusted certificate", "KILLAGENT": "end the agent", "RELOADAGENT": "reload the agent", "UPDATESTARTUPTTY": "move the agent to a terminal",
		"GETEVENTCOUNTER": "ask for events", "GETVAL": "read a stored value", "PUTVAL": "store a value", "KEYATTR": "read or set an attribute of a key",
	}
}

// unremarkable is the reason of a refusal that is not reported: clients cause it in normal use.
const unremarkable = "unremarkable"

// judge decides about a command. It returns the command that the agent gets, which is empty if the agent need not know;
// the words for the request; and why it is refused, which is empty if it is not.
//
// gpg-agent refuses most others itself on its extra socket. The filter is here because a restricted client may still
// open dialogs with texts of its own there, make keys, and empty the cache of passphrases. It is certain because client
// and agent take turns by lines, and a command is the first word of a line.
func (s *gpgSession) judge(verb, args string) (command, request, why string) {
	request = gpgWords()[verb]
	if request == "" {
		request = "a command of another kind"
	}
	if strings.ContainsFunc(args, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", request, malformed
	}
	words := strings.Fields(args)
	switch verb {
	case "RESET", "NOP", "BYE":
		if len(words) > 0 {
			return "", request, malformed
		}
		return verb, request, ""
	case "SETKEYDESC":
		return "", request, "" // describe says what a dialog asks
	case "OPTION":
		if strings.HasPrefix(strings.ReplaceAll(args, " ", ""), "agent-awareness=") {
			return "", request, ""
		}
		return "", request, unremarkable
	case "SETHASH":
		if _, ok := gpgDigest(words); !ok {
			return "", request, malformed
		}
		return verb + " " + strings.Join(words, " "), request, ""
	case "PKSIGN", "PKDECRYPT":
		if s.key == "" {
			return "", request, "no key was chosen"
		}
		if verb == "PKSIGN" && s.digest == "" {
			return "", request, "no hash was chosen"
		}
		// gpg may name a passphrase of the cache: "-- NUMBER". The agent finds those of the key by itself.
		if verb == "PKSIGN" && len(words) > 0 && words[0] == "--" {
			words = words[1:]
			if len(words) == 1 && isHex(words[0]) {
				words = nil
			}
		}
		if len(words) > 0 {
			return "", request, notForwarded
		}
		return verb, request, ""
	case "GETINFO":
		if slices.Contains([]string{"version", "restricted", "s2k_count", "s2k_count_cal", "s2k_time"}, args) {
			return verb + " " + args, request, ""
		}
	case "SIGKEY", "SETKEY", "KEYINFO", "READKEY":
		if len(words) == 1 && isKeygrip(words[0]) {
			if !s.may(words[0]) {
				return "", request, notThisKey
			}
			return verb + " " + strings.ToUpper(words[0]), request, ""
		}
	case "HAVEKEY":
		for _, key := range words {
			if !isKeygrip(key) || !s.may(key) {
				return "", request, unremarkable // clients ask for all that they know, or for a list
			}
		}
		if len(words) > 0 {
			return strings.ToUpper(verb + " " + strings.Join(words, " ")), request, ""
		}
	}
	return "", request, notForwarded
}

// may reports whether the sandbox may use a key.
func (s *gpgSession) may(key string) bool {
	allowed := s.f.Agent.Keys
	return len(allowed) == 0 || slices.ContainsFunc(allowed, func(a string) bool { return strings.EqualFold(a, key) })
}

func isHex(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && s != ""
}

// gpgDigestSizes are the lengths in bytes that gpg-agent accepts. It takes the kind of a hash of another length, and then
// signs the hash before it as one of that kind.
func gpgDigestSizes() []int { return []int{16, 20, 24, 28, 32, 36, 48, 64} }

// gpgDigest reads the words after SETHASH, and names what they say.
func gpgDigest(words []string) (digest string, ok bool) {
	if len(words) != 2 || !isHex(words[1]) || !slices.Contains(gpgDigestSizes(), len(words[1])/2) {
		return "", false
	}
	kind, named := strings.CutPrefix(words[0], "--hash=")
	if kind == "" || len(kind) > 16 || strings.ContainsFunc(kind, func(r rune) bool {
		return (r < '0' || r > '9') && (!named || (r < 'a' || r > 'z') && r != '-')
	}) {
		return "", false
	}
	name := map[string]string{"1": "md5", "2": "sha1", "3": "rmd160", "8": "sha256", "9": "sha384", "10": "sha512", "11": "sha224"}[kind] // RFC 9580
	switch {
	case named:
		name = kind
	case name == "":
		name = "hash " + kind
	}
	return name + ":" + strings.ToLower(words[1]), true
}

// serveGPG serves one connection. Client and agent take turns, so one goroutine does.
func (f *Forwarder) serveGPG(ctx context.Context, guest net.Conn) {
	s := &gpgSession{f: f, ctx: ctx, guest: guest, requests: bufio.NewReaderSize(guest, gpgMaxLine)}
	defer s.close()
	err := s.dial()
	if err == nil {
		_, err = io.WriteString(guest, gpgGreeting)
	}
	for err == nil {
		err = s.turn()
	}
}

type gpgSession struct {
	f        *Forwarder
	ctx      context.Context
	guest    net.Conn
	requests *bufio.Reader

	agent   net.Conn
	hangUp  func() // closes agent; nil before
	answers *bufio.Reader

	key    string // keygrip that was chosen; empty before
	digest string // that was chosen to be signed
}

func (s *gpgSession) close() {
	if s.hangUp != nil {
		s.hangUp()
	}
}

// dial makes a connection to the agent, in place of the one that there is. The agent has forgotten then what was chosen.
func (s *gpgSession) dial() error {
	s.close()
	conn, hangUp, err := s.f.connect(s.ctx)
	if err != nil {
		return err
	}
	s.agent, s.hangUp, s.answers, s.key, s.digest = conn, hangUp, bufio.NewReaderSize(conn, gpgMaxLine), "", ""
	_, end, err := s.hear()
	return expect("OK", end, err)
}

// expect turns an end that is another one into an error.
func expect(word, end string, err error) error {
	if have, _, _ := strings.Cut(end, " "); err == nil && have != word {
		return errAnswer
	}
	return err
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
	if err := s.f.pace(s.ctx); err != nil {
		return err
	}
	verb, args, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
	verb, args = strings.ToUpper(verb), strings.Trim(args, " ")
	if verb == "" || strings.HasPrefix(verb, "#") {
		return nil
	}
	command, request, why := s.judge(verb, args)
	if why != "" {
		if why != unremarkable {
			s.f.refuse(request, why)
		}
		_, err := io.WriteString(s.guest, gpgForbidden)
		return err
	}
	answer := gpgOK
	if command != "" {
		if answer, err = s.carry(verb, command, request); err != nil {
			return err
		}
	}
	if _, err = io.WriteString(s.guest, answer); err == nil && verb == "BYE" {
		return io.EOF // as gpg-agent, which closes the connection
	}
	return err
}

// carry has the agent carry a command out, and returns what the sandbox is to hear.
func (s *gpgSession) carry(verb, command, request string) (string, error) {
	uses := verb == "PKSIGN" || verb == "PKDECRYPT"
	if uses {
		if err := s.describe(request); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(s.agent, command+"\n"); err != nil {
		return "", err
	}
	lines, end, err := s.hear()
	asked := err == nil && verb == "PKDECRYPT" && end == "INQUIRE CIPHERTEXT"
	if asked {
		if _, err := io.WriteString(s.guest, lines+end+"\n"); err != nil {
			return "", err
		}
		if err := s.inquiry(); err != nil {
			return "", err
		}
		lines, end, err = s.hear()
	}
	if err != nil {
		return "", err
	}
	word, _, _ := strings.Cut(end, " ")
	if word == "INQUIRE" { // what nobody has to know from a command of these
		return "", errAnswer
	}
	ok, key := word == "OK", s.key
	if !ok && (asked || gpgChooses(verb)) {
		// Did the agent read all that it was given, or stop earlier and take the rest for commands? Then an answer would
		// be taken for that to another command, and a signature could pass for a failure. And what did it keep of a
		// choice that it refused: gpg-agent keeps the hash before it, and signs that. On a new connection nothing waits,
		// and nothing is chosen.
		if err := s.dial(); err != nil {
			return "", err
		}
	}
	switch {
	case uses && !ok:
		s.f.refuse(request, agentRefuses)
	case !ok:
	case verb == "RESET":
		s.key, s.digest = "", ""
	case verb == "SIGKEY", verb == "SETKEY":
		_, s.key, _ = strings.Cut(command, " ")
	case verb == "SETHASH":
		s.digest, _ = gpgDigest(strings.Fields(command)[1:])
	case uses:
		use := Use{Request: request, Key: key}
		if verb == "PKSIGN" {
			use.Digest = s.digest
		}
		if err := s.f.used(s.ctx, use); err != nil {
			return "", err
		}
	}
	return lines + end + "\n", nil
}

// gpgChooses reports whether a command changes what the agent remembers for the ones after it.
func gpgChooses(verb string) bool {
	return slices.Contains([]string{"RESET", "SIGKEY", "SETKEY", "SETHASH"}, verb)
}

// describe tells the agent what its next dialog is about. The sandbox has no word in it: a person who reads the dialog
// decides by it.
func (s *gpgSession) describe(request string) error {
	text := "SETKEYDESC A+command+in+a+sandbox+of+Paddock+asks+to+" + request + "+with+your+key.%0ASandbox:+" + plain(s.f.Sandbox) + "%0AKeygrip:+" + s.key + "\n"
	if _, err := io.WriteString(s.agent, text); err != nil {
		return err
	}
	_, end, err := s.hear()
	return expect("OK", end, err)
}

// plain returns a text without characters that mean anything to a gpg-agent.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return -1
	}, text)
	return text[:min(len(text), 64)]
}

// hear reads what the agent says up to the line that ends its turn. It returns the lines of them that the sandbox may
// hear, and that line.
func (s *gpgSession) hear() (lines, end string, err error) {
	var all strings.Builder
	for {
		line, err := readLine(s.answers)
		if err != nil {
			return "", "", err
		}
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "OK", "ERR", "INQUIRE":
			return all.String(), line, nil
		case "S": // other ones tell of the host: which pinentry was started, and on which terminal
			if len(words) == 1 || !slices.Contains([]string{"KEYINFO", "PADDING", "INQUIRE_MAXLEN"}, words[1]) {
				continue
			}
		case "D":
		default:
			continue
		}
		if all.Len()+len(line) > gpgMaxAnswer {
			return "", "", errAnswer
		}
		all.WriteString(line + "\n")
	}
}

// inquiry passes on what the sandbox answers to a question of the agent. The agent gets the answer when it is complete,
// in an encoding of its own.
func (s *gpgSession) inquiry() error {
	var data []byte
	for range gpgMaxData { // a line may have no data
		line, err := s.readRequest()
		if err != nil {
			return err
		}
		word, rest, more := strings.Cut(line, " ")
		switch {
		case word == "CAN":
			_, err := io.WriteString(s.agent, "CAN\n")
			return err
		case word == "END" && !more:
			_, err := io.WriteString(s.agent, gpgEncode(data)+"END\n")
			return err
		case word != "D" || !more:
			return s.wrongAnswer()
		}
		if data, err = gpgDecode(data, rest); err != nil || len(data) > gpgMaxData {
			return s.wrongAnswer()
		}
	}
	return s.wrongAnswer()
}

func (s *gpgSession) wrongAnswer() error {
	s.f.refuse("an answer to a question of the agent", malformed)
	return errLine
}

// gpgDecode appends the data of a line to data.
func gpgDecode(data []byte, line string) ([]byte, error) {
	for len(line) > 0 {
		if line[0] != '%' {
			data, line = append(data, line[0]), line[1:]
			continue
		}
		if len(line) < 3 {
			return nil, errLine
		}
		b, err := hex.DecodeString(line[1:3])
		if err != nil {
			return nil, errLine
		}
		data, line = append(data, b...), line[3:]
	}
	return data, nil
}

// gpgEncode returns the lines for data.
func gpgEncode(data []byte) string {
	var b strings.Builder
	for part := range slices.Chunk(data, 300) { // each byte may become three
		b.WriteString("D ")
		for _, c := range part {
			if c > ' ' && c != '%' && c != 0x7f {
				b.WriteByte(c)
			} else {
				b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
