package kernel

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// A Broken error is a bug of Paddock: a program of the computer panicked. The
// run is over; the computer and its other runs go on.
type Broken struct {
	Program string // as the computer calls it
	What    string // the panic said
	Where   string // file:line
}

func (e *Broken) Error() string {
	return fmt.Sprintf("the program %q failed, which is a bug of Paddock: %s (%s)", e.Program, e.What, e.Where)
}

// maxWhat bounds what is repeated of a panic: it may quote the guest's data.
const maxWhat = 200

// broken describes a panic to whoever recovers it.
func broken(t *Task, r any) *Broken {
	e := &Broken{What: fmt.Sprint(r), Where: origin()}
	if len(t.Args) > 0 {
		e.Program = t.Args[0]
	}
	if len(e.What) > maxWhat {
		e.What = e.What[:maxWhat]
	}
	if len(e.Program) > maxWhat {
		e.Program = e.Program[:maxWhat]
	}
	e.What = fmt.Sprintf("%q", e.What)
	return e
}

// origin tells where the panic that is recovered began.
func origin() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			panicked = panicked || f.Function == "runtime.gopanic"
		case panicked:
			return fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)
		}
		if !more {
			return "unknown place"
		}
	}
}
