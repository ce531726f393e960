package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/wrap/auto"
)

// Paragraph is the maximum length, in runes, of what doctor prints about one control. It is large
// because a remedy may name several ways.
const Paragraph = 2000

// A diagnosis is what doctor found of one tier.
type diagnosis struct {
	Tier      paddock.Tier  `json:"tier"`
	About     string        `json:"about"`
	Available bool          `json:"available"`
	Cause     string        `json:"cause,omitempty"`   // why it is not available, where that is not a control's fault
	Unknown   bool          `json:"unknown,omitempty"` // whether it is available: the cause was not a lack of this machine
	Info      *paddock.Info `json:"info,omitempty"`    // absent where the tier is not in this version
}

// A checkup is the answer of doctor --json.
type checkup struct {
	Version   int           `json:"version"`           // of this format: 1
	Strongest paddock.Tier  `json:"auto"`              // what --tier auto is for a plain run; empty is none, or not known
	Tiers     []diagnosis   `json:"tiers"`             // strongest first
	Unowned   []string      `json:"unowned,omitempty"` // what is left of sandboxes on this machine that nobody owns, in words
	Agents    []listedAgent `json:"agents,omitempty"`  // coding agents, and what they lack here
}

func (a *App) doctorCommand() *cobra.Command {
	var asJSON bool
	var only, server string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what this machine can enforce, and what to do about the rest",
		Long: `Tell, tier by tier, what this machine can enforce: each control full, weak or
absent, with the cause and the remedy.

Without a delegated control group the default memory limit is kept by a
watchdog (weak), and no processor or io limit stands. A run that asks for one by
--memory, --cpus or --io is refused until that is accepted by name
(--allow-missing CONTROL), and so is one that needs any other control that is
weak or absent.

With --server it tells what a server can enforce. A server that is a service of
the system, for example, has another control group, user and restrictions.

What is left of sandboxes that nobody owns any more is listed; paddock gc removes
it. Of coding agents (paddock agent) it tells what they lack here.

Exit status: 0 if a plain sandbox can be made on some tier that runs programs
of this machine (or on the one asked for with --tier), 1 if not, 125 if Paddock
itself failed, or if a trial was not ready in time and no stronger tier can
make a sandbox.`,
		Example: `  paddock doctor
  sudo paddock doctor --server unix:/run/paddock/server/socket`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			tiers := a.Tiers
			want, err := parseTier(only)
			if err != nil {
				return err
			}
			if want != paddock.Auto {
				tiers = nil
				for _, t := range a.Tiers {
					if t.Name == want {
						tiers = append(tiers, t)
					}
				}
			}
			if server == "" {
				found := examine(c.Context(), tiers, a.looking())
				list, _ := a.unowned() // paddock gc tells why something cannot be looked for
				for _, u := range list {
					found.Unowned = append(found.Unowned, u.What)
				}
				if want == paddock.Auto {
					found.Agents = a.agents()
				}
				return a.tell(found, want, asJSON)
			}
			return a.With(c.Context(), &RemoteFlags{Server: server}, func(ctx context.Context, r *Remote) error {
				return a.tell(examine(ctx, r.tiers(tiers), a.looking()), want, asJSON)
			})
		},
	}
	c.Flags().StringVar(&server, "server", "", "look at the server at this `address`, not at this machine: unix:/path, https://host[:port] or http://host:port")
	c.Flags().BoolVar(&asJSON, "json", false, "answer with one JSON object")
	c.Flags().StringVar(&only, "tier", "auto", "look at this `tier` only")
	return c
}

// tell prints what was found, and returns the exit status. If only one tier was examined, it does not
// say what auto is.
func (a *App) tell(found checkup, want paddock.Tier, asJSON bool) error {
	if want != paddock.Auto {
		found.Strongest = paddock.Auto
	}
	if asJSON {
		if err := PrintJSON(a.Stdout, found); err != nil {
			return err
		}
	} else {
		found.print(a.Stdout, want)
	}
	switch {
	case found.Strongest != paddock.Auto, want != paddock.Auto && found.well():
		return nil
	case found.unknown():
		return ExitStatus(125)
	}
	return ExitStatus(1)
}

// tiers returns the known tiers, each opened on the server.
func (r *Remote) tiers(known []Tier) []Tier {
	list := slices.Clone(known)
	for i, t := range known {
		list[i].Open = func(Gear) (paddock.Driver, error) { return onServer{r.Driver, t.Name}, nil }
	}
	return list
}

// onServer is one tier of a server. Its Close leaves the connection open.
type onServer struct {
	paddock.Driver
	tier paddock.Tier
}

