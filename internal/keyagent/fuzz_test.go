package keyagent

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/paddock-sandbox/paddock"
)

// publicBlob reads a file with a public key.
func publicBlob(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	blob, err := base64.StdEncoding.DecodeString(strings.Fields(string(data))[1])
	if err != nil {
		t.Fatal(err)
	}
	return blob
}

// script is one end of a connection, which says what is given, and keeps what it hears.
type script struct {
	says  *bytes.Reader
	heard bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)       { return s.says.Read(p) }
func (s *script) Write(p []byte) (int, error)      { return s.heard.Write(p) }
func (s *script) Close() error                     { return nil }
func (s *script) LocalAddr() net.Addr              { return nil }
func (s *script) RemoteAddr() net.Addr             { return nil }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// forward has bytes of a sandbox and of an agent meet, and returns what the agent heard.
func forward(t *testing.T, kind paddock.KeyAgentKind, guest, agent []byte) *bytes.Buffer {
	t.Helper()
	in, out := &script{says: bytes.NewReader(guest)}, &script{says: bytes.NewReader(agent)}
	f := &Forwarder{
		Agent: paddock.KeyAgent{Kind: kind}, Dial: func(context.Context) (net.Conn, error) { return out, nil },
		Used: func(_ context.Context, u Use) error {
			if u.Request != "sign" && u.Request != "decrypt" || kind == paddock.KeyAgentGPG && (u.Request == "sign") != (u.Digest != "") || u.Refused != "" || u.Key == "" || len(u.Key) > 60 || len(u.Purpose) > 256 || len(u.Digest) > 256 || u.Count != 1 {
				t.Errorf("%+v", u)
			}
			return nil
		},
		Refused: func(u Use) {
			if u.Request == "" || u.Refused == "" || u.Key != "" || u.Comment != "" || u.Count < 1 {
				t.Errorf("%+v", u)
			}
		},
	}
	f.begin.Do(func() { f.rate = rate.NewLimiter(rate.Inf, 1) })
	f.Serve(t.Context(), in)
	f.End()
	return &out.heard
}

// FuzzSSH has any bytes of a sandbox and of an agent meet. The agent gets only whole requests that are forwarded.
func FuzzSSH(f *testing.F) {
	list := []byte{0, 0, 0, 1, 11}
	keys := appendText(nil, encodeKeys([]sshKey{{blob: []byte("key"), comment: []byte("work")}}))
	sign := func(data []byte) []byte {
		return appendText(nil, append(appendText(appendText([]byte{13}, []byte("key")), data), 0, 0, 0, 0))
	}
	signed := appendText(nil, appendText([]byte{14}, []byte("s")))
	login := append(appendText(nil, []byte("session")), 50)
	for _, part := range []string{"git", "ssh-connection", "publickey-hostbound-v00@openssh.com"} {
		login = appendText(login, []byte(part))
	}
	login = appendText(appendText(appendText(append(login, 1), []byte("ssh-ed25519")), []byte("key")), []byte("host"))
	f.Add(append(list, sign([]byte("data"))...), append(append(keys, keys...), signed...))
	f.Add(sign(appendText([]byte("SSHSIG"), []byte("git"))), append(keys, signed...))
	f.Add(sign(login), append(keys, signed...))
	f.Add(appendText(nil, []byte{19}), []byte{})
	f.Add(appendText(nil, append(appendText(appendText(appendText(appendText([]byte{27}, []byte(sshBind)), []byte("h")), []byte("s")), []byte("x")), 1)), appendText(nil, []byte{6}))
	f.Fuzz(func(t *testing.T, guest, agent []byte) {
		heard := forward(t, paddock.KeyAgentSSH, guest, agent)
		for {
			request, err := readSSH(heard)
			if err == io.EOF { //nolint:errorlint // by io.ReadFull, unwrapped
				return
			}
			if err != nil || request[0] != sshRequestIdentities && request[0] != sshSignRequest && request[0] != sshExtension {
				t.Fatalf("the agent got %x, %v", request, err)
			}
		}
	})
}

// FuzzGPG has any lines of a sandbox and of an agent meet. The agent gets only commands that are forwarded, and data as an
// answer to its question.
func FuzzGPG(f *testing.F) {
	grip := strings.Repeat("0A", 20)
	f.Add([]byte("SIGKEY "+grip+"\nSETHASH 8 "+strings.Repeat("ab", 32)+"\nSETKEYDESC Please\nPKSIGN\nKILLAGENT\nBYE\n"), []byte("OK hello\nOK\nOK\nOK\nD x\nOK\nOK\n"))
	f.Add([]byte("SETKEY "+grip+"\nPKDECRYPT\nD %41%0Ax\nD y\nEND\nNOP\n"), []byte("OK hello\nOK\nOK\nS INQUIRE_MAXLEN 4096\nINQUIRE CIPHERTEXT\nS PADDING 0\nD plain\nOK\nOK\n"))
	f.Add([]byte("SIGKEY "+grip+"\nSETHASH 8 "+strings.Repeat("ab", 32)+"\nSETHASH 255 "+strings.Repeat("ab", 32)+"\nPKSIGN\n"), []byte("OK hello\nOK\nOK\nERR 1\nOK again\nOK\nD x\nOK\n"))
	f.Add([]byte("SETKEY "+grip+"\nPKDECRYPT\nEND\nPKSIGN\n"), []byte("OK hello\nOK\nOK\nINQUIRE CIPHERTEXT\nERR 1\nOK again\n"))
	f.Add([]byte("SETKEY "+grip+"\nPKDECRYPT\nD\nEND\nOPTION x\nHAVEKEY "+grip+"\n"), []byte("OK hello\nOK\nOK\nINQUIRE CIPHERTEXT\n"))
	f.Fuzz(func(t *testing.T, guest, agent []byte) {
		for line := range strings.Lines(forward(t, paddock.KeyAgentGPG, guest, agent).String()) {
			text, whole := strings.CutSuffix(line, "\n")
			if !whole || len(line) > gpgMaxLine || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Fatalf("the agent got %q", line)
			}
			verb, _, _ := strings.Cut(text, " ")
			switch verb {
			case "RESET", "NOP", "BYE", "GETINFO", "HAVEKEY", "KEYINFO", "READKEY", "SIGKEY", "SETKEY", "SETHASH", "PKSIGN", "PKDECRYPT", "D", "END", "CAN":
			case "SETKEYDESC":
				if !strings.HasPrefix(text, "SETKEYDESC A+command+in+a+sandbox+of+Paddock+asks+to+") {
					t.Fatalf("the agent got %q", line)
				}
			default:
				t.Fatalf("the agent got %q", line)
			}
		}
	})
}
