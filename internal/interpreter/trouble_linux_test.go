package interpreter_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/interpreter"
)

// started runs a cell in the background and answers when it has said "go".
func started(ctx context.Context, t *testing.T, in *interpreter.Interpreter, c interpreter.Cell) (*outcome, <-chan error) {
	t.Helper()
	o, done, gone := &outcome{}, make(chan error, 1), make(chan struct{})
	var once sync.Once
	go func() {
		done <- in.Run(ctx, c, func(e interpreter.Event) error {
			_ = o.take(e)
			if strings.Contains(o.out, "go") {
				once.Do(func() { close(gone) })
			}
			return nil
		})
	}()
	select {
	case <-gone:
	case err := <-done:
		t.Fatalf("%q ended: %v, %s", c.Code, err, o.failure())
	case <-time.After(time.Minute):
		t.Fatalf("%q never began", c.Code)
	}
	return o, done
}

func wait(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the cell never ended")
		return nil
	}
}

// loops are cells that say "go" and do not end.
func loops() map[string]interpreter.Cell {
	return map[string]interpreter.Cell{
		"python asleep":     {Language: interpreter.Python, Code: "import time\nprint('go')\ntime.sleep(1000)"},
		"python busy":       {Language: interpreter.Python, Code: "print('go')\nwhile True: pass"},
		"python awaiting":   {Language: interpreter.Python, Code: "import asyncio\nprint('go')\nawait asyncio.sleep(1000)"},
		"python in a task":  {Language: interpreter.Python, Code: "import asyncio\nawait asyncio.sleep(0)\nprint('go')\nwhile True: pass"},
		"python uncanceled": {Language: interpreter.Python, Code: "import asyncio\nprint('go')\nwhile True:\n  try: await asyncio.sleep(1000)\n  except asyncio.CancelledError: pass"},
		"python's child":    {Language: interpreter.Python, Code: "import subprocess\nsubprocess.run('echo go; sleep 1000', shell=True)"},
		"javascript busy":   {Language: interpreter.JavaScript, Code: "console.log('go'); for (;;) {}"},
		"javascript later":  {Language: interpreter.JavaScript, Code: "console.log('go'); await null; for (;;) {}"},
		"javascript asleep": {Language: interpreter.JavaScript, Code: "console.log('go'); await new Promise(() => {})"},
		"javascript awaits": {Language: interpreter.JavaScript, Code: "console.log('go'); for (;;) await null"},
		"javascript prints": {Language: interpreter.JavaScript, Code: "for (;;) console.log('go')"},
		"javascript shows":  {Language: interpreter.JavaScript, Code: "console.log('go'); for (;;) display('x'.repeat(10000))"},
		"javascript's timer": {Language: interpreter.JavaScript,
			Code: "setTimeout(() => { console.log('go'); for (;;) {} }, 0); await new Promise(() => {})"},
		"javascript's value": {Language: interpreter.JavaScript,
			Code: "({ [Symbol.for('nodejs.util.inspect.custom')]() { console.log('go'); for (;;) {} } })"},
		"bash asleep": {Language: interpreter.Bash, Code: "echo go; sleep 1000; echo not"},
		"bash busy":   {Language: interpreter.Bash, Code: "echo go; while :; do :; done"},
		// The child does not die of the first interrupt, and has the default action afterwards,
		// as one that is interrupted between fork and exec.
		"bash's child is missed": {Language: interpreter.Bash, Code: "(trap 'exec sleep 1000' INT; echo go; while :; do :; done); echo not"},
		"bash in functions":      {Language: interpreter.Bash, Code: "f() { g; }; g() { while :; do :; done; }; echo go; f"},
	}
}