func (s onServer) Info(ctx context.Context, _ paddock.Tier) (paddock.Info, error) {
	return s.Driver.Info(ctx, s.tier)
}

func (onServer) Close() error { return nil }

// examine asks each tier.
func examine(ctx context.Context, tiers []Tier, g Gear) checkup {
	out := checkup{Version: 1, Tiers: []diagnosis{}}
	found := map[paddock.Tier]diagnosis{}
	for _, t := range tiers {
		found[t.Name] = t.examine(ctx, g)
		out.Tiers = append(out.Tiers, found[t.Name])
	}
	strongest, _, err := auto.Choose(candidates(tiers), func(name paddock.Tier) (paddock.Tier, error) {
		return name, found[name].unable()
	})
	if err == nil {
		out.Strongest = strongest
	}
	return out
}

// unable is the reason why a plain sandbox cannot be made on the tier.
func (d diagnosis) unable() error {
	switch {
	case d.Available:
		return nil
	case d.Unknown: // auto goes no tier down for it
		return fmt.Errorf("tier %s: %s: %w", d.Tier, d.Cause, paddock.Timeout)
	}
	return fmt.Errorf("tier %s cannot make a sandbox here: %w", d.Tier, paddock.Unsupported)
}

// looking is what a driver gets of which only the abilities are asked.
func (a *App) looking() Gear { return Gear{Steps: a.Steps(), Images: a.imagesOf()} }

func (t Tier) examine(ctx context.Context, g Gear) diagnosis {
	d := diagnosis{Tier: t.Name, About: t.About}
	if t.Open == nil {
		d.Cause = notInThisVersion
		return d
	}
	driver, err := t.Open(g)
	if err != nil {
		d.Cause = err.Error()
		return d
	}
	info, err := driver.Info(ctx, paddock.Auto)
	if err = errors.Join(err, driver.Close()); err != nil {
		d.Cause, d.Unknown = err.Error(), errors.Is(err, paddock.Timeout)
		return d
	}
	d.Info = &info
	d.Available = info.Available
	return d
}

func (c checkup) well() bool {
	return slices.ContainsFunc(c.Tiers, func(d diagnosis) bool { return d.Available })
}

// programs returns the strongest tier of those that can make a sandbox and run programs of this machine;
// empty is none.
func (c checkup) programs() paddock.Tier {
	for _, d := range c.Tiers {
		if d.Available && d.Tier != paddock.Sim {
			return d.Tier
		}
	}
	return ""
}

// late lists the tiers whose trial was not ready in time.
func (c checkup) late() []string {
	var list []string
	for _, d := range c.Tiers {
		if d.Unknown {
			list = append(list, string(d.Tier))
		}
	}
	return list
}

// unknown reports whether a trial was not ready in time.
func (c checkup) unknown() bool {
	return slices.ContainsFunc(c.Tiers, func(d diagnosis) bool { return d.Unknown })
}

// print tells it to people: per tier a headline, then a line per control with
// what is to be done below it.
func (c checkup) print(w io.Writer, want paddock.Tier) {
	for i, d := range c.Tiers {
		if i > 0 {
			fmt.Fprintln(w)
		}
		d.print(w)
	}
	fmt.Fprintln(w)
	switch {
	case c.Strongest != paddock.Auto:
		fmt.Fprintf(w, "a sandbox can be made here; --tier auto is %s\n", c.Strongest)
		fold(w, "", "auto is "+auto.Meaning)
	case c.well() && want != paddock.Auto && want != paddock.Sim:
		fmt.Fprintf(w, "a sandbox can be made here with --tier %s\n", want)
	case c.unknown() && c.programs() != "":
		fold(w, "", fmt.Sprintf("a sandbox can be made here with --tier %s; what --tier auto is, is not known: the trial of %s was not ready in time; look again when the machine is less busy", c.programs(), Join(c.late())))
	case c.unknown():
		fold(w, "", "it is not known whether a sandbox can be made here: a trial was not ready in time; look again when the machine is less busy")
	case c.well():
		fold(w, "", "a sandbox can be made here for text and files: --tier sim, which runs no programs of this machine")
	default:
		fmt.Fprintln(w, "no sandbox can be made here")
	}
	for _, what := range c.Unowned {
		fold(w, "nobody owns: ", OneLineOf(what, Paragraph))
	}
	if len(c.Unowned) > 0 {
		fmt.Fprintln(w, "paddock gc removes it")
	}
	printAgents(w, c.Agents)
	if words := seatbeltWords(runtime.GOOS); words != "" {
		fold(w, "macOS: ", words)
	}
}

