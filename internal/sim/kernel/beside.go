package kernel

import (
	"fmt"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// Beside runs f on a goroutine of its own and waits for it, so that the task can be ended while f, which reaches no
// checkpoint, takes its time. Whoever ends the task meanwhile leaves f to its context: what f writes to must be nobody
// else's until Beside has returned what f did.
//
// f must not use the task, which belongs to one goroutine. What panics there would end the process that the computer
// is in: it ends the run instead, as a [*Broken] error.
func Beside[T any](t *Task, f func() (T, error)) (T, error) {
	done := make(chan struct{})
	var v, none T
	var err error
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				err = linux.EIO
				t.Run.Stop(brokenBeside(t, r))
			}
		}()
		v, err = f()
	}()
	for {
		e := t.Await(done, time.Time{})
		if e == nil {
			return v, err
		}
		if e != linux.EINTR {
			return none, e
		}
		t.Caught() // it is for nobody
	}
}

// brokenBeside describes a panic of another goroutine than the task's.
func brokenBeside(t *Task, r any) *Broken {
	if _, ok := r.(unwind); ok {
		r = strayed
	}
	return broken(t, r)
}

// strayed is what is wrong where another goroutine than the task's comes to a checkpoint.
const strayed = "a task was used by a goroutine that is not its own"

// stray stops the run whose task comes to a checkpoint while its own goroutine waits, so that the caller is another one.
// It must not panic: nobody recovers that there.
func (t *Task) stray() { t.Run.Stop(&Broken{Program: t.program(), What: strayed, Where: outsider()}) }

// outsider tells who outside this package called.
func outsider() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "/sim/kernel.") {
			return fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)
		}
		if !more {
			return "unknown place"
		}
	}
}