func TestAnInterruptedCellLeavesItsContextAsItWas(t *testing.T) {
	in := open(t, interpreter.Options{Stop: time.Minute})
	for name, c := range loops() {
		t.Run(name, func(t *testing.T) {
			set, get := "kept = 1", "kept"
			switch c.Language {
			case interpreter.Bash:
				set, get = "kept=1", "echo $kept"
			case interpreter.JavaScript: // printed, because a stream can be harmed too
				get = "console.log(kept)"
			}
			run(t, in, interpreter.Cell{Language: c.Language, Code: set})
			o, done := started(t.Context(), t, in, c)
			d, err := in.Default(t.Context(), c.Language)
			if err != nil {
				t.Fatal(err)
			}
			if err := in.Interrupt(t.Context(), d.ID); err != nil {
				t.Fatal(err)
			}
			if err := wait(t, done); err != nil {
				t.Fatal(err)
			}
			if len(o.errors) == 0 || o.errors[0].Name == interpreter.ErrorEnded {
				t.Errorf("it failed with %q", o.failure())
			}
			if o := run(t, in, interpreter.Cell{Language: c.Language, Code: get}); o.main()+strings.TrimSpace(o.out) != "1" {
				t.Errorf("afterwards %q is %q, %q (%s)", get, o.main(), o.out, o.failure())
			}
		})
	}
}

// A child that was between fork and exec loses its interrupt, and so the shell its own: each
// turn has another chance to hit that.
func TestNoInterruptOfAShellIsLost(t *testing.T) {
	in := open(t, interpreter.Options{Stop: time.Minute})
	d, err := in.Default(t.Context(), interpreter.Bash)
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		o, done := started(t.Context(), t, in, interpreter.Cell{Language: interpreter.Bash, Code: "echo go; sleep 1000"})
		if err := in.Interrupt(t.Context(), d.ID); err != nil {
			t.Fatal(err)
		}
		if err := wait(t, done); err != nil {
			t.Fatal(err)
		}
		if len(o.errors) != 1 || o.errors[0].Name != "Interrupted" {
			t.Errorf("it failed with %q", o.failure())
		}
	}
	if o := run(t, in, interpreter.Cell{Language: interpreter.Bash, Code: "echo whole"}); o.out != "whole\n" || o.count != 31 {
		t.Errorf("afterwards cell %d says %q, %s", o.count, o.out, o.failure())
	}
}

func TestATrapOfAShellIsKeptForLaterCells(t *testing.T) {
	in := open(t, interpreter.Options{Stop: time.Minute})
	d, err := in.Default(t.Context(), interpreter.Bash)
	if err != nil {
		t.Fatal(err)
	}
	run(t, in, interpreter.Cell{Language: interpreter.Bash, Code: "trap 'over=1' INT"})
	run(t, in, interpreter.Cell{Language: interpreter.Bash, Code: "true"})
	o, done := started(t.Context(), t, in, interpreter.Cell{Language: interpreter.Bash, Code: "echo go; until [[ $over ]]; do :; done; echo trapped"})
	if err := in.Interrupt(t.Context(), d.ID); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, done); err != nil || o.out != "go\ntrapped\n" {
		t.Errorf("it ended with %v, and said %q (%s)", err, o.out, o.failure())
	}
	if o := run(t, in, interpreter.Cell{Language: interpreter.Bash, Code: "trap - INT; trap -p INT; unset over"}); o.out != "" {
		t.Errorf("the trap that was removed is %q", o.out)
	}
	o, done = started(t.Context(), t, in, interpreter.Cell{Language: interpreter.Bash, Code: "trap -p INT; echo go; sleep 1000"})
	if err := in.Interrupt(t.Context(), d.ID); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, done); err != nil || o.out != "go\n" || len(o.errors) != 1 || o.errors[0].Name != "Interrupted" {
		t.Errorf("it ended with %v, and said %q (%s)", err, o.out, o.failure())
	}
}

func TestAProgramThatHandlesItsInterruptGetsOne(t *testing.T) {
	in := open(t, interpreter.Options{Stop: time.Minute})
	d, err := in.Default(t.Context(), interpreter.Bash)
	if err != nil {
		t.Fatal(err)
	}
	o, done := started(t.Context(), t, in, interpreter.Cell{Language: interpreter.Bash, Code: `python3 -c '
import signal, time
n = []
signal.signal(signal.SIGINT, lambda *_: n.append(1))
print("go", flush=True)
while not n: signal.sigtimedwait([], 0.1)
time.sleep(1)
print(len(n))'`})
	if err := in.Interrupt(t.Context(), d.ID); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, done); err != nil || o.out != "go\n1\n" {
		t.Errorf("it ended with %v, and said %q (%s)", err, o.out, o.failure())
	}
}

