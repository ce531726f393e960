package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// told bounds how many refusals are told one by one.
const told = 10

// tell tells, in one short block, why the command ended if that needs
// telling, and what was refused. After a plain exit without refusals it says
// nothing. seen may be nil: then nothing is known of refusals.
func tell(w io.Writer, exit paddock.Exit, seen *paddock.Status) {
	if why, hint := cause(exit); why != "" {
		fmt.Fprintf(w, "paddock: %s\n", why)
		if hint != "" {
			fmt.Fprintf(w, "hint: %s\n", hint)
		}
	}
	if exit.Dropped > 0 {
		fmt.Fprintf(w, "paddock: %s of output were lost\n", BytesInWords(exit.Dropped))
	}
	if seen != nil {
		refusals(w, seen.Refused)
	}
}

// cause puts an exit into words, and says what to do about it. A plain exit
// and a signal have none: they are the command's own affair. But if memory ran out
// and the kernel killed another process, such as the runtime of an agent, the command
// says at most that something ended.
func cause(exit paddock.Exit) (why, hint string) {
	switch exit.Cause {
	case paddock.Exited, paddock.Signaled:
		if exit.Limit <= 0 {
			return "", ""
		}
		return "meanwhile, a process of the sandbox was killed: it ran out of memory" + ofMemory(exit), moreMemory
	case paddock.TimedOut:
		why = "the command was killed: it ran out of time"
		if exit.Usage.Wall > 0 {
			why += " after " + exit.Usage.Wall.Round(10*time.Millisecond).String()
		}
		exit.Reason = "" // says the same
		hint = "more time: --timeout"
	case paddock.OutOfMemory:
		why = "the command was killed: it ran out of memory" + ofMemory(exit)
		if exit.Limit > 0 {
			exit.Reason = "" // says the same
		}
		hint = moreMemory
	case paddock.KilledByPolicy:
		why = "the command was killed by the sandbox's policy"
	case paddock.OutOfBudget:
		why = "the command was killed"
		if strings.Contains(exit.Reason, `limit "`) { // memory that no limit counts has none to raise
			hint = "--limit NAME=VALUE raises a limit of this tier; docs/use/sim.md lists them"
		}
	case paddock.SandboxGone:
		why = "the sandbox ended under the command"
	default:
		why = "the command ended: " + OneLine(string(exit.Cause))
	}
	if exit.Reason != "" {
		why += ": " + OneLine(exit.Reason)
	}
	return why, hint
}

const moreMemory = "more memory: --memory"

// ofMemory says which limit of memory was reached, and the most that was used.
func ofMemory(exit paddock.Exit) (words string) {
	if exit.Limit > 0 {
		words += ", limit " + BytesInWords(exit.Limit)
	}
	if exit.Peak > 0 {
		words += ", peak " + BytesInWords(exit.Peak)
	}
	return words
}

// refusals tells the last refusals, each with how often and what allows it.
func refusals(w io.Writer, list []paddock.Refusal) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "paddock: %s refused:\n", Plural(len(list), "thing was", "things were"))
	more := max(0, len(list)-told)
	for _, r := range list[more:] {
		var b strings.Builder
		fmt.Fprintf(&b, "  %s %s", OneLine(r.What), OneLine(r.Target))
		if r.Count > 1 {
			fmt.Fprintf(&b, " (%d times)", r.Count)
		}
		if r.Rule != "" {
			fmt.Fprintf(&b, ": %s", OneLine(r.Rule))
		}
		fmt.Fprintln(w, b.String())
		if r.Remedy != "" {
			fmt.Fprintf(w, "    hint: %s\n", OneLine(r.Remedy))
		}
	}
	if more > 0 {
		fmt.Fprintf(w, "  and %d before; --json lists all\n", more)
	}
}

// allowed tells what was allowed at the terminal, and how to keep it.
func allowed(w io.Writer, list []asked) {
	var places, flags []string
	for _, d := range list {
		if d.Answer != "always" {
			continue
		}
		if d.UDP {
			places = append(places, OneLine(d.allowance())+" (datagrams)")
			continue // only a policy file says that
		}
		places = append(places, OneLine(d.allowance()))
		flags = append(flags, "--allow "+OneLine(d.allowance()))
	}
	if len(places) == 0 {
		return
	}
	fmt.Fprintf(w, "paddock: allowed for this run alone: %s\n", strings.Join(places, ", "))
	if len(flags) == 0 {
		fmt.Fprintln(w, "hint: to allow it from the start: a rule with udp: true in a policy file")
		return
	}
	fmt.Fprintf(w, "hint: to allow it from the start: %s\n", strings.Join(flags, " "))
}

// changes tells the files that a run changed and that programs of this machine
// obey later.
func changes(w io.Writer, list []changedFile) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "paddock: %s changed that programs of this machine obey:\n", Plural(len(list), "file", "files"))
	for _, c := range list[:min(len(list), told)] {
		fmt.Fprintf(w, "  %s: %s\n", OneLine(c.Path), c.Reason)
	}
	if len(list) > told {
		fmt.Fprintf(w, "  and %d more; --json lists all\n", len(list)-told)
	}
}

// Plural returns a number with its noun: "1 file", "2 files".
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
