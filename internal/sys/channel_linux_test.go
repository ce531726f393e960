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

func TestWhoHasHungUpIsNoticedAtOnce(t *testing.T) {
	mine, file, err := NewChannelPair()
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	file.Close()
	noticed := false
	stop := mine.OnHangUp(func() { noticed = true })
	if !noticed {
		t.Error("it was not noticed")
	}
	stop()
}

func TestWhoHangsUpIsNoticed(t *testing.T) {
	for name, row := range map[string]struct {
		leave   func(other *Channel) error
		noticed bool
	}{
		"it hangs up":            {func(other *Channel) error { other.HangUp(time.Minute); return nil }, true},
		"it closes its end":      {func(other *Channel) error { return other.Close() }, true},
		"it sends another":       {func(other *Channel) error { return other.Send([]byte("more")) }, false},
		"it does nothing at all": {func(*Channel) error { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			mine, file, err := NewChannelPair()
			if err != nil {
				t.Fatal(err)
			}
			defer mine.Close()
			other, err := NewChannelOf(file)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			noticed := make(chan struct{})
			stop := mine.OnHangUp(func() { close(noticed) })
			if err := row.leave(other); err != nil {
				t.Fatal(err)
			}
			if row.noticed {
				<-noticed
			}
			stop()
			select {
			case <-noticed:
				if !row.noticed {
					t.Error("it was noticed, and did not happen")
				}
			default:
			}
			if err := mine.Send([]byte("answer")); err != nil && name != "it closes its end" {
				t.Error(err)
			}
			if name == "it hangs up" {
				if data, _, err := other.Receive(); err != nil || string(data) != "answer" {
					t.Errorf("the answer to who hung up: %q, %v", data, err)
				}
			}
			if name == "it sends another" {
				if data, _, err := mine.Receive(); err != nil || string(data) != "more" {
					t.Errorf("the other packet: %q, %v", data, err)
				}
			}
		})
	}
}
