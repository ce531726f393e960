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

// FuzzForward has any bytes of a sandbox and of an agent meet. The agent gets only whole requests that are forwarded.
func FuzzForward(f *testing.F) {
	list := []byte{0, 0, 0, 1, 11}
	keys := appendText(nil, encodeKeys([]sshKey{{blob: []byte("key"), comment: []byte("work")}}))
	sign := appendText(nil, append(appendText(appendText([]byte{13}, []byte("key")), []byte("data")), 0, 0, 0, 0))
	f.Add(false, append(list, sign...), append(append(keys, keys...), appendText(nil, appendText([]byte{14}, []byte("s")))...))
	f.Add(false, appendText(nil, []byte{19}), []byte{})
	f.Add(false, appendText(nil, append(appendText(appendText(appendText(appendText([]byte{27}, []byte(sshBind)), []byte("h")), []byte("s")), []byte("x")), 1)), appendText(nil, []byte{6}))
	f.Add(true, []byte("SIGKEY "+strings.Repeat("0A", 20)+"\nPKSIGN\nD x\nEND\nKILLAGENT\nBYE\n"), []byte("OK hello\nOK\nINQUIRE X\nOK\nOK\n"))
	f.Fuzz(func(t *testing.T, gpg bool, guest, agent []byte) {
		kind := paddock.KeyAgentSSH
		if gpg {
			kind = paddock.KeyAgentGPG
		}
		in, out := &script{says: bytes.NewReader(guest)}, &script{says: bytes.NewReader(agent)}
		fw := &Forwarder{
			Agent: paddock.KeyAgent{Kind: kind}, Dial: func(context.Context) (net.Conn, error) { return out, nil },
			Used: func(u Use) {
				if u.Request == "" || len(u.Key) > 60 || u.Count < 1 {
					t.Errorf("%+v", u)
				}
			},
		}
		fw.Serve(t.Context(), in)
		fw.End()
		if gpg {
			for line := range strings.Lines(out.heard.String()) {
				verb, _, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				switch verb {
				case "RESET", "NOP", "BYE", "OPTION", "GETINFO", "HAVEKEY", "KEYINFO", "READKEY", "SIGKEY", "SETKEY", "SETKEYDESC", "SETHASH", "PKSIGN", "PKDECRYPT", "D", "END", "CAN":
				default:
					t.Fatalf("the agent got %q", line)
				}
			}
			return
		}
		for {
			request, err := readSSH(&out.heard)
			if err == io.EOF { //nolint:errorlint // by io.ReadFull, unwrapped
				break
			}
			if err != nil || request[0] != sshRequestIdentities && request[0] != sshSignRequest && request[0] != sshExtension {
				t.Fatalf("the agent got %x, %v", request, err)
			}
		}
	})
}
