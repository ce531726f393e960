package gateway

import (
	"errors"
	"net"
	"testing"
)

// A tally is a Traffic that adds up counts.
type tally struct{ received, sent int }

func (t *tally) Received(n int) { t.received += n }
func (t *tally) Sent(n int)     { t.sent += n }

// An end is a connection whose Write returns fixed values.
type end struct {
	net.Conn

	write func(p []byte) (int, error)
}

func (e end) Write(p []byte) (int, error) { return e.write(p) }

func TestWhatIsSentIsCountedBeforeItCanBeAnswered(t *testing.T) {
	var seen tally
	c := &counted{end{write: func(p []byte) (int, error) {
		if seen.sent != 3 {
			t.Errorf("while it is written %d bytes are counted", seen.sent)
		}
		return len(p), nil
	}}, &seen}
	if _, err := c.Write([]byte("abc")); err != nil || seen.sent != 3 {
		t.Errorf("%d, %v", seen.sent, err)
	}
}

func TestOfAWriteThatFailsOnlyWhatWentIsCounted(t *testing.T) {
	var seen tally
	c := &counted{end{write: func([]byte) (int, error) { return 1, errors.New("it is closed") }}, &seen}
	if _, err := c.Write([]byte("abc")); err == nil || seen != (tally{sent: 1}) {
		t.Errorf("%+v, %v", seen, err)
	}
}
