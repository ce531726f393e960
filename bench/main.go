//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// options say what to measure with what.
type options struct {
	paddock string // the program
	guest   string // the program that runs inside
	kernel  string // the program that starts gVisor, compressed
	peers   string // directory that peers.sh filled
	python  string // package of Python for the simulated tier
	update  string // document to write the table into, or empty
	only    string // a part, or empty
	rounds  int
	boxes   int
}

func main() {
	if inside() {
		return
	}
	var o options
	flag.StringVar(&o.paddock, "paddock", "bin/paddock", "the paddock `program`")
	flag.StringVar(&o.guest, "guest", "cmd/paddock/guest.bin", "the guest `program`")
	flag.StringVar(&o.kernel, "kernel", "cmd/paddock/gvisor.bin.gz", "the `program` that starts gVisor, compressed")
	flag.StringVar(&o.peers, "peers", "", "`directory` that peers.sh filled")
	flag.StringVar(&o.python, "python", ".tmp/python.tgz", "the `package` that make python fetches")
	flag.StringVar(&o.update, "update", "", "write the table between the markers of this `file`")
	flag.StringVar(&o.only, "only", "", "measure one `part` alone: commands, boxes, work or sim")
	flag.IntVar(&o.rounds, "rounds", 200, "`number` of runs of each command")
	flag.IntVar(&o.boxes, "boxes", 100, "`number` of sandboxes of the test for leaks")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench measures everything and prints the table. A number that is not what
// was promised is printed like any other; a leak is an error.
func bench(ctx context.Context, o options) error {
	program, err := filepath.Abs(o.paddock)
	if err != nil {
		return err
	}
	o.paddock = program
	where := machine() // its load before ours
	parts := []struct {
		name    string
		measure func(context.Context, options) ([]row, error)
	}{{"commands", compareCommands}, {"boxes", measureBoxes}, {"work", compareWork}, {"sim", compareShells}}
	var rows []row
	var leaked error
	for _, p := range parts {
		if o.only != "" && o.only != p.name {
			continue
		}
		more, err := p.measure(ctx, o)
		rows = append(rows, more...)
		if leak := (*leakError)(nil); errors.As(err, &leak) {
			leaked = errors.Join(leaked, err)
		} else if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	text := table(where, rows)
	fmt.Print(text)
	if o.update != "" {
		leaked = errors.Join(leaked, update(o.update, text))
	}
	return leaked
}
