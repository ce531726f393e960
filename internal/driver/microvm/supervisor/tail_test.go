package supervisor

import (
	"fmt"
	"testing"
	"time"
)

func TestTheReasonOfAKernelThatGaveUpIsFound(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"[ 1.0] Run /init as init process\n": "",
		"[ 2.0] Kernel panic - not syncing: no memory\n[ 2.1] CPU: 0\n":                                                  "no memory",
		"panic: no file\n\n\tinit.go:7\n[ 2.0] Kernel panic - not syncing: init ended\n":                                 "init ended; before it: panic: no file; init.go:7",
		"[ 2.0] Kernel panic - not syncing: first\n[ 2.1] RIP\n[ 2.2] ---[ end Kernel panic - not syncing: first ]---\n": "first",
		"Kernel panic - not syncing: \x1b[31mred\n":                                                                      "[31mred",
	} {
		c, w, err := newTail()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprint(w, text); err != nil {
			t.Fatal(err)
		}
		w.Close()
		<-c.over
		if got := c.panic(); got != want {
			t.Errorf("of %q: %q, want %q", text, got, want)
		}
	}
}

// A process that was taken over can have sent the writing end to somebody who keeps it.
func TestAnOutputIsReadToTheEndOfItsProcessAlsoWhereSomebodyKeepsTheOtherEnd(t *testing.T) {
	c, w, err := newTail()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := fmt.Fprintln(w, "last words"); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		c.end()
		close(over)
	}()
	select {
	case <-over:
	case <-time.After(3 * time.Minute):
		t.Fatal("it is waited for without end")
	}
	if got := c.lines(1); got != "last words" {
		t.Errorf("%q was said", got)
	}
}
