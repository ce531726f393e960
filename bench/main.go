//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// options say what to measure with what.
type options struct {
	paddock string // the program
	guest   string // the program that runs inside
	kernel  string // the program that starts gVisor, compressed
	peers   string // directory that peers.sh filled
	python  string // package of Python for the simulated tier
	sdk     string // directory that make sdk filled
	update  string // document to write the table into, or empty
	gateway string // the program of the way out, compressed
	monitor string // the program that runs machines, compressed
	only    string // parts, or empty
	rounds  int
	boxes   int
	live    int           // sandboxes of a loaded server
	load    time.Duration // how long it is; zero is not at all

	hosts map[string][]netip.Addr // that sandboxes find; nil where they have no network
	roots []byte                  // PEM, of who vouches for those
	steps string                  // directory of the journal of steps; empty records nothing
}

func main() {
	if inside() {
		return
	}
	var o options
	flag.StringVar(&o.paddock, "paddock", "bin/paddock", "the paddock `program`")
	flag.StringVar(&o.guest, "guest", "cmd/paddock/guest.bin", "the guest `program`")
	flag.StringVar(&o.kernel, "kernel", "cmd/paddock/gvisor.bin.gz", "the `program` that starts gVisor, compressed")
	flag.StringVar(&o.gateway, "gateway", "cmd/paddock/gateway.bin.gz", "the `program` of the way out, compressed")
	flag.StringVar(&o.monitor, "monitor", "cmd/paddock/microvm.bin.gz", "the `program` that runs machines, compressed")
	flag.StringVar(&o.peers, "peers", "", "`directory` that peers.sh filled")
	flag.StringVar(&o.python, "python", ".tmp/python.tgz", "the `package` that make python fetches")
	flag.StringVar(&o.sdk, "sdk", ".tmp/sdk", "`directory` that make sdk filled")
	flag.StringVar(&o.update, "update", "", "write the tables between the markers of this `file`")
	flag.StringVar(&o.only, "only", "", "measure these `parts` alone, with commas between: commands, boxes, work, sim, network, machines, server, e2b, steps, images")
	flag.IntVar(&o.rounds, "rounds", 200, "`number` of runs of each command")
	flag.IntVar(&o.boxes, "boxes", 100, "`number` of sandboxes of the test for leaks")
	flag.IntVar(&o.live, "live", 500, "`number` of sandboxes of a server that is loaded")
	flag.DurationVar(&o.load, "load", 10*time.Minute, "how `long` a server is loaded; 0 leaves it out")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A part is measured together.
type part struct {
	name    string
	measure func(context.Context, options) ([]row, error)
	table   string // whose markers it stands between
}

// bench measures everything and prints the tables. A number that is not what
// was promised is printed like any other; a leak is an error.
func bench(ctx context.Context, o options) error {
	program, err := filepath.Abs(o.paddock)
	if err != nil {
		return err
	}
	o.paddock = program
	where := machine() // its load before ours
	parts := []part{
		{"commands", compareCommands, mainTable}, {"boxes", measureBoxes, mainTable}, {"work", compareWork, mainTable},
		{"sim", compareShells, mainTable}, {"network", measureNetwork, networkTable},
		{"machines", measureMachines, machineTable}, {"server", measureServer, serverTable},
		{"e2b", measureE2B, e2bTable}, {"steps", measureSteps, stepTable},
		{"images", measureImages, imageTable},
	}
	var only []string
	if o.only != "" {
		only = strings.Split(o.only, ",")
	}
	for _, name := range only {
		if !slices.ContainsFunc(parts, func(p part) bool { return p.name == name }) {
			return fmt.Errorf("there is no part %q", name)
		}
	}
	tables := map[string][]row{}
	var leaked error
	for _, p := range parts {
		if only != nil && !slices.Contains(only, p.name) {
			continue
		}
		more, err := p.measure(ctx, o)
		tables[p.table] = append(tables[p.table], more...)
		if leak := (*leakError)(nil); errors.As(err, &leak) {
			leaked = errors.Join(leaked, err)
		} else if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		text := table(where, tables[name])
		fmt.Print(text)
		if o.update != "" {
			leaked = errors.Join(leaked, update(o.update, name, text))
		}
	}
	return leaked
}