func (d diagnosis) print(w io.Writer) {
	state := "available"
	if !d.Available {
		state = "not available"
	}
	if d.Cause != "" {
		state = OneLine(d.Cause)
	}
	fold(w, fmt.Sprintf("%s: ", d.Tier), state)
	if d.Info == nil {
		fold(w, "  ", d.About)
		return
	}
	fold(w, "  ", fmt.Sprintf("%s (%s)", d.About, OneLineOf(d.Info.Version, Paragraph)))
	sharing := 1
	for i, f := range d.Info.Controls {
		fold(w, fmt.Sprintf("  %-6s  %-21s  ", f.Strength, f.Control), OneLineOf(f.How, Paragraph))
		if i+1 < len(d.Info.Controls) && d.Info.Controls[i+1].Cause == f.Cause && d.Info.Controls[i+1].Remedy == f.Remedy {
			sharing++
			continue // told once, below the last of those that share it
		}
		of := ""
		if sharing > 1 {
			of = fmt.Sprintf(" of the last %d", sharing)
		}
		sharing = 1
		if f.Cause != "" {
			fold(w, fmt.Sprintf("  %-6s  cause%s: ", "", of), OneLineOf(f.Cause, Paragraph))
		}
		if f.Remedy != "" {
			fold(w, fmt.Sprintf("  %-6s  remedy: ", ""), OneLineOf(f.Remedy, Paragraph))
		}
	}
	fold(w, "  default limits: ", limitsInWords(d.Info.Defaults))
	if d.Available {
		fold(w, "  --review: ", reviewInWords(d.Info))
		fold(w, "  --monitor: ", monitorInWords(d.Info))
	}
}

// reviewInWords tells whether changes can be proposed.
func reviewInWords(i *paddock.Info) string {
	switch {
	case i.Can(paddock.CanReview):
		return "can be had"
	case i.Tier == paddock.Sim:
		return "refused, because nothing of this machine changes"
	}
	return "refused"
}

// monitorInWords tells what a monitor learns of a sandbox of the tier, and can refuse. Who starts the command asks about it, so
// that is the same everywhere but for a server's clients, who can have no monitor.
func monitorInWords(i *paddock.Info) string {
	sees := []string{"the command"}
	if i.Can(paddock.CanMonitorNetwork) {
		sees = append(sees, "connections", "uses of secrets")
	}
	if i.Can(paddock.CanMonitorFiles) {
		sees = append(sees, "changes of writable directories")
	}
	switch {
	case len(sees) > 1:
	case i.Can(paddock.CanMonitor):
		return "by the built-in rules, of paddock create"
	default:
		return "refused"
	}
	text := "sees " + Join(sees)
	switch {
	case i.Can(paddock.CanMonitorFreeze):
		return text + "; a pause about a connection stops every process"
	case i.Can(paddock.CanMonitorFiles):
		return text + "; a pause holds changes and new connections"
	}
	return text + "; a pause holds new connections"
}

// columns is the width that every terminal has.
const columns = 80

// fold writes a text behind a prefix, in lines that fit a terminal. The lines after the first are
// indented as far as the text of the first. A word that is too long has a line of its own.
func fold(w io.Writer, prefix, text string) {
	indent := min(utf8.RuneCountInString(prefix), columns/2)
	line := prefix
	width, empty := utf8.RuneCountInString(prefix), true
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case !empty && width+1+n > columns:
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			line, width = strings.Repeat(" ", indent), indent
		case !empty:
			line += " "
			width++
		}
		line += word
		width += n
		empty = false
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// limitsInWords lists the limits that are set.
func limitsInWords(l paddock.Limits) string {
	var parts []string
	add := func(set bool, format string, args ...any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(l.Memory > 0, "memory %s", BytesInWords(l.Memory))
	add(l.CPUs > 0, "processors %g", l.CPUs)
	add(l.PIDs > 0, "processes %d", l.PIDs)
	add(l.Disk > 0, "private files %s", BytesInWords(l.Disk))
	add(l.Files > 0, "open files %d", l.Files)
	add(l.IO > 0, "disk traffic %s/s", BytesInWords(l.IO))
	add(l.Lifetime > 0, "time %s", l.Lifetime.Round(time.Second))
	if len(parts) == 0 {
		return "none"
	}
	return Join(parts)
}

// PrintJSON writes v as indented JSON, without escaping for HTML. What could drive a terminal or change the direction of
// text is escaped: names and contents are hostile, and the encoder leaves C1 controls as they are.
func PrintJSON(w io.Writer, v any) error {
	text, err := jsonText(v, "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// jsonText returns v as JSON with a line break behind it, for a terminal. Without an indent it is one line.
func jsonText(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return audit.Escape(b.Bytes()), nil
}
