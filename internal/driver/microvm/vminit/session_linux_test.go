package vminit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
)

// A script stands in for a port with scripted input. nil means that the other end is
// closed; it is open again at the next read.
type script struct {
	comes [][]byte
	sent  bytes.Buffer
}

var errOver = errors.New("nothing comes any more")

func (s *script) Read(p []byte) (int, error) {
	if len(s.comes) == 0 {
		return 0, errOver
	}
	next := s.comes[0]
	if len(next) == 0 {
		s.comes = s.comes[1:]
		return 0, io.EOF
	}
	n := copy(p, next)
	if s.comes[0] = next[n:]; n == len(next) {
		s.comes = s.comes[1:]
	}
	return n, nil
}

func (s *script) Write(p []byte) (int, error) { return s.sent.Write(p) }

func (s *script) WaitOpen(context.Context) error {
	if len(s.comes) == 0 {
		return errOver
	}
	return nil
}

// A restored machine finds the host's end closed. By then the end may be open again, with a
// request on its way.
func TestTheFirstRequestOfASessionIsAnswered(t *testing.T) {
	var request bytes.Buffer
	if err := protocol.Write(&request, &protocol.Request{Inspect: true}); err != nil {
		t.Fatal(err)
	}
	ask := request.Bytes()
	for what, comes := range map[string][][]byte{
		"after the end of another":               {nil, ask, nil},
		"after another, with the end in between": {ask[:3], nil, ask, nil},
		"after one without sense":                {{5, 0, 0, 0, 'n', 'o', 'i', 's', 'e', 'x'}, nil, ask, nil},
	} {
		s := &script{comes: comes}
		m := &machine{control: s}
		if err := m.serve(t.Context()); !errors.Is(err, errOver) {
			t.Errorf("%s: %v", what, err)
		}
		var answer protocol.Answer
		if err := protocol.Read(&s.sent, &answer); err != nil || answer.Error == "" {
			t.Errorf("%s: no answer: %v", what, err)
		}
	}
}
