package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

// simTier makes drivers of the tier sim in this process, and counts what they hold.
func simTier(t *testing.T) Tier {
	t.Helper()
	return Tier{Name: paddock.Sim, About: "a computer made of Go", Limited: true, Open: func(g Gear) (paddock.Driver, error) {
		d, err := sim.New(sim.Options{Limits: g.Limits})
		if err != nil {
			return nil, err
		}
		return watched{d, t}, nil
	}}
}

// A watched driver is to be empty when it is closed.
type watched struct {
	paddock.Driver
	t *testing.T
}

func (w watched) Close() error {
	if list, err := w.List(context.Background()); err != nil || len(list) != 0 {
		w.t.Errorf("closed with %d sandboxes: %v", len(list), err)
	}
	return w.Driver.Close()
}

func invokeMap(t *testing.T, args ...string) *Invocation {
	t.Helper()
	dir := t.TempDir()
	return invoke(dir, map[string]string{"HOME": dir}, []Tier{simTier(t)}, append([]string{"map", "--tier", "sim"}, args...)...)
}

func TestMapWritesOutputsInTheOrderOfTheInputs(t *testing.T) {
	v := invokeMap(t, "-j", "4", "--", "sh", "-c", "echo $0 begins; echo $0 >&2; echo $0 ends", "{}")
	var in, want strings.Builder
	for i := range 25 {
		fmt.Fprintf(&in, "%d\n", i)
		fmt.Fprintf(&want, "%d begins\n%d ends\n", i, i)
	}
	v.App.Stdin = strings.NewReader(in.String())
	if code := v.Run(t.Context()); code != 0 || v.Stdout.String() != want.String() {
		t.Errorf("status %d, %q, %q", code, v.Stdout.String(), v.Stderr.String())
	}
	if v.Stderr.String() != in.String() {
		t.Errorf("errors %q", v.Stderr.String())
	}
}

func TestMapHoldsBackABoundedPieceOfOutput(t *testing.T) {
	v := invokeMap(t, "-j", "3", "--", "sh", "-c", "yes $0 | head -c 3000000", ":::", "a", "b", "c")
	if code := v.Run(t.Context()); code != 0 {
		t.Fatalf("status %d, %s", code, v.Stderr.String())
	}
	out := v.Stdout.String()
	if len(out) != 9_000_000 || strings.Contains(out[:3_000_000], "b") || strings.Trim(out[3_000_000:6_000_000], "b\n") != "" {
		t.Errorf("%d bytes, mixed", len(out))
	}
}

func TestMapWithoutOrderWritesWhatEndsFirst(t *testing.T) {
	dir := t.TempDir()
	v := invokeMap(t, "-j", "2", "--unordered", "--read", dir, "--", "sh", "-c", "if [ $0 = slow ]; then while [ ! -e "+dir+"/go ]; do sleep 0.01; done; fi; echo $0", "{}", ":::", "slow", "quick")
	out := &trigger{word: "quick", do: func() {
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
			t.Error(err)
		}
	}}
	v.App.Stdout = out
	if code := v.Run(t.Context()); code != 0 || out.text() != "quick\nslow\n" {
		t.Errorf("status %d, %q, %q", code, out.text(), v.Stderr.String())
	}
}

func TestMapTellsFailuresWithTheirInputs(t *testing.T) {
	v := invokeMap(t, "--", "sh", "-c", "exit $0", "{}", ":::", "0", "3", "0")
	if code := v.Run(t.Context()); code != 1 || v.Stderr.String() != "paddock: input \"3\": the command ended with status 3\npaddock: 1 of 3 runs failed\n" {
		t.Errorf("status %d, %q", code, v.Stderr.String())
	}
	v = invokeMap(t, "--", "{}", "x", ":::", "true", "no-such-program")
	if code := v.Run(t.Context()); code != 1 || !strings.Contains(v.Stderr.String(), "input \"no-such-program\": start no-such-program") {
		t.Errorf("status %d, %q", code, v.Stderr.String())
	}
	v = invokeMap(t, "--root", "/", "--", "true", ":::", "x")
	if code := v.Run(t.Context()); code != 125 || !strings.Contains(v.Stderr.String(), "hint: ") {
		t.Errorf("status %d, %q", code, v.Stderr.String())
	}
	for _, args := range [][]string{{}, {":::", "x"}, {"-j", "0", "true", ":::", "x"}, {"--input", "nowhere", "true"}, {"--input", "-", "true", ":::", "x"}} {
		v = invokeMap(t, args...)
		if code := v.Run(t.Context()); code != 125 {
			t.Errorf("%q: status %d", args, code)
		}
	}
}