func TestACellThatIsInterruptedBeforeItBeginsEnds(t *testing.T) {
	in := open(t, interpreter.Options{Stop: time.Minute})
	for l, row := range map[interpreter.Language][3]string{
		interpreter.Python:     {"kept = 1", "import time; time.sleep(1000)", "print(kept)"},
		interpreter.JavaScript: {"kept = 1", "await new Promise(() => {})", "console.log(kept)"},
		interpreter.Bash:       {"kept=1", "sleep 1000", "echo $kept"},
	} {
		run(t, in, interpreter.Cell{Language: l, Code: row[0]})
		for range 5 {
			o := run(t, in, interpreter.Cell{Language: l, Code: row[1], Timeout: 1})
			if len(o.errors) != 1 || o.errors[0].Name != interpreter.ErrorTimeout {
				t.Errorf("%s failed with %+v", l, o.errors)
			}
		}
		if o := run(t, in, interpreter.Cell{Language: l, Code: row[2]}); o.out != "1\n" {
			t.Errorf("%s: afterwards it is %q (%s)", l, o.out, o.failure())
		}
	}
}

func TestAResultThatIsInterruptedOnItsWayHarmsNoOther(t *testing.T) {
	in := open(t, interpreter.Options{})
	o := run(t, in, interpreter.Cell{Code: `import os
write, n = os.write, []
def broken(fd, data):
    n.append(fd)
    if len(n) == 3:
        os.write = write
        raise KeyboardInterrupt
    return write(fd, data)
os.write = broken
'x' * 20000`})
	if len(o.errors) != 1 || o.errors[0].Name != "KeyboardInterrupt" || len(o.results) != 0 {
		t.Errorf("it failed with %+v, %d results", o.errors, len(o.results))
	}
	if o := run(t, in, interpreter.Cell{Code: "len('x' * 20000)"}); o.main() != "20000" || o.count != 2 {
		t.Errorf("afterwards cell %d is %q (%s)", o.count, o.main(), o.failure())
	}
}

func TestAStreamThatDoesNotBlockHarmsNoResult(t *testing.T) {
	in := open(t, interpreter.Options{})
	steps(t, in, interpreter.Python, []step{
		{code: "import os; os.set_blocking(1, False); os.set_blocking(2, False)"},
		{code: "display({'text/html': 'x' * 4_000_000}, raw=True)"},
		{code: "1 + 1", main: "2"},
	})
}

func TestAChildOfACellEndsAsAnyProgram(t *testing.T) {
	in := open(t, interpreter.Options{})
	steps(t, in, interpreter.Python, []step{
		{code: "import os, sys\nif os.fork() == 0: raise ValueError('of the child')\nos.wait()[1] >> 8", err: "ValueError: of the child", main: "1"},
		{code: "if os.fork() == 0: sys.exit(7)\nos.wait()[1] >> 8", main: "7"},
		{code: "if os.fork() == 0: print('child')\nelse: os.wait()", out: "child\n"},
		{code: "1 + 1", main: "2"},
	})
}

func TestACellWhoseCallerWentAwayIsInterrupted(t *testing.T) {
	in := open(t, interpreter.Options{Stop: time.Minute})
	run(t, in, interpreter.Cell{Code: "kept = 1"})
	ctx, cancel := context.WithCancel(t.Context())
	_, done := started(ctx, t, in, interpreter.Cell{Code: "print('go')\nwhile True: print('x' * 1000)"})
	cancel()
	if err := wait(t, done); paddock.KindOf(err) != paddock.Canceled {
		t.Errorf("the cell ended with %v", err)
	}
	if o := run(t, in, interpreter.Cell{Code: "kept"}); o.main() != "1" || o.out != "" {
		t.Errorf("afterwards it is %q, and %d bytes came", o.main(), len(o.out))
	}
}

