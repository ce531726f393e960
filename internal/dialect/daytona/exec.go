package daytona

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
)

// Bounds of commands.
const (
	maxOutput  = 8 << 20 // bytes of output that one answer has
	holdEvery  = 256 << 10
	maxSeconds = 366 * 24 * 3600
)

// shell starts the shell that Daytona's boxes take: bash if there is one.
const shell = `s=$(command -v bash || command -v sh); exec "$s" `

// A capture keeps output up to a bound, as the tenant's share has room for it.
type capture struct {
	place dialect.Place
	buf   bytes.Buffer
	held  int64
	cut   bool
}

// Write implements [io.Writer]. What comes behind the bound is dropped, so that the command goes on.
func (o *capture) Write(data []byte) (int, error) {
	all := len(data)
	for len(data) > 0 && !o.cut {
		if int64(o.buf.Len()) == o.held {
			if o.held >= maxOutput || o.place.Hold(2*holdEvery) != nil { // the answer's text takes as much again
				o.cut = true
				break
			}
			o.held += holdEvery
		}
		n := min(int64(len(data)), o.held-int64(o.buf.Len()))
		o.buf.Write(data[:n])
		data = data[n:]
	}
	return all, nil
}

func (o *capture) String() string {
	text := strings.ToValidUTF8(o.buf.String(), "\ufffd")
	if o.cut {
		text += "\n[paddock: the output was longer than this answer may be; the rest is left out]\n"
	}
	return text
}

// run runs a command to its end. It is killed if the client goes.
func (c *call) run(sb paddock.Sandbox, cmd paddock.Cmd, stdin string) (paddock.Exit, error) {
	cmd.Input = stdin != ""
	p, err := sb.Start(c.ctx, cmd)
	if err != nil {
		return paddock.Exit{}, err
	}
	defer p.Release()
	if stdin != "" {
		in := p.Input()
		if !c.h.spawn(func() {
			_, err := io.WriteString(in, stdin)
			_ = errors.Join(err, in.Close()) // the command may not want it
		}) {
			return paddock.Exit{}, fmt.Errorf("the server ends: %w", paddock.Unavailable)
		}
	}
	exit, err := p.Wait(c.ctx)
	if err != nil && c.ctx.Err() != nil {
		gone, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), 10*time.Second)
		defer cancel()
		_ = p.Signal(gone, 9) // it may have ended
	}
	return exit, err
}

// timeout reads a time in seconds; zero is none.
func timeout(n *float64) (time.Duration, error) {
	switch {
	case n == nil || *n == 0:
		return 0, nil
	case *n < 0 || *n > maxSeconds:
		return 0, invalid("timeout: %v is not a number of seconds", *n)
	}
	return time.Duration(*n * float64(time.Second)), nil
}

// ended returns what an answer says of a command's end: its code, and why it ended if not by itself.
func ended(exit paddock.Exit) (code int, words string, err error) {
	switch exit.Cause {
	case paddock.TimedOut:
		return 0, "", coded(http.StatusRequestTimeout, codeExecutionTimeout, paddock.Timeout, "command execution timeout: %s", exit.Reason)
	case paddock.SandboxGone:
		return 0, "", refuse(http.StatusServiceUnavailable, paddock.Unavailable, "the sandbox ended: %s", exit.Reason)
	case paddock.Exited, paddock.Signaled:
		return exit.Code, "", nil
	}
	return exit.Code, fmt.Sprintf("\n[paddock: the command was ended: %s]\n", exit.Reason), nil
}

// execute handles POST …/process/execute.
func (c *call) execute() error {
	var q struct {
		Command string            `json:"command"`
		Cwd     string            `json:"cwd"`
		Envs    map[string]string `json:"envs"`
		Timeout *float64          `json:"timeout"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if strings.TrimSpace(q.Command) == "" {
		return invalid("command is required")
	}
	limit, err := timeout(q.Timeout)
	if err != nil {
		return err
	}
	if err := checkTexts(nil, q.Envs); err != nil {
		return err
	}
	sb, rec, err := c.opened(true)
	if err != nil {
		return err
	}
	out := &capture{place: c.place}
	cmd := paddock.Cmd{Args: []string{"sh", "-c", shell + `-c "$1"`, "sh", q.Command}, Env: rec.env(q.Envs), Dir: rec.absolute(q.Cwd), Timeout: limit, Output: paddock.Output{Stdout: out, Stderr: out}}
	stdin := ""
	if len(q.Command) > maxArgument {
		cmd.Args, stdin = []string{"sh", "-c", shell}, q.Command+"\n"
	}
	exit, err := c.run(sb, cmd, stdin)
	var start *paddock.StartError
	if errors.As(err, &start) {
		return c.json(http.StatusOK, map[string]any{"exitCode": -1, "result": err.Error()})
	}
	if err != nil {
		return err
	}
	code, words, err := ended(exit)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"exitCode": code, "result": out.String() + words})
}

// maxArgument is the longest text that is passed as an argument.
const maxArgument = 100 << 10

// runners are shell scripts that run the program on standard input.
var runners = map[string]string{
	"":           `exec python3 -u - "$@"`,
	"python":     `exec python3 -u - "$@"`,
	"javascript": `exec node - "$@"`,
	"typescript": `d=$(mktemp -d) && cat >"$d/main.mts" || exit; for f in --experimental-strip-types; do node $f -e '' 2>/dev/null && exec node --no-warnings $f "$d/main.mts" "$@"; done; exec npx --no-install tsx "$d/main.mts" "$@"`,
}

// codeRun handles POST …/process/code-run.
func (c *call) codeRun() error {
	var q struct {
		Code     string            `json:"code"`
		Language string            `json:"language"`
		Argv     []string          `json:"argv"`
		Envs     map[string]string `json:"envs"`
		Timeout  *float64          `json:"timeout"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	limit, err := timeout(q.Timeout)
	if err != nil {
		return err
	}
	if err := checkTexts(nil, q.Envs); err != nil {
		return err
	}
	sb, rec, err := c.opened(true)
	if err != nil {
		return err
	}
	if q.Language == "" {
		q.Language = rec.Labels["code-toolbox-language"]
	}
	runner, ok := runners[q.Language]
	if !ok {
		return invalid("language: %q is not python, javascript or typescript", dialect.Printable(q.Language))
	}
	out := &capture{place: c.place}
	cmd := paddock.Cmd{Args: append([]string{"sh", "-c", runner, "sh"}, q.Argv...), Env: rec.env(q.Envs), Dir: rec.Dir, Timeout: limit, Output: paddock.Output{Stdout: out, Stderr: out}}
	exit, err := c.run(sb, cmd, q.Code+"\n")
	if err != nil {
		return err
	}
	code, words, err := ended(exit)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"exitCode": code, "result": out.String() + words, "artifacts": map[string]any{"charts": []struct{}{}}})
}
