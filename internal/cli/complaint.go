package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// The rules of the terminal. Standard output belongs to the command that is
// run, or to the answer that was asked for. Everything that Paddock has to say
// goes to standard error, each thing on a line that begins with "paddock:",
// and what to do about it on the next one, which begins with "hint:". Messages
// are lower case without a full stop. Nothing is said where all went well. All
// text of foreign origin passes through oneLine.

// A Hinted error has a hint: what a person can do about the error.
type Hinted struct {
	err  error
	hint string
}

func (h *Hinted) Error() string { return h.err.Error() }
func (h *Hinted) Unwrap() error { return h.err }

// WithHint adds a hint to an error. Its arguments are those of fmt.Sprintf.
func WithHint(err error, format string, args ...any) error {
	return &Hinted{err, fmt.Sprintf(format, args...)}
}

// complain tells an error and what to do about it.
func (a *App) complain(err error) {
	var wrong *policy.Error
	if errors.As(err, &wrong) {
		problems(a.Stderr, wrong)
		return
	}
	message, hint := words(err)
	fmt.Fprintf(a.Stderr, "paddock: %s\n", message)
	if hint != "" {
		fmt.Fprintf(a.Stderr, "hint: %s\n", hint)
	}
}

// problems tells everything that is wrong with a policy file.
func problems(w io.Writer, wrong *policy.Error) {
	for _, p := range wrong.Problems {
		hint := p.Hint
		p.Hint = ""
		fmt.Fprintf(w, "paddock: %s\n", OneLine(p.In(wrong.Name)))
		if hint != "" {
			fmt.Fprintf(w, "hint: %s\n", OneLineOf(hint, Paragraph))
		}
	}
	if wrong.More > 0 {
		fmt.Fprintf(w, "paddock: %s: and %s\n", OneLine(wrong.Name), Plural(wrong.More, "more problem", "more problems"))
	}
}

// words gives an error as one line, and the hint for it or nothing.
func words(err error) (message, hint string) {
	text := err.Error()
	var wrong *policy.Error
	if errors.As(err, &wrong) {
		text = strings.ReplaceAll(text, "\n", "; ")
	}
	var missing *paddock.MissingError
	if errors.As(err, &missing) && missing.Finding.Remedy != "" {
		text = strings.Replace(text, "; remedy: "+missing.Finding.Remedy, "", 1)
	}
	var cut Interrupted
	if errors.As(err, &cut) {
		text = cut.Error()
	}
	if saysItself(err) {
		text = strings.TrimSuffix(text, ": "+paddock.KindOf(err).Error())
	}
	return OneLine(once(text)), OneLineOf(HintFor(err), Paragraph)
}

// once drops a part of a message that the next part repeats: "start: start x" is "start x".
func once(text string) string {
	parts := strings.Split(text, ": ")
	kept := parts[:0]
	for i, p := range parts {
		if i+1 < len(parts) && (parts[i+1] == p || strings.HasPrefix(parts[i+1], p+" ")) {
			continue
		}
		kept = append(kept, p)
	}
	return strings.Join(kept, ": ")
}

// saysItself tells whether an error names its cause in words, so that the kind
// at its end tells a person nothing more. In other messages it may be all
// there is: "open sandbox x: not found".
func saysItself(err error) bool {
	var own *Hinted
	var start *paddock.StartError
	var refused NotMade
	switch {
	case errors.As(err, &own):
		return true
	case errors.As(err, &start):
		return start.Err != nil && start.Err.Error() != paddock.KindOf(start.Err).Error()
	case errors.As(err, &refused):
		switch paddock.KindOf(err) {
		case paddock.Invalid, paddock.NotFound, paddock.Denied, paddock.Unsupported:
			return true
		}
	}
	return false
}

// HintFor returns the hint for err: its own, or the usual one for its kind. It returns an empty
// string if there is none.
func HintFor(err error) string {
	var own *Hinted
	var missing *paddock.MissingError
	var start *paddock.StartError
	switch {
	case errors.As(err, &own):
		return own.hint
	case errors.As(err, &missing):
		return hintForMissing(missing.Finding)
	case errors.As(err, &start) && start.Code == 127:
		if strings.Contains(start.Path, "/") {
			return "the sandbox sees the system, and of your files only those that you name: --workspace . shows this directory, --read PATH another one"
		}
		return "the sandbox sees the programs of the system, and tool chains of your PATH: show another directory with --read DIR and call the program as DIR/NAME, or choose another --root"
	case errors.As(err, &start) && start.Code == 126:
		if !errors.Is(err, paddock.Denied) && !errors.Is(err, paddock.Unsupported) {
			return "" // a directory, no interpreter, no working directory: the words say it
		}
		return fmt.Sprintf("is it executable (chmod +x), and built for this machine (%s/%s)?", runtime.GOOS, runtime.GOARCH)
	case errors.Is(err, paddock.Conflict) && strings.Contains(err.Error(), " is paused"):
		return "paddock resume ID lets it go on"
	case errors.Is(err, paddock.Denied) && strings.Contains(err.Error(), "the key is missing"):
		return "name the server and its key: paddock login URL, or PADDOCK_SERVER and PADDOCK_KEY"
	case errors.Is(err, paddock.Unsupported):
		return "`paddock doctor` shows what this machine can enforce, and what to do about the rest"
	case errors.Is(err, paddock.Exhausted):
		return "a disk or a limit is full; --disk, --memory, --pids and --files set the sandbox's own limits, and on a server `paddock rm` makes room"
	case errors.Is(err, context.Canceled), errors.Is(err, paddock.Canceled):
		return ""
	case paddock.KindOf(err) == paddock.Internal:
		return "this may be a fault of Paddock; please report it with the output of `paddock doctor`"
	}
	return ""
}

// hintForMissing gives the remedy, and how to do without the control where a
// sandbox without it is one.
func hintForMissing(f paddock.Finding) string {
	var hints []string
	if f.Remedy != "" {
		hints = append(hints, f.Remedy)
	}
	switch f.Control {
	case paddock.ControlUserNS, paddock.ControlMountNS, paddock.ControlPIDNS, paddock.ControlReadOnly, paddock.ControlIdentity, paddock.ControlKernel, paddock.ControlNetwork:
		// Nothing is left of a sandbox without these.
	default:
		hints = append(hints, fmt.Sprintf("to do without it: --allow-missing %s", f.Control))
	}
	if f.Remedy == "" {
		hints = append(hints, "`paddock doctor` shows what this machine can enforce")
	}
	return strings.Join(hints, "; ")
}
