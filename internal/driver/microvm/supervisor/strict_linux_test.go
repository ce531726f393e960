package supervisor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/paddock-sandbox/paddock"
)

// frame returns a header with data.
func frame(kind byte, flags uint16, stream, length uint32, data string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0, kind}, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(binary.BigEndian.AppendUint32(b, length), data...)
}

// A pieces is a connection that delivers its input in pieces of a size.
type pieces struct {
	net.Conn
	r    io.Reader
	size int
}

func (p *pieces) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.size)]) }

// passes returns what passes of the input in pieces, and the reports.
func passes(data []byte, size int) (passed []byte, told []string, err error) {
	c := &strict{Conn: &pieces{r: bytes.NewReader(data), size: size}, broken: func(what string) { told = append(told, what) }}
	passed, err = io.ReadAll(c)
	return passed, told, err
}

func TestAnAgentThatSendsWhatNoneDoesIsFoundOut(t *testing.T) {
	honest := slicesOf(frame(frameWindow, 2, 1, 256<<10, ""), frame(frameData, 0, 1, 18, "\x00\x02\x00\x01a ping as data"), frame(frameData, 4, 1, 0, ""))
	for _, c := range []struct{ what, last, says string }{
		{"nothing else", "", ""},
		{"a ping", string(frame(framePing, 1, 0, 7, "")), "sends a ping"},
		{"an answer to a ping", string(frame(framePing, 2, 0, 7, "")), "sends a ping"},
		{"a stream", string(frame(frameWindow, 1, 2, 0, "")), "opens a stream"},
		{"a stream with data", string(frame(frameData, 1, 2, 4, "data")), "opens a stream"},
		{"what is no frame", string(frame(9, 1, 2, 4, "data")), ""},
	} {
		for size := 1; size < 40; size++ {
			data := append(bytes.Clone(honest), c.last...)
			passed, told, err := passes(data, size)
			switch {
			case c.says == "" && (err != nil || !bytes.Equal(passed, data) || told != nil):
				t.Errorf("%s: %d bytes of %d pass, %v, %v", c.what, len(passed), len(data), told, err)
			case c.says != "" && (!errors.Is(err, paddock.Denied) || len(told) != 1 || !strings.Contains(told[0], c.says) || len(passed) > len(honest)+frameHead-1):
				t.Errorf("%s in pieces of %d: %d bytes pass, %v, %v", c.what, size, len(passed), told, err)
			}
		}
	}
}

func slicesOf(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// A flood of pings ends with the first ping, and gets no answer.
func TestAFloodOfPingsIsCut(t *testing.T) {
	ours, theirs := net.Pipe()
	told := make(chan string, 2)
	session, err := yamux.Client(&strict{Conn: ours, broken: func(what string) { told <- what }}, sessions())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	defer theirs.Close()
	flood := bytes.Repeat(frame(framePing, 1, 0, 7, ""), 1000)
	answered := make(chan int64, 1)
	go func() { n, _ := io.Copy(io.Discard, theirs); answered <- n }()
	go func() { _, _ = theirs.Write(flood) }()
	select {
	case <-session.CloseChan():
	case <-time.After(time.Minute):
		t.Fatal("the session goes on")
	}
	if what := <-told; !strings.Contains(what, "ping") {
		t.Errorf("told is %q", what)
	}
	if n := <-answered; n > 0 {
		t.Errorf("%d bytes were answered", n)
	}
}

// Any input is judged the same, however it is split into pieces, and what passes is a
// prefix of it.
func FuzzStrict(f *testing.F) {
	f.Add(slicesOf(frame(frameData, 0, 1, 3, "abc"), frame(framePing, 1, 0, 0, "")), 5)
	f.Add(frame(frameWindow, 2, 1, 1<<20, ""), 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if size < 1 {
			size = 1
		}
		_, whole, _ := passes(data, len(data)+1)
		passed, told, _ := passes(data, size)
		if len(whole) != len(told) || len(whole) == 1 && whole[0] != told[0] {
			t.Errorf("told is %q, and in pieces of %d %q", whole, size, told)
		}
		if !bytes.HasPrefix(data, passed) || told == nil && len(passed) != len(data) {
			t.Errorf("%d bytes pass of %d", len(passed), len(data))
		}
	})
}