func TestMapAnswersWithALineOfJSONForEachInput(t *testing.T) {
	v := invokeMap(t, "--json", "--", "sh", "-c", "echo out; echo err >&2; exit $0", "{}", ":::", "0", "5")
	if code := v.Run(t.Context()); code != 1 {
		t.Errorf("status %d, %s", code, v.Stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(v.Stdout.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("wrote %q", lines)
	}
	for i, want := range []int{0, 5} {
		var got struct {
			Index, Status  int
			Input          string
			Stdout, Stderr struct{ Text string }
		}
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil || got.Index != i || got.Status != want || got.Stdout.Text != "out\n" || got.Stderr.Text != "err\n" {
			t.Errorf("wrote %s: %v", lines[i], err)
		}
	}
}

func TestASignalEndsAllRunsOfMap(t *testing.T) {
	v := invokeMap(t, "-j", "2", "--", "sh", "-c", "echo $0; while :; do sleep 0.01; done", "{}", ":::", "a", "b", "c")
	v.App.Stdout = &trigger{word: "a\n", do: func() { v.Signals <- syscall.SIGINT }}
	if code := v.Run(t.Context()); code != 128+2 || !strings.Contains(v.Stderr.String(), "interrupted") {
		t.Errorf("status %d, %q", code, v.Stderr.String())
	}
}

func TestAReaderWhoGoesAwayEndsMap(t *testing.T) {
	v := invokeMap(t, "--", "yes", "{}", ":::", "a", "b")
	v.App.Stdout = brokenPipeWriter{}
	if code := v.Run(t.Context()); code != 128+13 || v.Stderr.String() != "" {
		t.Errorf("status %d, %q", code, v.Stderr.String())
	}
}

func TestMapUsesTheServerThatIsNamedAndLeavesNothingThere(t *testing.T) {
	r := newRack(t)
	out := r.do(t, "map", "--server", "unix:/named", "--tier", "sim", "--", "echo", "x{}", ":::", "1", "2")
	if out != "x1\nx2" {
		t.Errorf("wrote %q", out)
	}
	if left := r.do(t, "ls", "-q"); left != "" {
		t.Errorf("left %q", left)
	}
	if len(r.sites) == 0 || r.sites[0].Address != "unix:/named" {
		t.Errorf("asked %v", r.sites)
	}
}

func TestAnInputIsPutWhereTheBracesAre(t *testing.T) {
	for _, row := range []struct{ cmd, want []string }{
		{[]string{"a"}, []string{"a", "in"}},
		{[]string{"a", "{}", "b"}, []string{"a", "in", "b"}},
		{[]string{"{}", "x{}y{}"}, []string{"in", "xinyin"}},
	} {
		if got := argsFor(row.cmd, "in"); !slices.Equal(got, row.want) {
			t.Errorf("%q became %q", row.cmd, got)
		}
	}
}

// A person who follows many runs sees each line when it is written, whole, and whose it is.
func TestMapLiveWritesEachLineWhenItComes(t *testing.T) {
	dir := t.TempDir()
	v := invokeMap(t, "-j", "2", "--live", "--read", dir, "--", "sh", "-c",
		"printf 'begins '; echo $0; while [ ! -e "+dir+"/go ]; do sleep 0.01; done; printf '\\rforged: x\\033[2J\\tend'; printf oh >&2; exit 3", "{}", ":::", "a", "b\n")
	out := &trigger{word: `b\n: begins b`, do: func() { // neither run ends before this line is written
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
			t.Error(err)
		}
	}}
	v.App.Stdout = out
	if code := v.Run(t.Context()); code != 1 {
		t.Errorf("status %d, %s", code, v.Stderr.String())
	}
	lines := strings.Split(out.text(), "\n")
	slices.Sort(lines)
	if want := []string{"", `a: \rforged: x\x1b[2J` + "\tend", "a: begins a", `b\n: \rforged: x\x1b[2J` + "\tend", `b\n: begins b`}; !slices.Equal(lines, want) {
		t.Errorf("wrote %q", lines)
	}
	for _, want := range []string{"a: oh\n", `b\n: oh` + "\n", "2 of 2 runs failed"} {
		if !strings.Contains(v.Stderr.String(), want) {
			t.Errorf("%q is not among the errors %q", want, v.Stderr.String())
		}
	}
	for _, other := range []string{"--json", "--unordered"} {
		if code := invokeMap(t, "--live", other, "--", "true", ":::", "x").Run(t.Context()); code != 125 {
			t.Errorf("with %s: status %d", other, code)
		}
	}
}

func TestMapLiveHoldsBackABoundedPieceOfALine(t *testing.T) {
	v := invokeMap(t, "--live", "--", "sh", "-c", "echo x; yes \u00fc | tr -d '\\n' | head -c 300000", ":::", "a")
	if code := v.Run(t.Context()); code != 0 {
		t.Fatalf("status %d, %s", code, v.Stderr.String())
	}
	out := v.Stdout.String()
	if n := strings.Count(out, "\u00fc"); n != 150_000 || strings.Count(out, "\n") < 5 || strings.Contains(out, `\x`) {
		t.Errorf("%d letters in %d lines", n, strings.Count(out, "\n"))
	}
}

// What the kernel killed is told even if the command ended by itself, as an agent does whose runtime was killed.
func TestAKillForLackOfMemoryIsTold(t *testing.T) {
	for _, c := range []paddock.Cause{paddock.Exited, paddock.Signaled} {
		why, hint := cause(paddock.Exit{Code: 1, Cause: c, Limit: 1 << 30, Peak: 1 << 30})
		if want := "meanwhile, a process of the sandbox was killed: it ran out of memory, limit 1 GiB, peak 1 GiB"; why != want || hint != "more memory: --memory" {
			t.Errorf("%s: %q, %q", c, why, hint)
		}
		if why, _ := cause(paddock.Exit{Code: 1, Cause: c, Reason: "killed by signal 9"}); why != "" {
			t.Errorf("%s without it: %q", c, why)
		}
	}
}
