package cli

import (
	"fmt"
	"sync"
	"time"
)

// visible is how long something takes before a person wonders.
const visible = time.Second

// progress tells on the terminal what is waited for, once it takes long, and
// takes it away when stop is called, which may be called twice. Where standard
// error is no terminal it tells nothing.
func (a *App) progress(what string) (stop func()) {
	if !isTerminal(a.Stderr) {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(visible)
		defer t.Stop()
		began, told := time.Now(), false
		for {
			select {
			case <-t.C:
				told = true
				fmt.Fprintf(a.Stderr, "\r\x1b[Kpaddock: %s… %s", what, time.Since(began).Round(visible))
			case <-done:
				if told {
					fmt.Fprint(a.Stderr, "\r\x1b[K")
				}
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}

// Line returns what shows a text on the last line of the terminal, in place of the text before, and what takes it away.
// Where standard error is no terminal nothing is shown.
func (a *App) Line() (show func(text string), clear func()) {
	if !isTerminal(a.Stderr) {
		return func(string) {}, func() {}
	}
	return func(text string) { fmt.Fprintf(a.Stderr, "\r\x1b[Kpaddock: %s", OneLine(text)) }, func() { fmt.Fprint(a.Stderr, "\r\x1b[K") }
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool { return isTerminal(stream) }
