package parent

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// peak returns the most memory that a process has had, in bytes, as the kernel counts it.
func peak(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(status), "VmHWM:")
	number, _, kilobytes := strings.Cut(rest, "kB")
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if !ok || !kilobytes || err != nil {
		t.Fatalf("no peak in %q: %v", status, err)
	}
	return n << 10
}

// What takes memory without end, by the tool that does it.
func hungry() map[string]string {
	return map[string]string{
		"an array of jq":        `jq -n '[range(1e9)] | length'`,
		"an object of jq":       `jq -n 'reduce range(1e9) as $i ({}; .["\($i)"] = $i)'`,
		"a string of jq":        `jq -n '"a" | until(false; . + .)'`,
		"a line of sed":         `echo x | sed ':a; s/.*/&&/; ta'`,
		"the hold of sed":       `yes | sed -n 'H'`,
		"an array of awk":       `awk 'BEGIN { for (;;) a[i++] = "text " i }'`,
		"a string of awk":       `awk 'BEGIN { s = "x"; for (;;) s = s s }'`,
		"a variable":            `a=x; while :; do a=$a$a; done`,
		"an array":              `while :; do a+=(some text); done`,
		"what sort holds":       `yes some text | sort`,
		"a line without end":    `head -c 600M /dev/zero | grep x`,
		"a file":                `head -c 4G /dev/zero > f; rm -f f`,
		"files":                 `i=0; while echo > f$i; do i=$((i+1)); done; rm -f f*`,
		"names":                 `mkdir d; cd d; i=0; while ln -s x "$i"; do i=$((i+1)); done; cd ..; rm -rf d`,
		"what a pipe holds":     `yes | { sleep 1; tail -n 100000000; }`,
		"a command's output":    `x=$(yes)`,
		"many databases":        `for i in {1..40}; do sqlite3 :memory: 'create table t(x); insert into t values (randomblob(30000000)), (randomblob(30000000)); select sum(length(a.x)) from t a, t b, t c, t d' & done; wait`,
		"many commands' output": `for i in {1..40}; do x=$(head -c 60M /dev/zero | tr '\0' x) & done; wait`,
		"words in flight":       `a=$(head -c 60M /dev/zero | tr '\0' x); for i in {1..40}; do : "$a$a" "$a$a" "$a$a" & done; wait`,
		"engines of JavaScript": `for i in {1..40}; do node -e 'const a = []; for (;;) a.push("x".repeat(1e6) + a.length)' & done; wait`,
		"stacks":                `mkfifo p; exec 3<>p; for i in {1..40}; do awk 'function f() { if (++d < 40000) f(); else getline x < "p" } BEGIN { f() }' & done; sleep 10`,
		"a multiplied value":    `x=$(head -c 8000000 /dev/zero | tr '\0' a); w=$(printf '&%.0s' {1..300}); y=${x//*/$w}`,
		"a multiplied list":     `w=$(head -c 100000 /dev/zero | tr '\0' a); a=({1..20000}); b=("${a[@]/#/$w}")`,
		"multiplied fields":     `{ head -c 30M /dev/zero | tr '\0' ,; echo; } > f; join -t, f f; rm f`,
		"what is held open":     `x=$(head -c 100000 /dev/zero | tr '\0' a); for i in {1..35}; do export v$i=$x; done; bash -c 'while exec {fd}</proc/self/environ; do :; done'`,
		"a stream that grows":   `head -c 1G /dev/zero | gzip > z; zcat z z z z z z z z | tac; rm -f z`,
	}
}

func TestNoScriptTakesMoreMemoryThanItsSandboxMay(t *testing.T) {
	const memory, disk, own = 256 << 20, 64 << 20, 256 << 20 // own: docs/use/sim.md tells it beside the limits
	tried, left := sample.Part(sample.Seed("memory of sim"), "rows", slices.Sorted(maps.Keys(hungry())), 4)
	for _, name := range left {
		t.Log(sample.LeftOut + name)
	}
	for _, name := range tried {
		script := hungry()[name]
		t.Run(name, func(t *testing.T) {
			sb := limited(t, paddock.Limits{Memory: memory, Disk: disk})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"bash", "-c", "{ " + script + "; } | tail -c 100"}})
			if err != nil {
				t.Fatal(err)
			}
			exit, err := p.Wait(ctx)
			if err != nil {
				t.Fatalf("it does not end: %v", err)
			}
			used := peak(t, sb.process.Pid)
			t.Logf("%d MiB: %+v", used>>20, exit)
			if used > memory+disk+own {
				t.Errorf("its process took %d MiB", used>>20)
			}
			if p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"true"}}); err != nil {
				t.Errorf("it runs nothing any more: %v", err)
			} else if exit, err := p.Wait(ctx); err != nil || exit.Code != 0 {
				t.Errorf("then true ends with %+v, %v", exit, err)
			}
		})
	}
}

// A command that has ended may have left behind what holds memory that no limit counts. It ends too, and nothing else has
// to end in its place again and again.
func TestWhatACommandLeftBehindEndsForItsMemory(t *testing.T) {
	sb := limited(t, paddock.Limits{Memory: 256 << 20, Disk: 32 << 20})
	background(t, sb, "{ "+strings.Replace(hungry()["stacks"], "sleep 10", "sleep 3600", 1)+"; }")
	const patience = 5 * time.Minute
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		st, err := sb.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if st.Usage.PIDs == 0 {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("%d tasks go on, and the process takes %d MiB", st.Usage.PIDs, peak(t, sb.process.Pid)>>20)
		}
	}
	background(t, sb, "true")
}
