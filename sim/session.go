package sim

import (
	"context"
	"io"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

// A Script is a text for the shell, and where its streams lead.
type Script struct {
	// Text is the script. It may be as long as the limit Source allows.
	Text string

	// Stdin is its standard input; nil is an empty one. Where a script stops
	// reading, what it did not read is lost. It is read beside the script: a
	// reader that never answers does not keep a script from its end.
	Stdin io.Reader

	// Stdout and Stderr take what it writes, each from one goroutine at a
	// time, and make it wait as long as they do: neither a timeout nor the
	// removal of the sandbox interrupts a writer. Nil discards. To see both in
	// the order in which they were written give the same writer twice.
	Stdout, Stderr io.Writer

	// Timeout ends the script when it has run this long; zero is the limit
	// Wall.
	Timeout time.Duration
}

// Run runs a script in a new shell of a sandbox of this package's driver, and
// says how the shell ended, its EXIT trap included. A non-zero status is not an
// error. It waits, as a caller of bash does, for the output of process
// substitutions, and a moment for that of background jobs. The end of ctx ends the
// script.
func Run(ctx context.Context, sb paddock.Sandbox, s Script) (paddock.Exit, error) {
	return sim.Run(ctx, sb, sim.Script(s))
}

// A Session is a shell that runs one script after another and keeps its state
// in between: variables, functions, the working directory, descriptors,
// background jobs. Each script has the limits of a run to itself. A script that
// reaches one, or its timeout, or calls exit, ends the session; the sandbox and
// its files stay.
//
// Scripts run one at a time: a call waits for those before it.
type Session struct{ s *sim.Session }

// OpenSession starts a session in a sandbox of this package's driver. Of cmd,
// Env, Dir and User count. Whoever opens one closes it.
func OpenSession(ctx context.Context, sb paddock.Sandbox, cmd paddock.Cmd) (*Session, error) {
	s, err := sim.OpenSession(ctx, sb, cmd)
	if err != nil {
		return nil, err
	}
	return &Session{s}, nil
}

// Run runs a script to its end and says how it ended. A non-zero status is not
// an error; [paddock.Unavailable] is a session that is over. The end of ctx
// ends the script, and the session with it.
func (s *Session) Run(ctx context.Context, script Script) (paddock.Exit, error) {
	return s.s.Run(ctx, sim.Script(script))
}

// Close ends the session, as exit does: the EXIT trap runs. Closing it twice,
// or after its end, is fine.
func (s *Session) Close() error { return s.s.Close() }
