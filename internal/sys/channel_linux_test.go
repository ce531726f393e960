package sys

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestFinishWaitsForTheOtherEnd(t *testing.T) {
	mine, file, err := NewChannelPair()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	other, err := NewChannel(fd)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_, _, err := other.Receive()
		if err == nil {
			t.Error("a packet came, not the end")
		}
		if err := other.Send([]byte("late")); err != nil {
			t.Error(err)
		}
		time.Sleep(50 * time.Millisecond)
		close(ended)
		_ = other.Close()
	}()
	if err := mine.Finish(time.Minute); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	default:
		t.Error("Finish returned before the other end was closed")
	}
}

func TestFinishGivesUp(t *testing.T) {
	mine, file, err := NewChannelPair()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := mine.Finish(10 * time.Millisecond); err == nil {
		t.Error("no error where the other end stays open")
	}
}