func TestACallerWhoTakesNothingHoldsTheCellUp(t *testing.T) {
	in := open(t, interpreter.Options{Stop: time.Minute})
	stop := errors.New("enough")
	var got int
	err := in.Run(t.Context(), interpreter.Cell{Code: "while True: print('x' * 100000)"}, func(e interpreter.Event) error {
		if got += len(e.Text); got > 4<<20 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || got > 8<<20 {
		t.Errorf("it ended with %v after %d bytes", err, got)
	}
}

func TestACellThatIsTooSlowIsInterrupted(t *testing.T) {
	in := open(t, interpreter.Options{Stop: time.Minute})
	run(t, in, interpreter.Cell{Code: "kept = 1"})
	o := run(t, in, interpreter.Cell{Code: "import time\ntime.sleep(1000)", Timeout: 50 * time.Millisecond})
	if len(o.errors) != 1 || o.errors[0].Name != interpreter.ErrorTimeout || !strings.Contains(o.errors[0].Traceback, "KeyboardInterrupt") {
		t.Errorf("it failed with %+v", o.errors)
	}
	if o := run(t, in, interpreter.Cell{Code: "kept"}); o.main() != "1" {
		t.Errorf("afterwards it is %q", o.main())
	}
}

func TestACellThatIgnoresItsInterruptLosesItsKernel(t *testing.T) {
	in := open(t, interpreter.Options{Stop: 100 * time.Millisecond})
	run(t, in, interpreter.Cell{Code: "kept = 1"})
	o := run(t, in, interpreter.Cell{Code: "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(1000)", Timeout: 50 * time.Millisecond})
	if len(o.errors) != 1 || o.errors[0].Name != interpreter.ErrorEnded || !strings.Contains(o.errors[0].Value, "was killed") {
		t.Errorf("it failed with %+v", o.errors)
	}
	if o := run(t, in, interpreter.Cell{Code: "kept"}); !strings.HasPrefix(o.failure(), "NameError") || o.count != 1 {
		t.Errorf("afterwards it is %q (%s), number %d", o.main(), o.failure(), o.count)
	}
}

func TestAKernelThatEndsIsToldWithItsCause(t *testing.T) {
	for name, c := range map[string]struct {
		cell  interpreter.Cell
		cause string
	}{
		"python killed":           {interpreter.Cell{Code: "import os; print('last words'); os.kill(os.getpid(), 9)"}, "signal 9"},
		"python exits":            {interpreter.Cell{Code: "import os; print('last words'); os._exit(3)"}, "status 3"},
		"javascript exits":        {interpreter.Cell{Language: interpreter.JavaScript, Code: "console.log('last words'); process.exit(4)"}, "status 4"},
		"bash closes its way out": {interpreter.Cell{Language: interpreter.Bash, Code: "echo last words; exec 250>&-"}, "status 74"},
		"bash exits":              {interpreter.Cell{Language: interpreter.Bash, Code: "echo last words; exit 5"}, "status 5"},
	} {
		t.Run(name, func(t *testing.T) {
			in := open(t, interpreter.Options{})
			o := run(t, in, c.cell)
			if len(o.errors) != 1 || o.errors[0].Name != interpreter.ErrorEnded || !strings.Contains(o.errors[0].Value, c.cause) || o.out != "last words\n" {
				t.Errorf("it said %q and failed with %+v", o.out, o.errors)
			}
			c.cell.Code = map[interpreter.Language]string{interpreter.Bash: "echo $((6*7))"}[c.cell.Language]
			if c.cell.Code == "" {
				c.cell.Code = "6*7"
			}
			if o := run(t, in, c.cell); o.main()+strings.TrimSpace(o.out) != "42" {
				t.Errorf("the next cell gives %q, %q (%s)", o.main(), o.out, o.failure())
			}
		})
	}
}

func TestAKernelThatTakesTooMuchMemoryIsToldSo(t *testing.T) {
	sb := sandbox(t, paddock.Spec{Limits: paddock.Limits{Memory: 128 << 20}})
	in := open(t, interpreter.Options{Sandbox: sb})
	o := run(t, in, interpreter.Cell{Code: "x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1"})
	if len(o.errors) != 1 {
		t.Fatalf("it failed with %+v", o.errors)
	}
	if e := o.errors[0]; e.Name != "MemoryError" && (e.Name != interpreter.ErrorEnded || !strings.Contains(e.Value, "out of memory")) {
		t.Errorf("it failed with %+v", e)
	}
	if o := run(t, in, interpreter.Cell{Code: "6*7"}); o.main() != "42" {
		t.Errorf("the next cell gives %q (%s)", o.main(), o.failure())
	}
}

func TestKernelsOutliveTheirInterpreter(t *testing.T) {
	sb := sandbox(t, paddock.Spec{})
	first, err := interpreter.New(interpreter.Options{Sandbox: sb, Stop: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	made, err := first.Create(t.Context(), interpreter.Spec{Dir: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	run(t, first, interpreter.Cell{Context: made.ID, Code: "kept = 1"})
	run(t, first, interpreter.Cell{Code: "kept = 2"})
	run(t, first, interpreter.Cell{Code: "kept = 3", Language: interpreter.JavaScript})
	run(t, first, interpreter.Cell{Code: "kept=4", Language: interpreter.Bash})
	_, cut := started(t.Context(), t, first, interpreter.Cell{Context: made.ID, Code: "import time\nprint('go')\ntime.sleep(1000)"})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, cut); paddock.KindOf(err) != paddock.Unavailable {
		t.Errorf("the cell that was cut ended with %v", err)
	}
	second := open(t, interpreter.Options{Sandbox: sb, Stop: time.Second})
	list, err := second.List(t.Context())
	if err != nil || len(list) != 4 {
		t.Fatalf("%d contexts are there: %v", len(list), err)
	}
	if o := run(t, second, interpreter.Cell{Context: made.ID, Code: "import os; print(os.getcwd()); kept"}); o.main() != "1" || o.out != "/tmp\n" {
		t.Errorf("it is %q in %q (%s)", o.main(), o.out, o.failure())
	}
	if o := run(t, second, interpreter.Cell{Code: "kept"}); o.main() != "2" || o.count != 2 {
		t.Errorf("the default has %q, number %d (%s)", o.main(), o.count, o.failure())
	}
	if o := run(t, second, interpreter.Cell{Code: "kept", Language: interpreter.JavaScript}); o.main() != "3" {
		t.Errorf("JavaScript has %q (%s)", o.main(), o.failure())
	}
	if o := run(t, second, interpreter.Cell{Code: "echo $kept", Language: interpreter.Bash}); o.out != "4\n" {
		t.Errorf("bash has %q (%s)", o.out, o.failure())
	}
}

// A deaf sandbox does not answer Attach.
type deaf struct{ paddock.Sandbox }

func (deaf) Attach(context.Context, paddock.PID, paddock.Output) (paddock.Process, error) {
	return nil, paddock.Unavailable
}

func TestAKernelThatCannotBeReachedIsNotTakenForGone(t *testing.T) {
	sb := sandbox(t, paddock.Spec{})
	first, err := interpreter.New(interpreter.Options{Sandbox: sb})
	if err != nil {
		t.Fatal(err)
	}
	made, err := first.Create(t.Context(), interpreter.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := open(t, interpreter.Options{Sandbox: deaf{sb}})
	for name, do := range map[string]func() error{
		"remove":  func() error { return second.Remove(t.Context(), made.ID) },
		"restart": func() error { return second.Restart(t.Context(), made.ID) },
		"run":     func() error { return second.Run(t.Context(), interpreter.Cell{Context: made.ID}, nil) },
	} {
		if err := do(); paddock.KindOf(err) != paddock.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := second.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%d contexts, %v", len(list), err)
	}
}

func TestACellThatAnEarlierProcessBeganIsInterrupted(t *testing.T) {
	sb := sandbox(t, paddock.Spec{})
	first, err := interpreter.New(interpreter.Options{Sandbox: sb})
	if err != nil {
		t.Fatal(err)
	}
	made, err := first.Create(t.Context(), interpreter.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	_, cut := started(t.Context(), t, first, interpreter.Cell{Context: made.ID, Code: "import os, time\nprint('go')\ntry: time.sleep(1000)\nfinally: os.mkdir('/tmp/interrupted')"})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_ = wait(t, cut)
	second := open(t, interpreter.Options{Sandbox: sb, Stop: time.Minute})
	if err := second.Interrupt(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	if o := run(t, second, interpreter.Cell{Language: interpreter.Bash, Code: "ls -d /tmp/interrupted"}); o.out != "/tmp/interrupted\n" {
		t.Errorf("it was not interrupted: %s", o.failure())
	}
}

func TestContextsAreApart(t *testing.T) {
	in := open(t, interpreter.Options{})
	const many = 6
	var wg sync.WaitGroup
	for n := range many {
		wg.Go(func() {
			c, err := in.Create(t.Context(), interpreter.Spec{})
			if err != nil {
				t.Error(err)
				return
			}
			for range 3 {
				o := &outcome{}
				code := fmt.Sprintf("x = globals().get('x', 0) + %d; x", n)
				if err := in.Run(t.Context(), interpreter.Cell{Context: c.ID, Code: code}, o.take); err != nil {
					t.Error(err)
				}
			}
			o := &outcome{}
			if err := in.Run(t.Context(), interpreter.Cell{Context: c.ID, Code: "x"}, o.take); err != nil || o.main() != fmt.Sprint(3*n) {
				t.Errorf("context %d has %q: %v", n, o.main(), err)
			}
			if err := in.Remove(t.Context(), c.ID); err != nil {
				t.Error(err)
			}
			if err := in.Remove(t.Context(), c.ID); paddock.KindOf(err) != paddock.NotFound {
				t.Errorf("removed twice: %v", err)
			}
		})
	}
	wg.Wait()
	if list, err := in.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%d contexts are left: %v", len(list), err)
	}
}

func TestARestartedContextHasNoState(t *testing.T) {
	in := open(t, interpreter.Options{Env: func() map[string]string { return map[string]string{"OURS": "here"} }})
	c, err := in.Create(t.Context(), interpreter.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	_, done := started(t.Context(), t, in, interpreter.Cell{Context: c.ID, Code: "x = 1\nprint('go')\nwhile True: pass"})
	if err := in.Restart(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, done); err != nil {
		t.Errorf("the cell under way: %v", err)
	}
	o := run(t, in, interpreter.Cell{Context: c.ID, Code: "import os; ('x' in globals(), os.environ['OURS'])"})
	if o.main() != "(False, 'here')" || o.count != 1 {
		t.Errorf("it is %q, number %d", o.main(), o.count)
	}
}

func TestWhatACellMayNotAskForIsRefused(t *testing.T) {
	in := open(t, interpreter.Options{})
	for name, c := range map[string]struct {
		cell interpreter.Cell
		kind paddock.Kind
	}{
		"both":      {interpreter.Cell{Context: "x", Language: interpreter.Python}, paddock.Invalid},
		"unknown":   {interpreter.Cell{Context: "x"}, paddock.NotFound},
		"language":  {interpreter.Cell{Language: "cobol"}, paddock.Invalid},
		"zero byte": {interpreter.Cell{Code: "a\x00b"}, paddock.Invalid},
		"variable":  {interpreter.Cell{Env: map[string]string{"A=B": "c"}}, paddock.Invalid},
		"timeout":   {interpreter.Cell{Timeout: -1}, paddock.Invalid},
	} {
		if err := in.Run(t.Context(), c.cell, func(interpreter.Event) error { return nil }); paddock.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}
