package attack

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/protocol"
)

var update = flag.Bool("update", false, "write the golden files, and the table in docs/security/attack-matrix.md")

var rows = flag.String("only", "", "the `rows` to try, with commas between; none is all")

var as = flag.String("caller", "", "who tries: root or user; empty is both")

// only returns the requested rows.
func only() []string {
	return slices.DeleteFunc(strings.Split(*rows, ","), func(id string) bool { return id == "" })
}

// harmless lists the rows without any success even without a sandbox, with the reasons. All
// others must succeed there for at least one caller.
func harmless() map[string]string {
	return map[string]string{
		"A21": "needs a file system that folds names",
		"P27": "is about our command line; the row shows the raw sequences itself",
		"P28": "is about our command line; the row runs a good policy itself",
		"P29": "is about our command line; the row springs its own trap first",
		"P33": "is about what there is only with a kernel of the sandbox's own",
		"N01": "is what is allowed, and has to work anywhere",
	}
}

func TestTheAttacksSucceedWithoutASandbox(t *testing.T) {
	h := Harness{
		Tier:       "bare",
		Unconfined: true,
		Turn:       seed("attacks without a sandbox"),
		Turns:      8,
		Only:       only(),
		New:        func(*testing.T, string) paddock.Driver { return bare{} },
	}
	results := Run(t, h)
	some := h.turn("root")
	worked := map[string]bool{}
	for caller, rs := range results {
		for _, r := range rs {
			if r.Broken != "" {
				t.Errorf("%s %s: no verdict: %s", r.ID, caller, r.Broken)
			}
			worked[r.ID] = worked[r.ID] || r.Cell.Verdict == Escaped
		}
	}
	for _, c := range Cases() {
		if len(some) > 0 && !slices.Contains(some, c.ID) {
			continue
		}
		if why, never := harmless()[c.ID]; never {
			t.Logf("%s: not shown here: %s", c.ID, why)
		} else if !worked[c.ID] {
			t.Errorf("%s: %s: did not succeed without a sandbox, so its refusal proves nothing", c.ID, c.Attack)
		}
	}
	compareControl(t, some, controlLines(results))
}

// controlLines returns for each technique for which callers it succeeded, or how it failed.
func controlLines(results map[string][]Result) []string {
	type outcome struct{ success, failure []string }
	all := map[string]*outcome{}
	for caller, rs := range results {
		for _, r := range rs {
			for _, try := range r.Tries {
				key := r.ID + "\t" + try.Name
				o := all[key]
				if o == nil {
					o = &outcome{}
					all[key] = o
				}
				// What the attacker calls "inside" is outside here.
				if try.Outcome == protocol.Reached || try.Outcome == protocol.Inside {
					o.success = append(o.success, caller)
				} else {
					o.failure = append(o.failure, caller+" "+try.Outcome+" "+try.Errno)
				}
			}
		}
	}
	var lines []string
	for key, o := range all {
		slices.Sort(o.success)
		slices.Sort(o.failure)
		if len(o.success) > 0 {
			lines = append(lines, key+"\tsucceeds\t"+strings.Join(o.success, " "))
		} else {
			lines = append(lines, key+"\tfails\t"+strings.Join(o.failure, ", "))
		}
	}
	slices.Sort(lines)
	return lines
}

// machine identifies what decides whether a technique can succeed without a sandbox.
func machine() string {
	var u syscall.Utsname
	if err := syscall.Uname(&u); err != nil {
		return "unknown"
	}
	var release strings.Builder
	for _, c := range u.Release {
		if c == 0 {
			break
		}
		release.WriteByte(byte(c))
	}
	return fmt.Sprintf("# Linux %s %s, uid %d", release.String(), runtime.GOARCH, os.Geteuid())
}

// racing reports whether a technique depends on luck. The whole case must succeed all the
// same.
func racing(technique string) bool {
	if technique == "processor" { // a busy host gives nobody more than the limit
		return true
	}
	for _, mark := range []string{"race", "round ", "very many at once"} {
		if strings.Contains(technique, mark) {
			return true
		}
	}
	return false
}

// updated returns the list with new lines. Those of cases that were not tried stay.
func updated(t *testing.T, golden, some, lines []string) []string {
	t.Helper()
	if len(some) == 0 {
		return append([]string{machine()}, lines...)
	}
	if golden[0] != machine() {
		t.Fatalf("the list was made on %q, this is %q: update it as a whole", golden[0], machine())
	}
	all := slices.Clone(lines)
	for _, l := range golden[1:] {
		if id, _, _ := strings.Cut(l, "\t"); !slices.Contains(some, id) {
			all = append(all, l)
		}
	}
	slices.Sort(all)
	return append(golden[:1:1], all...)
}

// compareControl compares with the committed list. On the machine that made the list, every
// technique must succeed as before. On another machine the kernel may have less, and
// failures are only logged. If only some cases were tried, the others are not expected.
func compareControl(t *testing.T, some, lines []string) {
	t.Helper()
	name := filepath.Join("testdata", "control.golden")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	golden := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if *update {
		golden = updated(t, golden, some, lines)
		if err := os.WriteFile(name, []byte(strings.Join(golden, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tell := t.Errorf
	if golden[0] != machine() {
		t.Logf("the list was made on %q, this is %q: differences are told only", golden[0], machine())
		tell = t.Logf
	}
	now := map[string]bool{} // techniques that succeed
	for _, l := range lines {
		f := strings.Split(l, "\t")
		now[f[0]+" "+f[1]] = f[2] == "succeeds"
	}
	seen := map[string]bool{}
	for _, l := range golden[1:] {
		f := strings.Split(l, "\t")
		if len(f) != 4 {
			t.Fatalf("%s: want four fields: %q", name, l)
		}
		key := f[0] + " " + f[1]
		seen[key] = true
		switch succeeds, tried := now[key]; {
		case !tried && len(some) > 0 && !slices.Contains(some, f[0]):
		case !tried:
			t.Errorf("%s is in the list and was not tried: run go test ./attack -update", key)
		case f[2] != "succeeds" || succeeds:
		case racing(f[1]):
			t.Logf("%s lost its race this time", key)
		default:
			tell("%s no longer succeeds without a sandbox", key)
		}
	}
	for key := range now {
		if !seen[key] {
			t.Errorf("%s is not in the list: run go test ./attack -update", key)
		}
	}
}
