package attack

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	gvisorsupervisor "github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor"
	"github.com/paddock-sandbox/paddock/internal/driver/jail"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
	microvmsupervisor "github.com/paddock-sandbox/paddock/internal/driver/microvm/supervisor"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/child"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent"
	"github.com/paddock-sandbox/paddock/internal/egress/gateway"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

func TestMain(m *testing.M) {
	if gateway.Main() || box.Main(jail.Runtime(), gvisor.Runtime(), microvm.Runtime()) || gvisorsupervisor.Main() || microvmsupervisor.Main() || child.Main() {
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv(envPlace) != "" || os.Getenv(envMaker) != "" {
		return m.Run() // the parent process has built everything
	}
	dir, err := os.MkdirTemp("", "paddock-attack-programs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.Setenv(envPrograms, dir), microvmtest.Build()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func TestNothingEscapesTheJail(t *testing.T) {
	judge(t, Harness{
		Tier:    paddock.Jail,
		Command: true,
		New: func(t *testing.T, state string) paddock.Driver {
			d, err := jail.New(jail.Options{State: state, Cache: filepath.Join(filepath.Dir(state), cacheName), Environ: os.Environ()})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
	})
}

func TestNothingEscapesGVisor(t *testing.T) {
	judge(t, Harness{
		Tier:    paddock.GVisor,
		Command: true,
		Turn:    seed("attacks on gvisor"),
		Turns:   8,
		New: func(t *testing.T, state string) paddock.Driver {
			d, err := gvisor.New(gvisor.Options{State: state, Data: filepath.Join(filepath.Dir(state), "data"), Cache: filepath.Join(filepath.Dir(state), cacheName), Environ: os.Environ()})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
	})
}

func TestNothingEscapesTheMicroVM(t *testing.T) {
	microvmtest.Need(t)
	judge(t, Harness{
		Tier:    paddock.MicroVM,
		Command: true,
		Turn:    seed("attacks on microvm"),
		Turns:   32,
		New: func(t *testing.T, state string) paddock.Driver {
			guest, err := microvmtest.Guest()
			if err != nil {
				t.Fatal(err)
			}
			d, err := microvm.New(microvm.Options{State: state, Data: filepath.Join(os.Getenv(envPlace), "machines"), Cache: filepath.Join(filepath.Dir(state), cacheName), Environ: os.Environ(), Guest: guest})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
	})
}

func TestNothingEscapesTheSim(t *testing.T) {
	judge(t, Harness{
		Tier:    paddock.Sim,
		Command: true,
		Turn:    seed("attacks on sim"),
		Turns:   6,
		New: func(t *testing.T, _ string) paddock.Driver {
			d, err := parent.New(parent.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
	})
}

// A library may run simulated computers in its own process. The claims are the same, so the
// column must be equal.
func TestNothingEscapesTheSimWithoutItsWall(t *testing.T) {
	judge(t, Harness{
		Tier:   paddock.Sim,
		Inside: true,
		Turn:   seed("attacks on sim without its wall"),
		Turns:  6,
		New: func(t *testing.T, _ string) paddock.Driver {
			d, err := sim.New(sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
	})
}

// seed returns the seed of a suite's sample. With -update every case runs.
func seed(suite string) string {
	if *update {
		return ""
	}
	return sample.Seed(suite)
}

// judge runs a tier and compares the result with its golden file. With -update it writes
// the columns that were run, and the table of the document.
func judge(t *testing.T, h Harness) {
	t.Helper()
	h.Only = only()
	if *as != "" {
		h.Callers = []string{*as}
	}
	name := goldenName("testdata", h.Tier)
	golden, err := ReadMatrix(name)
	if err != nil {
		t.Fatal(err)
	}
	for caller, results := range Run(t, h) {
		column := ColumnOf(results)
		for _, r := range results {
			t.Run(caller+"/"+r.ID, func(t *testing.T) {
				if r.Broken != "" {
					t.Errorf("no verdict: %s", r.Broken)
				}
				if r.Cell.Verdict == Escaped {
					t.Errorf("ESCAPED: %s", strings.Join(r.Evidence, "\n"))
				}
				t.Log(r.Cell)
			})
		}
		if *update && !h.Inside {
			// A failed case gets no cell, so it fails until it is fixed.
			for _, r := range results {
				if r.Broken != "" || r.Cell.Verdict == Escaped {
					delete(column, r.ID)
				}
			}
			if len(h.Only) > 0 && golden[caller] != nil {
				maps.Copy(golden[caller], column)
			} else {
				golden[caller] = column
			}
			continue
		}
		turn := h.turn(caller)
		for _, id := range turn {
			if _, ok := column[id]; !ok {
				t.Errorf("%s %s was not tried", id, caller)
			}
		}
		for _, d := range golden.Compare(caller, column) {
			switch {
			case d.Got == (Cell{}) && len(turn) > 0 && !slices.Contains(turn, d.ID): // the case was not to be tried
			case !d.Known:
				t.Errorf("%s %s: %s is not in %s: run go test ./attack -update", d.ID, caller, d.Got, name)
			case d.Fatal:
				t.Errorf("%s %s: want %s, got %s", d.ID, caller, d.Want, d.Got)
			default:
				t.Logf("%s %s: the golden file has %s, this host gives %s", d.ID, caller, d.Want, d.Got)
			}
		}
	}
	if *update && !h.Inside {
		if err := golden.Write(name); err != nil {
			t.Fatal(err)
		}
		writeDocument(t)
	}
}

func document() string { return filepath.Join("..", "docs", "security", "attack-matrix.md") }

// committed reads the golden files of every tier.
func committed(t *testing.T) map[paddock.Tier]Matrix {
	t.Helper()
	out := map[paddock.Tier]Matrix{}
	for _, tier := range []paddock.Tier{paddock.Sim, paddock.Jail, paddock.GVisor, paddock.MicroVM} {
		m, err := ReadMatrix(goldenName("testdata", tier))
		if err != nil {
			t.Fatal(err)
		}
		if len(m) > 0 {
			out[tier] = m
		}
	}
	return out
}

func spliced(t *testing.T) (string, string) {
	t.Helper()
	data, err := os.ReadFile(document())
	if err != nil {
		t.Fatal(err)
	}
	want, err := Splice(string(data), Table(committed(t)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data), want
}

func writeDocument(t *testing.T) {
	t.Helper()
	if _, want := spliced(t); os.WriteFile(document(), []byte(want), 0o644) != nil {
		t.Fatal("cannot write " + document())
	}
}

func TestTheThreatModelHoldsTheMatrix(t *testing.T) {
	if have, want := spliced(t); have != want {
		t.Errorf("%s is stale: run go test ./attack -update", document())
	}
}

func TestNoGoldenCellEscapes(t *testing.T) {
	for tier, m := range committed(t) {
		for caller, column := range m {
			for _, c := range Cases() {
				cell, ok := column[c.ID]
				if !ok {
					t.Errorf("%s %s has no cell for %s", tier, caller, c.ID)
				}
				if cell.Verdict == Escaped || weaker(cell.Verdict) < 0 {
					t.Errorf("%s %s: %s is %q", tier, caller, c.ID, cell.Verdict)
				}
			}
			if len(column) != len(Cases()) {
				t.Errorf("%s %s has %d cells for %d cases", tier, caller, len(column), len(Cases()))
			}
		}
	}
}
